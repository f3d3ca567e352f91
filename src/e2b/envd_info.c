/* What envd tells of its sandbox, and files that become one. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/problem.h"
#include "api/routes.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "e2b/entry.h"
#include "e2b/envd_files.h"
#include "e2b/handlers.h"
#include "e2b/sandbox_json.h"
#include "e2b/target.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "sandbox/series.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define MIB (1u << 20)
#define COMPOSE_SOURCES_MAX 1024

void e2b_envs(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct sandbox *sb = e2b_sandbox(c);
	struct jw w = jw_begin(&b);
	struct sandbox_info info;

	if (!sb)
		return;
	sandbox_info(sb, &info);
	jw_object_begin(&w);
	for (size_t i = 0; i < info.n_env; i++)
		jw_str_field(&w, info.env[i].name, info.env[i].value);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

/* Its disk is part of its memory, and counted there. */
static void looked(void *user, const struct box_usage *usage, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct sandbox *sb = e2b_sandbox(c);
	struct sample found[SERIES_MAX];
	struct jw w = jw_begin(&b);
	struct sandbox_info info;
	unsigned cores;
	size_t n;

	(void)usage; /* it is the newest of the series */
	if (!sb)
		return;
	n = sandbox_series(sb, 0, INT64_MAX, found, SERIES_MAX);
	if (err && n == 0)
		return envd_fail(c, err);
	sandbox_info(sb, &info);
	cores = e2b_cpu_count(&info);
	jw_object_begin(&w);
	jw_int_field(&w, "ts", clock_wall_ms() / 1000);
	jw_uint_field(&w, "cpu_count", cores);
	jw_double_field(&w, "cpu_used_pct", n ? found[n - 1].cpu_milli / 10.0 / cores : 0);
	jw_uint_field(&w, "mem_total", info.limits.memory_bytes);
	jw_uint_field(&w, "mem_used", n ? found[n - 1].memory_bytes : 0);
	jw_uint_field(&w, "mem_cache", 0);
	jw_uint_field(&w, "mem_total_mib", info.limits.memory_bytes / MIB);
	jw_uint_field(&w, "mem_used_mib", n ? found[n - 1].memory_bytes / MIB : 0);
	jw_uint_field(&w, "disk_used", 0);
	jw_uint_field(&w, "disk_total", info.limits.disk_bytes);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void e2b_envd_metrics(struct api_call *c)
{
	struct sandbox *sb = e2b_sandbox(c);

	if (sb)
		sandbox_usage(sb, looked, c);
}

/* ---- compose ---- */

struct compose_body {
	struct jv_strings sources;
	const char *destination, *user;
};

static const struct jv_field compose_fields[] = {
	JV_FIELD("source_paths", STRINGS, struct compose_body, sources, .flags = JV_REQUIRED,
		 .min = 1, .max = COMPOSE_SOURCES_MAX, .text_max = FILE_PATH_MAX - 1),
	JV_FIELD("destination", STRING, struct compose_body, destination, .flags = JV_REQUIRED,
		 .min = 1, .max = FILE_PATH_MAX - 1),
	JV_FIELD("username", STRING, struct compose_body, user, .flags = JV_NULLABLE),
};
static const struct compose_body compose_defaults = { .user = "" };
const struct route_body e2b_body_compose = {
	.name = "E2bCompose",
	.fields = compose_fields,
	.count = sizeof(compose_fields) / sizeof(compose_fields[0]),
	.size = sizeof(struct compose_body),
	.defaults = &compose_defaults,
};

static void composed(struct file_job *j, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (err)
		return envd_fail(j->call, err);
	if (!j->has_entry)
		return problem_status(j->call, 404, "it is not there any more");
	jw_object_begin(&w);
	jw_str_field(&w, "path", j->entry.path);
	jw_str_field(&w, "name", entry_name(j->entry.path));
	jw_str_field(&w, "type", "file");
	jw_object_end(&w);
	call_reply(j->call, 200, &w);
}

/* The paths one behind the other, each with its NUL; NULL: answered. */
static const char *join_sources(struct api_call *c, const struct jv_strings *list, size_t *ret_len)
{
	_cleanup_(buf_done) struct buf b = { .max = GUEST_SOURCES_BYTES };
	const char *joined;

	for (size_t i = 0; i < list->len; i++)
		(void)buf_append(&b, list->items[i], strlen(list->items[i]) + 1);
	if (b.failed) {
		problem_field(c, "source_paths", "source_paths: more than %u bytes in all",
			      GUEST_SOURCES_BYTES);
		return NULL;
	}
	*ret_len = b.len;
	joined = arena_strndup(http_arena(c->http), buf_str(&b), b.len);
	if (!joined)
		problem_reply(c, &(struct err){ ENOMEM, "compose" });
	return joined;
}

void e2b_files_compose(struct api_call *c)
{
	const struct compose_body *body = c->body;
	struct file_job *j = arena_alloc(http_arena(c->http), sizeof(*j));
	struct guest_file f = {
		.op = FILE_COMPOSE,
		.flags = FILE_AT_HOME | FILE_AS_ROOT | FILE_DETAILS | FILE_PARENTS,
		.user = body->user,
		.path = body->destination,
		.target = "",
	};

	if (!j)
		return problem_reply(c, &(struct err){ ENOMEM, "compose" });
	f.sources = join_sources(c, &body->sources, &f.sources_len);
	if (!f.sources || !e2b_sandbox(c))
		return;
	j->call = c;
	(void)file_job_run(j, &f, composed);
}
