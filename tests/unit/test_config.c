#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "crypto/secret.h"
#include "fault.h"
#include "json/jv.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* A directory of its own for each test; nothing of this machine's settings is seen. */
struct fixture {
	char dir[64];
	char home[80]; /* "HOME=..." */
	char *env[24];
	struct config_flag flags[8];
	struct config_args args;
	struct config *c;
	struct err err;
};

static int setup(void **state)
{
	static struct fixture f; /* one test at a time */

	f = (struct fixture){ .dir = "/tmp/holt-config-XXXXXX" };
	if (!mkdtemp(f.dir) || str_format(f.home, sizeof(f.home), "HOME=%s", f.dir) < 0)
		return -1;
	f.env[0] = f.home;
	f.args = (struct config_args){ .flags = f.flags, .env = f.env, .dir = f.dir };
	*state = &f;
	return 0;
}

static void write_file(struct fixture *f, const char *name, const char *text)
{
	char path[128];
	_close_ int fd = -1;

	assert_int_equal(str_format(path, sizeof(path), "%s/%s", f->dir, name), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static int teardown(void **state)
{
	static const char *const names[] = { "holt.yaml",    ".env",
					     "other.yaml",   ".config/holt/holt.yaml",
					     ".config/holt", ".config" };
	struct fixture *f = *state;
	char path[128];

	config_free(f->c);
	for (size_t i = 0; i < LEN(names); i++)
		if (str_format(path, sizeof(path), "%s/%s", f->dir, names[i]) == 0)
			(void)remove(path);
	return rmdir(f->dir);
}

static int load(struct fixture *f)
{
	f->c = config_free(f->c);
	f->err = (struct err){ 0 };
	return config_load(&f->args, &f->c, &f->err);
}

static void must_load(struct fixture *f)
{
	int r = load(f);

	if (r < 0)
		fail_msg("%d: %s", r, f->err.text);
	assert_int_equal(f->err.code, 0);
}

static void add_flag(struct fixture *f, const char *flag, const char *value)
{
	f->flags[f->args.flag_count++] = (struct config_flag){ flag, value };
}

static void add_env(struct fixture *f, const char *pair)
{
	size_t i = 0;

	while (f->env[i])
		i++;
	assert_true(i + 1 < LEN(f->env));
	f->env[i] = (char *)pair;
}

static const struct config_source *source_of(const struct fixture *f, const char *name)
{
	size_t n;
	const struct setting *table = settings_table(&n);

	return &f->c->sources[settings_find(name) - table];
}

static void without_anything_the_defaults_hold(void **state)
{
	struct fixture *f = *state;
	struct limits want = { 0 };

	must_load(f);
	assert_string_equal(f->c->listen, "127.0.0.1:8765");
	assert_null(f->c->tls_cert);
	assert_false(f->c->insecure_bind);
	assert_int_equal(f->c->cors_origins.len, 0);
	assert_int_equal(f->c->max_json_bytes, 1 << 20);
	assert_int_equal(f->c->max_body_bytes, 1 << 30);
	assert_int_equal(f->c->max_sandboxes, 2000);
	assert_int_equal(f->c->sandbox_timeout_ms, 3600000);
	assert_int_equal(f->c->sandbox_timeout_max_ms, 24 * 3600000);
	assert_int_equal(f->c->sandbox_idle_timeout_ms, 0);
	assert_int_equal(f->c->exec_timeout_ms, 30000);
	assert_int_equal(f->c->output_keep_bytes, 1 << 20);
	assert_int_equal(f->c->pool_min, 2);
	assert_int_equal(f->c->pool_max, 16);
	assert_int_equal(f->c->pool_quiet_ms, 60000);
	assert_int_equal(f->c->log_level, LOG_INFO);
	assert_int_equal(f->c->log_format, LOG_LOGFMT);
	assert_int_equal(f->c->cgroup, CONFIG_CGROUP_AUTO);
	assert_string_equal(f->c->url, "http://127.0.0.1:8765");
	assert_null(f->c->api_key);
	assert_null(f->c->config);
	assert_int_equal(f->c->warning_count, 0);
	assert_int_equal(source_of(f, "listen")->origin, ORIGIN_DEFAULT);
	/* The launcher's own defaults are the same. */
	assert_int_equal(spec_fill_limits(&want, NULL, NULL), 0);
	assert_memory_equal(&f->c->limits, &want, sizeof(want));
	assert_int_equal(config_check(f->c, &f->err), 0);
}

static void each_layer_overrides_the_one_below(void **state)
{
	struct fixture *f = *state;

	write_file(f, "holt.yaml",
		   "# all\nlisten: 127.0.0.1:1\nmax_sandboxes: 1\n"
		   "sandbox:\n  timeout: 10m\npool: {min: 3, max: 4}\n"
		   "limits:\n  memory: 64Mi\n  cpu: 250m\n");
	write_file(f, ".env",
		   "OTHER=x\nHOLT_LISTEN=127.0.0.1:2\nHOLT_MAX_SANDBOXES=2\n"
		   "HOLT_POOL_MIN='2'\n");
	add_env(f, "HOLT_LISTEN=127.0.0.1:3");
	add_env(f, "HOLT_MAX_SANDBOXES=3");
	add_flag(f, "--listen", "127.0.0.1:4");
	must_load(f);
	assert_string_equal(f->c->listen, "127.0.0.1:4");
	assert_int_equal(f->c->max_sandboxes, 3);
	assert_int_equal(f->c->pool_min, 2);
	assert_int_equal(f->c->pool_max, 4);
	assert_int_equal(f->c->sandbox_timeout_ms, 600000);
	assert_int_equal(f->c->limits.memory_bytes, 64 << 20);
	assert_int_equal(f->c->limits.cpu_milli, 250);
	assert_int_equal(f->c->limits.disk_bytes, 32 << 20); /* half of the memory */
	assert_string_equal(f->c->config, "holt.yaml");
	assert_string_equal(source_of(f, "listen")->where, "--listen");
	assert_int_equal(source_of(f, "listen")->origin, ORIGIN_FLAG);
	assert_string_equal(source_of(f, "max_sandboxes")->where, "HOLT_MAX_SANDBOXES");
	assert_int_equal(source_of(f, "max_sandboxes")->origin, ORIGIN_ENV);
	assert_string_equal(source_of(f, "pool_min")->where, ".env:4");
	assert_int_equal(source_of(f, "pool_min")->origin, ORIGIN_DOTENV);
	assert_string_equal(source_of(f, "sandbox_timeout")->where, "holt.yaml:5");
	assert_int_equal(source_of(f, "sandbox_timeout")->origin, ORIGIN_FILE);
}

static void every_type_is_read(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;

	write_file(f, "holt.yaml",
		   "insecure_bind: yes\ncors_origins: [https://a, 'https://b']\n"
		   "log_level: debug\nlog_format: json\ncgroup: none\nuser: holt\n"
		   "tls_key: ~/key.pem\nmax_body: 2G\nretention: 0\n"
		   "state_dir: '~/s'\napi_key: holt_abc\nsandbox:\n");
	must_load(f);
	assert_true(f->c->insecure_bind);
	assert_int_equal(f->c->cors_origins.len, 2);
	assert_string_equal(f->c->cors_origins.items[1], "https://b");
	assert_int_equal(f->c->log_level, LOG_DEBUG);
	assert_int_equal(f->c->log_format, LOG_JSON);
	assert_int_equal(f->c->cgroup, CONFIG_CGROUP_NONE);
	assert_string_equal(f->c->user, "holt");
	assert_string_equal(f->c->tls_key + strlen(f->dir), "/key.pem");
	assert_int_equal(strncmp(f->c->tls_key, f->dir, strlen(f->dir)), 0);
	assert_int_equal(f->c->max_body_bytes, 2ull << 30);
	assert_int_equal(f->c->retention_ms, 0);
	assert_null(f->c->admin_key_file);
	assert_string_equal(secret_reveal(f->c->api_key, &n), "holt_abc");
	add_flag(f, "--cors-origins", " x , y ,z");
	add_flag(f, "--tls-key", "");
	add_flag(f, "--insecure-bind", NULL);
	must_load(f);
	assert_int_equal(f->c->cors_origins.len, 3);
	assert_string_equal(f->c->cors_origins.items[0], "x");
	assert_null(f->c->tls_key);
	add_flag(f, "--insecure-bind", "false");
	must_load(f);
	assert_false(f->c->insecure_bind);
}

static void a_mistake_in_the_file_is_told_with_its_line(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "listen: a\nlissten: b\n", "holt.yaml:2: 'lissten' is not a setting (listen?)" },
		{ "bananas: b\n", "holt.yaml:1: 'bananas' is not a setting" },
		{ "bananas:\n", "holt.yaml:1: 'bananas' is not a setting" },
		{ "sandbox:\n  timeot: 1h\n",
		  "holt.yaml:2: 'sandbox_timeot' is not a setting (sandbox_timeout?)" },
		{ "pool_min: 1\npool:\n  min: 2\n", "holt.yaml:3: pool_min is there twice" },
		{ "config: x\n", "holt.yaml:1: config cannot be set in a file" },
		{ "pool_min: many\n", "holt.yaml:1: pool_min: want a whole number" },
		{ "pool_min: 1001\n",
		  "holt.yaml:1: pool_min: want a whole number, from 0 to 1000" },
		{ "limits: {memory: 7M}\n",
		  "holt.yaml:1: limits_memory: want a size such as 256M, from 8M to 1T" },
		{ "limits_cpu: 0.001\n",
		  "holt.yaml:1: limits_cpu: want cores such as 0.5, from 10m to 1024" },
		{ "exec_timeout: soon\n", "holt.yaml:1: exec_timeout: want a time such as 30s" },
		{ "sandbox_timeout: 1ms\n",
		  "holt.yaml:1: sandbox_timeout: want a time such as 30s, from 1s to 8760h" },
		{ "insecure_bind: maybe\n", "holt.yaml:1: insecure_bind: want true or false" },
		{ "log_level: loud\n",
		  "holt.yaml:1: log_level: want one of error, warn, info, debug" },
		{ "listen: \"a\\nb\"\n", "holt.yaml:1: listen: has a control character" },
		{ "cors_origins: 'a,,b'\n", "holt.yaml:1: cors_origins: has an empty entry" },
		{ "user: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
		  "holt.yaml:1: user: 33 bytes, limit 32" },
		{ "a: &x 1\n", "holt.yaml:1: anchors are not taken" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		int r;

		write_file(f, "holt.yaml", rows[i].text);
		r = load(f);
		if (r >= 0 || strcmp(f->err.text, rows[i].want) != 0)
			fail_msg("%s: %d, '%s'", rows[i].text, r, f->err.text);
		assert_null(f->c);
	}
}

static void a_bad_value_elsewhere_is_told_with_its_origin(void **state)
{
	struct fixture *f = *state;

	write_file(f, ".env", "\nHOLT_POOL_MIN=x\n");
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, ".env:2: pool_min: want a whole number");
	write_file(f, ".env", "HOLT_CONFIG=x\n");
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, ".env:1: HOLT_CONFIG cannot be set in a file");
	write_file(f, ".env", "");
	add_env(f, "HOLT_POOL_MAX=-1");
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "HOLT_POOL_MAX: pool_max: want a whole number");
	f->env[1] = NULL;
	add_flag(f, "--log-level", "loud");
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text,
			    "--log-level: log_level: want one of error, warn, info, debug");
	f->flags[0] = (struct config_flag){ "--log-level", NULL };
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "--log-level wants a value");
	f->flags[0] = (struct config_flag){ "--nothing", "x" };
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "--nothing is not a setting");
}

