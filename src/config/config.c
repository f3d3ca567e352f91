#include "config/config.h"
#include "config/derive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/machine.h"
#include "base/str.h"
#include "config/source.h"
#include "config/value.h"

#define ARENA_MAX (4u << 20)
#define FILE_NAME "holt.yaml"
#define DOTENV_NAME ".env"

/* What the loading knows beyond the result. */
struct load {
	struct config *c;
	const struct setting *table;
	size_t count;
	char *const *env;
	const char *home;          /* borrowed from env; NULL: not set */
	enum config_origin origin; /* of what is being read */
	const char *file;          /* being read */
	bool local;                /* it is in the working directory */
	struct err *err;
};

static const char *env_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* Absolute or nothing: what stands there must not depend on where we are. */
static const char *env_dir(char *const *env, const char *name)
{
	const char *v = env_get(env, name);

	return v && *v == '/' ? v : NULL;
}

static int no_memory(struct err *err)
{
	return err_sys(err, ENOMEM, "settings");
}

__attribute__((format(printf, 2, 3))) static int warn(struct load *l, const char *fmt, ...)
{
	struct config *c = l->c;
	char text[512];
	va_list ap;

	if (c->warning_count == CONFIG_WARNINGS_MAX)
		return 0;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->warnings[c->warning_count] = arena_strndup(c->arena, text, strlen(text));
	return c->warnings[c->warning_count++] ? 0 : no_memory(l->err);
}

/* Sets a value and remembers where it came from; a failure says so too. */
static int set(struct load *l, const struct setting *s, const char *text, const char *where)
{
	struct config_source *source = &l->c->sources[s - l->table];
	struct err why = { 0 };
	int r = value_set(l->c, s, text, l->home, &why);

	if (r == -ENOMEM)
		return no_memory(l->err);
	if (r < 0)
		return err_set(l->err, -r, "%s%s%s", where ? where : "", where ? ": " : "",
			       why.text);
	source->origin = l->origin;
	source->where = where ? arena_strndup(l->c->arena, where, strlen(where)) : NULL;
	source->local = l->local;
	return where && !source->where ? no_memory(l->err) : 0;
}

static int set_defaults(struct load *l)
{
	int r = 0;

	for (size_t i = 0; i < l->count && r == 0; i++)
		if (l->table[i].standard)
			r = set(l, &l->table[i], l->table[i].standard, NULL);
	return r;
}

static bool is_group(const struct load *l, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < l->count; i++)
		if (strncmp(l->table[i].name, name, n) == 0 && l->table[i].name[n] == '_')
			return true;
	return false;
}

/* What the file of a template begins with, which was called holt.yaml once, too. */
static bool is_of_template(const char *name)
{
	return strcmp(name, "name") == 0 || strcmp(name, "from") == 0 || strcmp(name, "steps") == 0;
}

static int unknown(struct load *l, const char *name, size_t line)
{
	const char *near = settings_nearest(name);

	if (is_of_template(name))
		return err_set(l->err, EINVAL,
			       "%s:%zu: '%s' is not a setting; the file of a template is called "
			       "holt-template.yaml",
			       l->file, line, name);
	return err_set(l->err, EINVAL, "%s:%zu: '%.60s' is not a setting%s%s%s", l->file, line,
		       name, near ? " (" : "", near ? near : "", near ? "?)" : "");
}

static int take_yaml(void *user, const char *name, const char *value, size_t line, struct err *err)
{
	struct load *l = user;
	const struct setting *s = settings_find(name);
	const struct config_source *source = s ? &l->c->sources[s - l->table] : NULL;
	char where[256];

	if (!s && !value && is_group(l, name))
		return 0; /* all of it is commented out */
	if (!s)
		return unknown(l, name, line);
	if (str_format(where, sizeof(where), "%.200s:%zu", l->file, line) < 0)
		where[0] = '\0';
	if (s->flags & SETTING_NOT_IN_FILE)
		return err_set(err, EINVAL, "%s: %s cannot be set in a file", where, s->name);
	if (source->origin == ORIGIN_FILE)
		return err_set(err, EINVAL, "%s: %s is there twice", where, s->name);
	return value ? set(l, s, value, where) : 0;
}

/* A variable of ours that nothing reads is a typing error, or of another version: told, not fatal.
 */
