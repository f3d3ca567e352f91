/* Each case confines a process of its own: there is no way back. */
#include "daemon/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "base/str.h"
#include "check.h"
#include "config/config.h"

/* In a child an assertion must not come back to the runner: the line is the exit status. */
#define MUST(cond)                                 \
	do {                                       \
		if (!(cond))                       \
			_exit(__LINE__ % 200 + 1); \
	} while (0)

struct place {
	char dir[64];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	(void)str_copy(p->dir, sizeof(p->dir), "/tmp/holt-confine.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	const char *const argv[] = { "rm", "-rf", p->dir, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		(void)execvp(argv[0], (char *const *)argv);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	free(p);
	return 0;
}

static void in_child(void (*fn)(const struct place *), const struct place *p)
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
		fn(p);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- system calls ---- */

static bool is_refused(long r)
{
	return r == -1 && errno == ENOSYS;
}

static void call_all(const struct place *p)
{
	const pid_t self = getpid();
	struct sock_fprog program = { 0 };
	int pair[2];

	MUST(confine_calls(false, false, NULL) == 0);
	/* processes */
	MUST(is_refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
	MUST(is_refused(syscall(SYS_clone, CLONE_THREAD | CLONE_NEWUSER, 0, 0, 0, 0)));
	MUST(is_refused(
		syscall(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, 0, 0, 0)));
	MUST(is_refused(syscall(SYS_clone3, NULL, 0)));
	MUST(is_refused(syscall(SYS_execve, "/bin/true", NULL, NULL)));
	MUST(is_refused(syscall(SYS_execveat, AT_FDCWD, "/bin/true", NULL, NULL, 0)));
	MUST(is_refused(unshare(CLONE_NEWUSER)));
	MUST(is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
	MUST(is_refused(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0)));
	MUST(is_refused(kill(self, 0)));
	MUST(is_refused(syscall(SYS_tgkill, getppid(), getppid(), 0)));
	MUST(syscall(SYS_tgkill, self, self, 0) == 0); /* abort() */
	/* what makes it less confined, or more powerful */
	MUST(is_refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)));
	MUST(is_refused(prctl(PR_SET_PTRACER, 1, 0, 0, 0)));
	MUST(is_refused(setuid(0)) && is_refused(mount("none", "/tmp", "tmpfs", 0, NULL)));
	MUST(is_refused(syscall(SYS_bpf, 0, NULL, 0)));
	MUST(is_refused(syscall(SYS_io_uring_setup, 1, NULL)));
	MUST(is_refused(syscall(SYS_memfd_create, "x", 0)));
	MUST(mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		     MAP_FAILED &&
	     errno == ENOSYS);
	/* files by their names alone, which Landlock does not hold */
	MUST(is_refused(chmod(p->dir, 0777)) && is_refused(truncate(p->dir, 0)));
	MUST(is_refused(link(p->dir, p->dir)) && is_refused(symlink(p->dir, p->dir)));
	MUST(is_refused(chown(p->dir, 0, 0)) && is_refused(syscall(SYS_inotify_init1, 0)));
	/* sockets */
	MUST(is_refused(socket(AF_PACKET, SOCK_RAW, 0)));
	MUST(is_refused(socket(AF_INET, SOCK_RAW, 1)) &&
	     is_refused(socket(AF_INET, SOCK_DGRAM, 1)));
	MUST(is_refused(socket(AF_UNIX, SOCK_STREAM, 0)));
	MUST(is_refused(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)));
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	MUST(is_refused(
		setsockopt(pair[0], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))));
	MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0);
	MUST(is_refused(socket(AF_NETLINK, SOCK_RAW, 15)));
	MUST(is_refused(fcntl(pair[0], F_SETOWN, getppid())));
	MUST(fcntl(pair[0], F_GETFL) >= 0);
}

static void what_a_server_does_not_need_is_refused(void **state)
{
	in_child(call_all, *state);
}