static void unknown_variables_of_ours_are_warned_of(void **state)
{
	struct fixture *f = *state;

	write_file(f, ".env", "HOLT_ZEBRA=1\n");
	add_env(f, "HOLT_LISTN=x");
	add_env(f, "HOLTED=x");
	add_env(f, "PATH=/bin");
	must_load(f);
	assert_int_equal(f->c->warning_count, 2);
	assert_string_equal(f->c->warnings[0], ".env:1: HOLT_ZEBRA is not a setting");
	assert_string_equal(f->c->warnings[1],
			    "HOLT_LISTN: HOLT_LISTN is not a setting (HOLT_LISTEN?)");
	for (int i = 0; i < 18; i++)
		add_env(f, "HOLT_ZEBRA=x");
	must_load(f);
	assert_int_equal(f->c->warning_count, CONFIG_WARNINGS_MAX);
}

static void a_named_file_is_read_and_must_be_there(void **state)
{
	struct fixture *f = *state;
	char path[128];

	assert_int_equal(str_format(path, sizeof(path), "%s/other.yaml", f->dir), 0);
	write_file(f, "holt.yaml", "pool_min: 1\n");
	add_flag(f, "--config", path);
	assert_int_equal(load(f), -ENOENT);
	write_file(f, "other.yaml", "pool_max: 9\n");
	must_load(f);
	assert_int_equal(f->c->pool_min, 2);
	assert_int_equal(f->c->pool_max, 9);
	assert_string_equal(f->c->config, path);
	f->args.flag_count = 0;
	add_env(f, "HOLT_CONFIG=~/other.yaml");
	must_load(f);
	assert_int_equal(f->c->pool_max, 9);
	assert_string_equal(source_of(f, "config")->where, "HOLT_CONFIG");
}

