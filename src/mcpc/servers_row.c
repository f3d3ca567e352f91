#include "mcpc/servers_row.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "sandbox/sandbox.h"
#include "spec/launch.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define VARIABLE_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define VARIABLE_MAX 128
#define HOUR_MS (3600ll * 1000)

enum server_type { TYPE_UNSAID, TYPE_STDIO, TYPE_HTTP, TYPE_STREAMABLE, TYPE_STREAMABLE_HTTP };
static const char *const types[] = {
	"", "stdio", "http", "streamable-http", "streamableHttp", NULL
};
static const char *const answers[] = { "decline", "ask", NULL };

struct mount {
	const char *name, *path;
	bool read_only;
};

struct said { /* a row as it is written */
	int type;
	const char *command, *cwd, *url, *template, *snapshot, *owner;
	struct jv_strings args;
	struct jv_pairs env, headers;
	bool is_on_host, is_disabled;
	uint64_t timeout_ms;
	struct limits limits;
	struct jv_objects volumes;
	struct server_globs tools;
	int elicitation, sampling;
	struct jv roots, auth, network;
};

#define TEXTS .text_max = SERVER_TEXT_MAX
#define TEXT .max = SERVER_TEXT_MAX

static const struct jv_field limit_fields[] = {
	JV_FIELD("cpu", CPU, struct limits, cpu_milli, .min = LIMIT_CPU_MIN, .max = LIMIT_CPU_MAX),
	JV_FIELD("memory", SIZE, struct limits, memory_bytes, .min = LIMIT_MEMORY_MIN,
		 .max = LIMIT_MEMORY_MAX),
	JV_FIELD("disk", SIZE, struct limits, disk_bytes, .min = LIMIT_DISK_MIN,
		 .max = LIMIT_MEMORY_MAX),
	JV_FIELD("pids", U32, struct limits, pids, .min = LIMIT_PIDS_MIN, .max = LIMIT_PIDS_MAX),
};

static const struct jv_field mount_fields[] = {
	JV_FIELD("name", STRING, struct mount, name, .flags = JV_REQUIRED, .min = 1,
		 .max = OBJECT_NAME_MAX),
	JV_FIELD("path", STRING, struct mount, path, .flags = JV_REQUIRED, .min = 1,
		 .max = VOLUME_PATH_MAX),
	JV_FIELD("readOnly", BOOL, struct mount, read_only),
};

static const struct jv_field glob_fields[] = {
	JV_FIELD("allow", STRINGS, struct server_globs, allow, .max = SERVER_GLOBS_MAX),
	JV_FIELD("ask", STRINGS, struct server_globs, ask, .max = SERVER_GLOBS_MAX),
	JV_FIELD("deny", STRINGS, struct server_globs, deny, .max = SERVER_GLOBS_MAX),
};

static const struct jv_field fields[] = {
	JV_FIELD("type", CHOICE, struct said, type, .choices = types),
	JV_FIELD("command", STRING, struct said, command, .min = 1, TEXT),
	JV_FIELD("args", STRINGS, struct said, args, .max = SERVER_ARGS_MAX, TEXTS),
	JV_FIELD("env", PAIRS, struct said, env, .max = SERVER_ENV_MAX, TEXTS),
	JV_FIELD("cwd", STRING, struct said, cwd),
	JV_FIELD("host", BOOL, struct said, is_on_host),
	JV_FIELD("template", STRING, struct said, template, .min = 1, .max = 128),
	JV_FIELD("snapshot", STRING, struct said, snapshot, .min = 1, .max = 128),
	JV_FIELD("owner", STRING, struct said, owner, .min = 1, .max = SANDBOX_OWNER_MAX),
	JV_FIELD("resources", OBJECT, struct said, limits, .sub = limit_fields,
		 .sub_count = LEN(limit_fields)),
	JV_FIELD("volumes", OBJECTS, struct said, volumes, .max = VOLUMES_MAX, .sub = mount_fields,
		 .sub_count = LEN(mount_fields), .size = sizeof(struct mount)),
	JV_FIELD("network", VALUE, struct said, network),
	JV_FIELD("url", STRING, struct said, url, .min = 1, TEXT),
	JV_FIELD("headers", PAIRS, struct said, headers, .max = 32, TEXTS),
	JV_FIELD("auth", VALUE, struct said, auth),
	JV_FIELD("disabled", BOOL, struct said, is_disabled),
	JV_FIELD("timeout", DURATION, struct said, timeout_ms, .min = 100, .max = 24 * HOUR_MS),
	JV_FIELD("tools", OBJECT, struct said, tools, .sub = glob_fields,
		 .sub_count = LEN(glob_fields)),
	JV_FIELD("elicitation", CHOICE, struct said, elicitation, .choices = answers),
	JV_FIELD("sampling", CHOICE, struct said, sampling, .choices = answers),
	JV_FIELD("roots", VALUE, struct said, roots),
};

