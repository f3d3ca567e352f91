#include "sandbox/makeup.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "sandbox/profile.h"
#include "sandbox/recipe.h"
#include "spec/launch.h"
#include "json/jw.h"

const struct jv_field makeup_start_fields[MAKEUP_START_FIELDS] = {
	JV_FIELD("command", STRING, struct makeup_start, command, .flags = JV_REQUIRED, .min = 1,
		 .max = MAKEUP_COMMAND_MAX, .help = "of a shell"),
	JV_FIELD("readyCommand", STRING, struct makeup_start, ready_command, .flags = JV_NULLABLE,
		 .min = 1, .max = MAKEUP_COMMAND_MAX, .help = "ready when it ends with 0"),
	JV_FIELD("readyPort", U32, struct makeup_start, ready_port, .min = 1, .max = 65535,
		 .help = "ready when something listens there"),
	JV_FIELD("readyHttp", STRING, struct makeup_start, ready_http, .flags = JV_NULLABLE,
		 .min = 1, .max = MAKEUP_PATH_MAX,
		 .help = "ready when a GET of this path at readyPort answers 2xx"),
	JV_FIELD("timeout", DURATION, struct makeup_start, timeout_ms, .min = 1000,
		 .max = START_TIMEOUT_MAX_MS, .help = "for all of that; 30 s"),
};

/* As the store has it: roots as numbers that nobody else sees. */
struct kept {
	struct makeup m;
	uint32_t root, profile, strict;
};
static const struct jv_field kept_fields[] = {
	MAKEUP_ROWS(struct kept, m),
	JV_FIELD("root", U32, struct kept, root, .max = ROOT_KIND_COUNT - 1),
	JV_FIELD("profile", U32, struct kept, profile, .max = PROFILE_ID_COUNT - 1),
	JV_FIELD("strict", U32, struct kept, strict),
};

static bool is_said(const char *text)
{
	return text && text[0] != '\0';
}

bool makeup_is_plain(const struct makeup *m)
{
	return !is_said(m->user) && !is_said(m->workdir) && !m->writable_root &&
	       m->writable.len == 0 && m->preload.len == 0 && m->preload_node.len == 0 &&
	       !is_said(m->start.command) && m->root == ROOT_HOST &&
	       m->profile == PROFILE_ID_STANDARD && m->strict == 0;
}

bool makeup_needs_no_box(const struct makeup *m)
{
	return !m->writable_root && m->writable.len == 0 && m->preload.len == 0 &&
	       m->preload_node.len == 0 && m->root == ROOT_HOST && m->strict == 0;
}

static int join(const struct jv_strings *l, const char *between, char *dst, size_t size)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < l->len; i++)
		(void)buf_printf(&b, "%s%s", i ? between : "", l->items[i]);
	return b.failed ? -ENOMEM : str_copy(dst, size, buf_str(&b));
}

int makeup_preload(const struct jv_strings *modules, char *dst, size_t size)
{
	return join(modules, ",", dst, size);
}

int makeup_writable(const struct makeup *m, char *dst, size_t size)
{
	dst[0] = '\0';
	return m->writable_root ? 0 : join(&m->writable, ":", dst, size);
}

/* ---- checking ---- */

/* Absolute, without "." and "..", and every name there. */
static bool path_is_plain(const char *path)
{
	struct str rest = str_of(path + 1), name;

	if (path[0] != '/' || path[1] == '\0')
		return false;
	while (str_split(&rest, '/', &name))
		if (name.len == 0 || str_is(name, ".") || str_is(name, ".."))
			return false;
	return path[strlen(path) - 1] != '/';
}

static bool user_is_plain(const char *user)
{
	return user[strspn(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "._-")] == '\0' &&
	       user[0] != '-';
}

static int check_start(const struct makeup_start *s, struct err *err)
{
	if (!is_said(s->command))
		return 0;
	if (is_said(s->ready_command) && s->ready_port > 0)
		return err_set(err, EINVAL, "start: give one of readyCommand and readyPort");
	if (!is_said(s->ready_http))
		return 0;
	if (s->ready_port == 0)
		return err_set(err, EINVAL, "start.readyHttp: it needs readyPort");
	for (const char *p = s->ready_http; *p; p++)
		if (*p <= ' ' || *p > '~')
			return err_set(err, EINVAL, "start.readyHttp: want a path in plain ASCII");
	return s->ready_http[0] == '/' ? 0 : err_set(err, EINVAL, "start.readyHttp: want /PATH");
}

/* Of one of the two lists, whose names the rules of the other would not let through. */
static int check_modules(const char *field, const struct jv_strings *modules, bool is_node,
			 struct err *err)
{
	char text[RECIPE_PRELOAD_MAX + 1];
	struct template_spec t = { .preload = is_node ? "" : text,
				   .preload_node = is_node ? text : "" };
	struct err ignored = { 0 };

	for (size_t i = 0; i < modules->len; i++)
		if (modules->items[i][0] == '\0' || strchr(modules->items[i], ','))
			return err_set(err, EINVAL, "%s: want names of modules", field);
	if (makeup_preload(modules, text, sizeof(text)) < 0)
		return err_set(err, EINVAL, "%s: too long together", field);
	return spec_check_preload(&t, &ignored) < 0
		       ? err_set(err, EINVAL, "%s: want names of modules", field)
		       : 0;
}

