/* How long until a second box is there that begins with the files of a first, against a new one. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/bench.h"
#include "provider/guest_client.h"

#define TEMPLATE_ID 1u
/* A new file: of one that is overwritten, file systems write the end at once. */
#define FILL "rm -f /workspace/data; head -c 104857600 /dev/urandom >/workspace/data && echo ok"
#define FULL_RUNS 60u /* 100 MiB each */
#define FRESH_RUNS 20u
#define IMAGE_BYTES (4ull << 30)

/* A launcher and its state directory. */
struct bed {
	struct launcher *launcher; /* owned */
	char dir[PATH_MAX];        /* "": none */
};

struct fork_probe {
	struct launcher *launcher; /* borrowed */
	const char *below;         /* the layer that box stands on; NULL: none */
	char box_id[ID_LEN + 1];   /* that is forked; "": none, a new box is made */
	struct guest_client *fill; /* borrowed: writes its files anew before each; NULL: does not */
};

/* With room for the files in its memory. */
static const struct limits limits = { .memory_bytes = 512ull << 20, .disk_bytes = 256ull << 20 };

/* A box on these layers; NULL: none. */
static int claim(struct launcher *l, const char *below, const char *layer, struct launcher_box *ret,
		 struct err *err)
{
	struct launch_spec spec = { .template_id = TEMPLATE_ID,
				    .flags = LAUNCH_COLD,
				    .limits = limits };

	if (below)
		spec.layers.ids[spec.layers.count++] = below;
	if (layer)
		spec.layers.ids[spec.layers.count++] = layer;
	return launcher_claim_sync(l, &spec, ret, err);
}

static int fill(struct guest_client *g, struct err *err)
{
	_cleanup_(guest_result_done) struct guest_result result = { 0 };
	struct guest_exec e;
	int r;

	box_exec_true(&e);
	e.argc = 3;
	e.argv[0] = "/bin/sh";
	e.argv[1] = "-c";
	e.argv[2] = FILL;
	r = guest_exec_sync(g, &e, NULL, 0, &result, err);
	if (r == 0 && strcmp(buf_str(&result.out), "ok\n") != 0)
		r = err_set(err, EIO, "the box could not be filled: %.100s", buf_str(&result.err));
	return r;
}

static int once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct fork_probe *p = self;
	char layer[ID_LEN + 1];
	struct snapshot_spec s = { p->box_id, layer, SNAPSHOT_VOLATILE };
	struct launcher_box box;
	uint64_t began;
	int r = p->fill ? fill(p->fill, err) : 0;

	if (r < 0)
		return r;
	id_make(layer);
	began = clock_now_ns();
	if (p->box_id[0])
		r = launcher_snapshot_sync(p->launcher, &s, NULL, err);
	if (r == 0)
		r = claim(p->launcher, p->below, p->box_id[0] ? layer : NULL, &box, err);
	*ret_ns = clock_now_ns() - began;
	if (r < 0)
		return r;
	launcher_box_done(&box);
	r = launcher_destroy_sync(p->launcher, box.id, NULL, err);
	if (r == 0 && p->box_id[0])
		r = launcher_layer_drop_sync(p->launcher, layer, err);
	return r;
}

/* What a row compares. */
struct comparison {
	const char *what, *with;
	struct launcher *cold; /* whose boxes it is compared with */
	uint32_t runs;
	double demand; /* 0: none */
};

static int compare(struct bench *b, const struct fork_probe *source, const struct comparison *c,
		   struct err *err)
{
	struct fork_probe p = *source, none = { .launcher = c->cold };
	struct probe subject = { "fork", once, &p };
	struct probe reference = { c->with, once, &none };
	struct bench_row *row = bench_add(b, "fork", c->what);
	int r = bench_pair(b, row, &subject, &reference, b->n < c->runs ? b->n : c->runs, err);

	if (r == 0 && c->demand > 0)
		bench_judge(row, c->demand, false);
	return r;
}

