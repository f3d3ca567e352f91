#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include "base/err.h"
#include "launch/seccomp.h"
#include "spec/guest.h"

#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define ALLOW SECCOMP_RET_ALLOW

static uint32_t ask(const struct seccomp_filter *f, const char *name, uint64_t a, uint64_t b,
		    uint64_t c)
{
	int nr = seccomp_syscall_resolve_name(name);

	assert_true(nr >= 0);
	return seccomp_verdict(f, AUDIT_ARCH_X86_64, nr, (uint64_t[6]){ a, b, c });
}

static void build(enum seccomp_profile profile, struct seccomp_filter *f)
{
	struct err err = { 0 };

	assert_int_equal(seccomp_build(profile, f, &err), 0);
}

static void a_filter_stays_small_because_every_box_installs_it(void **state)
{
	struct seccomp_filter f;

	(void)state;
	for (int p = 0; p < PROFILE_COUNT; p++) {
		build((enum seccomp_profile)p, &f);
		assert_in_range(f.len, 20, 500);
	}
}

static void ordinary_calls_pass_and_dangerous_ones_do_not(void **state)
{
	static const char *const fine[] = { "read", "write", "openat", "execve", "futex", "wait4" };
	static const char *const refused[] = { "mount",   "ptrace", "bpf",         "keyctl",
					       "unshare", "setns",  "userfaultfd", "init_module" };
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		assert_int_equal(ask(&f, fine[i], 0, 0, 0), ALLOW);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(ask(&f, refused[i], 0, 0, 0), ERRNO(EPERM));
}

static void unknown_and_withheld_calls_look_as_if_the_kernel_had_none(void **state)
{
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask(&f, "clone3", 0, 0, 0), ERRNO(ENOSYS));
	assert_int_equal(ask(&f, "io_uring_setup", 0, 0, 0), ERRNO(ENOSYS));
	for (int nr = 480; nr < 2000; nr++)
		assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, nr, (uint64_t[6]){ 0 }),
				 ERRNO(ENOSYS));
	/* x32 numbers, and negative ones */
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, 0x40000001, (uint64_t[6]){ 0 }),
			 ERRNO(ENOSYS));
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, -1, (uint64_t[6]){ 0 }),
			 ERRNO(ENOSYS));
}

static void a_call_of_another_architecture_kills(void **state)
{
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_I386, 1, (uint64_t[6]){ 0 }),
			 SECCOMP_RET_KILL_PROCESS);
}

static void processes_may_be_made_but_no_namespaces(void **state)
{
	static const uint64_t flags[] = { CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
					  CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP };
	struct seccomp_filter f, zygote;

	(void)state;
	build(PROFILE_STANDARD, &f);
	build(PROFILE_ZYGOTE, &zygote);
	assert_int_equal(ask(&f, "clone", CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0, 0), ALLOW);
	assert_int_equal(ask(&f, "clone", CLONE_FILES | CLONE_THREAD, 0, 0), ALLOW);
	assert_int_equal(ask(&f, "clone", CLONE_FILES | 17, 0, 0), ERRNO(EPERM));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_int_equal(ask(&f, "clone", flags[i] | 17, 0, 0), ERRNO(EPERM));
		assert_int_equal(ask(&zygote, "unshare", flags[i], 0, 0), ALLOW);
	}
}

static void only_unix_tcp_and_udp_sockets_exist(void **state)
{
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask(&f, "socket", AF_UNIX, SOCK_SEQPACKET, 0), ALLOW);
	assert_int_equal(ask(&f, "socket", AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ALLOW);
	assert_int_equal(ask(&f, "socket", AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP),
			 ALLOW);
	assert_int_equal(ask(&f, "socket", AF_INET, SOCK_STREAM, IPPROTO_TCP), ALLOW);
	assert_int_equal(ask(&f, "socket", AF_INET, SOCK_RAW, IPPROTO_TCP), ERRNO(EPERM));
	assert_int_equal(ask(&f, "socket", AF_INET, SOCK_RAW | SOCK_CLOEXEC, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "socket", AF_INET, SOCK_DGRAM, IPPROTO_ICMP), ERRNO(EPERM));
	assert_int_equal(ask(&f, "socket", AF_INET, SOCK_STREAM, 262 /* MPTCP */), ERRNO(EPERM));
	for (int type = 3; type < 16; type++)
		assert_int_equal(ask(&f, "socket", AF_INET, (uint64_t)type, 0), ERRNO(EPERM));
	for (int family = 0; family < 64; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6)
			assert_int_equal(ask(&f, "socket", (uint64_t)family, SOCK_DGRAM, 0),
					 ERRNO(EAFNOSUPPORT));
	assert_int_equal(ask(&f, "socketpair", AF_UNIX, SOCK_STREAM, 0), ALLOW);
	assert_int_equal(ask(&f, "socketpair", AF_INET, SOCK_STREAM, 0), ERRNO(EAFNOSUPPORT));
}

