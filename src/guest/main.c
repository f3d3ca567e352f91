/* holt-init: PID 1 of every box. */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/call.h"
#include "guest/serve.h"
#include "guest/sudo.h"

/* Where the launcher leaves them: see launch/box.h. */
#define SOCK_FD 3
#define PYTHON_FD 4
#define LIB_FD 4 /* with --preload, which is not with --python */

/* What we may do must not pass to what we start: no inheritable and no ambient capability. */
static void keep_caps_to_ourselves(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 } };

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, caps) < 0)
		return;
	caps[0].inheritable = caps[1].inheritable = 0;
	(void)syscall(SYS_capset, &head, caps);
}

/* No signal of the box may do anything to us; SIGCHLD is read from a descriptor. What is ignored
 * now would be ignored by every program we start. */
static void settle_signals(void)
{
	sigset_t all;

	for (int i = 1; i < 32; i++) /* nobody ignores those above */
		(void)signal(i, SIG_DFL);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Programs without an open input inherit this: the three are not close-on-exec. */
static int take_null(void)
{
	int fd = open("/dev/null", O_RDWR);

	if (fd < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (fd != i && dup2(fd, i) < 0)
			return -1;
	return fd > 2 ? close(fd) : 0;
}

/* Above the numbers with a meaning; 0 when it cannot be had. */
static int open_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	int above = fd < 0 ? 0 : fcntl(fd, F_DUPFD_CLOEXEC, PYTHON_FD + 1);

	if (fd >= 0)
		(void)close(fd);
	return above > 0 ? above : 0;
}

int main(int argc, char **argv)
{
	struct guest_options options = { .python_fd = -1, .lib_fd = LIB_FD };

	if (sudo_is_name(argc > 0 ? argv[0] : ""))
		return sudo_main(argc, argv);
	if (call_is_name(argc > 0 ? argv[0] : ""))
		return call_main(argc, argv);
	/* In time: whoever cannot be looked at owns nothing in /proc, unless it is root there. */
	options.oom_fd = open_oom_score();
	(void)prctl(PR_SET_DUMPABLE, 0);
	keep_caps_to_ourselves();
	settle_signals();
	(void)umask(022);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--python") == 0)
			options.python_fd = PYTHON_FD;
		else if (strncmp(argv[i], "--preload=", 10) == 0)
			options.preload = argv[i] + 10;
		else if (strcmp(argv[i], "--node") == 0)
			options.node = true;
		else if (strcmp(argv[i], "--sudo") == 0)
			options.sudo = true;
		else if (strncmp(argv[i], "--node=", 7) == 0) {
			options.node = true;
			options.preload_node = argv[i] + 7;
		} else
			return 2;
	}
	if (chdir("/") < 0 || take_null() < 0)
		return 1;
	(void)fcntl(PYTHON_FD, F_SETFD, FD_CLOEXEC);
	return guest_serve(SOCK_FD, &options) < 0;
}
