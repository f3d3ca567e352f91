/* The system calls of a server. A list of what is allowed: what is not in it is answered with
 * ENOSYS, which libraries take for an older kernel and go another way. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/confine.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Whatever their arguments are. Which files they reach is Landlock's to say. */
static const char *const memory_and_threads[] = { "brk",
						  "futex",
						  "futex_waitv",
						  "get_robust_list",
						  "getcpu",
						  "madvise",
						  "membarrier",
						  "mincore",
						  "mremap",
						  "munmap",
						  "rseq",
						  "sched_getaffinity",
						  "sched_getparam",
						  "sched_getscheduler",
						  "sched_yield",
						  "set_robust_list",
						  "set_tid_address",
						  NULL };
static const char *const itself[] = {
	"exit",      "exit_group", "getegid", "geteuid",   "getgid",    "getgroups", "getpgid",
	"getpgrp",   "getpid",     "getppid", "getrandom", "getresgid", "getresuid", "getrlimit",
	"getrusage", "getsid",     "gettid",  "getuid",    "sysinfo",   "times",     "umask",
	"uname",     "wait4",      "waitid",  NULL
};
static const char *const time_and_signals[] = { "clock_getres",    "clock_gettime",
						"clock_nanosleep", "gettimeofday",
						"nanosleep",       "restart_syscall",
						"rt_sigaction",    "rt_sigpending",
						"rt_sigprocmask",  "rt_sigreturn",
						"rt_sigsuspend",   "rt_sigtimedwait",
						"sigaltstack",     "time",
						"timerfd_create",  "timerfd_gettime",
						"timerfd_settime", NULL };
static const char *const descriptors[] = {
	"close",         "close_range", "dup",         "dup2",         "dup3",       "epoll_create",
	"epoll_create1", "epoll_ctl",   "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2",
	"pipe",          "pipe2",       "poll",        "ppoll",        "pselect6",   "select",
	"signalfd4",     "read",        "readv",       "pread64",      "preadv",     "preadv2",
	"write",         "writev",      "pwrite64",    "pwritev",      "pwritev2",   "lseek",
	"sendfile",      NULL
};
/* None that changes a file by its name alone, without opening it (truncate, chmod, utimes, links):
 * Landlock knows some of them not at all, and others only lately. */
static const char *const files[] = {
	"access",    "copy_file_range", "faccessat", "faccessat2", "fadvise64",
	"fallocate", "fchmod",          "fdatasync", "flock",      "fstat",
	"fstatfs",   "fsync",           "ftruncate", "getcwd",     "getdents64",
	"lstat",     "mkdir",           "mkdirat",   "newfstatat", "open",
	"openat",    "openat2",         "readlink",  "readlinkat", "rename",
	"renameat",  "renameat2",       "rmdir",     "stat",       "statfs",
	"statx",     "sync_file_range", "unlink",    "unlinkat",   NULL
};
static const char *const sockets[] = { "accept",      "accept4",     "bind",       "connect",
				       "getpeername", "getsockname", "getsockopt", "listen",
				       "recvfrom",    "recvmmsg",    "recvmsg",    "sendmmsg",
				       "sendmsg",     "sendto",      "shutdown",   NULL };
static const char *const *const plain[] = { memory_and_threads, itself, time_and_signals,
					    descriptors,        files,  sockets };

enum when { ALWAYS, SANITIZED, WITH_UNIX };

struct test {
	unsigned arg;
	uint32_t mask, value; /* of the lower half: no argument here has more */
};

struct rule {
	const char *call;
	enum when when;
	unsigned count;
	struct test tests[3];
};

#define WHOLE UINT32_MAX
#define KIND 0xfu /* of a socket's type, without its flags */
#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)
/* What LeakSanitizer makes its tracer with. */
#define LSAN_CLONE (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED)

#define ON1(call, when, a, am, av)        \
	{                                 \
		call, when, 1,            \
		{                         \
			{                 \
				a, am, av \
			}                 \
		}                         \
	}
#define IS(call, a, v) ON1(call, ALWAYS, a, WHOLE, v)
#define SOCKET(family, kind, protocol)                           \
	{                                                        \
		"socket", ALWAYS, 3,                             \
		{                                                \
			{ 0, WHOLE, family }, { 1, KIND, kind }, \
			{                                        \
				2, WHOLE, protocol               \
			}                                        \
		}                                                \
	}
