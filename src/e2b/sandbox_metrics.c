/* What sandboxes took lately. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/queries.h"
#include "e2b/sandbox_json.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "sandbox/series.h"
#include "json/jw.h"

#define IDS_MAX 100

const struct route_query e2b_query_metrics[] = {
	{ "start", QUERY_U64, 0, INT64_MAX / 1000, NULL, "seconds since 1970" },
	{ "end", QUERY_U64, 0, INT64_MAX / 1000, NULL, "seconds since 1970" },
	{ 0 },
};
const struct route_query e2b_query_metrics_of[] = {
	{ "sandbox_ids", QUERY_TEXT, 0, 0, NULL, "with commas" },
	{ 0 },
};

/* Its disk is part of its memory, and counted there. */
static void write_sample(struct jw *w, const struct sandbox_info *info, const struct sample *s)
{
	unsigned cores = e2b_cpu_count(info);

	jw_object_begin(w);
	jw_iso_field(w, "timestamp", s->at_ms);
	jw_int_field(w, "timestampUnix", s->at_ms / 1000);
	jw_uint_field(w, "cpuCount", cores);
	jw_double_field(w, "cpuUsedPct", s->cpu_milli / 10.0 / cores);
	jw_uint_field(w, "memUsed", s->memory_bytes);
	jw_uint_field(w, "memTotal", info->limits.memory_bytes);
	jw_uint_field(w, "memCache", 0);
	jw_uint_field(w, "diskUsed", 0);
	jw_uint_field(w, "diskTotal", info->limits.disk_bytes);
	jw_object_end(w);
}

static void reply_series(struct api_call *c, struct sandbox *sb)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct sample *found = arena_array(http_arena(c->http), SERIES_MAX, sizeof(*found));
	uint64_t start = 0, end = INT64_MAX / 1000 - 1;
	struct jw w = jw_begin(&b);
	struct sandbox_info info;
	size_t n;

	if (!call_query_u64(c, "start", &start) || !call_query_u64(c, "end", &end))
		return;
	if (!found)
		return problem_reply(c, &(struct err){ ENOMEM, "metrics" });
	sandbox_info(sb, &info);
	n = sandbox_series(sb, (int64_t)start * 1000, (int64_t)end * 1000 + 999, found, SERIES_MAX);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		write_sample(&w, &info, &found[i]);
	jw_array_end(&w);
	call_reply(c, 200, &w);
}

/* It may have ended meanwhile. */
static void looked(void *user, const struct box_usage *usage, const struct err *err)
{
	struct sandbox *sb = e2b_find(user);

	(void)usage;
	(void)err; /* what is known is told */
	if (sb)
		reply_series(user, sb);
}

void e2b_sandbox_metrics(struct api_call *c)
{
	struct sandbox *sb = e2b_find(c);
	uint64_t start = 0, end = UINT64_MAX;
	struct sandbox_info info;

	if (!sb || !call_query_u64(c, "start", &start) || !call_query_u64(c, "end", &end))
		return;
	if (start > end)
		return problem_field(c, "start", "start: is behind the end");
	sandbox_info(sb, &info);
	if (info.state == SANDBOX_RUNNING)
		sandbox_usage(sb, looked, c); /* so that the newest is of now */
	else
		reply_series(c, sb);
}

/* ---- the last of several ---- */

static void write_last(struct api_call *c, struct jw *w, const char *id)
{
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, id, call_owner(c));
	struct sample found[SERIES_MAX];
	struct sandbox_info info;
	size_t n;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	n = sandbox_series(sb, 0, INT64_MAX, found, SERIES_MAX);
	if (n == 0)
		return;
	jw_key(w, info.id);
	write_sample(w, &info, &found[n - 1]);
}

void e2b_sandboxes_metrics(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	const char *text = NULL;
	struct str rest, one;
	size_t n = 0;

	if (!call_query(c, "sandbox_ids", &text))
		return;
	if (!text)
		return problem_field(c, "sandbox_ids", "sandbox_ids: want ids with commas");
	rest = str_of(text);
	jw_object_begin(&w);
	jw_key(&w, "sandboxes");
	jw_object_begin(&w);
	while (str_split(&rest, ',', &one)) {
		char id[ID_LEN + 1];

		if (++n > IDS_MAX)
			return problem_field(c, "sandbox_ids", "sandbox_ids: want at most %d",
					     IDS_MAX);
		if (one.len == ID_LEN && str_format(id, sizeof(id), "%.*s", ID_LEN, one.data) == 0)
			write_last(c, &w, id);
	}
	jw_object_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}
