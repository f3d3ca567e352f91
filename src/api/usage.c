/* What was used, summed by day, user, key or sandbox, as JSON or CSV. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/journal_page.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "json/jw.h"

#define DAY_MS 86400000
#define LIST_DEFAULT 500

struct ask {
	struct api_call *call; /* NULL: the client is gone */
	bool is_csv;
	uint32_t group;
	uint32_t offset;
};

static const struct {
	const char *name;
	uint32_t bit;
} groups[] = { { "day", STORE_BY_DAY },
	       { "user", STORE_BY_OWNER },
	       { "key", STORE_BY_KEY },
	       { "sandbox", STORE_BY_SANDBOX } };

static void write_day(int32_t day, char dst[CLOCK_ISO_SIZE])
{
	clock_iso((int64_t)day * DAY_MS, dst);
	dst[10] = '\0';
}

static double gib_hours(uint64_t mib_ms)
{
	return (double)mib_ms / 1024 / 3600000;
}

static void write_row(struct jw *w, const struct usage_sum_row *row, uint32_t group)
{
	char day[CLOCK_ISO_SIZE];

	jw_object_begin(w);
	if (group & STORE_BY_DAY) {
		write_day(row->day, day);
		jw_str_field(w, "day", day);
	}
	if (group & STORE_BY_OWNER)
		jw_str_field(w, "user", row->owner);
	if (group & STORE_BY_KEY)
		jw_str_field(w, "keyId", row->key_id);
	if (group & STORE_BY_SANDBOX)
		jw_str_field(w, "sandboxId", row->sandbox_id);
	jw_uint_field(w, "executions", row->executions);
	jw_double_field(w, "cpuSeconds", (double)row->cpu_us / 1e6);
	jw_double_field(w, "wallSeconds", (double)row->wall_ms / 1e3);
	jw_double_field(w, "memoryGiBHours", gib_hours(row->memory_mib_ms));
	jw_double_field(w, "diskGiBHours", gib_hours(row->disk_mib_ms));
	jw_uint_field(w, "networkBytes", row->net_bytes);
	jw_object_end(w);
}

static void reply_json(struct api_call *c, const struct ask *a, const struct usage_sum_row *rows,
		       size_t n, bool more)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct sandboxes_stats stats;
	char next[24];

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		write_row(&w, &rows[i], a->group);
	jw_array_end(&w);
	if (more && str_format(next, sizeof(next), "%zu", a->offset + n) == 0)
		jw_str_field(&w, "nextCursor", next);
	else
		jw_null_field(&w, "nextCursor");
	sandboxes_stats(c->api->deps.sandboxes, &stats);
	jw_str_field(&w, "cpuFrom", stats.is_metered ? "boxes" : "executions");
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* As it stands in JSON. */
static void csv_number(struct buf *b, double v)
{
	struct jw w = jw_begin(b);

	jw_double(&w, v);
	(void)jw_end(&w);
	(void)buf_putc(b, ',');
}

/* Names of owners are not ours: quoted, and none begins a formula of a table program. */
static void csv_text(struct buf *b, const char *text)
{
	(void)buf_putc(b, '"');
	if (strchr("=+-@\t\r", text[0]) && text[0])
		(void)buf_putc(b, '\'');
	for (; *text; text++) {
		if (*text == '"')
			(void)buf_putc(b, '"');
		(void)buf_putc(b, *text);
	}
	(void)buf_puts(b, "\",");
}

