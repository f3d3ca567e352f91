/* What a command of sudo's is given: its words, its variables, its directory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "guest/sudo.h"
#include "guest/user.h"
#include "spec/guest.h"

#define SECURE_PATH "PATH=" GUEST_ROOT_PATH
#define LINE_MAX_BYTES (32u << 10)

/* Variables of the caller that the command sees, as elsewhere. A trailing '*' takes every name that
 * begins so. */
static const char *const kept[] = {
	"COLORTERM", "COLUMNS", "DISPLAY", "LANG", "LANGUAGE", "LC_*", "LINES", "TERM", "TZ",
};

struct sudo_text {
	struct user target, caller;
	char home[USER_PATH_MAX + 8], shell[USER_PATH_MAX + 8];
	char user[USER_NAME_MAX + 8], logname[USER_NAME_MAX + 12];
	char sudo_user[USER_NAME_MAX + 12], sudo_uid[32], sudo_gid[32];
	char command[512];
	char line[LINE_MAX_BYTES];
};

struct sudo_text *sudo_text_create(void)
{
	return calloc(1, sizeof(struct sudo_text));
}

static bool is_name(const char *var, const char *name, size_t len)
{
	return strncmp(var, name, len) == 0 && var[len] == '=';
}

static bool is_listed(const char *var, const char *list)
{
	struct str rest = str_of(list), one = { 0 };

	while (list && str_split(&rest, ',', &one))
		if (one.len > 0 && is_name(var, one.data, one.len))
			return true;
	return false;
}

static bool is_kept(const char *var, const struct sudo_args *a)
{
	if (a->keep_env || is_listed(var, a->keep))
		return true;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		size_t n = strlen(kept[i]);

		if (kept[i][n - 1] == '*' ? strncmp(var, kept[i], n - 1) == 0
					  : is_name(var, kept[i], n))
			return true;
	}
	return false;
}

/* Adds it, or takes the place of one of the same name. */
static int put(struct guest_exec *e, const char *var)
{
	size_t len = strcspn(var, "=");

	for (size_t i = 0; i < e->envc; i++)
		if (is_name(e->envp[i], var, len)) {
			e->envp[i] = var;
			return 0;
		}
	if (e->envc == GUEST_ARGS_MAX)
		return -E2BIG;
	e->envp[e->envc++] = var;
	e->envp[e->envc] = NULL;
	return 0;
}

static int put_format(struct guest_exec *e, char *dst, size_t size, const char *name,
		      const char *value)
{
	int r = str_format(dst, size, "%s=%s", name, value);

	return r < 0 ? r : put(e, dst);
}

static int put_users(const struct sudo_args *a, struct sudo_text *t, struct guest_exec *e)
{
	const char *name = t->target.name[0] ? t->target.name : a->user;
	bool is_new = a->mode == SUDO_LOGIN || !a->keep_env;
	int r = put(e, SECURE_PATH);

	if (r == 0 && (is_new || a->set_home))
		r = put_format(e, t->home, sizeof(t->home), "HOME", t->target.home);
	if (r == 0 && is_new)
		r = put_format(e, t->shell, sizeof(t->shell), "SHELL", t->target.shell);
	if (r == 0)
		r = put_format(e, t->user, sizeof(t->user), "USER", name);
	if (r == 0)
		r = put_format(e, t->logname, sizeof(t->logname), "LOGNAME", name);
	return r;
}

static int put_sudo(const struct sudo_args *a, struct sudo_text *t, struct guest_exec *e)
{
	const char *what = a->argc > 0 ? a->argv[0] : t->target.shell;
	char number[16];
	int r = put_format(e, t->sudo_user, sizeof(t->sudo_user), "SUDO_USER", t->caller.name);

	(void)str_format(number, sizeof(number), "%u", (unsigned)getuid());
	if (r == 0)
		r = put_format(e, t->sudo_uid, sizeof(t->sudo_uid), "SUDO_UID", number);
	(void)str_format(number, sizeof(number), "%u", (unsigned)getgid());
	if (r == 0)
		r = put_format(e, t->sudo_gid, sizeof(t->sudo_gid), "SUDO_GID", number);
	/* For people; one that is too long is left out. */
	if (r == 0 && str_format(t->command, sizeof(t->command), "SUDO_COMMAND=%s", what) == 0)
		r = put(e, t->command);
	return r;
}

static int fill_env(const struct sudo_args *a, const char *const *now, struct sudo_text *t,
		    struct guest_exec *e)
{
	int r = 0;

	for (; *now && r == 0; now++)
		if (strchr(*now, '=') && **now != '=' && is_kept(*now, a))
			r = put(e, *now);
	if (r == 0)
		r = put_users(a, t, e);
	if (r == 0)
		r = put_sudo(a, t, e);
	for (int i = 0; i < a->n_vars && r == 0; i++)
		r = put(e, a->vars[i]);
	return r;
}

static const char *find_shell(const struct sudo_args *a, const struct sudo_text *t)
{
	const char *own = getenv("SHELL");

	if (a->mode == SUDO_LOGIN)
		return t->target.shell;
	return own && own[0] == '/' ? own : t->caller.shell;
}

static int fill_argv(const struct sudo_args *a, struct sudo_text *t, struct guest_exec *e)
{
	if (a->mode == SUDO_RUN) {
		if (a->argc > GUEST_ARGS_MAX)
			return -E2BIG;
		for (int i = 0; i < a->argc; i++)
			e->argv[e->argc++] = a->argv[i];
		e->argv[e->argc] = NULL;
		return 0;
	}
	e->argv[e->argc++] = find_shell(a, t);
	if (a->mode == SUDO_LOGIN)
		e->argv[e->argc++] = "-l";
	if (a->argc > 0) {
		if (sudo_quote(a->argv, a->argc, t->line, sizeof(t->line)) < 0)
			return -E2BIG;
		e->argv[e->argc++] = "-c";
		e->argv[e->argc++] = t->line;
	}
	e->argv[e->argc] = NULL;
	return 0;
}

int sudo_fill(const struct sudo_args *a, const char *const *environ_now, struct sudo_text *text,
	      struct guest_exec *ret, struct err *err)
{
	const char *who = a->user[0] == '#' ? a->user + 1 : a->user;
	char self[16];
	int r;

	(void)str_format(self, sizeof(self), "%u", (unsigned)getuid());
	r = user_load(self, &text->caller, err);
	if (r == 0)
		r = user_load(who, &text->target, err);
	if (r < 0)
		return r;
	*ret = (struct guest_exec){ .kind = EXEC_COMMAND, .user = who, .code = "", .tag = "" };
	ret->cwd = a->dir ? a->dir : a->mode == SUDO_LOGIN ? text->target.home : "";
	r = fill_argv(a, text, ret);
	if (r == 0)
		r = fill_env(a, environ_now, text, ret);
	return r < 0 ? err_set(err, E2BIG, "too many words, or too long ones") : 0;
}