static void arguments_decide_where_a_call_is_mostly_harmless(void **state)
{
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask(&f, "ioctl", 0, TIOCSTI, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "ioctl", 0, TIOCGWINSZ, 0), ALLOW);
	assert_int_equal(ask(&f, "personality", 0xffffffff, 0, 0), ALLOW);
	assert_int_equal(ask(&f, "personality", ADDR_NO_RANDOMIZE, 0, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "fcntl", 1, F_SETLEASE, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "fcntl", 1, F_GETFL, 0), ALLOW);
	assert_int_equal(ask(&f, "prlimit64", 0, 7, 0), ALLOW);
	assert_int_equal(ask(&f, "prlimit64", 1, 7, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "prctl", 35 /* PR_SET_MM */, 0, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "prctl", 15 /* PR_SET_NAME */, 0, 0), ALLOW);
}

static uint32_t ask_option(const struct seccomp_filter *f, int level, int option)
{
	return ask(f, "setsockopt", 3, (uint64_t)level, (uint64_t)option);
}

static void no_filter_can_be_attached(void **state)
{
	static const int options[] = { SO_ATTACH_FILTER, 50, 51, 52, SO_LOCK_FILTER };
	struct seccomp_filter f, zygote;

	(void)state;
	build(PROFILE_STANDARD, &f);
	build(PROFILE_ZYGOTE, &zygote);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		assert_int_equal(ask_option(&f, SOL_SOCKET, options[i]), ERRNO(ENOPROTOOPT));
		assert_int_equal(ask_option(&zygote, SOL_SOCKET, options[i]), ERRNO(ENOPROTOOPT));
	}
	for (uint64_t op = 0; op < 8; op++)
		assert_int_equal(ask(&f, "seccomp", op, 0, 0), ERRNO(EINVAL));
	assert_int_equal(ask(&f, "prctl", 22 /* PR_SET_SECCOMP */, 2, 0), ERRNO(EINVAL));
	assert_int_equal(ask(&zygote, "seccomp", 1, 0, 0), ALLOW); /* for the box it makes */
}

static void options_of_sockets_are_a_list_for_each_level(void **state)
{
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask_option(&f, SOL_SOCKET, SO_REUSEADDR), ALLOW);
	assert_int_equal(ask_option(&f, IPPROTO_TCP, 1 /* TCP_NODELAY */), ALLOW);
	assert_int_equal(ask_option(&f, IPPROTO_IP, IP_TOS), ALLOW);
	assert_int_equal(ask_option(&f, IPPROTO_IPV6, IPV6_V6ONLY), ALLOW);
	assert_int_equal(ask_option(&f, IPPROTO_UDP, 103 /* UDP_SEGMENT */), ALLOW);
	assert_int_equal(ask_option(&f, IPPROTO_UDP, 100 /* UDP_ENCAP */), ERRNO(ENOPROTOOPT));
	for (int level = 0; level < 300; level++)
		for (int option = 90; option < 600; option++)
			if (level != IPPROTO_UDP)
				assert_int_equal(ask_option(&f, level, option), ERRNO(ENOPROTOOPT));
	for (int level = 42; level < 1000; level++)
		assert_int_equal(ask_option(&f, level, 1), ERRNO(ENOPROTOOPT));
}

/* The kernel looks at 32 bits of them, and so does the filter. */
static void upper_halves_of_requests_change_nothing(void **state)
{
	struct seccomp_filter f;
	uint64_t high = 1ull << 32;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask(&f, "ioctl", 0, high | TIOCSTI, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "ioctl", 0, high | TIOCGWINSZ, 0), ALLOW);
	assert_int_equal(ask(&f, "prctl", high | 22, 2, 0), ERRNO(EINVAL));
	assert_int_equal(ask(&f, "fcntl", 0, high | F_SETLEASE, 0), ERRNO(EPERM));
	assert_int_equal(ask(&f, "setsockopt", 3, high | SOL_SOCKET, high | SO_ATTACH_FILTER),
			 ERRNO(ENOPROTOOPT));
}