static void files_that_others_may_write_are_refused(void **state)
{
	struct fixture *f = *state;
	char path[128];

	assert_int_equal(str_format(path, sizeof(path), "%s/holt.yaml", f->dir), 0);
	write_file(f, "holt.yaml", "pool_min: 1\n");
	assert_int_equal(chmod(path, 0646), 0);
	assert_int_equal(load(f), -EPERM);
	assert_string_equal(f->err.text, "holt.yaml: anybody may write it (chmod o-w)");
	assert_int_equal(chmod(path, 0644), 0);
	must_load(f);
	if (geteuid() != 0 || chown(path, 12345, 12345) < 0)
		return; /* only root can show the rest */
	assert_int_equal(load(f), -EPERM);
	assert_string_equal(f->err.text, "holt.yaml: belongs to another user");
	add_flag(f, "--config", path); /* but one may name it */
	must_load(f);
	f->args.flag_count = 0;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "holt.yaml: is not a file");
}

static void a_file_has_a_largest_size(void **state)
{
	struct fixture *f = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	buf_puts(&b, "pool_min: 1\n#");
	while (b.len < CONFIG_FILE_MAX)
		buf_putc(&b, 'x');
	write_file(f, "holt.yaml", b.data);
	must_load(f);
	buf_putc(&b, 'x');
	write_file(f, "holt.yaml", b.data);
	assert_int_equal(load(f), -E2BIG);
	write_file(f, "holt.yaml", "");
	write_file(f, ".env", b.data);
	assert_int_equal(load(f), -E2BIG);
}