/* ---- ${NAME} ---- */

/* What stands between the braces. */
static int expand_one(struct str inside, const struct mcpc_servers_deps *deps, struct buf *out,
		      struct err *err)
{
	const char *minus = memmem(inside.data, inside.len, ":-", 2), *value = NULL;
	size_t n = minus ? (size_t)(minus - inside.data) : inside.len;
	char name[VARIABLE_MAX + 1];

	if (n > 4 && strncmp(inside.data, "env:", 4) == 0) {
		inside.data += 4;
		inside.len -= 4;
		n -= 4;
	}
	if (n == 0 || n > VARIABLE_MAX)
		return err_set(err, EINVAL, "${...} wants a variable's name");
	memcpy(name, inside.data, n);
	name[n] = '\0';
	if (strspn(name, VARIABLE_CHARS) != n)
		return err_set(err, EINVAL, "${%.60s} is no variable's name", name);
	if (deps->variable)
		value = deps->variable(deps->user, name);
	if (minus && (!value || value[0] == '\0')) {
		const char *instead = minus + 2;

		return buf_append(out, instead, (size_t)(inside.data + inside.len - instead));
	}
	return value ? buf_puts(out, value)
		     : err_set(err, EINVAL, "${%.60s} is not set in the daemon's environment",
			       name);
}

int server_row_expand(const char *text, const struct mcpc_servers_deps *deps, struct arena *a,
		      const char **ret, struct err *err)
{
	_cleanup_(buf_done) struct buf out = { .max = SERVER_TEXT_MAX };
	const char *copy;
	int r = 0;

	while (*text && r == 0) {
		const char *open = strstr(text, "${"), *close = open ? strchr(open, '}') : NULL;

		if (open && !close)
			return err_set(err, EINVAL, "${ without its }");
		r = buf_append(&out, text, open ? (size_t)(open - text) : strlen(text));
		if (!open)
			break;
		if (r == 0)
			r = expand_one((struct str){ open + 2, (size_t)(close - open - 2) }, deps,
				       &out, err);
		text = close + 1;
	}
	if (r == -E2BIG && !err_code(err))
		return err_set(err, E2BIG, "more than %u bytes", SERVER_TEXT_MAX);
	if (r < 0)
		return err_code(err) ? r : err_sys(err, r, "text");
	copy = arena_strndup(a, buf_str(&out), out.len);
	if (out.data)
		explicit_bzero(out.data, out.len);
	*ret = copy;
	return copy ? 0 : err_sys(err, ENOMEM, "text");
}

struct reading {
	const struct mcpc_servers_deps *deps;
	struct arena *arena;
	struct err *err;
};

/* *text may be NULL. */
static int expand(const struct reading *rd, const char *field, const char **text)
{
	struct err why = { 0 };
	int r = *text ? server_row_expand(*text, rd->deps, rd->arena, text, &why) : 0;

	return r < 0 ? err_set(rd->err, -r, "%s: %s", field, why.text) : 0;
}

static int expand_strings(const struct reading *rd, const char *field, struct jv_strings *list)
{
	const char **items = arena_array(rd->arena, list->len + 1, sizeof(*items));
	int r = items ? 0 : err_sys(rd->err, ENOMEM, "%s", field);

	for (size_t i = 0; i < list->len && r == 0; i++) {
		char at[64];

		(void)snprintf(at, sizeof(at), "%s[%zu]", field, i);
		items[i] = list->items[i];
		r = expand(rd, at, &items[i]);
	}
	list->items = items;
	return r;
}

static int expand_pairs(const struct reading *rd, const char *field, struct jv_pairs *list)
{
	struct jv_pair *items = arena_array(rd->arena, list->len + 1, sizeof(*items));
	int r = items ? 0 : err_sys(rd->err, ENOMEM, "%s", field);

	for (size_t i = 0; i < list->len && r == 0; i++) {
		char at[96];

		(void)snprintf(at, sizeof(at), "%s.%.60s", field, list->items[i].name);
		items[i] = list->items[i];
		r = expand(rd, at, &items[i].value);
	}
	list->items = items;
	return r;
}

/* ---- a row ---- */

static int check_name(struct str name, struct err *err)
{
	if (name.len == 0 || name.len > MCPC_SERVER_NAME_MAX)
		return err_set(err, EINVAL, "a server's name has 1 to %u bytes",
			       MCPC_SERVER_NAME_MAX);
	for (size_t i = 0; i < name.len; i++)
		if (!name.data[i] || !strchr(NAME_CHARS, name.data[i]))
			return err_set(err, EINVAL,
				       "a server's name is made of letters, digits, _ . and -");
	return name.data[0] == '.' ? err_set(err, EINVAL, "a server's name does not begin with .")
				   : 0;
}

