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
#define FILL "head -c 104857600 /dev/urandom >/workspace/data && echo ok"
#define FULL_RUNS 60u /* 100 MiB each */

struct fork_probe {
	struct launcher *launcher; /* borrowed */
	const char *below;         /* the layer that box stands on; NULL: none */
	char box_id[ID_LEN + 1];   /* that is forked; "": none, a new box is made */
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

static int once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct fork_probe *p = self;
	char layer[ID_LEN + 1];
	struct snapshot_spec s = { p->box_id, layer, SNAPSHOT_VOLATILE };
	struct launcher_box box;
	uint64_t began;
	int r = 0;

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

static int compare(struct bench *b, const struct fork_probe *source, const char *what,
		   struct err *err)
{
	struct fork_probe p = *source, none = { .launcher = source->launcher };
	struct probe subject = { "fork", once, &p };
	struct probe reference = { "cold box", once, &none };
	struct bench_row *row = bench_add(b, "fork", what);
	int r = bench_pair(b, row, &subject, &reference, b->n < FULL_RUNS ? b->n : FULL_RUNS, err);

	if (r == 0)
		bench_judge(row, 5, false);
	return r;
}

/* The box that is forked has written its files itself, or has them of the one it was forked of. */
static int compare_written(struct bench *b, struct launcher *l, const char *layer, struct err *err)
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
	if (r == 0)
		r = compare(b, &source, "fork of a box that has written 100 MiB, to claimed", err);
	if (r == 0)
		r = launcher_snapshot_sync(l, &s, NULL, err);
	launcher_box_done(&box);
	(void)launcher_destroy_sync(l, source.box_id, NULL, NULL);
	return r;
}

static int compare_forked(struct bench *b, struct launcher *l, const char *layer, struct err *err)
{
	struct fork_probe source = { .launcher = l, .below = layer };
	struct launcher_box box;
	int r = claim(l, layer, NULL, &box, err);

	if (r < 0)
		return r;
	memcpy(source.box_id, box.id, sizeof(source.box_id));
	r = compare(b, &source, "fork of a fork that has the 100 MiB, to claimed", err);
	launcher_box_done(&box);
	(void)launcher_destroy_sync(l, source.box_id, NULL, NULL);
	return r;
}

static int compare_both(struct bench *b, struct launcher *l, struct err *err)
{
	char layer[ID_LEN + 1];
	int r;

	id_make(layer);
	r = compare_written(b, l, layer, err);
	return r < 0 ? r : compare_forked(b, l, layer, err);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int bench_fork(struct bench *b, struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	const char *place = getenv("TMPDIR");
	char dir[PATH_MAX];
	struct template_spec t = { .id = TEMPLATE_ID, .preload = "" };
	_close_ int fd = -1;
	int r;

	if (str_format(dir, sizeof(dir), "%s/holt-bench.XXXXXX", place ? place : "/var/tmp") < 0)
		return err_set(err, ENAMETOOLONG, "TMPDIR is too long");
	if (!mkdtemp(dir))
		return err_sys(err, errno, "%s", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? err_sys(err, errno, "%s", dir)
		   : launcher_start(
			     &(struct launcher_options){ .persistent = true, .state_fd = fd }, &l,
			     err);
	if (r == 0)
		r = launcher_template_sync(l, &t, -1, err);
	if (r == 0)
		r = compare_both(b, l, err);
	l = launcher_stop(l);
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return r;
}
