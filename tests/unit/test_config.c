#include "config/config.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "check.h"
#include "config_rig.h"
#include "crypto/secret.h"
#include "fault.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct config_source *source_of(const struct config_rig *f, const char *name)
{
	size_t n;
	const struct setting *table = settings_table(&n);

	return &f->c->sources[settings_find(name) - table];
}

static void without_anything_the_defaults_hold(void **state)
{
	struct config_rig *f = *state;
	struct limits want = { 0 };

	config_rig_load(f);
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
	assert_int_equal(f->c->max_output_bytes, 1 << 30);
	assert_int_equal(f->c->mcp_output_bytes, 32 << 10);
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
	struct config_rig *f = *state;

	config_rig_write(f, "holt.yaml",
			 "# all\nlisten: 127.0.0.1:1\nmax_sandboxes: 1\n"
			 "sandbox:\n  timeout: 10m\npool: {min: 3, max: 4}\n"
			 "limits:\n  memory: 64Mi\n  cpu: 250m\n");
	config_rig_write(f, ".env",
			 "OTHER=x\nHOLT_LISTEN=127.0.0.1:2\nHOLT_MAX_SANDBOXES=2\n"
			 "HOLT_POOL_MIN='2'\n");
	config_rig_env(f, "HOLT_LISTEN=127.0.0.1:3");
	config_rig_env(f, "HOLT_MAX_SANDBOXES=3");
	config_rig_flag(f, "--listen", "127.0.0.1:4");
	config_rig_load(f);
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
	struct config_rig *f = *state;
	size_t n = 0;

	config_rig_write(f, "holt.yaml",
			 "insecure_bind: yes\ncors_origins: [https://a, 'https://b']\n"
			 "log_level: debug\nlog_format: json\ncgroup: none\nuser: holt\n"
			 "tls_key: ~/key.pem\nmax_body: 2G\nretention: 0\n"
			 "state_dir: '~/s'\napi_key: holt_abc\nsandbox:\n");
	config_rig_load(f);
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
	config_rig_flag(f, "--cors-origins", " x , y ,z");
	config_rig_flag(f, "--tls-key", "");
	config_rig_flag(f, "--insecure-bind", NULL);
	config_rig_load(f);
	assert_int_equal(f->c->cors_origins.len, 3);
	assert_string_equal(f->c->cors_origins.items[0], "x");
	assert_null(f->c->tls_key);
	config_rig_flag(f, "--insecure-bind", "false");
	config_rig_load(f);
	assert_false(f->c->insecure_bind);
}

static void a_mistake_in_the_file_is_told_with_its_line(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "listen: a\nlissten: b\n", "holt.yaml:2: 'lissten' is not a setting (listen?)" },
		{ "bananas: b\n", "holt.yaml:1: 'bananas' is not a setting" },
		{ "name: app\nfrom: bash\nsteps:\n  - RUN: ls\n",
		  "holt.yaml:1: 'name' is not a setting; the file of a template is called "
		  "holt-template.yaml" },
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
	struct config_rig *f = *state;

	for (size_t i = 0; i < LEN(rows); i++) {
		int r;

		config_rig_write(f, "holt.yaml", rows[i].text);
		r = config_rig_try(f);
		if (r >= 0 || strcmp(f->err.text, rows[i].want) != 0)
			fail_msg("%s: %d, '%s'", rows[i].text, r, f->err.text);
		assert_null(f->c);
	}
}

static void a_bad_value_elsewhere_is_told_with_its_origin(void **state)
{
	struct config_rig *f = *state;

	config_rig_write(f, ".env", "\nHOLT_POOL_MIN=x\n");
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, ".env:2: pool_min: want a whole number");
	config_rig_write(f, ".env", "HOLT_CONFIG=x\n");
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, ".env:1: HOLT_CONFIG cannot be set in a file");
	config_rig_write(f, ".env", "");
	config_rig_env(f, "HOLT_POOL_MAX=-1");
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "HOLT_POOL_MAX: pool_max: want a whole number");
	f->env[1] = NULL;
	config_rig_flag(f, "--log-level", "loud");
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text,
			    "--log-level: log_level: want one of error, warn, info, debug");
	f->flags[0] = (struct config_flag){ "--log-level", NULL };
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "--log-level wants a value");
	f->flags[0] = (struct config_flag){ "--nothing", "x" };
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "--nothing is not a setting");
}