static bool has_box(const struct said *s)
{
	return s->template || s->snapshot || s->volumes.len > 0 || jv_kind(s->network) != JV_ABSENT;
}

static int check_kind(const struct said *s, struct err *err)
{
	bool is_remote = s->type > TYPE_STDIO;

	if (s->command && s->url)
		return err_set(err, EINVAL, "url: it has a command already");
	if (!s->command && !s->url)
		return err_set(err, EINVAL, "command: wants a command or a url");
	if (s->type != TYPE_UNSAID && is_remote != (s->url != NULL))
		return err_set(err, EINVAL, "type: does not go with %s",
			       s->url ? "a url" : "a command");
	return jv_kind(s->auth) != JV_ABSENT && !s->url
		       ? err_set(err, EINVAL, "auth: is for servers with a url")
		       : 0;
}

static int check_place(const struct said *s, struct err *err)
{
	if (s->url && (s->is_on_host || has_box(s)))
		return err_set(err, EINVAL, "url: there is nothing to be run here");
	if (s->is_on_host && has_box(s))
		return err_set(err, EINVAL,
			       "host: it has no sandbox there, whatever it is made of");
	return s->template && s->snapshot
		       ? err_set(err, EINVAL, "snapshot: it has a template already")
		       : 0;
}

static int check_roots(struct jv roots, struct err *err)
{
	if (jv_kind(roots) == JV_ABSENT)
		return 0;
	if (jv_kind(roots) != JV_ARRAY || jv_len(roots) > SERVER_ROOTS_MAX)
		return err_set(err, EINVAL, "roots: want a list of at most %d", SERVER_ROOTS_MAX);
	JV_FOREACH (roots, it)
		if (!jv_text(jv_get(it.value, "uri")))
			return err_set(err, EINVAL, "roots[%zu]: wants {\"uri\": \"file://...\"}",
				       it.index);
	return 0;
}

static int check_env(const struct jv_pairs *env, struct err *err)
{
	for (size_t i = 0; i < env->len; i++)
		if (!env->items[i].name[0] || strchr(env->items[i].name, '='))
			return err_set(err, EINVAL, "env: '%.60s' is no variable's name",
				       env->items[i].name);
	return 0;
}

/* A header that would become two is none. */
static int check_headers(const struct jv_pairs *headers, struct err *err)
{
	for (size_t i = 0; i < headers->len; i++) {
		const struct jv_pair *h = &headers->items[i];

		if (!h->name[0] || strpbrk(h->name, ": \r\n\t"))
			return err_set(err, EINVAL, "headers: '%.60s' is no header's name",
				       h->name);
		if (strpbrk(h->value, "\r\n"))
			return err_set(err, EINVAL, "headers.%.60s: has more than one line",
				       h->name);
	}
	return 0;
}

static int take_volumes(const struct jv_objects *said, struct volume_mounts *ret, struct err *err)
{
	const struct mount *m = said->items;

	ret->n = (uint8_t)said->len;
	for (size_t i = 0; i < said->len; i++) {
		struct volume_mount *to = &ret->items[i];

		to->read_only = m[i].read_only;
		if (str_copy(to->name, sizeof(to->name), m[i].name) < 0 ||
		    str_copy(to->path, sizeof(to->path), m[i].path) < 0)
			return err_set(err, EINVAL, "volumes[%zu]: is too long", i);
	}
	return 0;
}

/* true, false, or a list of names. */
static int take_network(struct jv v, const struct reading *rd, struct stdio_network *ret)
{
	const char **items;
	size_t n = 0;

	if (jv_kind(v) == JV_ABSENT || jv_bool(v, &ret->is_open) == 0)
		return 0;
	if (jv_kind(v) != JV_ARRAY || jv_len(v) > SERVER_HOSTS_MAX)
		return err_set(rd->err, EINVAL,
			       "network: want true, false, or a list of at most %d names",
			       SERVER_HOSTS_MAX);
	items = arena_array(rd->arena, jv_len(v) + 1, sizeof(*items));
	if (!items)
		return err_sys(rd->err, ENOMEM, "network");
	JV_FOREACH (v, it) {
		items[n] = jv_text(it.value); /* the document lives as long */
		if (!items[n++])
			return err_set(rd->err, EINVAL, "network[%zu]: want a name", it.index);
	}
	ret->allow = (struct jv_strings){ items, n };
	return 0;
}