static void requests_in_no_list_look_as_if_the_kernel_had_none(void **state)
{
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask(&f, "ioctl", 0, 0x40086602 /* FS_IOC_SETFLAGS */, 0), ERRNO(ENOTTY));
	assert_int_equal(ask(&f, "ioctl", 0, 0x8946 /* SIOCETHTOOL */, 0), ERRNO(EOPNOTSUPP));
	assert_int_equal(ask(&f, "ioctl", 0, 0xffffffff, 0), ERRNO(ENOTTY));
	assert_int_equal(ask(&f, "prctl", 0, 0, 0), ERRNO(EINVAL));
	assert_int_equal(ask(&f, "prctl", 0xffffffff, 0, 0), ERRNO(EINVAL));
	assert_int_equal(ask(&f, "fcntl", 0, 37 /* F_OFD_SETLK */, 0), ERRNO(EINVAL));
	assert_int_equal(ask(&f, "fcntl", 0, F_SETLK, 0), ALLOW);
	assert_int_equal(ask(&f, "fcntl", 0, F_DUPFD, 0), ALLOW); /* the first of its list */
	assert_int_equal(ask(&f, "madvise", 0, 0, 12 /* MADV_MERGEABLE */), ERRNO(EINVAL));
	assert_int_equal(ask(&f, "madvise", 0, 0, 4 /* MADV_DONTNEED */), ALLOW);
	assert_int_equal(ask(&f, "io_setup", 0, 0, 0), ERRNO(ENOSYS));
}

static uint32_t ask_prlimit(const struct seccomp_filter *f, uint64_t pid, uint64_t what,
			    uint64_t want, uint64_t old)
{
	return seccomp_verdict(f, AUDIT_ARCH_X86_64, seccomp_syscall_resolve_name("prlimit64"),
			       (uint64_t[6]){ pid, what, want, old });
}

static void the_limit_of_cores_is_never_set_and_always_told(void **state)
{
	const uint64_t nothing = SECCOMP_RET_ERRNO, high = 1ull << 32;
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(ask(&f, "setrlimit", RLIMIT_CORE, 8, 0), nothing);
	assert_int_equal(ask(&f, "setrlimit", RLIMIT_NOFILE, 8, 0), ALLOW);
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_CORE, 0, 8), ALLOW);
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_CORE, 8, 0), nothing);
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_CORE, high, 0), nothing);
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_CORE, 8, 8), ERRNO(EPERM));
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_CORE, high, high), ERRNO(EPERM));
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_CORE | high, 8, 0), nothing);
	assert_int_equal(ask_prlimit(&f, 0, RLIMIT_NOFILE, 8, 8), ALLOW);
	assert_int_equal(ask_prlimit(&f, 7, RLIMIT_NOFILE, 0, 8), ERRNO(EPERM));
}

static void stocks_of_the_machine_are_out_of_reach(void **state)
{
	struct seccomp_filter f;
	int mmap_nr = seccomp_syscall_resolve_name("mmap");
	int fadvise_nr = seccomp_syscall_resolve_name("fadvise64");

	(void)state;
	build(PROFILE_STANDARD, &f);
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, mmap_nr,
					 (uint64_t[6]){ 0, 4096, 3, MAP_PRIVATE | MAP_HUGETLB }),
			 ERRNO(ENOMEM));
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, mmap_nr,
					 (uint64_t[6]){ 0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS }),
			 ALLOW);
	assert_int_equal(ask(&f, "memfd_create", 8, MFD_HUGETLB, 0), ERRNO(ENOMEM));
	assert_int_equal(ask(&f, "memfd_create", 8, MFD_CLOEXEC, 0), ALLOW);
	assert_int_equal(ask(&f, "shmget", 0, 4096, SHM_HUGETLB), ERRNO(ENOMEM));
	assert_int_equal(ask(&f, "sync", 0, 0, 0), ERRNO(0));
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, fadvise_nr,
					 (uint64_t[6]){ 3, 0, 0, POSIX_FADV_DONTNEED }),
			 ERRNO(0));
	assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64, fadvise_nr,
					 (uint64_t[6]){ 3, 0, 0, POSIX_FADV_SEQUENTIAL }),
			 ALLOW);
}

static void no_access_control_list_is_long(void **state)
{
	static const char *const calls[] = { "setxattr", "lsetxattr", "fsetxattr" };
	static const struct {
		uint64_t size;
		uint32_t verdict;
	} rows[] = {
		{ 0, ALLOW },
		{ 44, ALLOW },
		{ GUEST_ACL_BYTES, ALLOW },
		{ 172, ERRNO(EOPNOTSUPP) },
		{ 65532, ERRNO(EOPNOTSUPP) },
		{ 168, ALLOW },
		{ 4096, ALLOW },
		{ 65536, ALLOW },
	};
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_STANDARD, &f);
	for (size_t c = 0; c < 3; c++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			assert_int_equal(seccomp_verdict(&f, AUDIT_ARCH_X86_64,
							 seccomp_syscall_resolve_name(calls[c]),
							 (uint64_t[6]){ 0, 0, 0, rows[i].size }),
					 rows[i].verdict);
}