static void texts_and_lists_have_limits(void **state)
{
	struct fixture *f = *state;
	char text[SETTING_TEXT_MAX + 2];

	add_flag(f, "--url", text);
	memset(text, 'x', sizeof(text));
	text[SETTING_TEXT_MAX] = '\0';
	must_load(f);
	text[SETTING_TEXT_MAX] = 'x';
	text[SETTING_TEXT_MAX + 1] = '\0';
	assert_int_equal(load(f), -E2BIG);
	f->flags[0].flag = "--cors-origins";
	for (size_t i = 0; i < SETTING_LIST_MAX; i++)
		memcpy(text + 2 * i, "a,", 3);
	text[2 * SETTING_LIST_MAX - 1] = '\0';
	must_load(f);
	memcpy(text + 2 * SETTING_LIST_MAX - 1, ",a", 3);
	assert_int_equal(load(f), -E2BIG);
	memcpy(text, "\xff", 2);
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "--cors-origins: cors_origins: is not valid UTF-8");
}

/* A checkout with a .env in it must not get the key of whoever looks into it. */
static void a_key_is_not_sent_where_a_local_file_says(void **state)
{
	struct fixture *f = *state;

	write_file(f, ".env", "HOLT_URL=http://192.0.2.1\n");
	must_load(f);
	add_env(f, "HOLT_API_KEY=k");
	assert_int_equal(load(f), -EPERM);
	assert_string_equal(
		f->err.text,
		".env:1 names the daemon, but the key comes from HOLT_API_KEY: name the "
		"daemon there too (HOLT_URL)");
	add_env(f, "HOLT_URL=http://127.0.0.1:1");
	must_load(f);
	f->env[1] = f->env[2] = NULL;
	write_file(f, ".env", "HOLT_URL=http://192.0.2.1\nHOLT_API_KEY=k\n");
	must_load(f); /* both are its own */
	write_file(f, ".env", "HOLT_API_KEY=k\n");
	write_file(f, "holt.yaml", "url: http://192.0.2.1\n");
	must_load(f);
	write_file(f, ".env", "");
	add_env(f, "HOLT_API_KEY=k");
	assert_int_equal(load(f), -EPERM);
}