static void open_unix(const struct place *p)
{
	int pair[2];

	(void)p;
	MUST(confine_calls(false, true, NULL) == 0);
	MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
	MUST(is_refused(socket(AF_UNIX, SOCK_DGRAM, 0)));
	MUST(confine_unix(NULL) == 0);
	MUST(is_refused(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
	MUST(is_refused(syscall(SYS_seccomp, 0, 0, NULL)));
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0);
}

static void unix_sockets_are_for_who_begins_to_listen_on_one(void **state)
{
	in_child(open_unix, *state);
}

/* ---- files ---- */

static void make_path(const struct place *p, const char *name, char ret[PATH_MAX])
{
	MUST(str_format(ret, PATH_MAX, "%s/%s", p->dir, name) == 0);
}

static void write_file(const struct place *p, const char *name)
{
	char path[PATH_MAX];
	_close_ int fd = -1;

	make_path(p, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	MUST(fd >= 0 && fd_write_all(fd, "x", 1) == 0);
}

static void make_dir(const struct place *p, const char *name)
{
	char path[PATH_MAX];

	make_path(p, name, path);
	MUST(mkdir(path, 0755) == 0);
}

static int try_open(const struct place *p, const char *name, int flags)
{
	char path[PATH_MAX];
	_close_ int fd = -1;

	make_path(p, name, path);
	fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? errno : 0;
}

static void *try_in_thread(void *user)
{
	const struct place *p = user;

	MUST(try_open(p, "canary", O_RDONLY) == EACCES);
	MUST(is_refused(syscall(SYS_execve, "/bin/true", NULL, NULL)));
	return NULL;
}

/* As the operator may have it: a certificate in a directory of its own, keys in the one where
 * everything lies. */
static void confine_with_files(const struct place *p)
{
	char data[PATH_MAX], cert[PATH_MAX], keys[PATH_MAX];
	struct confinement c = { .data_dir = data, .files = { cert, keys }, .n_files = 2 };
	struct rlimit core;
	pthread_t thread;

	make_path(p, "state", data);
	make_path(p, "tls/cert", cert);
	make_path(p, "keys", keys);
	make_dir(p, "state");
	make_dir(p, "tls");
	write_file(p, "canary");
	write_file(p, "keys");
	write_file(p, "tls/cert");
	write_file(p, "tls/next");
	MUST(confine_self(&c, NULL) == 0);
	MUST(try_open(p, "canary", O_RDONLY) == EACCES && try_open(p, "", O_RDONLY) == EACCES);
	MUST(try_open(p, "new", O_WRONLY | O_CREAT) == EACCES);
	MUST(try_open(p, "state/new", O_RDWR | O_CREAT) == 0 &&
	     try_open(p, "state", O_RDONLY) == 0);
	MUST(try_open(p, "keys", O_RDONLY) == 0 && try_open(p, "keys", O_RDWR) == EACCES);
	MUST(try_open(p, "tls/cert", O_RDONLY) == 0 && try_open(p, "tls/cert", O_WRONLY) == EACCES);
	MUST(try_open(p, "tls/next", O_RDONLY) == 0); /* which replaces it some day */
	MUST(open("/etc/hosts", O_RDONLY | O_CLOEXEC) >= 0);
	MUST(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
	MUST(open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0);
	MUST(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0);
	MUST(pthread_create(&thread, NULL, try_in_thread, (void *)p) == 0);
	MUST(pthread_join(thread, NULL) == 0);
}

static void files_are_those_that_are_named(void **state)
{
	if (landlock_abi() == 0)
		skip();
	in_child(confine_with_files, *state);
}

/* A kernel whose landlock_create_ruleset() fails: always, or when it is asked for more than its
 * version. */
static void break_landlock(bool is_there, int code)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	struct scmp_arg_cmp is_making = { .arg = 2, .op = SCMP_CMP_EQ, .datum_a = 0 };

	MUST(filter && seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint16_t)code),
					      SCMP_SYS(landlock_create_ruleset), is_there ? 1 : 0,
					      &is_making) == 0);
	MUST(seccomp_load(filter) == 0);
	seccomp_release(filter);
}

static void confine_without_landlock(const struct place *p)
{
	struct confinement c = { .data_dir = p->dir };

	break_landlock(false, EOPNOTSUPP);
	MUST(confine_self(&c, NULL) == 0);
	MUST(is_refused(syscall(SYS_execve, "/bin/true", NULL, NULL)));
	MUST(open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0);
}

static void a_kernel_without_landlock_still_filters_calls(void **state)
{
	in_child(confine_without_landlock, *state);
}

static void fail_at_landlock(const struct place *p)
{
	struct confinement c = { .data_dir = p->dir };
	struct err err = { 0 };

	break_landlock(true, ENOMEM);
	MUST(confine_self(&c, &err) == -ENOMEM);
	MUST(strncmp(err.text, "Landlock: ", 10) == 0);
}

static void a_landlock_that_fails_is_an_error(void **state)
{
	if (landlock_abi() == 0)
		skip();
	in_child(fail_at_landlock, *state);
}

/* ---- what is named ---- */