static void reply_csv(struct api_call *c, const struct ask *a, const struct usage_sum_row *rows,
		      size_t n, bool more)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char day[CLOCK_ISO_SIZE], next[24];

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (a->group & groups[i].bit)
			(void)buf_printf(&b, "%s,", groups[i].name);
	(void)buf_puts(&b, "executions,cpu_seconds,wall_seconds,memory_gib_hours,disk_gib_hours,"
			   "network_bytes\r\n");
	for (size_t i = 0; i < n; i++) {
		write_day(rows[i].day, day);
		if (a->group & STORE_BY_DAY)
			(void)buf_printf(&b, "%s,", day);
		if (a->group & STORE_BY_OWNER)
			csv_text(&b, rows[i].owner);
		if (a->group & STORE_BY_KEY)
			csv_text(&b, rows[i].key_id);
		if (a->group & STORE_BY_SANDBOX)
			csv_text(&b, rows[i].sandbox_id);
		(void)buf_printf(&b, "%" PRIu64 ",", rows[i].executions);
		csv_number(&b, (double)rows[i].cpu_us / 1e6);
		csv_number(&b, (double)rows[i].wall_ms / 1e3);
		csv_number(&b, gib_hours(rows[i].memory_mib_ms));
		csv_number(&b, gib_hours(rows[i].disk_mib_ms));
		(void)buf_printf(&b, "%" PRIu64 "\r\n", rows[i].net_bytes);
	}
	if (more && str_format(next, sizeof(next), "%zu", a->offset + n) == 0)
		(void)http_header_add(c->http, "X-Next-Cursor", next);
	if (b.failed)
		return problem_reply(c, &(struct err){ ENOMEM, "usage" });
	http_reply(c->http, 200, "text/csv; charset=utf-8", b.data, b.len);
}

static void got(void *user, int r, const struct usage_sum_row *rows, size_t n, bool more)
{
	struct ask *a = user;

	if (a->call && r < 0)
		problem_reply(a->call, &(struct err){ -r, "usage" });
	else if (a->call && a->is_csv)
		reply_csv(a->call, a, rows, n, more);
	else if (a->call)
		reply_json(a->call, a, rows, n, more);
	free(a);
}

static void gone(void *user, struct http_request *r)
{
	struct ask *a = user;

	(void)r;
	a->call = NULL;
}

static bool read_group(struct api_call *c, uint32_t *ret)
{
	const char *text = "day";
	struct str rest, one;

	if (!call_query(c, "group", &text))
		return false;
	rest = str_of(text);
	while (str_split(&rest, ',', &one)) {
		uint32_t bit = 0;

		for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
			if (str_is(one, groups[i].name))
				bit = groups[i].bit;
		if (bit == 0) {
			problem_field(c, "group", "want day, user, key or sandbox, or several");
			return false;
		}
		*ret |= bit;
	}
	return true;
}

static bool read_query(struct api_call *c, struct store_usage_filter *f, struct ask *a)
{
	const char *format = NULL, *cursor = NULL, *owner = call_owner(c);
	int64_t from = 0, to = 0;
	uint32_t offset = 0;

	if (!read_group(c, &f->group) || !journal_page_times(c, &from, &to) ||
	    !call_query(c, "format", &format) || !call_query(c, "key", &f->key_id) ||
	    !call_query(c, "cursor", &cursor) || (!owner && !call_query(c, "user", &owner)))
		return false;
	if (cursor && parse_u32(cursor, 0, INT32_MAX, &offset) < 0) {
		problem_field(c, "cursor", "want a cursor as an earlier answer gave it");
		return false;
	}
	f->owner = owner;
	f->from_day = (int32_t)(from / DAY_MS);
	f->to_day = (int32_t)((to + DAY_MS - 1) / DAY_MS);
	f->offset = a->offset = offset;
	a->group = f->group;
	a->is_csv = format && strcmp(format, "csv") == 0;
	return true;
}

void api_usage(struct api_call *c)
{
	struct store_usage_filter filter = { 0 };
	uint64_t limit = LIST_DEFAULT;
	struct ask *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return problem_reply(c, &(struct err){ ENOMEM, "usage" });
	if (!read_query(c, &filter, a) || !call_query_u64(c, "limit", &limit)) {
		free(a);
		return;
	}
	a->call = c;
	r = store_list_usage(c->api->deps.store, &filter, (uint32_t)limit, got, a);
	if (r == 0)
		return http_on_gone(c->http, gone, a);
	free(a);
	problem_reply(c, &(struct err){ -r, "usage" });
}