#define OPTION(level, name)                    \
	{                                      \
		"setsockopt", ALWAYS, 2,       \
		{                              \
			{ 1, WHOLE, level },   \
			{                      \
				2, WHOLE, name \
			}                      \
		}                              \
	}

static const struct rule rules[] = {
	/* Threads, but no processes. */
	ON1("clone", ALWAYS, 0, CLONE_THREAD | NEW_NAMESPACES, CLONE_THREAD),
	/* Nothing is written and run. */
	ON1("mmap", ALWAYS, 2, PROT_WRITE | PROT_EXEC, 0),
	ON1("mmap", ALWAYS, 2, PROT_WRITE | PROT_EXEC, PROT_WRITE),
	ON1("mmap", ALWAYS, 2, PROT_WRITE | PROT_EXEC, PROT_EXEC),
	ON1("mprotect", ALWAYS, 2, PROT_EXEC, 0),
	/* Limits: its own, which it may only lower. */
	IS("prlimit64", 0, 0),
	IS("prctl", 0, PR_SET_NAME),
	IS("prctl", 0, PR_GET_NAME),
	IS("prctl", 0, PR_GET_DUMPABLE),
	IS("prctl", 0, 0x53564d41 /* PR_SET_VMA: names of mappings */),
	/* TCP and UDP, and the question for the machine's own addresses. */
	SOCKET(AF_INET, SOCK_STREAM, 0),
	SOCKET(AF_INET, SOCK_STREAM, IPPROTO_TCP),
	SOCKET(AF_INET, SOCK_DGRAM, 0),
	SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
	SOCKET(AF_INET6, SOCK_STREAM, 0),
	SOCKET(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
	SOCKET(AF_INET6, SOCK_DGRAM, 0),
	SOCKET(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
	SOCKET(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE),
	/* Unix sockets reach services of the machine that ask for no more than an account: only
	 * where it listens on one, and until it does. A pair reaches nobody, unless its kind can be
	 * sent from to any name. */
	{ "socket", WITH_UNIX, 2, { { 0, WHOLE, AF_UNIX }, { 1, KIND, SOCK_STREAM } } },
	{ "seccomp", WITH_UNIX, 0, { { 0 } } }, /* confine_unix() takes both back */
	{ "socketpair", ALWAYS, 2, { { 0, WHOLE, AF_UNIX }, { 1, KIND, SOCK_STREAM } } },
	{ "socketpair", ALWAYS, 2, { { 0, WHOLE, AF_UNIX }, { 1, KIND, SOCK_SEQPACKET } } },
	OPTION(SOL_SOCKET, SO_BROADCAST),
	OPTION(SOL_SOCKET, SO_KEEPALIVE),
	OPTION(SOL_SOCKET, SO_LINGER),
	OPTION(SOL_SOCKET, SO_RCVBUF),
	OPTION(SOL_SOCKET, SO_RCVTIMEO),
	OPTION(SOL_SOCKET, SO_REUSEADDR),
	OPTION(SOL_SOCKET, SO_REUSEPORT),
	OPTION(SOL_SOCKET, SO_SNDBUF),
	OPTION(SOL_SOCKET, SO_SNDTIMEO),
	OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
	OPTION(IPPROTO_IP, IP_MTU_DISCOVER),
	OPTION(IPPROTO_IP, IP_RECVERR),
	OPTION(IPPROTO_IP, IP_TOS),
	OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
	OPTION(IPPROTO_IPV6, IPV6_RECVERR),
	OPTION(IPPROTO_IPV6, IPV6_TCLASS),
	OPTION(IPPROTO_IPV6, IPV6_V6ONLY),
	OPTION(IPPROTO_TCP, TCP_CORK),
	OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT),
	OPTION(IPPROTO_TCP, TCP_FASTOPEN),
	OPTION(IPPROTO_TCP, TCP_FASTOPEN_CONNECT),
	OPTION(IPPROTO_TCP, TCP_KEEPCNT),
	OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
	OPTION(IPPROTO_TCP, TCP_KEEPINTVL),
	OPTION(IPPROTO_TCP, TCP_NODELAY),
	OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
	OPTION(IPPROTO_TCP, TCP_QUICKACK),
	OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
	/* Flags, locks and copies of descriptors; no signals to others, no leases. */
	IS("fcntl", 1, F_DUPFD),
	IS("fcntl", 1, F_DUPFD_CLOEXEC),
	IS("fcntl", 1, F_GETFD),
	IS("fcntl", 1, F_SETFD),
	IS("fcntl", 1, F_GETFL),
	IS("fcntl", 1, F_SETFL),
	IS("fcntl", 1, F_GETLK),
	IS("fcntl", 1, F_SETLK),
	IS("fcntl", 1, F_SETLKW),
	IS("fcntl", 1, F_OFD_GETLK),
	IS("fcntl", 1, F_OFD_SETLK),
	IS("fcntl", 1, F_OFD_SETLKW),
	IS("ioctl", 1, FIONBIO),
	IS("ioctl", 1, FIONREAD),
	IS("ioctl", 1, FIOCLEX),
	IS("ioctl", 1, FIONCLEX),
	IS("ioctl", 1, TCGETS),
	IS("ioctl", 1, TIOCGWINSZ),
	IS("ioctl", 1, SIOCGIFINDEX),
	IS("ioctl", 1, SIOCGIFNAME),
	/* A sanitizer's run time looks for leaks at the end: another process on the same memory
	 * stops the threads and reads their registers. */
	ON1("clone", SANITIZED, 0, WHOLE, LSAN_CLONE),
	{ "ptrace", SANITIZED, 0, { { 0 } } },
	{ "getdents", SANITIZED, 0, { { 0 } } },
	ON1("prctl", SANITIZED, 0, WHOLE, PR_SET_DUMPABLE),
	ON1("prctl", SANITIZED, 0, WHOLE, PR_SET_PDEATHSIG),
	ON1("prctl", SANITIZED, 0, WHOLE, PR_SET_PTRACER),
};

/* A call that this architecture does not have is none that could be made. */
static int allow(scmp_filter_ctx filter, const char *call, const struct test *tests, unsigned count)
{
	struct scmp_arg_cmp args[3];
	int number = seccomp_syscall_resolve_name(call);

	for (unsigned i = 0; i < count; i++)
		args[i] = (struct scmp_arg_cmp){ .arg = tests[i].arg,
						 .op = SCMP_CMP_MASKED_EQ,
						 .datum_a = tests[i].mask,
						 .datum_b = tests[i].value };
	return number < 0 ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, args);
}

