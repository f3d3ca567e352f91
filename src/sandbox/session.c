#include "sandbox/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/registry.h"
#include "sandbox/template_own.h"
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

static int write_text(const struct session_wish *s, struct buf *b)
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

/* ---- what may be asked for ---- */

static int check_id(const char *id, struct err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = strlen(id);

	/* What is a step in a path, or begins like an option, names nothing here. */
	if (n == 0 || n > SESSION_ID_MAX || strspn(id, allowed) != n || id[0] == '-' ||
	    str_is(str_of(id), ".") || str_is(str_of(id), ".."))
		return err_set(err, EINVAL, "id: want 1 to %d of [A-Za-z0-9._-], no '-' first",
			       SESSION_ID_MAX);
	return 0;
}

/* The same rules as its sandbox will be held to. */
static int check_pairs(const struct jv_pairs *p, bool is_env, struct err *err)
{
	struct sandbox_pair items[SESSION_PAIRS_MAX];
	size_t n = p->len < LEN(items) ? p->len : LEN(items);

	for (size_t i = 0; i < n; i++)
		items[i] = (struct sandbox_pair){ p->items[i].name, p->items[i].value };
	return is_env ? check_env(items, n, err) : check_metadata(items, n, err);
}

static int check_workspace(struct sandboxes *all, const char *owner,
			   const struct session_workspace *s, struct err *err)
{
	int r = check_timeout(&all->settings, s->timeout_ms, err);

	if (r == 0)
		r = check_pairs(&s->env, true, err);
	if (r == 0)
		r = check_pairs(&s->metadata, false, err);
	if (r == 0 && s->enabled && s->template && !template_find(s->template) &&
	    !template_own_find(all, owner, s->template))
		r = err_set(err, EINVAL, "template: there is no '%.64s'", s->template);
	return r;
}

/* ---- the calls ---- */

static struct objects *table(struct sandboxes *all)
{
	return sandboxes_objects(all, OBJECTS_SESSION);
}

void session_add(struct sandboxes *all, const char *owner, const struct session_wish *wish,
		 object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct object_put put = { .owner = owner, .state = SESSION_OPEN };
	struct session_wish kept = *wish;
	struct err err = { 0 };
	char made[ID_LEN + 1];
	int r;

	id_make(made);
	put.name = wish->id ? wish->id : made;
	r = check_id(put.name, &err);
	if (r == 0)
		r = check_workspace(all, owner, &wish->workspace, &err);
	if (r == 0)
		r = check_pairs(&wish->metadata, false, &err);
	if (!kept.user)
		kept.user = owner;
	if (r == 0 && (r = write_text(&kept, &b)) < 0)
		(void)err_sys(&err, r, "session");
	if (r < 0)
		return cb(user, NULL, &err);
	put.text = buf_str(&b);
	objects_add(table(all), &put, cb, user);
}

static struct object *if_open(struct object *o)
{
	return o && o->state == SESSION_OPEN ? o : NULL;
}

struct object *session_find(struct sandboxes *all, const char *owner, const char *id)
{
	return if_open(objects_by_name(table(all), owner, id));
}

struct object *session_find_any(struct sandboxes *all, const char *uid)
{
	return if_open(objects_find(table(all), uid, NULL));
}

void session_box_name(const char *uid, char ret[SESSION_BOX_NAME_SIZE])
{
	(void)str_format(ret, SESSION_BOX_NAME_SIZE, "session-%s", uid);
}

struct sandbox *session_sandbox(struct sandboxes *all, const struct object *session)
{
	char name[SESSION_BOX_NAME_SIZE];

	session_box_name(session->id, name);
	return sandboxes_find(all, name, session->owner);
}

void sessions_end_owner(struct sandboxes *all, const char *owner)
{
	objects_end_owner(table(all), owner);
}
