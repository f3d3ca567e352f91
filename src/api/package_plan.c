#include "api/package_plan.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/sandbox.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define ALNUM LOWER UPPER DIGITS

/* ---- names and versions ---- */

/* A run of `first` and then `more`; what is behind it, or NULL without any. */
static const char *word(const char *s, const char *first, const char *more)
{
	return *s && strchr(first, *s) ? s + 1 + strspn(s + 1, more) : NULL;
}

/* name[extra,extra]==1.2,<2 */
static bool is_pip(const char *s)
{
	const char *p = word(s, ALNUM, ALNUM "._-");

	if (!p)
		return false;
	if (*p == '[') {
		do
			p = word(p + 1, ALNUM, ALNUM "._-");
		while (p && *p == ',');
		if (!p || *p++ != ']')
			return false;
	}
	while (*p) {
		size_t n = strspn(p, "=<>!~");

		if (n < 1 || n > 2)
			return false;
		p = word(p + n, ALNUM, ALNUM ".*+!_-");
		if (!p || (*p == ',' && p[1] == '\0'))
			return false;
		p += *p == ',';
	}
	return true;
}

/* @scope/name@^1.2 */
static bool is_npm(const char *s)
{
	const char *p = s;

	if (*p == '@') {
		p = word(p + 1, LOWER DIGITS, LOWER DIGITS "._-");
		if (!p || *p++ != '/')
			return false;
	}
	p = word(p, LOWER DIGITS, LOWER DIGITS "._-");
	if (p && *p == '@')
		p = word(p + 1, ALNUM "^~<>=*", ALNUM "^~<>=*.+-");
	return p && *p == '\0';
}

static bool is_cargo(const char *s)
{
	const char *p = word(s, LOWER UPPER, ALNUM "_-");

	if (p && *p == '@')
		p = word(p + 1, DIGITS, ALNUM ".+-");
	return p && *p == '\0';
}

/* host.example/path@v1.2: the first part has a dot, so it is no package of the machine's own. */
static bool is_go(const char *s)
{
	const char *slash = strchr(s, '/'), *dot = strchr(s, '.'), *p;

	if (!slash || !dot || dot > slash || strstr(s, "..") || strstr(s, "//"))
		return false;
	p = word(s, ALNUM, ALNUM "._~/-");
	if (p && p[-1] == '/')
		return false;
	if (p && *p == '@')
		p = word(p + 1, ALNUM, ALNUM ".+-");
	return p && *p == '\0';
}

bool package_is_good(enum package_manager m, const char *text)
{
	static bool (*const checks[PACKAGE_MANAGERS])(const char *s) = {
		[PACKAGE_PIP] = is_pip,
		[PACKAGE_NPM] = is_npm,
		[PACKAGE_CARGO] = is_cargo,
		[PACKAGE_GO] = is_go,
	};

	return strlen(text) <= PACKAGE_TEXT_MAX && checks[m](text);
}

/* ---- commands ---- */

#define FIXED_MAX 16

/* "%r" is the registry, "%p" the proxy. The configuration that may lie in the box says nothing. */
static const struct recipe {
	const char *argv[FIXED_MAX];
	const char *env[FIXED_MAX]; /* name, value, ... */
} recipes[PACKAGE_MANAGERS] = {
	[PACKAGE_PIP] = { { "/usr/bin/python3", "-m", "pip", "install", "--user",
			    "--break-system-packages", "--no-input", "--disable-pip-version-check",
			    "--no-cache-dir", "--no-warn-script-location", "--proxy", "%p",
			    "--index-url", "%r", "--" },
			  { "PIP_CONFIG_FILE", "/dev/null" } },
	[PACKAGE_NPM] = { { "npm", "install", "--no-audit", "--no-fund", "--userconfig",
			    "/dev/null", "--registry", "%r", "--proxy", "%p", "--https-proxy", "%p",
			    "--" },
			  { "npm_config_update_notifier", "false" } },
	[PACKAGE_CARGO] = { { "cargo", "install", "--registry", "holt", "--" },
			    { "CARGO_REGISTRIES_HOLT_INDEX", "sparse+%r", "CARGO_HTTP_PROXY",
			      "%p" } },
	[PACKAGE_GO] = { { "go", "install" },
			 { "GOPROXY", "%r", "GOSUMDB", "off", "GOFLAGS", "", "GONOPROXY", "none",
			   "GOTOOLCHAIN", "local" } },
};

