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
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "base/err.h"
#include "launch/seccomp.h"

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
		assert_in_range(f.len, 20, 180);
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
		cmocka_unit_test(the_high_profile_never_allows_more_than_the_standard_one),
		cmocka_unit_test(the_high_profile_knows_no_internet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
