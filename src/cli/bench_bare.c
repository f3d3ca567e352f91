#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/bench.h"

static const char *const true_argv[] = { "/bin/true", NULL };
static const char *const shell_argv[] = { "/bin/bash", "-c", "/bin/true", NULL };
static const char *const python_argv[] = { "/usr/bin/python3", "-c", "print(1)", NULL };
static const char *const node_argv[] = { "/usr/bin/node", "-e", "console.log(1)", NULL };
static const char *const bwrap_argv[] = { BENCH_BWRAP, "/bin/true", NULL };

const struct bare bare_true = { true_argv, 0 };
const struct bare bare_shell = { shell_argv, 0 };
const struct bare bare_python = { python_argv, 0 };
const struct bare bare_node = { node_argv, 0 };
const struct bare bare_bwrap = { bwrap_argv, 0 };

bool bare_is_there(const char *program, char *ret_path, size_t size)
{
	const char *path = getenv("PATH");
	struct str rest = str_of(path ? path : "/usr/bin:/bin"), dir;

	if (strchr(program, '/'))
		return str_copy(ret_path, size, program) == 0 && access(program, X_OK) == 0;
	while (str_split(&rest, ':', &dir))
		if (str_format(ret_path, size, "%.*s/%s", (int)dir.len, dir.data, program) == 0 &&
		    access(ret_path, X_OK) == 0)
			return true;
	return false;
}

/* posix_spawn with the three standard descriptors on /dev/null, until it is reaped. */
int bare_once(void *self, uint64_t *ret_ns, struct err *err)
{
	const struct bare *bare = self;
	posix_spawn_file_actions_t files;
	uint64_t began;
	int e, status = 0;
	pid_t pid;

	e = posix_spawn_file_actions_init(&files);
	for (int fd = 0; e == 0 && fd < 3; fd++)
		e = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
	began = clock_now_ns();
	if (e == 0)
		e = posix_spawnp(&pid, bare->argv[0], &files, NULL, (char *const *)bare->argv,
				 environ);
	if (e == 0 && waitpid(pid, &status, 0) != pid)
		e = errno;
	*ret_ns = clock_now_ns() - began;
	(void)posix_spawn_file_actions_destroy(&files);
	if (e)
		return err_sys(err, e, "run %.60s", bare->argv[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != bare->expect)
		return err_set(err, EIO, "%.60s ended with status %#x", bare->argv[0], status);
	return 0;
}
