/* Pages of long lists, asked of the store itself: one page of a hundred, anywhere in ten thousand.
 * The time is from the call to its callback, as the daemon's loop would see it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/bench.h"
#include "cli/bench_bundle.h"
#include "store/store.h"

#define ROWS 10000
#define PAGE 100
#define DEMAND_MS 5.0
#define OWNER "bench"
#define BOX "bench-sandbox"

struct pages {
	struct store st;  /* owned */
	const char *kind; /* of objects; NULL: executions */
	uint32_t at;      /* which page is next */
	bool is_done;
	int r;
	size_t n;
};

static void done(void *user, int r)
{
	struct pages *p = user;

	if (r < 0)
		p->r = r;
}

static void got_objects(void *user, int r, const struct object_row *rows, size_t n, bool more)
{
	struct pages *p = user;

	(void)rows;
	(void)more;
	p->r = r;
	p->n = n;
	p->is_done = true;
}

static void got_executions(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	(void)rows;
	got_objects(user, r, NULL, n, more);
}

static void turn(struct pages *p)
{
	struct pollfd fd = { .fd = store_fd(&p->st), .events = POLLIN };

	(void)poll(&fd, 1, 1000);
	store_dispatch(&p->st);
}

/* ---- filling ---- */

static int put(struct pages *p, const char *kind, uint32_t i)
{
	char id[24];
	struct object_row object = {
		.kind = kind,
		.id = id,
		.owner = OWNER,
		.name = id,
		.text = "{\"layers\":[\"a\",\"b\"],\"limits\":{\"memory\":268435456}}",
		.created_ms = i + 1
	};
	struct execution_row execution = { .id = id,
					   .sandbox_id = BOX,
					   .owner = OWNER,
					   .content = "{\"command\":\"true\"}",
					   .started_ms = i + 1 };
	int r = str_format(id, sizeof(id), "row%08u", i);

	while (r == 0) {
		r = kind ? store_put_object(&p->st, &object, done, p)
			 : store_put_execution(&p->st, &execution, done, p);
		if (r != -EAGAIN)
			break;
		turn(p); /* the queue is full */
		r = 0;
	}
	return r < 0 ? r : p->r;
}

static int fill(struct pages *p, struct err *err)
{
	static const char *const kinds[] = { "template", "snapshot", NULL };
	const struct sandbox_row box = { .id = BOX, .owner = OWNER };
	int r = store_put_sandbox(&p->st, &box, done, p);

	for (size_t k = 0; r == 0 && k < 3; k++)
		for (uint32_t i = 0; r == 0 && i < ROWS; i++)
			r = put(p, kinds[k], i);
	if (r == 0)
		r = store_flush(&p->st);
	store_dispatch(&p->st);
	if (r == 0)
		r = p->r;
	return r < 0 ? err_sys(err, r, "fill the store") : 0;
}

/* ---- one page ---- */

static int page_once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct pages *p = self;
	const struct store_object_filter f = { .kind = p->kind, .owner = OWNER };
	struct store_cursor c = { .before_id = "" };
	uint64_t began = clock_now_ns();
	int r;

	/* Pages from all over the list, none of them the last. */
	p->at = (p->at + 7919) % (ROWS - 2 * PAGE);
	c.before_ms = (int64_t)p->at + 2 * PAGE;
	p->is_done = false;
	r = p->kind ? store_list_objects(&p->st, &f, &c, PAGE, got_objects, p)
		    : store_list_executions(&p->st, BOX, &c, PAGE, got_executions, p);
	while (r == 0 && !p->is_done)
		turn(p);
	*ret_ns = clock_now_ns() - began;
	if (r == 0)
		r = p->r;
	if (r < 0)
		return err_sys(err, r, "list a page");
	return p->n == PAGE ? 0 : err_set(err, EPROTO, "a page of %zu rows", p->n);
}

static int measure(struct bench *b, struct pages *p, const char *kind, const char *what,
		   struct err *err)
{
	struct samples s = { 0 };
	struct bench_row *row;
	uint64_t ns;
	int r = 0;

	p->kind = kind;
	bench_quiet(b);
	for (uint32_t i = 0; r == 0 && i < b->n + 10; i++) {
		r = page_once(p, &ns, err);
		if (r == 0 && i >= 10) /* the first warm it up */
			r = samples_add(&s, ns);
	}
	row = r == 0 ? bench_add(b, "store", what) : NULL;
	if (row) {
		row->unit = "ms";
		row->n = s.len;
		row->p50 = row->ratio = samples_ms(&s, 0.5);
		row->p99 = samples_ms(&s, 0.99);
		bench_judge(row, DEMAND_MS, false);
	}
	samples_done(&s);
	return r;
}

int bench_store(struct bench *b, struct err *err)
{
	char dir[] = "/tmp/holt-bench-store-XXXXXX";
	struct pages p = { 0 };
	int r;

	if (!mkdtemp(dir))
		return err_sys(err, errno, "%s", dir);
	r = store_open_sqlite(&(struct store_options){ .dir = dir }, &p.st, err);
	if (r == 0)
		r = fill(&p, err);
	if (r == 0)
		r = measure(b, &p, "template", "page of 100 of 10,000 templates", err);
	if (r == 0)
		r = measure(b, &p, "snapshot", "page of 100 of 10,000 snapshots", err);
	if (r == 0)
		r = measure(b, &p, NULL, "page of 100 of 10,000 executions", err);
	store_close(&p.st);
	bundle_remove_tree(dir);
	return r;
}