static void unknown_variables_of_ours_are_warned_of(void **state)
{
	struct config_rig *f = *state;

	config_rig_write(f, ".env", "HOLT_ZEBRA=1\n");
	config_rig_env(f, "HOLT_LISTN=x");
	config_rig_env(f, "HOLTED=x");
	config_rig_env(f, "PATH=/bin");
	config_rig_load(f);
	assert_int_equal(f->c->warning_count, 2);
	assert_string_equal(f->c->warnings[0], ".env:1: HOLT_ZEBRA is not a setting");
	assert_string_equal(f->c->warnings[1],
			    "HOLT_LISTN: HOLT_LISTN is not a setting (HOLT_LISTEN?)");
	for (int i = 0; i < 18; i++)
		config_rig_env(f, "HOLT_ZEBRA=x");
	config_rig_load(f);
	assert_int_equal(f->c->warning_count, CONFIG_WARNINGS_MAX);
}

static void a_named_file_is_read_and_must_be_there(void **state)
{
	struct config_rig *f = *state;
	char path[128];

	assert_int_equal(str_format(path, sizeof(path), "%s/other.yaml", f->dir), 0);
	config_rig_write(f, "holt.yaml", "pool_min: 1\n");
	config_rig_flag(f, "--config", path);
	assert_int_equal(config_rig_try(f), -ENOENT);
	config_rig_write(f, "other.yaml", "pool_max: 9\n");
	config_rig_load(f);
	assert_int_equal(f->c->pool_min, 2);
	assert_int_equal(f->c->pool_max, 9);
	assert_string_equal(f->c->config, path);
	f->args.flag_count = 0;
	config_rig_env(f, "HOLT_CONFIG=~/other.yaml");
	config_rig_load(f);
	assert_int_equal(f->c->pool_max, 9);
	assert_string_equal(source_of(f, "config")->where, "HOLT_CONFIG");
}

static void files_that_others_may_write_are_refused(void **state)
{
	struct config_rig *f = *state;
	char path[128];

	assert_int_equal(str_format(path, sizeof(path), "%s/holt.yaml", f->dir), 0);
	config_rig_write(f, "holt.yaml", "pool_min: 1\n");
	assert_int_equal(chmod(path, 0646), 0);
	assert_int_equal(config_rig_try(f), -EPERM);
	assert_string_equal(f->err.text, "holt.yaml: anybody may write it (chmod o-w)");
	assert_int_equal(chmod(path, 0644), 0);
	config_rig_load(f);
	if (geteuid() != 0 || chown(path, 12345, 12345) < 0)
		return; /* only root can show the rest */
	assert_int_equal(config_rig_try(f), -EPERM);
	assert_string_equal(f->err.text, "holt.yaml: belongs to another user");
	config_rig_flag(f, "--config", path); /* but one may name it */
	config_rig_load(f);
	f->args.flag_count = 0;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "holt.yaml: is not a file");
}

static void a_file_has_a_largest_size(void **state)
{
	struct config_rig *f = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	buf_puts(&b, "pool_min: 1\n#");
	while (b.len < CONFIG_FILE_MAX)
		buf_putc(&b, 'x');
	config_rig_write(f, "holt.yaml", b.data);
	config_rig_load(f);
	buf_putc(&b, 'x');
	config_rig_write(f, "holt.yaml", b.data);
	assert_int_equal(config_rig_try(f), -E2BIG);
	config_rig_write(f, "holt.yaml", "");
	config_rig_write(f, ".env", b.data);
	assert_int_equal(config_rig_try(f), -E2BIG);
}

