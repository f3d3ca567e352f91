/* What a session is, as clients write it and as the store keeps it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "sandbox/session.h"
#include "json/jv.h"
#include "json/jw.h"

#define SESSIONS_MAX 65536u
#define SESSIONS_OWNER_MAX 8192u
#define TEXT_MAX (256u << 10) /* more than all of its fields can have */
#define YEAR_MS (366ll * 24 * 3600 * 1000)
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct jv_field resource_fields[] = {
	JV_FIELD("cpu", CPU, struct limits, cpu_milli, .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX),
	JV_FIELD("memory", SIZE, struct limits, memory_bytes, .min = LIMIT_MEMORY_MIN,
		 .max = LIMIT_MEMORY_MAX),
	JV_FIELD("disk", SIZE, struct limits, disk_bytes, .min = LIMIT_DISK_MIN,
		 .max = LIMIT_MEMORY_MAX),
	JV_FIELD("pids", U32, struct limits, pids, .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX),
};

#define PAIRS(name_, struct_, member_, help_)                                                    \
	JV_FIELD(name_, PAIRS, struct_, member_, .flags = JV_NULLABLE, .max = SESSION_PAIRS_MAX, \
		 .text_max = SESSION_PAIR_MAX, .help = help_)

static const struct jv_field workspace_fields[] = {
	JV_FIELD("enabled", BOOL, struct session_workspace, enabled,
		 .help = "true unless given; false: the session has no sandbox"),
	JV_FIELD("template", STRING, struct session_workspace, template, .flags = JV_NULLABLE,
		 .min = 1, .max = OBJECT_NAME_MAX, .help = "of its sandbox; default python"),
	JV_FIELD("resources", OBJECT, struct session_workspace, limits, .flags = JV_NULLABLE,
		 .sub = resource_fields, .sub_count = LEN(resource_fields)),
	JV_FIELD("timeout", DURATION, struct session_workspace, timeout_ms, .flags = JV_NULLABLE,
		 .min = 1000, .max = YEAR_MS, .help = "time to live of its sandbox"),
	JV_FIELD("idle_timeout", DURATION, struct session_workspace, idle_ms, .flags = JV_NULLABLE,
		 .min = 1000, .max = YEAR_MS, .help = "without use"),
	JV_FIELD("on_timeout", CHOICE, struct session_workspace, on_timeout, .choices = lapse_names,
		 .help = "delete unless given; a paused or stopped one wakes when it is used"),
	PAIRS("env", struct session_workspace, env, "environment in the sandbox"),
	PAIRS("metadata", struct session_workspace, metadata, "of the sandbox"),
};

const struct jv_field session_fields[SESSION_FIELDS] = {
	JV_FIELD("id", STRING, struct session_wish, id, .flags = JV_NULLABLE, .min = 1,
		 .max = SESSION_ID_MAX, .help = "[A-Za-z0-9._-], unique; made up unless given"),
	JV_FIELD("name", STRING, struct session_wish, name, .flags = JV_NULLABLE,
		 .max = SESSION_TEXT_MAX, .help = "for people"),
	JV_FIELD("agent_ref", STRING, struct session_wish, agent, .flags = JV_NULLABLE,
		 .max = SESSION_TEXT_MAX, .help = "whose session it is: a text of yours"),
	JV_FIELD("user_id", STRING, struct session_wish, user, .flags = JV_NULLABLE,
		 .max = SESSION_TEXT_MAX, .help = "a user of yours; the key's owner unless given"),
	JV_FIELD("workspace", OBJECT, struct session_wish, workspace, .flags = JV_NULLABLE,
		 .sub = workspace_fields, .sub_count = LEN(workspace_fields)),
	PAIRS("metadata", struct session_wish, metadata, "what you like to keep with it"),
};
const struct session_wish session_defaults = { .workspace.enabled = true };

/* ---- as it is kept ---- */

static void write_pairs(struct jw *w, const char *key, const struct jv_pairs *p)
{
	jw_key(w, key);
	jw_object_begin(w);
	for (size_t i = 0; i < p->len; i++)
		jw_str_field(w, p->items[i].name, p->items[i].value);
	jw_object_end(w);
}

static void write_names(struct jw *w, const char *key, const struct jv_pairs *p)
{
	jw_key(w, key);
	jw_array_begin(w);
	for (size_t i = 0; i < p->len; i++)
		jw_string(w, p->items[i].name);
	jw_array_end(w);
}

static void write_limits(struct jw *w, const struct limits *l)
{
	jw_key(w, "resources");
	jw_object_begin(w);
	if (l->cpu_milli > 0)
		jw_double_field(w, "cpu", l->cpu_milli / 1e3);
	if (l->memory_bytes > 0)
		jw_uint_field(w, "memory", l->memory_bytes);
	if (l->disk_bytes > 0)
		jw_uint_field(w, "disk", l->disk_bytes);
	if (l->pids > 0)
		jw_uint_field(w, "pids", l->pids);
	jw_object_end(w);
}

static void write_seconds(struct jw *w, const char *key, uint64_t ms)
{
	if (ms > 0)
		jw_double_field(w, key, (double)ms / 1e3);
	else
		jw_null_field(w, key);
}

static void write_workspace(const struct session_workspace *s, struct jw *w, bool with_env)
{
	jw_key(w, "workspace");
	jw_object_begin(w);
	jw_bool_field(w, "enabled", s->enabled);
	jw_str_field(w, "template", s->template);
	write_limits(w, &s->limits);
	write_seconds(w, "timeout", s->timeout_ms);
	write_seconds(w, "idle_timeout", s->idle_ms);
	jw_str_field(w, "on_timeout", lapse_names[s->on_timeout]);
	if (with_env)
		write_pairs(w, "env", &s->env);
	else
		write_names(w, "env_names", &s->env);
	write_pairs(w, "metadata", &s->metadata);
	jw_object_end(w);
}

void session_write(const struct session_wish *s, struct jw *w, bool with_env)
{
	jw_str_field(w, "name", s->name);
	jw_str_field(w, "agent_ref", s->agent);
	jw_str_field(w, "user_id", s->user);
	write_workspace(&s->workspace, w, with_env);
	write_pairs(w, "metadata", &s->metadata);
}

int session_text(const struct session_wish *s, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	session_write(s, &w, true);
	jw_object_end(&w);
	return jw_end(&w);
}

static void session_free(void *data)
{
	struct session *s = data;

	(void)arena_free(s->arena);
	free(s);
}

static int session_parse(const char *text, void **ret)
{
	struct session *s = calloc(1, sizeof(*s));
	struct jv_doc *doc = NULL;
	int r = s && (s->arena = arena_create(2 * TEXT_MAX)) ? 0 : -ENOMEM;

	if (r == 0) {
		s->wish = session_defaults;
		r = jv_parse(text, strlen(text), TEXT_MAX, &doc, NULL);
	}
	if (r == 0)
		r = jv_decode_known(jv_root(doc), session_fields, SESSION_FIELDS, s->arena,
				    &s->wish, NULL);
	(void)jv_free(doc);
	if (r == 0 && !s->wish.user)
		r = -EINVAL;
	if (r == 0)
		*ret = s;
	else if (s)
		session_free(s);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

const struct object_kind session_kind = {
	.name = "session",
	.noun = "session",
	.max = SESSIONS_MAX,
	.owner_max = SESSIONS_OWNER_MAX,
	.parse = session_parse,
	.free = session_free,
};