static void where_state_is_kept_depends_on_who_one_is(void **state)
{
	struct fixture *f = *state;
	char home_config[128];

	if (geteuid() != 0)
		return;
	must_load(f);
	assert_string_equal(f->c->state_dir, "/var/lib/holt");
	assert_null(f->c->admin_key_file); /* shown, unless somebody asks for a file */
	assert_int_equal(str_format(home_config, sizeof(home_config), "%s/.config", f->dir), 0);
	assert_int_equal(mkdir(home_config, 0755), 0);
	assert_int_equal(str_format(home_config, sizeof(home_config), "%s/.config/holt", f->dir),
			 0);
	assert_int_equal(mkdir(home_config, 0755), 0);
	write_file(f, ".config/holt/holt.yaml", "pool_min: 7\n");
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	must_load(f);
	assert_string_equal(f->c->state_dir + strlen(f->dir), "/.local/state/holt");
	assert_int_equal(f->c->pool_min, 7);
	add_env(f, "XDG_STATE_HOME=/st");
	add_env(f, "XDG_CONFIG_HOME=/nowhere");
	must_load(f);
	assert_string_equal(f->c->state_dir, "/st/holt");
	assert_int_equal(f->c->pool_min, 2);
	f->env[0] = (char *)"HOME=relative";
	f->env[1] = NULL;
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "state_dir: not set, and neither is HOME");
	add_flag(f, "--state-dir", "~/x");
	assert_int_equal(load(f), -EINVAL);
	assert_string_equal(f->err.text, "--state-dir: state_dir: HOME is not set, so what is ~?");
	assert_int_equal(seteuid(0), 0);
}

