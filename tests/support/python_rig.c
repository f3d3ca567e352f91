#include "python_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "spec/warm.h"

/* Beside the programs: two directories above the test. */
static int find_object(char dst[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", dst, PATH_MAX - 32);

	if (n < 0)
		return -errno;
	dst[n] = '\0';
	for (int i = 0; i < 3; i++) {
		char *slash = strrchr(dst, '/');

		if (!slash)
			return -ENOENT;
		*slash = '\0';
	}
	n = (ssize_t)strlen(dst);
	if (str_copy(dst + n, PATH_MAX - (size_t)n, "/holt-warm.so") < 0)
		return -ENAMETOOLONG;
	return access(dst, R_OK) < 0 ? -errno : 0;
}

static void become_python(const char *program, const char *object, const char *modules, int sock)
{
	char preload[PATH_MAX + 16], how[256];
	char *argv[] = { (char *)(uintptr_t) "python3", NULL };
	char *envp[] = { preload,
			 how,
			 (char *)(uintptr_t) "PATH=" WARM_PATH,
			 (char *)(uintptr_t) "HOME=" WARM_HOME,
			 (char *)(uintptr_t) "LANG=" WARM_LANG,
			 NULL };

	(void)str_format(preload, sizeof(preload), "LD_PRELOAD=%s", object);
	(void)str_format(how, sizeof(how), "HOLT_WARM=template:%s", modules);
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(open("/dev/null", O_RDWR | O_CLOEXEC), fd);
	(void)dup2(sock, 3);
	(void)fd_cloexec(3, false);
	(void)execve(program, argv, envp);
	_exit(127);
}

int python_rig_start(struct python_rig *rig, const char *program, const char *modules)
{
	char object[PATH_MAX];
	int pair[2], r = find_object(object);

	*rig = (struct python_rig){ 0, -1 };
	if (r < 0 || access(program, X_OK) < 0)
		return -ENOENT;
	/* What it forks must come to us, as it would to PID 1. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	rig->pid = fork();
	if (rig->pid == 0)
		become_python(program, object, modules, pair[1]);
	(void)close(pair[1]);
	rig->sock = pair[0];
	return rig->pid < 0 ? -errno : 0;
}

void python_rig_stop(struct python_rig *rig)
{
	rig->sock = fd_close(rig->sock);
	if (rig->pid > 0) {
		(void)kill(rig->pid, SIGKILL);
		(void)waitpid(rig->pid, NULL, 0);
	}
	rig->pid = 0;
}