static void texts_and_lists_have_limits(void **state)
{
	struct config_rig *f = *state;
	char text[SETTING_TEXT_MAX + 2];

	memset(text, 'x', sizeof(text));
	config_rig_flag(f, "--url", text);
	text[SETTING_TEXT_MAX] = '\0';
	config_rig_load(f);
	text[SETTING_TEXT_MAX] = 'x';
	text[SETTING_TEXT_MAX + 1] = '\0';
	assert_int_equal(config_rig_try(f), -E2BIG);
	f->flags[0].flag = "--cors-origins";
	for (size_t i = 0; i < SETTING_LIST_MAX; i++)
		memcpy(text + 2 * i, "a,", 3);
	text[2 * SETTING_LIST_MAX - 1] = '\0';
	config_rig_load(f);
	memcpy(text + 2 * SETTING_LIST_MAX - 1, ",a", 3);
	assert_int_equal(config_rig_try(f), -E2BIG);
	memcpy(text, "\xff", 2);
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "--cors-origins: cors_origins: is not valid UTF-8");
}

/* A checkout with a .env in it must not get the key of whoever looks into it. */
static void a_key_is_not_sent_where_a_local_file_says(void **state)
{
	struct config_rig *f = *state;

	config_rig_write(f, ".env", "HOLT_URL=http://192.0.2.1\n");
	config_rig_load(f);
	config_rig_env(f, "HOLT_API_KEY=k");
	assert_int_equal(config_rig_try(f), -EPERM);
	assert_string_equal(
		f->err.text,
		".env:1 names the daemon, but the key comes from HOLT_API_KEY: name the "
		"daemon there too (HOLT_URL)");
	config_rig_env(f, "HOLT_URL=http://127.0.0.1:1");
	config_rig_load(f);
	f->env[1] = f->env[2] = NULL;
	config_rig_write(f, ".env", "HOLT_URL=http://192.0.2.1\nHOLT_API_KEY=k\n");
	config_rig_load(f); /* both are its own */
	config_rig_write(f, ".env", "HOLT_API_KEY=k\n");
	config_rig_write(f, "holt.yaml", "url: http://192.0.2.1\n");
	config_rig_load(f);
	config_rig_write(f, ".env", "");
	config_rig_env(f, "HOLT_API_KEY=k");
	assert_int_equal(config_rig_try(f), -EPERM);
}

static void a_collectors_token_is_not_sent_where_a_local_file_says(void **state)
{
	struct config_rig *f = *state;

	config_rig_write(f, ".env", "HOLT_OTLP_ENDPOINT=https://192.0.2.1\n");
	config_rig_load(f);
	config_rig_env(f, "HOLT_OTLP_HEADERS=a=b");
	assert_int_equal(config_rig_try(f), -EPERM);
	assert_string_equal(f->err.text,
			    ".env:1 names the collector, but the key comes from HOLT_OTLP_HEADERS: "
			    "name the collector there too (HOLT_OTLP_ENDPOINT)");
	config_rig_env(f, "HOLT_OTLP_ENDPOINT=https://127.0.0.1");
	config_rig_load(f);
	assert_int_equal(f->c->otlp_sample_milli, 1000);
	assert_string_equal(f->c->otlp_service, "holt");
}

static void a_key_is_read_from_its_file(void **state)
{
	struct config_rig *f = *state;
	char path[128];
	size_t n;

	assert_int_equal(str_format(path, sizeof(path), "%s/key", f->dir), 0);
	config_rig_write(f, "key", "holt_in_file\n");
	config_rig_flag(f, "--api-key-file", path);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(config_rig_try(f), -EPERM);
	assert_non_null(strstr(f->err.text, "chmod 600"));
	assert_int_equal(chmod(path, 0600), 0);
	config_rig_load(f);
	assert_string_equal(secret_reveal(f->c->api_key, &n), "holt_in_file");
	config_rig_env(f, "HOLT_API_KEY=holt_in_env");
	config_rig_load(f);
	assert_string_equal(secret_reveal(f->c->api_key, &n), "holt_in_env");
}

