/* Many boxes at once: what one weighs while it waits, and whether thousands slow each other. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/bench.h"
#include "provider/guest_client.h"

#define TEMPLATE_ID 1u
#define IDLE_BOXES 60u
#define FEW 10u
#define MANY 2000u
#define PING_MS 10000

struct crowd {
	struct launcher *l;           /* owned */
	struct launcher_box *boxes;   /* owned, claimed */
	struct guest_client **guests; /* owned; NULL until asked for */
	uint32_t len, cap;
};

static void crowd_done(struct crowd *c)
{
	for (uint32_t i = 0; i < c->len; i++) {
		guest_free(c->guests[i]);
		launcher_box_done(&c->boxes[i]);
	}
	free(c->boxes);
	free(c->guests);
	c->l = launcher_stop(c->l); /* and with it every box */
}

static int crowd_init(struct crowd *c, const struct template_spec *t, uint32_t pool, uint32_t cap,
		      struct err *err)
{
	*c = (struct crowd){ .cap = cap };
	c->boxes = calloc(cap, sizeof(*c->boxes));
	c->guests = calloc(cap, sizeof(struct guest_client *));
	if (!c->boxes || !c->guests)
		return err_sys(err, ENOMEM, "%u boxes", cap);
	return box_launcher(t, pool, &c->l, err);
}

static int crowd_claim(struct crowd *c, uint32_t n, struct err *err)
{
	struct launch_spec spec = { .template_id = TEMPLATE_ID };
	int r = 0;

	while (r == 0 && c->len < n) {
		r = launcher_claim_sync(c->l, &spec, &c->boxes[c->len], err);
		if (r == 0)
			c->len++;
	}
	return r;
}

/* Proportional set size of a process in bytes, or -errno. */
static int64_t pss_of(int proc, const char *pid)
{
	char path[64], text[4096];
	const char *at;
	uint32_t kb;

	if (str_format(path, sizeof(path), "%s/smaps_rollup", pid) < 0)
		return -E2BIG;
	if (fd_read_file_at(proc, path, text, sizeof(text)) < 0)
		return -EACCES;
	at = strstr(text, "\nPss:");
	if (!at)
		return -EIO;
	at += strlen("\nPss:");
	at += strspn(at, " ");
	text[(size_t)(at - text) + strspn(at, "0123456789")] = '\0';
	return parse_u32(at, 0, UINT32_MAX >> 10, &kb) < 0 ? -EIO : (int64_t)kb << 10;
}

/* "pid:[4026532...]" of a process. */
static bool pid_namespace(int proc, const char *pid, char *dst, size_t size)
{
	char path[64];
	ssize_t n;

	if (str_format(path, sizeof(path), "%s/ns/pid", pid) < 0)
		return false;
	n = readlinkat(proc, path, dst, size - 1);
	if (n <= 0)
		return false;
	dst[n] = '\0';
	return true;
}

/* The names of the boxes' pid namespaces, as keys. */
static struct map *box_namespaces(const struct crowd *c, int proc)
{
	struct map *m = map_create(c->len + 1);
	char pid[16], ns[64];

	for (uint32_t i = 0; m && i < c->len; i++)
		if (str_format(pid, sizeof(pid), "%d", c->boxes[i].pid) == 0 &&
		    pid_namespace(proc, pid, ns, sizeof(ns)))
			(void)map_put(m, ns, strlen(ns), m, NULL);
	return m;
}

/* All processes of all boxes together. Reading them needs the rights of their parent. */
static int sum_pss(const struct crowd *c, uint64_t *ret_bytes, uint32_t *ret_processes,
		   struct err *err)
{
	_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct map *spaces = proc < 0 ? NULL : box_namespaces(c, proc);
	DIR *dir = opendir("/proc");
	char ns[64];

	if (!spaces || !dir || map_len(spaces) != c->len) {
		map_free(spaces);
		if (dir)
			(void)closedir(dir);
		return err_set(err, EACCES,
			       "the boxes' processes cannot be looked at: run as root");
	}
	for (struct dirent *d; (d = readdir(dir));) {
		int64_t pss;

		if (d->d_name[0] < '1' || d->d_name[0] > '9' ||
		    !pid_namespace(proc, d->d_name, ns, sizeof(ns)) ||
		    !map_get(spaces, ns, strlen(ns)))
			continue;
		pss = pss_of(proc, d->d_name);
		*ret_bytes += pss > 0 ? (uint64_t)pss : 0;
		(*ret_processes)++;
	}
	(void)closedir(dir);
	map_free(spaces);
	return 0;
}

struct idle {
	const char *what;
	uint32_t flags;
	double demand_mib;
};

static uint64_t mean_charge(const struct crowd *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->len; i++) {
		struct box_usage usage = { 0 };

		if (launcher_usage_sync(c->l, c->boxes[i].id, &usage, NULL) == 0)
			sum += usage.memory_bytes;
	}
	return c->len ? sum / c->len : 0;
}