/* A box that has written its files itself. */
static int with_written(struct bench *b, struct launcher *l, const char *layer,
			const struct comparison *rows, size_t count, struct err *err)
{
	_cleanup_(guest_free_p) struct guest_client *g = NULL;
	struct fork_probe source = { .launcher = l };
	struct snapshot_spec s = { source.box_id, layer, SNAPSHOT_VOLATILE };
	struct launcher_box box;
	int r = claim(l, NULL, NULL, &box, err);

	if (r < 0)
		return r;
	memcpy(source.box_id, box.id, sizeof(source.box_id));
	r = guest_create(TAKE_FD(box.sock), &g, err);
	if (r == 0)
		r = fill(g, err);
	for (size_t i = 0; i < count && r == 0; i++) {
		source.fill = rows[i].runs == FRESH_RUNS ? g : NULL;
		r = compare(b, &source, &rows[i], err);
	}
	if (r == 0)
		r = launcher_snapshot_sync(l, &s, NULL, err);
	launcher_box_done(&box);
	(void)launcher_destroy_sync(l, source.box_id, NULL, NULL);
	return r;
}

/* One that has them of the box it was forked of. */
static int with_forked(struct bench *b, struct launcher *l, const char *layer,
		       const struct comparison *row, struct err *err)
{
	struct fork_probe source = { .launcher = l, .below = layer };
	struct launcher_box box;
	int r = claim(l, layer, NULL, &box, err);

	if (r < 0)
		return r;
	memcpy(source.box_id, box.id, sizeof(source.box_id));
	r = compare(b, &source, row, err);
	launcher_box_done(&box);
	(void)launcher_destroy_sync(l, source.box_id, NULL, NULL);
	return r;
}

static int compare_memory(struct bench *b, struct launcher *l, struct err *err)
{
	const struct comparison rows[] = {
		{ "fork of a box that has written 100 MiB, to claimed", "cold box", l, FULL_RUNS,
		  5 },
		{ "fork of a fork that has the 100 MiB, to claimed", "cold box", l, FULL_RUNS, 5 },
	};
	char layer[ID_LEN + 1];
	int r;

	id_make(layer);
	r = with_written(b, l, layer, rows, 1, err);
	return r < 0 ? r : with_forked(b, l, layer, &rows[1], err);
}

/* Layers on disk, against a cold box there and against one in memory. */
static int compare_disk(struct bench *b, struct launcher *disk, struct launcher *memory,
			struct err *err)
{
	const struct comparison rows[] = {
		{ "the same, on disk: of what it has written", "cold box there", disk, FULL_RUNS,
		  5 },
		{ "the same, against memory's cold box", "cold box in memory", memory, FULL_RUNS,
		  5 },
		{ "of what was written just before", "cold box there", disk, FRESH_RUNS, 0 },
		{ "of a fork that has the 100 MiB", "cold box there", disk, FULL_RUNS, 5 },
	};
	struct fork_probe cold = { .launcher = disk };
	char layer[ID_LEN + 1];
	int r;

	id_make(layer);
	r = with_written(b, disk, layer, rows, 3, err);
	if (r == 0)
		r = with_forked(b, disk, layer, &rows[3], err);
	return r < 0 ? r
		     : compare(b, &cold,
			       &(struct comparison){ "cold box that writes to disk, to claimed",
						     "cold box in memory", memory, 300, 0 },
			       err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void bed_done(struct bed *bed)
{
	bed->launcher = launcher_stop(bed->launcher);
	if (bed->dir[0])
		(void)nftw(bed->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int bed_make(struct bed *bed, uint64_t layers_bytes, struct err *err)
{
	const char *place = getenv("TMPDIR");
	struct template_spec t = { .id = TEMPLATE_ID, .preload = "" };
	struct launcher_options o = { .persistent = true, .layers_bytes = layers_bytes };
	_close_ int fd = -1;
	char dir[PATH_MAX];
	int r;

	if (str_format(dir, sizeof(dir), "%s/holt-bench.XXXXXX", place ? place : "/var/tmp") < 0)
		return err_set(err, ENAMETOOLONG, "TMPDIR is too long");
	if (!mkdtemp(dir))
		return err_sys(err, errno, "%s", dir);
	memcpy(bed->dir, dir, sizeof(dir));
	fd = o.state_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? err_sys(err, errno, "%s", dir) : launcher_start(&o, &bed->launcher, err);
	return r < 0 ? r : launcher_template_sync(bed->launcher, &t, -1, err);
}

int bench_fork(struct bench *b, struct err *err)
{
	_cleanup_(bed_done) struct bed memory = { .dir = "" }, disk = { .dir = "" };
	int r = bed_make(&memory, 0, err);

	if (r == 0)
		r = compare_memory(b, memory.launcher, err);
	if (r < 0 || geteuid() != 0)
		return r;
	r = bed_make(&disk, IMAGE_BYTES, err);
	return r < 0 ? r : compare_disk(b, disk.launcher, memory.launcher, err);
}