static void what_settings_and_servers_name_is_found(void **state)
{
	static const char json[] = "{\"mcpServers\": {\"a\": {\"url\": \"https://x\", \"auth\": "
				   "{\"token_file\": \"/run/t\"}},"
				   " \"b\": {\"command\": \"x\"}}}";
	const struct place *p = *state;
	struct config config = { .listen = "unix:/run/holt/sock",
				 .state_dir = p->dir,
				 .tls_cert = "/x/cert",
				 .tls_key = "/x/key",
				 .jwt_jwks = "/x/jwks",
				 .images_dir = "/x/images" };
	struct buf servers = { .max = sizeof(json) };
	struct confinement c;
	struct stat st;

	(void)unsetenv("SSL_CERT_FILE");
	assert_int_equal(buf_append(&servers, json, sizeof(json) - 1), 0);
	assert_int_equal(confinement_init(&c, &config, "/x/data", &servers, NULL), 0);
	assert_int_equal(c.n_files, 4);
	assert_string_equal(c.files[0], "/x/cert");
	assert_string_equal(c.files[1], "/x/key");
	assert_string_equal(c.files[2], "/x/jwks");
	assert_string_equal(c.files[3], "/run/t");
	assert_string_equal(c.listens_at, "/run/holt/sock");
	assert_int_equal(stat(c.trees[0], &st), 0); /* skills: made */
	assert_string_equal(c.trees[1], "/x/images");
	confinement_done(&c);
	config.listen = "127.0.0.1:1";
	config.jwt_jwks = "https://x/jwks";
	buf_clear(&servers);
	assert_int_equal(confinement_init(&c, &config, "/x/data", &servers, NULL), 0);
	assert_int_equal(c.n_files, 2);
	assert_null(c.listens_at);
	confinement_done(&c);
	buf_done(&servers);
}

static void what_holds_everything_is_opened_for_nothing(void **state)
{
	static const char *const shared[] = { "/",         "/root",      "/home",    "/etc",
					      "/etc/ssl",  "/var",       "/usr",     "/usr/lib",
					      "/usr/bin",  "/tmp",       "/srv",     "/opt",
					      "/var/lib",  "/var/log",   "/var/tmp", "/run",
					      "/var/lib/", "/usr/../etc" };
	const struct place *p = *state;
	struct config config = { .listen = "127.0.0.1:1", .state_dir = p->dir };
	struct buf none = { 0 };
	struct confinement c;
	struct err err = { 0 };

	(void)setenv("HOME", p->dir, 1);
	assert_true(confinement_is_shared(p->dir)); /* a home */
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if (access(shared[i], F_OK) == 0 && !confinement_is_shared(shared[i]))
			fail_msg("%s", shared[i]);
	config.images_dir = "/root";
	assert_int_equal(confinement_init(&c, &config, "/x/data", &none, &err), -EINVAL);
	assert_non_null(strstr(err.text, "images_dir: '/root'"));
	confinement_done(&c);
	config.images_dir = NULL;
	config.skills_dir = p->dir;
	assert_int_equal(confinement_init(&c, &config, "/x/data", &none, &err), -EINVAL);
	confinement_done(&c);
	(void)unsetenv("HOME");
	assert_false(confinement_is_shared(p->dir));
	assert_int_equal(confinement_init(&c, &config, "/x/data", &none, &err), 0);
	confinement_done(&c);
	assert_int_equal(confinement_check("state_dir", "/var/lib", &err), -EINVAL);
	assert_int_equal(confinement_check("state_dir", "/var/lib/not-there", NULL), 0);
}

/* As a daemon without HOME has it: a certificate that lies in a directory of all things. */
static void confine_with_shared(const struct place *p)
{
	char data[PATH_MAX];
	char cert[] = "/var/tmp/holt-confine-cert";
	struct confinement c = { .data_dir = data, .files = { cert }, .n_files = 1 };
	struct place beside = { "/var/tmp" };

	MUST(unsetenv("HOME") == 0);
	make_path(p, "state", data);
	make_dir(p, "state");
	MUST(confine_self(&c, NULL) == 0);
	MUST(try_open(&beside, "", O_RDONLY) == EACCES);
}

static void a_file_in_a_shared_directory_does_not_open_it(void **state)
{
	if (landlock_abi() == 0)
		skip();
	in_child(confine_with_shared, *state);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_server_does_not_need_is_refused),
		TEST(unix_sockets_are_for_who_begins_to_listen_on_one),
		TEST(files_are_those_that_are_named),
		TEST(a_kernel_without_landlock_still_filters_calls),
		TEST(a_landlock_that_fails_is_an_error),
		TEST(a_file_in_a_shared_directory_does_not_open_it),
		TEST(what_holds_everything_is_opened_for_nothing),
		TEST(what_settings_and_servers_name_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
