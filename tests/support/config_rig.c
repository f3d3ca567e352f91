#include "config_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "check.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

int config_rig_setup(void **state)
{
	static struct config_rig f; /* one test at a time */

	f = (struct config_rig){ .dir = "/tmp/holt-config-XXXXXX" };
	if (!mkdtemp(f.dir) || str_format(f.home, sizeof(f.home), "HOME=%s", f.dir) < 0)
		return -1;
	f.env[0] = f.home;
	f.args = (struct config_args){ .flags = f.flags, .env = f.env, .dir = f.dir };
	*state = &f;
	return 0;
}

int config_rig_teardown(void **state)
{
	static const char *const names[] = {
		"holt.yaml",        ".env",         "other.yaml", "key", ".config/holt/holt.yaml",
		".config/holt/key", ".config/holt", ".config"
	};
	struct config_rig *f = *state;
	char path[128];

	config_free(f->c);
	for (size_t i = 0; i < LEN(names); i++)
		if (str_format(path, sizeof(path), "%s/%s", f->dir, names[i]) == 0)
			(void)remove(path);
	return rmdir(f->dir);
}

void config_rig_write(struct config_rig *f, const char *name, const char *text)
{
	char path[128];
	_close_ int fd = -1;

	assert_int_equal(str_format(path, sizeof(path), "%s/%s", f->dir, name), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

void config_rig_env(struct config_rig *f, const char *pair)
{
	size_t i = 0;

	while (f->env[i])
		i++;
	assert_true(i + 1 < LEN(f->env));
	f->env[i] = (char *)pair;
}

void config_rig_flag(struct config_rig *f, const char *flag, const char *value)
{
	assert_true(f->args.flag_count < LEN(f->flags));
	f->flags[f->args.flag_count++] = (struct config_flag){ flag, value };
}

int config_rig_try(struct config_rig *f)
{
	f->c = config_free(f->c);
	f->err = (struct err){ 0 };
	return config_load(&f->args, &f->c, &f->err);
}

void config_rig_load(struct config_rig *f)
{
	int r = config_rig_try(f);

	if (r < 0)
		fail_msg("%d: %s", r, f->err.text);
	assert_int_equal(f->err.code, 0);
}
