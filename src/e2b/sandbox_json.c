#include "e2b/sandbox_json.h"

#include <string.h>

#include "api/box_auth.h"
#include "api/call.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "api/sandbox_json.h"
#include "base/clock.h"
#include "base/str.h"
#include "config/config.h"
#include "e2b/e2b.h"
#include "e2b/note.h"
#include "sandbox/sandbox.h"
#include "sandbox/volume.h"
#include "json/jw.h"

#define MIB (1u << 20)
#define YEAR_MS (365ll * 24 * 3600 * 1000)

/* Older SDKs put the client's id behind it: "id-client". */
static struct sandbox *find_id(struct api_call *c)
{
	const char *id = call_param(c, "id"), *dash = strchr(id, '-');
	char own[ID_LEN + 1];

	if (dash && dash - id == ID_LEN && str_format(own, sizeof(own), "%.*s", ID_LEN, id) == 0 &&
	    id_is_valid(own))
		return call_look_up(c, own);
	return call_find_sandbox(c);
}

struct sandbox *e2b_find(struct api_call *c)
{
	struct sandbox *sb = find_id(c);
	struct sandbox_info info;

	if (sb) {
		sandbox_info(sb, &info);
		if (info.state != SANDBOX_STOPPING && info.state != SANDBOX_CREATING &&
		    !info.is_internal)
			return sb;
	}
	problem_status(c, 404, "sandbox '%.64s' not found", call_param(c, "id"));
	return NULL;
}

unsigned e2b_cpu_count(const struct sandbox_info *info)
{
	return info->limits.cpu_milli > 1000 ? (info->limits.cpu_milli + 999) / 1000 : 1;
}

bool e2b_is_running(const struct sandbox_info *info)
{
	return info->state == SANDBOX_RUNNING || info->state == SANDBOX_PAUSING ||
	       info->state == SANDBOX_SUSPENDING;
}

/* For who may do all that it opens; others find no such field. */
static void write_token(struct api_call *c, struct jw *w, const char *key, enum box_token kind,
			const char *id)
{
	char token[BOX_TOKEN_SIZE];

	if (box_auth_give(c, kind, id, token) == 0)
		jw_str_field(w, key, token);
	explicit_bzero(token, sizeof(token));
}

static void write_domain(struct api_call *c, struct jw *w)
{
	const char *domain = proxy_domain(c);

	if (domain)
		jw_str_field(w, "domain", domain);
	else
		jw_null_field(w, "domain");
}

static void write_common(struct jw *w, const struct sandbox_info *info)
{
	jw_str_field(w, "sandboxID", info->id);
	note_write_template(w, info->note, info->template);
	jw_str_field(w, "clientID", E2B_CLIENT_ID);
	jw_str_field(w, "envdVersion", E2B_ENVD_VERSION);
}

void e2b_write_sandbox(struct api_call *c, struct jw *w, const struct sandbox_info *info)
{
	jw_object_begin(w);
	write_common(w, info);
	write_token(c, w, "envdAccessToken", BOX_TOKEN_ENVD, info->id);
	write_token(c, w, "trafficAccessToken", BOX_TOKEN_TRAFFIC, info->id);
	write_domain(c, w);
	jw_object_end(w);
}

/* One that stands still would end so much later than now. */
static void write_times(struct jw *w, const struct sandbox_info *info)
{
	int64_t end = info->expires_ms;

	if (end == 0) /* or never: a year is as good */
		end = clock_wall_ms() +
		      (info->remaining_ms ? (int64_t)info->remaining_ms : YEAR_MS);
	jw_iso_field(w, "startedAt", info->created_ms);
	jw_iso_field(w, "endAt", end);
}

static void write_mounts(struct jw *w, const struct volume_mounts *m)
{
	jw_key(w, "volumeMounts");
	jw_array_begin(w);
	for (size_t i = 0; m && i < m->n; i++) {
		jw_object_begin(w);
		jw_str_field(w, "name", m->items[i].name);
		jw_str_field(w, "path", m->items[i].path);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void write_lifecycle(struct jw *w, const struct lifecycle *l)
{
	jw_key(w, "lifecycle");
	jw_object_begin(w);
	jw_str_field(w, "onTimeout", l->on_timeout == LAPSE_DELETE ? "kill" : "pause");
	jw_bool_field(w, "autoResume", l->auto_resume);
	jw_object_end(w);
}

void e2b_write_detail(struct api_call *c, struct jw *w, const struct sandbox_info *info,
		      bool is_listed)
{
	jw_object_begin(w);
	write_common(w, info);
	write_times(w, info);
	jw_str_field(w, "state", e2b_is_running(info) ? "running" : "paused");
	jw_uint_field(w, "cpuCount", e2b_cpu_count(info));
	jw_uint_field(w, "memoryMB", info->limits.memory_bytes / MIB);
	jw_uint_field(w, "diskSizeMB", info->limits.disk_bytes / MIB);
	sandbox_write_metadata(w, info);
	write_mounts(w, info->volumes);
	if (!is_listed) {
		write_token(c, w, "envdAccessToken", BOX_TOKEN_ENVD, info->id);
		write_domain(c, w);
		write_lifecycle(w, &info->life);
		note_write_network(w, info->note, c->api->deps.config->internet);
	}
	jw_object_end(w);
}
