#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "guest/sudo.h"

/* What an option does. */
enum act {
	ACT_NOTHING, /* there is no password to ask for */
	ACT_USER,
	ACT_DIR,
	ACT_HOME,
	ACT_KEEP_ENV,
	ACT_BACKGROUND,
	ACT_MODE,
	ACT_REFUSE
};

static const struct {
	char letter;
	const char *name;
	bool has_value;
	enum act act;
	enum sudo_mode mode;
} options[] = {
	{ 'A', "askpass", false, ACT_NOTHING, SUDO_RUN },
	{ 'b', "background", false, ACT_BACKGROUND, SUDO_RUN },
	{ 'B', "bell", false, ACT_NOTHING, SUDO_RUN },
	{ 'C', "close-from", true, ACT_NOTHING, SUDO_RUN }, /* no more than three are passed on */
	{ 'D', "chdir", true, ACT_DIR, SUDO_RUN },
	{ 'E', "preserve-env", false, ACT_KEEP_ENV, SUDO_RUN },
	{ 'e', "edit", false, ACT_REFUSE, SUDO_RUN },
	{ 'g', "group", true, ACT_REFUSE, SUDO_RUN },
	{ 'H', "set-home", false, ACT_HOME, SUDO_RUN },
	{ 'h', "help", false, ACT_MODE, SUDO_HELP },
	{ 'i', "login", false, ACT_MODE, SUDO_LOGIN },
	{ 'K', "remove-timestamp", false, ACT_MODE, SUDO_VALIDATE },
	{ 'k', "reset-timestamp", false, ACT_MODE, SUDO_VALIDATE },
	{ 'l', "list", false, ACT_MODE, SUDO_LIST },
	{ 'n', "non-interactive", false, ACT_NOTHING, SUDO_RUN },
	{ 'N', "no-update", false, ACT_NOTHING, SUDO_RUN },
	{ 'P', "preserve-groups", false, ACT_REFUSE, SUDO_RUN },
	{ 'p', "prompt", true, ACT_NOTHING, SUDO_RUN },
	{ 'R', "chroot", true, ACT_REFUSE, SUDO_RUN },
	{ 'S', "stdin", false, ACT_NOTHING, SUDO_RUN },
	{ 's', "shell", false, ACT_MODE, SUDO_SHELL },
	{ 'T', "command-timeout", true, ACT_REFUSE, SUDO_RUN },
	{ 'u', "user", true, ACT_USER, SUDO_RUN },
	{ 'V', "version", false, ACT_MODE, SUDO_VERSION },
	{ 'v', "validate", false, ACT_MODE, SUDO_VALIDATE },
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

static int apply(size_t i, const char *value, struct sudo_args *a, struct err *err)
{
	switch (options[i].act) {
	case ACT_USER:
		a->user = value;
		break;
	case ACT_DIR:
		a->dir = value;
		break;
	case ACT_HOME:
		a->set_home = true;
		break;
	case ACT_KEEP_ENV:
		a->keep = value;
		a->keep_env = !value;
		break;
	case ACT_BACKGROUND:
		a->is_background = true;
		break;
	case ACT_MODE:
		a->mode = options[i].mode;
		break;
	case ACT_REFUSE:
		return err_set(err, EINVAL, "option --%s is not supported in this box",
			       options[i].name);
	case ACT_NOTHING:
		break;
	}
	return 0;
}

/* "--name", "--name=value", "--name value". How many words it took. */
static int parse_long(const char *const *argv, struct sudo_args *a, struct err *err)
{
	const char *name = argv[0] + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	bool may_have = value != NULL;
	int taken = 1, r;

	for (size_t i = 0; i < OPTIONS; i++) {
		if (!str_is((struct str){ name, len }, options[i].name))
			continue;
		value = may_have ? value + 1 : NULL;
		if (options[i].has_value && !value) {
			value = argv[1];
			taken = 2;
		}
		if (options[i].has_value && !value)
			break;
		if (may_have && !options[i].has_value && options[i].act != ACT_KEEP_ENV)
			break;
		r = apply(i, value, a, err);
		return r < 0 ? r : taken;
	}
	return err_set(err, EINVAL, "unknown option '%.60s', or one without its value", argv[0]);
}

/* "-nE", "-uroot", "-u root". */
static int parse_short(const char *const *argv, struct sudo_args *a, struct err *err)
{
	for (const char *p = argv[0] + 1; *p; p++) {
		const char *value = NULL;
		size_t i = 0;
		int r;

		while (i < OPTIONS && options[i].letter != *p)
			i++;
		if (i == OPTIONS)
			return err_set(err, EINVAL, "unknown option '-%c'", *p);
		if (options[i].has_value) {
			value = p[1] ? p + 1 : argv[1];
			if (!value)
				return err_set(err, EINVAL, "option '-%c' needs a value", *p);
		}
		r = apply(i, value, a, err);
		if (r < 0)
			return r;
		if (value)
			return p[1] ? 1 : 2;
	}
	return 1;
}

/* The names of variables are what a shell takes; anything else begins the command. */
static bool is_variable(const char *word)
{
	size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n > 0 && word[n] == '=' && (word[0] < '0' || word[0] > '9');
}

int sudo_parse_args(int argc, const char *const *argv, struct sudo_args *ret, struct err *err)
{
	struct sudo_args a = { .user = "root" };
	int i = 1, r;

	while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		r = argv[i][1] == '-' ? parse_long(argv + i, &a, err)
				      : parse_short(argv + i, &a, err);
		if (r < 0)
			return r;
		i += r;
	}
	a.vars = argv + i;
	while (i < argc && is_variable(argv[i])) {
		a.n_vars++;
		i++;
	}
	a.argc = argc - i;
	a.argv = argv + i;
	/* "sudo -k command" runs it. */
	if (a.mode == SUDO_VALIDATE && a.argc > 0)
		a.mode = SUDO_RUN;
	if (a.mode == SUDO_RUN && a.argc == 0)
		return err_set(err, EINVAL, "no command is given");
	*ret = a;
	return 0;
}

int sudo_quote(const char *const *argv, int argc, char *dst, size_t size)
{
	size_t n = 0;

	for (int i = 0; i < argc; i++) {
		if (n + 1 >= size)
			return -E2BIG;
		if (i > 0)
			dst[n++] = ' ';
		for (const char *p = argv[i]; *p; p++) {
			bool is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
					(*p >= '0' && *p <= '9') || strchr("_-$", *p) ||
					(unsigned char)*p >= 0x80;

			if (n + 3 >= size)
				return -E2BIG;
			if (!is_plain)
				dst[n++] = '\\';
			dst[n++] = *p;
		}
	}
	dst[n] = '\0';
	return 0;
}