static int weigh(struct bench *b, const struct idle *idle, struct err *err)
{
	struct bench_row *row = bench_add(b, "idle", idle->what);
	struct template_spec t = { .id = TEMPLATE_ID, .flags = idle->flags, .preload = "" };
	_cleanup_(crowd_done) struct crowd c = { 0 };
	uint64_t bytes = 0;
	uint32_t processes = 0;
	int r = crowd_init(&c, &t, IDLE_BOXES, IDLE_BOXES, err);

	if (r == 0)
		r = crowd_claim(&c, IDLE_BOXES, err);
	if (r == 0 && (idle->flags & TEMPLATE_WARM_PYTHON) && !(c.boxes[0].flags & BOX_WARM_PYTHON))
		r = err_set(err, EIO, "no Python waits in the boxes");
	if (r == 0)
		r = sum_pss(&c, &bytes, &processes, err);
	if (r < 0)
		return r;
	row->unit = "MiB";
	row->n = c.len;
	row->p50 = row->ratio = (double)bytes / c.len / (1 << 20);
	(void)snprintf(row->note, sizeof(row->note),
		       "mean; %.1f processes a box; its cgroup is charged %.2f MiB",
		       (double)processes / c.len, (double)mean_charge(&c) / (1 << 20));
	bench_judge(row, idle->demand_mib, false);
	return 0;
}

int bench_idle(struct bench *b, struct err *err)
{
	static const struct idle idles[] = {
		{ "idle warm box, memory (PSS)", 0, 1 },
		{ "idle warm box with Python, memory (PSS)", TEMPLATE_WARM_PYTHON, 3 },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(idles) / sizeof(idles[0]); i++)
		r = weigh(b, &idles[i], err);
	return r;
}

/* Times the creation of n boxes, each removed again, while the crowd waits. */
static int time_creation(const struct crowd *c, uint32_t n, struct samples *s, struct err *err)
{
	struct launch_spec spec = { .template_id = TEMPLATE_ID, .flags = LAUNCH_COLD };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++) {
		uint64_t began = clock_now_ns();
		struct launcher_box box;

		r = launcher_claim_sync(c->l, &spec, &box, err);
		if (r < 0)
			break;
		r = samples_add(s, clock_now_ns() - began);
		if (r == 0)
			r = launcher_destroy_sync(c->l, box.id, NULL, err);
		launcher_box_done(&box); /* behind it: a box whose socket closes ends by itself */
	}
	return r;
}

/* Every box answers a ping and runs a command. How many did. */
static uint32_t ask_all(struct crowd *c)
{
	struct guest_exec e;
	uint32_t answered = 0;

	box_exec_true(&e);
	for (uint32_t i = 0; i < c->len; i++) {
		struct guest_result result = { 0 };

		if (guest_create(TAKE_FD(c->boxes[i].sock), &c->guests[i], NULL) < 0)
			continue;
		if (guest_ping_sync(c->guests[i], PING_MS) == 0 &&
		    guest_exec_sync(c->guests[i], &e, NULL, 0, &result, NULL) == 0 &&
		    result.exit.code == 0 && result.exit.flags == 0)
			answered++;
		guest_result_done(&result);
	}
	return answered;
}

static void raise_nofile(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int crowd_shrink(struct crowd *c, uint32_t n, struct err *err)
{
	int r = 0;

	while (r == 0 && c->len > n) {
		c->len--;
		r = launcher_destroy_sync(c->l, c->boxes[c->len].id, NULL, err);
		c->guests[c->len] = guest_free(c->guests[c->len]);
		launcher_box_done(&c->boxes[c->len]);
	}
	return r;
}

static void fill_crowd_row(struct bench_row *row, struct samples *few, struct samples *many)
{
	row->n = many->len;
	row->p50 = samples_ms(many, 0.5);
	row->p99 = samples_ms(many, 0.99);
	row->ref_p50 = samples_ms(few, 0.5);
	row->ref_p99 = samples_ms(few, 0.99);
	row->ratio = row->ref_p99 > 0 ? row->p99 / row->ref_p99 : 0;
	(void)snprintf(row->reference, sizeof(row->reference), "the same while 10 wait");
	(void)snprintf(
		row->note, sizeof(row->note),
		"the ratio is that of the p99s (%.2f and %.2f ms); the few were measured before "
		"and after the many",
		row->p99, row->ref_p99);
	bench_judge(row, 2, false);
}

/* Few, many, few again: what drifts on the machine meanwhile falls on both sides. */
static int crowd_rows(struct bench *b, struct crowd *c, struct samples sets[2], struct err *err)
{
	struct bench_row *row = bench_add(b, "crowd", "creation of a box while 2,000 wait");
	uint32_t answered = 0;
	int r;

	r = crowd_claim(c, FEW, err);
	bench_quiet(b);
	if (r == 0)
		r = time_creation(c, (b->n + 1) / 2, &sets[0], err);
	if (r == 0)
		r = crowd_claim(c, MANY, err);
	bench_quiet(b);
	if (r == 0)
		r = time_creation(c, b->n, &sets[1], err);
	if (r == 0)
		answered = ask_all(c);
	if (r == 0)
		r = crowd_shrink(c, FEW, err);
	bench_quiet(b);
	if (r == 0)
		r = time_creation(c, (b->n + 1) / 2, &sets[0], err);
	if (r < 0)
		return r;
	fill_crowd_row(row, &sets[0], &sets[1]);
	row = bench_add(b, "crowd", "idle boxes of 2,000 that answer ping and run a command");
	row->unit = "boxes";
	row->n = MANY;
	row->p50 = row->ratio = answered;
	bench_judge(row, MANY, true);
	return 0;
}

int bench_crowd(struct bench *b, struct err *err)
{
	struct template_spec t = { .id = TEMPLATE_ID, .preload = "" };
	_cleanup_(crowd_done) struct crowd c = { 0 };
	struct samples sets[2] = { { 0 } };
	int r;

	raise_nofile();
	r = crowd_init(&c, &t, 0, MANY, err);
	if (r == 0)
		r = crowd_rows(b, &c, sets, err);
	samples_done(&sets[0]);
	samples_done(&sets[1]);
	return r;
}