static void what_does_not_go_together_is_refused(void **state)
{
	static const struct {
		const char *pairs[4], *want; /* NULL: fine */
	} rows[] = {
		{ { "HOLT_TLS_CERT=c" }, "tls_cert needs tls_key, the certificate's private key" },
		{ { "HOLT_TLS_KEY=k" }, "tls_key needs tls_cert, the certificate" },
		{ { "HOLT_TLS_CERT=c", "HOLT_TLS_KEY=k", "HOLT_LISTEN=0.0.0.0:443" }, NULL },
		{ { "HOLT_LISTEN=:80" },
		  "listen :80: other machines would reach it without TLS: set tls_cert and "
		  "tls_key, "
		  "or insecure_bind when something in front does TLS" },
		{ { "HOLT_LISTEN=:80", "HOLT_INSECURE_BIND=1" }, NULL },
		{ { "HOLT_LISTEN=" }, "listen: no address to serve" },
		{ { "HOLT_CORS_ORIGINS=https://a.example,*" }, NULL },
		{ { "HOLT_CORS_ORIGINS=a.example" },
		  "cors_origins: 'a.example': want https://host[:port]" },
		{ { "HOLT_SANDBOX_TIMEOUT=25h" },
		  "sandbox_timeout is longer than sandbox_timeout_max" },
		{ { "HOLT_EXEC_TIMEOUT=61m" }, "exec_timeout is longer than exec_timeout_max" },
		{ { "HOLT_POOL_MIN=17" }, "pool_min is more than pool_max" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		f->env[1] = NULL;
		for (size_t k = 0; rows[i].pairs[k]; k++) {
			f->env[k + 1] = (char *)rows[i].pairs[k];
			f->env[k + 2] = NULL;
		}
		must_load(f);
		assert_int_equal(config_check(f->c, &f->err), rows[i].want ? -EINVAL : 0);
		assert_string_equal(f->err.text, rows[i].want ? rows[i].want : "");
	}
}

static void only_this_machine_reaches_loopback(void **state)
{
	static const char *const yes[] = { "127.0.0.1:80", "127.9.9.9:0", "[::1]:80",
					   "localhost:1",  "unix:/run/x", "[::ffff:127.0.0.1]:1" };
	static const char *const no[] = { ":80",      "0.0.0.0:80",    "[::]:80", "10.0.0.1:1",
					  "host:80",  "127.0.0.1",     "",        "128.0.0.1:1",
					  "[::2]:80", "localhost.x:1", "unix" };

	(void)state;
	for (size_t i = 0; i < LEN(yes); i++)
		if (!config_is_loopback(yes[i]))
			fail_msg("%s", yes[i]);
	for (size_t i = 0; i < LEN(no); i++)
		if (config_is_loopback(no[i]))
			fail_msg("%s", no[i]);
}

/* What config_print() writes, in b. */
static void printed(const struct fixture *f, bool json, struct buf *b)
{
	FILE *out = tmpfile();

	assert_non_null(out);
	assert_int_equal(config_print(f->c, json, out), 0);
	rewind(out);
	assert_int_equal(fd_slurp(fileno(out), b), 0);
	(void)fclose(out);
}

static void settings_are_shown_with_their_origin_and_without_secrets(void **state)
{
	struct fixture *f = *state;
	_cleanup_(buf_done) struct buf text = { 0 };
	_cleanup_(buf_done) struct buf json = { 0 };
	struct jv_doc *doc = NULL;
	struct jv root;
	uint64_t n = 0;

	add_env(f, "HOLT_API_KEY=holt_very_secret");
	add_flag(f, "--exec-timeout", "90s");
	add_flag(f, "--limits-cpu", "1.5");
	must_load(f);
	printed(f, false, &text);
	assert_null(strstr(text.data, "very_secret"));
	assert_non_null(strstr(text.data,
			       "\napi_key                ***                                  "
			       "HOLT_API_KEY\n"));
	assert_non_null(strstr(text.data, "\nexec_timeout           90s   "));
	assert_non_null(strstr(text.data, "\nlimits_cpu             1500m "));
	assert_non_null(strstr(text.data, "\nlimits_memory          256M  "));
	assert_non_null(strstr(text.data, "\ntls_cert               -     "));
	printed(f, true, &json);
	assert_null(strstr(json.data, "very_secret"));
	assert_int_equal(jv_parse(json.data, json.len, json.len, &doc, NULL), 0);
	root = jv_root(doc);
	assert_string_equal(jv_text(jv_get(jv_get(root, "api_key"), "value")), "***");
	assert_string_equal(jv_text(jv_get(jv_get(root, "api_key"), "where")), "HOLT_API_KEY");
	assert_string_equal(jv_text(jv_get(jv_get(root, "listen"), "origin")), "default");
	assert_int_equal(jv_kind(jv_get(jv_get(root, "tls_cert"), "value")), JV_NULL);
	assert_int_equal(jv_u64(jv_get(jv_get(root, "exec_timeout"), "value"), &n), 0);
	assert_int_equal(n, 90000);
	jv_free(doc);
}

static void the_table_is_of_one_piece(void **state)
{
	size_t n;
	const struct setting *table = settings_table(&n);

	(void)state;
	assert_true(n > 30);
	for (size_t i = 0; i < n; i++) {
		const struct setting *s = &table[i];
		char env[64] = "HOLT_", flag[64] = "--";

		for (size_t k = 0; k <= strlen(s->name); k++) {
			env[5 + k] = (char)toupper(s->name[k]);
			flag[2 + k] = s->name[k] == '_' ? '-' : s->name[k];
		}
		assert_string_equal(s->env, env);
		assert_string_equal(s->flag, flag);
		assert_true(strlen(s->help) > 10 && strlen(s->help) < 80);
		assert_true(s->arg || s->type == SETTING_BOOL);
		assert_ptr_equal(settings_find(s->name), s);
		assert_ptr_equal(settings_find_env(s->env), s);
		assert_ptr_equal(settings_find_flag(s->flag), s);
		assert_true((s->choices != NULL) == (s->type == SETTING_CHOICE));
	}
	assert_null(settings_find("nothing"));
	assert_string_equal(settings_nearest("--lisen"), "--listen");
	assert_string_equal(settings_nearest("HOLT_POOLMIN"), "HOLT_POOL_MIN");
	assert_null(settings_nearest("something quite different and far too long to be a name"));
}

static int load_once(void *arg)
{
	struct config *c = NULL;
	int r = config_load(arg, &c, NULL);

	config_free(c);
	return r;
}

static void loading_fails_cleanly_without_memory(void **state)
{
	struct fixture *f = *state;

	write_file(f, "holt.yaml", "cors_origins: [a, b]\napi_key: k\nstate_dir: ~/x\n");
	write_file(f, ".env", "HOLT_USER='me'\nHOLT_ZEBRA=1\n");
	assert_true(fault_each(load_once, &f->args) > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_anything_the_defaults_hold),
		TEST(each_layer_overrides_the_one_below),
		TEST(every_type_is_read),
		TEST(a_mistake_in_the_file_is_told_with_its_line),
		TEST(a_bad_value_elsewhere_is_told_with_its_origin),
		TEST(unknown_variables_of_ours_are_warned_of),
		TEST(a_named_file_is_read_and_must_be_there),
		TEST(files_that_others_may_write_are_refused),
		TEST(a_file_has_a_largest_size),
		TEST(texts_and_lists_have_limits),
		TEST(a_key_is_not_sent_where_a_local_file_says),
		TEST(where_state_is_kept_depends_on_who_one_is),
		TEST(what_does_not_go_together_is_refused),
		TEST(only_this_machine_reaches_loopback),
		TEST(settings_are_shown_with_their_origin_and_without_secrets),
		TEST(the_table_is_of_one_piece),
		TEST(loading_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