static void a_key_in_the_usual_place_is_found(void **state)
{
	struct config_rig *f = *state;
	char path[128];
	size_t n;

	assert_int_equal(str_format(path, sizeof(path), "%s/.config", f->dir), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(str_format(path, sizeof(path), "%s/.config/holt", f->dir), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	config_rig_load(f);
	assert_null(f->c->api_key);
	config_rig_write(f, ".config/holt/key", "holt_usual");
	assert_int_equal(str_format(path, sizeof(path), "%s/.config/holt/key", f->dir), 0);
	assert_int_equal(chmod(path, 0600), 0);
	config_rig_load(f);
	assert_string_equal(secret_reveal(f->c->api_key, &n), "holt_usual");
}

/* In a process of its own: a hard limit cannot always be raised again. */
static uint32_t nofile_with_few_files(struct config_rig *f, uid_t uid)
{
	const struct rlimit few = { 600, 600 };
	int status = 0, fds[2];
	uint32_t nofile = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		if (setrlimit(RLIMIT_NOFILE, &few) < 0 || seteuid(uid) < 0)
			_exit(1);
		config_rig_load(f);
		_exit(write(fds[1], &f->c->limits.nofile, sizeof(nofile)) != sizeof(nofile));
	}
	assert_int_equal(close(fds[1]), 0);
	assert_int_equal(read(fds[0], &nofile, sizeof(nofile)), sizeof(nofile));
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return nofile;
}

static void a_default_asks_for_no_more_files_than_an_ordinary_user_may_open(void **state)
{
	struct config_rig *f = *state;

	if (geteuid() != 0)
		return;
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(nofile_with_few_files(f, 0), LIMIT_NOFILE_DEFAULT);
	assert_int_equal(nofile_with_few_files(f, 65534), 300);
	config_rig_flag(f, "--limits-nofile", "1024");
	/* Somebody's word stands; it is refused where it is used. */
	assert_int_equal(nofile_with_few_files(f, 65534), 1024);
}

static void where_state_is_kept_depends_on_who_one_is(void **state)
{
	struct config_rig *f = *state;
	char home_config[128];

	if (geteuid() != 0)
		return;
	config_rig_load(f);
	assert_string_equal(f->c->state_dir, "/var/lib/holt");
	assert_null(f->c->admin_key_file); /* shown, unless somebody asks for a file */
	assert_int_equal(str_format(home_config, sizeof(home_config), "%s/.config", f->dir), 0);
	assert_int_equal(mkdir(home_config, 0755), 0);
	assert_int_equal(str_format(home_config, sizeof(home_config), "%s/.config/holt", f->dir),
			 0);
	assert_int_equal(mkdir(home_config, 0755), 0);
	config_rig_write(f, ".config/holt/holt.yaml", "pool_min: 7\n");
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(seteuid(65534), 0);
	config_rig_load(f);
	assert_string_equal(f->c->state_dir + strlen(f->dir), "/.local/state/holt");
	assert_int_equal(f->c->pool_min, 7);
	config_rig_env(f, "XDG_STATE_HOME=/st");
	config_rig_env(f, "XDG_CONFIG_HOME=/nowhere");
	config_rig_load(f);
	assert_string_equal(f->c->state_dir, "/st/holt");
	assert_int_equal(f->c->pool_min, 2);
	f->env[0] = (char *)"HOME=relative";
	f->env[1] = NULL;
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "state_dir: not set, and neither is HOME");
	config_rig_flag(f, "--state-dir", "~/x");
	assert_int_equal(config_rig_try(f), -EINVAL);
	assert_string_equal(f->err.text, "--state-dir: state_dir: HOME is not set, so what is ~?");
	assert_int_equal(seteuid(0), 0);
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
	struct config_rig *f = *state;

	config_rig_write(f, "holt.yaml", "cors_origins: [a, b]\napi_key: k\nstate_dir: ~/x\n");
	config_rig_write(f, ".env", "HOLT_USER='me'\nHOLT_ZEBRA=1\n");
	assert_true(fault_each(load_once, &f->args) > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, config_rig_setup, config_rig_teardown)

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
		TEST(a_collectors_token_is_not_sent_where_a_local_file_says),
		TEST(a_key_is_read_from_its_file),
		TEST(a_key_in_the_usual_place_is_found),
		TEST(a_default_asks_for_no_more_files_than_an_ordinary_user_may_open),
		TEST(where_state_is_kept_depends_on_who_one_is),
		TEST(loading_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