static int take_variable(struct load *l, const char *name, const char *value, const char *where)
{
	const struct setting *s = settings_find_env(name);
	const char *near = NULL;

	if (s)
		return set(l, s, value, where);
	near = settings_nearest(name);
	return warn(l, "%s: %.60s is not a setting%s%s%s", where, name, near ? " (" : "",
		    near ? near : "", near ? "?)" : "");
}

static int take_dotenv(void *user, const char *name, const char *value, size_t line,
		       struct err *err)
{
	struct load *l = user;
	const struct setting *s = settings_find_env(name);
	char where[256];

	if (strncmp(name, "HOLT_", 5) != 0)
		return 0;
	if (str_format(where, sizeof(where), "%.200s:%zu", l->file, line) < 0)
		where[0] = '\0';
	if (s && s->flags & SETTING_NOT_IN_FILE)
		return err_set(err, EINVAL, "%s: %s cannot be set in a file", where, s->env);
	return take_variable(l, name, value, where);
}

/* Said by a file that anybody may write is what anybody wants. One that was not named but found
 * must be ours or root's besides: /tmp is a working directory too. */
static int check_writers(const char *path, const struct stat *st, bool found, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "%s: is not a file", path);
	if (st->st_mode & S_IWOTH)
		return err_set(err, EPERM, "%s: anybody may write it (chmod o-w)", path);
	if (found && st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(err, EPERM, "%s: belongs to another user", path);
	return 0;
}

/* -ENOENT when it is not there. */
static int slurp(int dirfd, const char *path, bool found, struct buf *ret, struct err *err)
{
	_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0)
		return err_sys(err, errno, "%s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "%s", path);
	r = check_writers(path, &st, found, err);
	if (r < 0)
		return r;
	r = fd_slurp(fd, ret);
	if (r == -E2BIG)
		return err_set(err, E2BIG, "%s: more than %u bytes", path, CONFIG_FILE_MAX);
	return r < 0 ? err_sys(err, r, "%s", path) : 0;
}

int config_read_file(const char *path, struct buf *ret, struct err *err)
{
	ret->max = CONFIG_FILE_MAX;
	return slurp(AT_FDCWD, path, false, ret, err);
}

static void wipe(struct buf *b)
{
	if (b->data) /* a key may have stood there */
		explicit_bzero(b->data, b->len);
	buf_done(b);
}

static int read_yaml(struct load *l, int dirfd, const char *path, bool local)
{
	_cleanup_(wipe) struct buf text = { .max = CONFIG_FILE_MAX };
	int r = slurp(dirfd, path, local, &text, l->err);

	if (r < 0)
		return r;
	l->origin = ORIGIN_FILE;
	l->file = path;
	l->local = local;
	r = yaml_read(path, buf_str(&text), text.len, take_yaml, l, l->err);
	l->local = false;
	if (r < 0)
		return r;
	l->c->config = arena_strndup(l->c->arena, path, strlen(path));
	return l->c->config ? 0 : no_memory(l->err);
}

/* The first that is there: here, then the system's (root) or one's own. */
static int search_yaml(struct load *l, int dirfd)
{
	const char *config_home = env_dir(l->env, "XDG_CONFIG_HOME");
	char path[SETTING_TEXT_MAX];
	int r = read_yaml(l, dirfd, FILE_NAME, true);

	if (r != -ENOENT)
		return r;
	if (geteuid() == 0)
		r = str_format(path, sizeof(path), "/etc/holt/%s", FILE_NAME);
	else if (config_home)
		r = str_format(path, sizeof(path), "%s/holt/%s", config_home, FILE_NAME);
	else if (l->home)
		r = str_format(path, sizeof(path), "%s/.config/holt/%s", l->home, FILE_NAME);
	if (r == 0)
		r = read_yaml(l, AT_FDCWD, path, false);
	return r == -ENOENT ? 0 : r;
}

