/* Executions at once, each streaming its own bytes: all must arrive, and in order. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "cli/bench_fleet.h"
#include "crypto/hash.h"
#include "httpc/sse_reader.h"
#include "json/jv.h"

#define STREAM_BYTES (1u << 20)
#define EVENT_MAX (4u << 20)
#define PATIENCE_MS 60000
#define SAMPLE_MS 20

CLEANUP_FUNC(struct jv_doc *, jv_free)

struct stream {
	const char *id; /* borrowed: the sandbox's, and what it prints again and again */
	struct fetch conn;
	struct sse_reader events;
	struct hash *hash; /* owned */
	uint64_t bytes;
	bool is_ended; /* with exit code 0 */
};

struct streams {
	struct stream *all; /* owned */
	struct pollfd *fds; /* owned; of those that are not over */
	size_t len;
	pid_t daemon;
	uint64_t rss_max, sampled_ms;
};

static void streams_done(struct streams *s)
{
	for (size_t i = 0; i < s->len; i++) {
		fetch_close(&s->all[i].conn);
		sse_reader_done(&s->all[i].events);
		hash_free(s->all[i].hash);
	}
	free(s->all);
	free(s->fds);
}

static int take_output(struct stream *s, struct jv event)
{
	struct str text;
	_free_ char *bytes = NULL;
	ssize_t n;
	int r = jv_str(jv_get(event, "data"), &text);

	bytes = malloc(text.len + 1);
	if (r < 0 || !bytes)
		return r < 0 ? r : -ENOMEM;
	n = decode_base64(text.data, text.len, bytes, text.len + 1);
	if (n < 0)
		return (int)n;
	s->bytes += (uint64_t)n;
	return hash_update(s->hash, bytes, (size_t)n);
}

static int take_event(void *user, const struct sse_event *e)
{
	struct stream *s = user;
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	int64_t code = -1;
	int r = jv_parse(e->data, e->len, EVENT_MAX, &doc, NULL);

	if (r < 0 || strcmp(e->event, "gap") == 0)
		return r < 0 ? r : -EPIPE;
	if (strcmp(e->event, "output") == 0)
		return take_output(s, jv_root(doc));
	if (strcmp(e->event, "end") == 0)
		s->is_ended = jv_i64(jv_get(jv_root(doc), "exitCode"), &code) == 0 && code == 0;
	return 0;
}

static int take_bytes(void *user, const void *data, size_t n)
{
	struct stream *s = user;

	return sse_reader_feed(&s->events, data, n, take_event, s);
}

/* What a stream must have been: its id and a newline, again and again. */
static bool is_intact(struct stream *s)
{
	uint8_t got[HASH_LEN], want[HASH_LEN];
	_free_ char *text = malloc(STREAM_BYTES);
	size_t len = strlen(s->id) + 1;

	if (!text || !s->is_ended || s->bytes != STREAM_BYTES)
		return false;
	for (size_t i = 0; i < STREAM_BYTES; i++)
		text[i] = i % len + 1 == len ? '\n' : s->id[i % len];
	return hash_sha256(text, STREAM_BYTES, want) == 0 && hash_final(s->hash, got) == 0 &&
	       memcmp(got, want, HASH_LEN) == 0;
}

static int begin(struct stream *s, const struct fleet *f, const char *id, struct err *err)
{
	char target[BENCH_TARGET], body[256];
	int r;

	s->id = id;
	s->conn.fd = -1;
	sse_reader_init(&s->events, EVENT_MAX);
	s->hash = hash_create();
	if (!s->hash)
		return err_sys(err, ENOMEM, "hash");
	bench_target(target, id, "/execute?encoding=base64");
	(void)snprintf(body, sizeof(body),
		       "{\"type\":\"command\",\"content\":\"yes %s | head -c %u\","
		       "\"stream\":true,\"timeout\":60}",
		       id, STREAM_BYTES);
	r = fetch_open(&s->conn, f->d.port, f->d.key, err);
	return r < 0 ? r : fetch_send(&s->conn, "POST", target, body, err);
}

static void watch_memory(struct streams *s)
{
	uint64_t now = clock_now_ms(), rss;

	if (now < s->sampled_ms + SAMPLE_MS)
		return;
	s->sampled_ms = now;
	if (bench_rss(s->daemon, &rss) == 0 && rss > s->rss_max)
		s->rss_max = rss;
}

/* Reads whatever comes until all are over; a stream that breaks is over too. */
static int pump(struct streams *s, struct err *err)
{
	size_t open = s->len;

	while (open > 0) {
		if (poll(s->fds, s->len, PATIENCE_MS) <= 0)
			return err_set(err, ETIMEDOUT, "%zu streams do not go on", open);
		watch_memory(s);
		for (size_t i = 0; i < s->len; i++) {
			if (!s->fds[i].revents ||
			    fetch_step(&s->all[i].conn, take_bytes, &s->all[i], NULL) == 0)
				continue;
			s->fds[i].fd = -1;
			open--;
		}
	}
	return 0;
}

int fleet_streams(struct bench *b, struct fleet *f, size_t n, struct err *err)
{
	struct bench_row *row =
		bench_add(b, "fleet", "executions of 200 at once that stream 1 MiB unharmed");
	_cleanup_(streams_done) struct streams s = { .daemon = f->d.pid };
	uint64_t began = clock_now_ms(), took_ms;
	int r = 0;

	s.all = calloc(n, sizeof(*s.all));
	s.fds = calloc(n, sizeof(*s.fds));
	if (!s.all || !s.fds)
		return err_sys(err, ENOMEM, "%zu streams", n);
	while (r == 0 && s.len < n) {
		r = begin(&s.all[s.len], f, f->boxes[s.len].id, err);
		s.fds[s.len] = (struct pollfd){ .fd = s.all[s.len].conn.fd, .events = POLLIN };
		s.len++;
	}
	if (r == 0)
		r = pump(&s, err);
	if (r < 0)
		return r;
	took_ms = clock_now_ms() - began;
	for (size_t i = 0; i < n; i++)
		row->ratio += is_intact(&s.all[i]);
	row->unit = "streams";
	row->n = n;
	row->p50 = row->ratio;
	(void)snprintf(row->note, sizeof(row->note),
		       "counted and hashed by the client; %.2f s, %.0f MiB/s in all; the daemon's "
		       "RSS at most %.0f MiB meanwhile",
		       (double)took_ms / 1e3, (double)n * 1e3 / (double)(took_ms ? took_ms : 1),
		       (double)s.rss_max / (1 << 20));
	bench_judge(row, (double)n, true);
	return 0;
}
