/* Gigabytes through the daemon: its memory must not grow with them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/bench.h"
#include "cli/bench_daemon.h"
#include "httpc/sse_reader.h"

#define SIZE_BYTES (10ull << 30)
#define SIZE_QUICK (1ull << 30)
#define WARM_UP_SHARE 16 /* a sixteenth of the bytes goes by before memory is watched */
#define SAMPLE_MS 20
#define GROWTH_MIB 4
#define EVENT_MAX (4u << 20)
/* The box would otherwise be what is measured. */
#define CORES 2
#define EVENT_HEAD "{\"stream\":\"stdout\",\"data\":\""
#define EVENT_TAIL "\"}"

struct flow {
	struct own_daemon d;
	struct bench_sandbox box;
	uint64_t size, bytes;
	uint64_t rss_min, rss_max, sampled_ms;
	size_t samples;
	bool is_ended;
	struct sse_reader events;
};

static int watch_memory(struct flow *f)
{
	uint64_t now = clock_now_ms(), rss;
	int r;

	if (f->bytes < f->size / WARM_UP_SHARE || now < f->sampled_ms + SAMPLE_MS)
		return 0;
	f->sampled_ms = now;
	r = bench_rss(f->d.pid, &rss);
	if (r < 0)
		return r;
	f->samples++;
	f->rss_max = rss > f->rss_max ? rss : f->rss_max;
	f->rss_min = !f->rss_min || rss < f->rss_min ? rss : f->rss_min;
	return 0;
}

/* ---- an execution's output ---- */

/* What is printed has one kind of character that is escaped, the newline; so the length tells. */
static int take_output(struct flow *f, const struct sse_event *e)
{
	size_t around = strlen(EVENT_HEAD) + strlen(EVENT_TAIL), n;

	if (e->len < around || memcmp(e->data, EVENT_HEAD, strlen(EVENT_HEAD)) != 0)
		return -EPROTO;
	n = e->len - around;
	for (const char *at = e->data; (at = memchr(at, '\\', (size_t)(e->data + e->len - at)));
	     at += 2)
		n--;
	f->bytes += n;
	return watch_memory(f);
}

static int take_event(void *user, const struct sse_event *e)
{
	struct flow *f = user;

	if (strcmp(e->event, "output") == 0)
		return take_output(f, e);
	if (strcmp(e->event, "end") == 0)
		f->is_ended = strstr(e->data, "\"exitCode\":0,") != NULL;
	return strcmp(e->event, "gap") == 0 ? -EPIPE : 0;
}

static int take_stream(void *user, const void *data, size_t n)
{
	struct flow *f = user;

	return sse_reader_feed(&f->events, data, n, take_event, f);
}

static int flow_output(struct flow *f, struct err *err)
{
	char target[BENCH_TARGET], body[256];
	int r;

	sse_reader_init(&f->events, EVENT_MAX);
	bench_target(target, f->box.id, "/execute");
	(void)snprintf(body, sizeof(body),
		       "{\"type\":\"command\",\"content\":\"yes $(printf %%04000d 0) | head -c "
		       "%" PRIu64 "\",\"stream\":true,\"timeout\":3600}",
		       f->size);
	r = fetch_send(&f->d.conn, "POST", target, body, err);
	while (r == 0)
		r = fetch_step(&f->d.conn, take_stream, f, err);
	sse_reader_done(&f->events);
	if (r > 0 && !f->is_ended)
		return err_set(err, EIO, "the stream ended too early");
	return r < 0 ? r : 0;
}

/* ---- a file ---- */

static int take_file(void *user, const void *data, size_t n)
{
	struct flow *f = user;
	const char *bytes = data;

	if (n > 0 && (bytes[0] != '\0' || memcmp(bytes, bytes + 1, n - 1) != 0))
		return -EIO; /* holes are zeroes */
	f->bytes += n;
	return watch_memory(f);
}

/* A file of holes: the box's disk is memory, and they cost none. */
static int flow_file(struct flow *f, struct err *err)
{
	char target[BENCH_TARGET], body[128];
	int r;

	bench_target(target, f->box.id, "/execute");
	(void)snprintf(body, sizeof(body),
		       "{\"type\":\"command\",\"content\":\"truncate -s %" PRIu64
		       " /workspace/holes\"}",
		       f->size);
	r = fetch_want(&f->d.conn, 200, "POST", target, body, NULL, err);
	bench_target(target, f->box.id, "/files/workspace/holes");
	if (r == 0)
		r = fetch_send(&f->d.conn, "GET", target, NULL, err);
	while (r == 0)
		r = fetch_step(&f->d.conn, take_file, f, err);
	return r < 0 ? r : 0;
}

/* ---- the rows ---- */

static int measure(struct bench *b, struct flow *f, const char *what,
		   int (*fn)(struct flow *f, struct err *err), struct err *err)
{
	struct bench_row *row = bench_add(b, "flow", what);
	uint64_t began = clock_now_ms(), took_ms;
	int r;

	f->bytes = f->rss_min = f->rss_max = f->sampled_ms = 0;
	f->samples = 0;
	r = fn(f, err);
	if (r < 0)
		return r;
	if (f->bytes != f->size || f->samples == 0)
		return err_set(err, EIO, "%" PRIu64 " of %" PRIu64 " bytes came", f->bytes,
			       f->size);
	took_ms = clock_now_ms() - began;
	row->unit = "MiB";
	row->n = f->samples;
	row->p50 = row->ratio = (double)(f->rss_max - f->rss_min) / (1 << 20);
	(void)snprintf(row->note, sizeof(row->note),
		       "%" PRIu64 " GiB, %.0f MiB/s; RSS between %.1f and %.1f MiB", f->size >> 30,
		       (double)(f->size >> 20) * 1e3 / (double)(took_ms ? took_ms : 1),
		       (double)f->rss_min / (1 << 20), (double)f->rss_max / (1 << 20));
	bench_judge(row, GROWTH_MIB, false);
	return 0;
}

int bench_flow(struct bench *b, struct err *err)
{
	struct flow f = { .size = b->quick ? SIZE_QUICK : SIZE_BYTES };
	char body[BENCH_BOX];
	int r = bench_daemon_start(&f.d, err);

	bench_box(body, CORES, "");
	if (r == 0)
		r = bench_sandbox_create(&f.d, body, &f.box, err);
	if (r == 0)
		r = measure(b, &f, "the daemon's memory grows by, while output streams",
			    flow_output, err);
	if (r == 0)
		r = measure(b, &f, "the daemon's memory grows by, while a file is fetched",
			    flow_file, err);
	own_daemon_stop(&f.d);
	return r;
}