static int check_preload(const struct makeup *m, uint32_t flags, struct err *err)
{
	int r;

	if (m->preload.len > 0 && !(flags & TEMPLATE_WARM_PYTHON))
		return err_set(err, EINVAL, "preload: no Python waits in boxes of that template");
	if (m->preload_node.len > 0 && !(flags & TEMPLATE_WARM_NODE))
		return err_set(err, EINVAL, "preloadNode: no Node waits in boxes of that template");
	r = check_modules("preload", &m->preload, false, err);
	return r < 0 ? r : check_modules("preloadNode", &m->preload_node, true, err);
}

static int check_writable(const struct makeup *m, struct err *err)
{
	char text[TEMPLATE_WRITABLE_MAX + 1];

	for (size_t i = 0; i < m->writable.len; i++)
		if (strchr(m->writable.items[i], ':') || m->writable.items[i][0] == '\0' ||
		    !spec_writable_is_valid(m->writable.items[i]))
			return err_set(
				err, EINVAL,
				"writablePaths: '%.60s': want an absolute path of plain names, "
				"and none of the kernel's",
				m->writable.items[i]);
	return makeup_writable(m, text, sizeof(text)) < 0
		       ? err_set(err, EINVAL, "writablePaths: too long together")
		       : 0;
}

int makeup_check(const struct makeup *m, uint32_t flags, struct err *err)
{
	int r;

	if (is_said(m->user) && !user_is_plain(m->user))
		return err_set(err, EINVAL, "user: want a name or a number");
	if (is_said(m->workdir) && strcmp(m->workdir, "/") != 0 && !path_is_plain(m->workdir))
		return err_set(err, EINVAL, "workdir: want an absolute path without '..'");
	r = check_writable(m, err);
	if (r < 0)
		return r;
	r = check_start(&m->start, err);
	return r < 0 ? r : check_preload(m, flags, err);
}

/* ---- keeping ---- */

static const char *copy_text(const char *text, struct arena *a, int *r)
{
	const char *copy;

	if (!text)
		return NULL;
	copy = arena_strndup(a, text, strlen(text));
	if (!copy)
		*r = -ENOMEM;
	return copy;
}

static struct jv_strings copy_list(const struct jv_strings *l, struct arena *a, int *r)
{
	const char **items = l->len > 0 ? arena_array(a, l->len, sizeof(*items)) : NULL;

	if (l->len > 0 && !items)
		*r = -ENOMEM;
	for (size_t i = 0; items && i < l->len; i++)
		items[i] = copy_text(l->items[i], a, r);
	return (struct jv_strings){ items, items ? l->len : 0 };
}

int makeup_copy(const struct makeup *m, struct arena *a, struct makeup *ret)
{
	struct makeup to = *m;
	int r = 0;

	to.user = copy_text(m->user, a, &r);
	to.workdir = copy_text(m->workdir, a, &r);
	to.writable = copy_list(&m->writable, a, &r);
	to.preload = copy_list(&m->preload, a, &r);
	to.preload_node = copy_list(&m->preload_node, a, &r);
	to.start.command = copy_text(m->start.command, a, &r);
	to.start.ready_command = copy_text(m->start.ready_command, a, &r);
	to.start.ready_http = copy_text(m->start.ready_http, a, &r);
	if (r == 0)
		*ret = to;
	return r;
}

static void write_text(struct jw *w, const char *name, const char *text)
{
	if (is_said(text))
		jw_str_field(w, name, text);
}

static void write_list(struct jw *w, const char *name, const struct jv_strings *l)
{
	if (l->len == 0)
		return;
	jw_key(w, name);
	jw_array_begin(w);
	for (size_t i = 0; i < l->len; i++)
		jw_string(w, l->items[i]);
	jw_array_end(w);
}

static void write_number(struct jw *w, const char *name, uint64_t n)
{
	if (n > 0)
		jw_uint_field(w, name, n);
}

void makeup_write(const struct makeup *m, struct jw *w)
{
	const struct makeup_start *s = &m->start;

	write_text(w, "user", m->user);
	write_text(w, "workdir", m->workdir);
	if (m->writable_root)
		jw_bool_field(w, "writableRoot", true);
	write_list(w, "writablePaths", &m->writable);
	write_list(w, "preload", &m->preload);
	write_list(w, "preloadNode", &m->preload_node);
	if (is_said(s->command)) {
		jw_key(w, "start");
		jw_object_begin(w);
		jw_str_field(w, "command", s->command);
		write_text(w, "readyCommand", s->ready_command);
		write_number(w, "readyPort", s->ready_port);
		write_text(w, "readyHttp", s->ready_http);
		if (s->timeout_ms > 0)
			jw_double_field(w, "timeout", (double)s->timeout_ms / 1e3);
		jw_object_end(w);
	}
	write_number(w, "root", m->root);
	write_number(w, "profile", m->profile);
	write_number(w, "strict", m->strict);
}

int makeup_read(struct jv object, struct arena *a, struct makeup *ret)
{
	struct kept k = { 0 };
	int r = jv_decode_known(object, kept_fields, sizeof(kept_fields) / sizeof(kept_fields[0]),
				a, &k, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	k.m.root = (uint8_t)k.root;
	k.m.profile = (uint8_t)k.profile;
	k.m.strict = k.strict;
	*ret = k.m;
	return 0;
}