static void the_high_profile_never_allows_more_than_the_standard_one(void **state)
{
	struct seccomp_filter a, b;

	(void)state;
	build(PROFILE_STANDARD, &a);
	build(PROFILE_HIGH, &b);
	for (int nr = 0; nr < 600; nr++) {
		uint32_t x = seccomp_verdict(&a, AUDIT_ARCH_X86_64, nr, (uint64_t[6]){ AF_UNIX });
		uint32_t y = seccomp_verdict(&b, AUDIT_ARCH_X86_64, nr, (uint64_t[6]){ AF_UNIX });

		if (x != ALLOW)
			assert_int_equal(x, y); /* high never allows more */
		else
			assert_true(y == ALLOW || y == ERRNO(EPERM));
	}
}

static void the_high_profile_knows_no_internet(void **state)
{
	static const int families[] = { AF_INET, AF_INET6, AF_NETLINK, AF_PACKET };
	struct seccomp_filter f;

	(void)state;
	build(PROFILE_HIGH, &f);
	assert_int_equal(ask(&f, "socket", AF_UNIX, SOCK_STREAM, 0), ALLOW);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		assert_int_equal(ask(&f, "socket", (uint64_t)families[i], SOCK_STREAM, 0),
				 ERRNO(EAFNOSUPPORT));
	assert_int_equal(ask(&f, "memfd_create", 0, 0, 0), ERRNO(EPERM));
}

static bool is_list(size_t n, const struct span *list)
{
	struct span sorted[4] = { 0 };

	if (seccomp_sort(list, n, sorted) < 0)
		return false;
	for (size_t i = 1; i < n; i++)
		assert_true(sorted[i - 1].last < sorted[i].first);
	return true;
}

/* A filter that is made of such a list would allow what lies between, or beyond. */
static void a_list_whose_spans_overlap_or_have_no_end_is_none(void **state)
{
	(void)state;
	assert_true(is_list(1, (struct span[]){ { 0, 0 } }));
	assert_true(is_list(3, (struct span[]){ { 7, 9 }, { 0, 5 }, { 6, 6 } }));
	assert_true(is_list(2, (struct span[]){ { 1, 2 }, { 0xfffffffe, 0xfffffffe } }));
	assert_false(is_list(0, (struct span[]){ { 0, 0 } }));
	assert_false(is_list(2, (struct span[]){ { 1, 5 }, { 5, 6 } }));
	assert_false(is_list(2, (struct span[]){ { 3, 4 }, { 1, 9 } }));
	assert_false(is_list(2, (struct span[]){ { 2, 2 }, { 2, 2 } }));
	assert_false(is_list(1, (struct span[]){ { 5, 4 } }));
	assert_false(is_list(1, (struct span[]){ { 0xffffffff, 0xffffffff } }));
	assert_false(is_list(2, (struct span[]){ { 1, 1 }, { 9, 0xffffffff } }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_stays_small_because_every_box_installs_it),
		cmocka_unit_test(ordinary_calls_pass_and_dangerous_ones_do_not),
		cmocka_unit_test(unknown_and_withheld_calls_look_as_if_the_kernel_had_none),
		cmocka_unit_test(a_call_of_another_architecture_kills),
		cmocka_unit_test(processes_may_be_made_but_no_namespaces),
		cmocka_unit_test(only_unix_tcp_and_udp_sockets_exist),
		cmocka_unit_test(arguments_decide_where_a_call_is_mostly_harmless),
		cmocka_unit_test(no_filter_can_be_attached),
		cmocka_unit_test(options_of_sockets_are_a_list_for_each_level),
		cmocka_unit_test(upper_halves_of_requests_change_nothing),
		cmocka_unit_test(requests_in_no_list_look_as_if_the_kernel_had_none),
		cmocka_unit_test(the_limit_of_cores_is_never_set_and_always_told),
		cmocka_unit_test(stocks_of_the_machine_are_out_of_reach),
		cmocka_unit_test(no_access_control_list_is_long),
		cmocka_unit_test(the_high_profile_never_allows_more_than_the_standard_one),
		cmocka_unit_test(the_high_profile_knows_no_internet),
		cmocka_unit_test(a_list_whose_spans_overlap_or_have_no_end_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