static int fill(scmp_filter_ctx filter, bool is_sanitized, bool has_unix_sockets)
{
	const bool holds[] = {
		[ALWAYS] = true, [SANITIZED] = is_sanitized, [WITH_UNIX] = has_unix_sockets
	};
	/* Of abort(). */
	const struct test to_self = { 0, WHOLE, (uint32_t)getpid() };
	int r = allow(filter, "tgkill", &to_self, 1);

	for (size_t i = 0; i < LEN(plain); i++)
		for (const char *const *call = plain[i]; *call && r == 0; call++)
			r = allow(filter, *call, NULL, 0);
	for (size_t i = 0; i < LEN(rules) && r == 0; i++)
		if (holds[rules[i].when])
			r = allow(filter, rules[i].call, rules[i].tests, rules[i].count);
	return r;
}

/* Threads that there may be by mistake are confined as well, or none is; numbers are looked up in a
 * tree. */
static int set_attributes(scmp_filter_ctx filter)
{
	int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	return r < 0 ? r : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
}

int confine_calls(bool is_sanitized, bool has_unix_sockets, struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = filter ? set_attributes(filter) : -ENOMEM;

	if (r == 0)
		r = fill(filter, is_sanitized, has_unix_sockets);
	if (r == 0)
		r = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return r < 0 ? err_sys(err, r, "filter of system calls") : 0;
}

static int refuse_unix(scmp_filter_ctx filter)
{
	const uint32_t refused = SCMP_ACT_ERRNO(ENOSYS);
	const struct scmp_arg_cmp is_unix = { 0, SCMP_CMP_MASKED_EQ, WHOLE, AF_UNIX };
	int r = set_attributes(filter);

	if (r == 0) /* it is set, and prctl() is not what it was */
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (r == 0)
		r = seccomp_rule_add_array(filter, refused, SCMP_SYS(socket), 1, &is_unix);
	return r < 0 ? r : seccomp_rule_add(filter, refused, SCMP_SYS(seccomp), 0);
}

int confine_unix(struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? refuse_unix(filter) : -ENOMEM;

	if (r == 0)
		r = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return r < 0 ? err_sys(err, r, "filter of Unix sockets") : 0;
}
