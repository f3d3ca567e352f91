#include "api/sandbox_json.h"

#include <string.h>

#include "base/str.h"
#include "sandbox/profile.h"
#include "sandbox/sandbox.h"
#include "sandbox/volume.h"
#include "json/jw.h"

static void write_seconds(struct jw *w, const char *key, uint64_t ms)
{
	if (ms == 0)
		jw_null_field(w, key);
	else if (ms % 1000 == 0)
		jw_uint_field(w, key, ms / 1000);
	else
		jw_double_field(w, key, (double)ms / 1e3);
}

static void write_resources(struct jw *w, const struct limits *l)
{
	jw_key(w, "resources");
	jw_object_begin(w);
	jw_double_field(w, "cpu", l->cpu_milli / 1e3);
	jw_uint_field(w, "memory", l->memory_bytes);
	jw_uint_field(w, "disk", l->disk_bytes);
	jw_uint_field(w, "pids", l->pids);
	jw_object_end(w);
}

void sandbox_write_metadata(struct jw *w, const struct sandbox_info *info)
{
	jw_key(w, "metadata");
	jw_object_begin(w);
	for (size_t i = 0; i < info->n_metadata; i++)
		jw_str_field(w, info->metadata[i].name, info->metadata[i].value);
	jw_object_end(w);
}

/* Names only: values are often secrets, and whoever set them knows them. */
static void write_env(struct jw *w, const struct sandbox_info *info)
{
	jw_key(w, "envNames");
	jw_array_begin(w);
	for (size_t i = 0; i < info->n_env; i++)
		jw_string(w, info->env[i].name);
	jw_array_end(w);
}

static void write_timings(struct jw *w, const struct sandbox_info *info)
{
	if (info->total_us == 0)
		return jw_null_field(w, "timings");
	jw_key(w, "timings");
	jw_object_begin(w);
	jw_double_field(w, "claimMs", (double)info->claim_us / 1e3);
	jw_double_field(w, "stockMs", (double)info->step_ns[STEP_STOCK] / 1e6);
	jw_double_field(w, "cloneMs", (double)info->step_ns[STEP_CLONE] / 1e6);
	jw_double_field(w, "readyMs", (double)info->step_ns[STEP_READY] / 1e6);
	jw_double_field(w, "limitsMs", (double)info->step_ns[STEP_LIMITS] / 1e6);
	jw_double_field(w, "storeMs", (double)info->store_us / 1e3);
	jw_double_field(w, "totalMs", (double)info->total_us / 1e3);
	jw_object_end(w);
}

static void write_endpoints(struct jw *w, const char *id)
{
	static const char *const names[] = { "execute", "executions", "files", "stream", "pty" };
	char path[128];

	jw_key(w, "endpoints");
	jw_object_begin(w);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_format(path, sizeof(path), "/api/v1/sandboxes/%s/%s", id, names[i]) == 0)
			jw_str_field(w, names[i], path);
	jw_object_end(w);
}

static void write_volumes(struct jw *w, const struct volume_mounts *m)
{
	jw_key(w, "volumes");
	jw_array_begin(w);
	for (size_t i = 0; m && i < m->n; i++) {
		jw_object_begin(w);
		jw_str_field(w, "id", m->items[i].id);
		jw_str_field(w, "name", m->items[i].name);
		jw_str_field(w, "path", m->items[i].path);
		jw_bool_field(w, "readOnly", m->items[i].read_only);
		jw_object_end(w);
	}
	jw_array_end(w);
}

static void write_text(struct jw *w, const char *key, const char *text)
{
	if (text && text[0])
		jw_str_field(w, key, text);
	else
		jw_null_field(w, key);
}

void sandbox_json_status(struct jw *w, const struct sandbox_info *info)
{
	jw_object_begin(w);
	jw_str_field(w, "id", info->id);
	jw_str_field(w, "status", state_name(info->state));
	write_text(w, "reason", info->reason);
	jw_iso_field(w, "expiresAt", info->expires_ms);
	jw_uint_field(w, "runningExecutions", info->n_executions);
	jw_object_end(w);
}

void sandbox_json(struct jw *w, const struct sandbox_info *info)
{
	jw_object_begin(w);
	jw_str_field(w, "id", info->id);
	write_text(w, "name", info->name);
	jw_str_field(w, "status", state_name(info->state));
	write_text(w, "reason", info->reason);
	jw_str_field(w, "template", info->template);
	jw_str_field(w, "runtime", info->runtime);
	jw_str_field(w, "securityLevel", profiles[info->profile].name);
	jw_str_field(w, "networkAccess", "none");
	jw_raw_field(w, "tools", info->grant[0] ? info->grant : "false",
		     info->grant[0] ? strlen(info->grant) : 5);
	jw_str_field(w, "owner", info->owner);
	jw_iso_field(w, "createdAt", info->created_ms);
	jw_iso_field(w, "expiresAt", info->expires_ms);
	jw_iso_field(w, "endedAt", info->ended_ms);
	write_seconds(w, "timeout", info->timeout_ms);
	write_seconds(w, "idleTimeout", info->idle_ms);
	write_seconds(w, "remaining", info->remaining_ms);
	jw_str_field(w, "onTimeout", lapse_names[info->life.on_timeout]);
	jw_bool_field(w, "autoResume", info->life.auto_resume);
	write_resources(w, &info->limits);
	sandbox_write_metadata(w, info);
	write_env(w, info);
	write_volumes(w, info->volumes);
	jw_uint_field(w, "runningExecutions", info->n_executions);
	jw_str_field(w, "start", info->warm ? "warm" : "cold");
	write_timings(w, info);
	write_endpoints(w, info->id);
	jw_object_end(w);
}