static void find_unknown(struct jv v, struct server_row *ret)
{
	JV_FOREACH (v, it) {
		bool is_known = false;

		for (size_t i = 0; i < LEN(fields) && !is_known; i++)
			is_known = str_is(it.key, fields[i].name);
		if (!is_known) {
			(void)snprintf(ret->unknown, sizeof(ret->unknown), "%.*s",
				       (int)(it.key.len < 60 ? it.key.len : 60), it.key.data);
			return;
		}
	}
}

static const char *or_empty(const char *text, const char *instead)
{
	return text ? text : instead;
}

static int take(struct said *s, const struct reading *rd, struct server_row *ret)
{
	int r = expand(rd, "command", &s->command);

	if (r == 0)
		r = expand(rd, "cwd", &s->cwd);
	if (r == 0)
		r = expand(rd, "url", &s->url);
	if (r == 0)
		r = expand_strings(rd, "args", &s->args);
	if (r == 0)
		r = expand_pairs(rd, "env", &s->env);
	if (r == 0)
		r = expand_pairs(rd, "headers", &s->headers);
	if (r == 0)
		r = check_env(&s->env, rd->err);
	if (r == 0)
		r = check_headers(&s->headers, rd->err);
	if (r == 0)
		r = take_volumes(&s->volumes, &ret->volumes, rd->err);
	if (r == 0)
		r = take_network(s->network, rd, &ret->network);
	ret->command = s->command;
	ret->args = s->args;
	ret->env = s->env;
	ret->cwd = or_empty(s->cwd, "");
	ret->is_on_host = s->is_on_host;
	ret->template = or_empty(s->template, "");
	ret->snapshot = or_empty(s->snapshot, "");
	ret->owner = or_empty(s->owner, SERVER_OWNER);
	ret->limits = s->limits;
	ret->url = s->url;
	ret->headers = s->headers;
	ret->auth = s->auth;
	ret->timeout_ms = s->timeout_ms;
	ret->tools = s->tools;
	ret->elicitation = s->elicitation;
	ret->sampling = s->sampling;
	ret->roots = s->roots;
	return r;
}

int server_row_read(struct str name, struct jv v, const struct mcpc_servers_deps *deps,
		    struct arena *a, struct server_row *ret, struct err *err)
{
	const struct reading rd = { deps, a, err };
	struct jv_problem problem = { 0 };
	struct said s = { 0 };
	int r;

	*ret = (struct server_row){ .name = arena_strndup(a, name.data ? name.data : "",
							  name.len < MCPC_SERVER_NAME_MAX
								  ? name.len
								  : MCPC_SERVER_NAME_MAX) };
	if (!ret->name) {
		ret->name = "";
		return err_sys(err, ENOMEM, "server");
	}
	(void)jv_bool(jv_get(v, "disabled"), &ret->is_disabled);
	r = check_name(name, err);
	if (r < 0)
		return r;
	if (jv_kind(v) != JV_OBJECT)
		return err_set(err, EINVAL, "want an object with a command or a url");
	r = jv_decode_known(v, fields, LEN(fields), a, &s, &problem);
	if (r < 0)
		return err_set(err, -r, "%s: %s", problem.field, problem.text);
	find_unknown(v, ret);
	r = check_kind(&s, err);
	if (r == 0)
		r = check_place(&s, err);
	if (r == 0)
		r = check_roots(s.roots, err);
	return r < 0 ? r : take(&s, &rd, ret);
}

/* ---- policy ---- */

static bool is_among(const struct jv_strings *globs, const char *tool)
{
	for (size_t i = 0; i < globs->len; i++)
		if (fnmatch(globs->items[i], tool, 0) == 0)
			return true;
	return false;
}

enum mcpc_policy server_row_policy(const struct server_row *row, const char *tool)
{
	const struct server_globs *g = &row->tools;

	if (is_among(&g->deny, tool))
		return MCPC_DENY;
	if (is_among(&g->ask, tool))
		return MCPC_ASK;
	return g->allow.len == 0 || is_among(&g->allow, tool) ? MCPC_ALLOW : MCPC_DENY;
}

struct stdio_spec server_row_spec(const struct server_row *row,
				  const char *argv[SERVER_ARGS_MAX + 1])
{
	argv[0] = row->command;
	for (size_t i = 0; i < row->args.len; i++)
		argv[i + 1] = row->args.items[i];
	return (struct stdio_spec){ .name = row->name,
				    .argv = argv,
				    .argc = row->args.len + 1,
				    .env = row->env,
				    .cwd = row->cwd,
				    .owner = row->owner,
				    .template = row->template,
				    .snapshot = row->snapshot,
				    .limits = row->limits,
				    .volumes = row->volumes,
				    .network = row->network };
}