/* The file's own name comes from the flags or the environment, before everything else. */
static int load_yaml(struct load *l, const struct config_args *args, int dirfd)
{
	const struct setting *s = settings_find("config");
	const char *path = env_get(l->env, s->env);
	int r;

	l->origin = ORIGIN_ENV;
	for (size_t i = 0; i < args->flag_count; i++) {
		if (strcmp(args->flags[i].flag, s->flag) == 0) {
			path = args->flags[i].value;
			l->origin = ORIGIN_FLAG;
		}
	}
	if (!path || *path == '\0')
		return search_yaml(l, dirfd);
	/* Set first, for "~/" and the checks; reading it puts the same name there. */
	r = set(l, s, path, l->origin == ORIGIN_FLAG ? s->flag : s->env);
	if (r < 0)
		return r;
	return read_yaml(l, AT_FDCWD, l->c->config, false);
}

static int load_dotenv(struct load *l, int dirfd)
{
	_cleanup_(wipe) struct buf text = { .max = CONFIG_FILE_MAX };
	int r = slurp(dirfd, DOTENV_NAME, true, &text, l->err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	l->origin = ORIGIN_DOTENV;
	l->file = DOTENV_NAME;
	l->local = true;
	r = dotenv_read(DOTENV_NAME, buf_str(&text), text.len, take_dotenv, l, l->err);
	l->local = false;
	return r;
}

static int load_env(struct load *l)
{
	int r = 0;

	l->origin = ORIGIN_ENV;
	for (char *const *e = l->env; e && *e && r == 0; e++) {
		const char *equals = strchr(*e, '=');
		char name[64];

		if (strncmp(*e, "HOLT_", 5) != 0 || !equals ||
		    str_format(name, sizeof(name), "%.*s", (int)(equals - *e), *e) < 0)
			continue;
		r = take_variable(l, name, equals + 1, name);
	}
	return r;
}

static int load_flags(struct load *l, const struct config_args *args)
{
	int r = 0;

	l->origin = ORIGIN_FLAG;
	for (size_t i = 0; i < args->flag_count && r == 0; i++) {
		const struct config_flag *f = &args->flags[i];
		const struct setting *s = settings_find_flag(f->flag);

		if (!s)
			return err_set(l->err, EINVAL, "%.60s is not a setting", f->flag);
		if (!f->value && s->type != SETTING_BOOL)
			return err_set(l->err, EINVAL, "%s wants a value", f->flag);
		r = set(l, s, f->value ? f->value : "true", f->flag);
	}
	return r;
}

static bool is_default(const struct load *l, const char *name)
{
	return l->c->sources[settings_find(name) - l->table].origin == ORIGIN_DEFAULT;
}

/* A default must not ask for more than this user can give; what somebody wrote is told to him. */
static void derive_nofile(struct load *l)
{
	if (is_default(l, "limits_nofile"))
		l->c->limits.nofile = spec_nofile_default(geteuid() != 0);
}

/* Nor for more than a sandbox may have. */
static void lower_defaults(struct load *l, const struct machine *m)
{
	struct limits *now = &l->c->limits, low = *now;

	spec_clamp_limits(&low, &l->c->limits_max);
	if (is_default(l, "limits_memory"))
		now->memory_bytes = derive_memory(l->c, m);
	if (is_default(l, "limits_disk"))
		now->disk_bytes =
			low.disk_bytes < now->memory_bytes ? low.disk_bytes : now->memory_bytes / 2;
	if (is_default(l, "limits_inodes"))
		now->inodes = low.inodes;
	if (is_default(l, "limits_cpu"))
		now->cpu_milli = low.cpu_milli;
	if (is_default(l, "limits_pids"))
		now->pids = low.pids;
	if (is_default(l, "limits_nofile"))
		now->nofile = low.nofile;
}

/* What depends on other values or on who we are. */
static int derive(struct load *l)
{
	struct config *c = l->c;
	struct machine m;
	int r;
	const char *state_home = env_dir(l->env, "XDG_STATE_HOME");

	if (!c->state_dir) {
		if (geteuid() == 0)
			c->state_dir = "/var/lib/holt";
		else if (state_home)
			c->state_dir = arena_printf(c->arena, "%s/holt", state_home);
		else if (l->home)
			c->state_dir = arena_printf(c->arena, "%s/.local/state/holt", l->home);
		else
			return err_set(l->err, EINVAL, "state_dir: not set, and neither is HOME");
	}
	if (!c->state_dir)
		return no_memory(l->err);
	derive_nofile(l);
	r = spec_fill_limits(&c->limits, NULL, l->err);
	if (r < 0)
		return r;
	machine_read(&m);
	derive_from_machine(c, &m);
	lower_defaults(l, &m);
	return 0;
}

static int read_key(struct load *l, const char *path)
{
	_cleanup_(wipe) struct buf text = { .max = CONFIG_FILE_MAX };
	struct stat st;
	int r = slurp(AT_FDCWD, path, true, &text, l->err);

	if (r < 0)
		return r;
	if (stat(path, &st) == 0 && st.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(l->err, EPERM, "%s: others may read the key (chmod 600)", path);
	if (text.len > 0)
		text.data[strcspn(text.data, "\r\n")] = '\0';
	l->origin = ORIGIN_FILE;
	return set(l, settings_find("api_key"), buf_str(&text), path);
}

/* The key itself counts before a file that holds it; without either there may be one in the usual
 * place. */
static int find_key(struct load *l)
{
	const char *config_home = env_dir(l->env, "XDG_CONFIG_HOME");
	struct config *c = l->c;
	const char *path;
	int r;

	if (c->api_key)
		return 0;
	if (c->api_key_file)
		return read_key(l, c->api_key_file);
	if (!config_home && !l->home)
		return 0;
	path = arena_printf(c->arena, "%s%s/holt/key", config_home ? config_home : l->home,
			    config_home ? "" : "/.config");
	if (!path)
		return no_memory(l->err);
	r = read_key(l, path);
	return r == -ENOENT || r == -EACCES ? 0 : r;
}

/* Whoever wrote the files of the directory we happen to be in must not get a key that was meant for
 * another daemon: a checkout with a .env in it is enough to ask for one. */
static int check_secrets_go_where_they_belong(const struct load *l)
{
	static const struct {
		const char *where, *what, *name;
	} pairs[] = { { "url", "api_key", "the daemon" },
		      { "otlp_endpoint", "otlp_headers", "the collector" } };

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct setting *where = settings_find(pairs[i].where);
		const struct setting *what = settings_find(pairs[i].what);
		const struct config_source *to = &l->c->sources[where - l->table];
		const struct config_source *from = &l->c->sources[what - l->table];

		if (to->local && !from->local && value_is_secret_set(l->c, what))
			return err_set(l->err, EPERM,
				       "%s names %s, but the key comes from %s: name %s there too "
				       "(%s)",
				       to->where, pairs[i].name, from->where, pairs[i].name,
				       where->env);
	}
	return 0;
}

static int load_all(struct load *l, const struct config_args *args)
{
	_close_ int dirfd = open(args->dir ? args->dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dirfd < 0)
		return err_sys(l->err, errno, "%s", args->dir ? args->dir : ".");
	r = set_defaults(l);
	if (r == 0)
		r = load_yaml(l, args, dirfd);
	if (r == 0)
		r = load_dotenv(l, dirfd);
	if (r == 0)
		r = load_env(l);
	if (r == 0)
		r = load_flags(l, args);
	if (r == 0)
		r = derive(l);
	if (r == 0)
		r = find_key(l);
	return r < 0 ? r : check_secrets_go_where_they_belong(l);
}

int config_load(const struct config_args *args, struct config **ret, struct err *err)
{
	static const struct config_args none = { 0 };
	_cleanup_(config_free_p) struct config *c = calloc(1, sizeof(*c));
	struct err unheard = { 0 };
	struct load l = { .c = c, .err = err ? err : &unheard };
	int r;

	l.table = settings_table(&l.count);
	if (c)
		c->arena = arena_create(ARENA_MAX);
	if (c && c->arena)
		c->sources = arena_array(c->arena, l.count, sizeof(*c->sources));
	if (!c || !c->sources)
		return no_memory(err);
	l.env = args && args->env ? args->env : environ;
	l.home = env_dir(l.env, "HOME");
	r = load_all(&l, args ? args : &none);
	if (r < 0)
		return r;
	err_clear(l.err); /* of files that need not be there */
	*ret = TAKE(c);
	return 0;
}

struct config *config_free(struct config *c)
{
	size_t n;
	const struct setting *table = settings_table(&n);

	if (!c)
		return NULL;
	for (size_t i = 0; i < n; i++)
		value_done(c, &table[i]);
	arena_free(c->arena);
	free(c);
	return NULL;
}