/* The same for a file, "%f"; npm and go look for it where they run. */
static const struct recipe file_recipes[PACKAGE_MANAGERS] = {
	[PACKAGE_PIP] = { { "/usr/bin/python3", "-m", "pip", "install", "--user",
			    "--break-system-packages", "--no-input", "--disable-pip-version-check",
			    "--no-cache-dir", "--no-warn-script-location", "--proxy", "%p",
			    "--index-url", "%r", "-r", "%f" },
			  { NULL } },
	[PACKAGE_NPM] = { { "npm", "install", "--no-audit", "--no-fund", "--userconfig",
			    "/dev/null", "--registry", "%r", "--proxy", "%p", "--https-proxy",
			    "%p" },
			  { NULL } },
	[PACKAGE_CARGO] = { { "cargo", "fetch", "--config", "source.crates-io.replace-with='holt'",
			      "--config", "source.holt.registry='sparse+%r'", "--manifest-path",
			      "%f" },
			    { NULL } },
	[PACKAGE_GO] = { { "go", "mod", "download" }, { NULL } },
};

static const char *directory_of(const char *file, struct arena *a)
{
	const char *end = strrchr(file, '/');

	return !end || end == file ? "/" : arena_strndup(a, file, (size_t)(end - file));
}

static const char *fill(const char *text, const char *registry, const char *proxy, struct arena *a)
{
	const char *mark = strchr(text, '%');
	const char *with = mark && mark[1] == 'r' ? registry : proxy;
	_cleanup_(buf_done) struct buf b = { 0 };

	if (!mark)
		return text;
	(void)buf_append(&b, text, (size_t)(mark - text));
	(void)buf_puts(&b, with);
	if (buf_puts(&b, mark + 2) < 0)
		return NULL;
	return arena_strndup(a, buf_str(&b), b.len);
}

static size_t count(const char *const *list)
{
	size_t n = 0;

	while (n < FIXED_MAX && list[n])
		n++;
	return n;
}

static int plan_env(const struct recipe *recipe, const char *registry, const char *proxy,
		    struct arena *a, struct package_plan *ret)
{
	static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "http_proxy",
					     "https_proxy" };
	size_t n = count(recipe->env) / 2, all = n + sizeof(names) / sizeof(names[0]) + 2;
	struct sandbox_pair *env = arena_array(a, all, sizeof(*env));

	if (!env)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		env[i].name = recipe->env[2 * i];
		env[i].value = fill(recipe->env[2 * i + 1], registry, proxy, a);
		if (!env[i].value)
			return -ENOMEM;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		env[n++] = (struct sandbox_pair){ names[i], proxy };
	env[n++] = (struct sandbox_pair){ "NO_PROXY", "" };
	env[n++] = (struct sandbox_pair){ "no_proxy", "" };
	ret->env = env;
	ret->n_env = n;
	return 0;
}

int package_plan(enum package_manager m, const char *const *packages, size_t n,
		 const char *registry, const char *proxy, struct arena *a, struct package_plan *ret)
{
	const struct recipe *recipe = &recipes[m];
	size_t fixed = count(recipe->argv);
	const char **argv = arena_array(a, fixed + n, sizeof(*argv));

	if (!argv)
		return -ENOMEM;
	for (size_t i = 0; i < fixed; i++) {
		argv[i] = fill(recipe->argv[i], registry, proxy, a);
		if (!argv[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		argv[fixed + i] = packages[i];
	ret->argv = argv;
	ret->argc = fixed + n;
	ret->cwd = "/workspace";
	return plan_env(recipe, registry, proxy, a, ret);
}

int package_plan_file(enum package_manager m, const char *file, const char *registry,
		      const char *proxy, struct arena *a, struct package_plan *ret)
{
	const char *const *fixed = file_recipes[m].argv;
	size_t n = count(fixed);
	const char **argv = arena_array(a, n, sizeof(*argv));

	if (!argv)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		argv[i] = strcmp(fixed[i], "%f") == 0 ? file : fill(fixed[i], registry, proxy, a);
		if (!argv[i])
			return -ENOMEM;
	}
	ret->argv = argv;
	ret->argc = n;
	ret->cwd = directory_of(file, a);
	if (!ret->cwd)
		return -ENOMEM;
	return plan_env(&recipes[m], registry, proxy, a, ret);
}
