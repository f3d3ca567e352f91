/* Other doors into the same kernel: 32-bit calls, x32 numbers, vsyscall, restartable sequences. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#ifdef __x86_64__
/* Runs f in a child; its result, or 1000 + signal. */
static long apart(long (*f)(long), long arg)
{
	long *result = shared(sizeof(*result));
	pid_t pid = fork_or_die();
	int status = 0;

	if (pid == 0) {
		*result = f(arg);
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : *result;
}

static long int80(long nr)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(0L), "c"(0L), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	return r;
}

static bool is_closed(long r)
{
	return r == -ENOSYS || r == -EPERM || r == 1000 + SIGSYS || r == 1000 + SIGKILL ||
	       r == 1000 + SIGSEGV;
}

/* The 32-bit table has other numbers: 20 is getpid, 26 ptrace, 21 mount, 310 unshare, 120 clone. */
static int interrupt(int argc, char **argv)
{
	static const long numbers[] = { 20, 26, 21, 310, 120, 102, 357, 425 };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		long r = apart(int80, numbers[i]);

		if (!is_closed(r))
			return broken("int 0x80 number %ld gave %ld", numbers[i], r);
	}
	return held("int 0x80 leads nowhere");
}

/* 32-bit code proper: a far return into the compatibility segment, int 0x80 there, and back. */
static long compat_mode(long nr)
{
	static const unsigned char code[] = {
		0xcd, 0x80,                /* int 0x80 */
		0x6a, 0x33,                /* push 0x33 */
		0xe8, 0,    0,    0,    0, /* call the next instruction */
		0x83, 0x04, 0x24, 0x05,    /* add dword [esp], 5 */
		0xcb,                      /* far return to 64 bits */
		0xc3,                      /* return */
	};
	unsigned char *low = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long r = nr;

	if (low == MAP_FAILED)
		return -ENOSYS;
	memcpy(low, code, sizeof(code));
	__asm__ volatile("movq %%rsp, %%r12\n\t"
			 "leaq 8000(%1), %%rsp\n\t"
			 "leaq 1f(%%rip), %%rcx\n\t"
			 "pushq %%rcx\n\t"
			 "subq $8, %%rsp\n\t"
			 "movl $0x23, 4(%%rsp)\n\t"
			 "movl %k1, (%%rsp)\n\t"
			 "lretl\n"
			 "1:\n\t"
			 "movq %%r12, %%rsp\n\t"
			 : "+a"(r)
			 : "r"(low)
			 : "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
			   "memory", "cc");
	return (int)r;
}

static int compat(int argc, char **argv)
{
	long r = apart(compat_mode, 20);

	(void)argc, (void)argv;
	if (!is_closed(r))
		return broken("32-bit code gets %ld from the kernel", r);
	return held("32-bit code: %ld", r);
}

static int x32(int argc, char **argv)
{
	static const long numbers[] = { SYS_getpid, SYS_mount, SYS_ptrace, SYS_bpf, 512, 520, 547 };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct call c = { "x32", 0x40000000 | numbers[i], { 0 } };
		struct outcome o = call_apart(&c);

		if (!o.signal && (o.result != -1 || o.error != ENOSYS))
			return broken("x32 number %ld gave %ld: %s", numbers[i], o.result,
				      strerror(o.error));
	}
	return held("no x32 call");
}

static long vsyscall_time(long unused)
{
	long (*call)(long *) = (long (*)(long *))0xffffffffff600400;

	(void)unused;
	return call(NULL);
}

/* Emulated by the kernel where it is there at all: it tells the time, or faults. */
static int vsyscall(int argc, char **argv)
{
	long r = apart(vsyscall_time, 0), t = (long)syscall(SYS_time, NULL);

	(void)argc, (void)argv;
	if (r == 1000 + SIGSEGV || r == 1000 + SIGSYS || (r >= t - 5 && r <= t + 5))
		return held("vsyscall: %ld", r);
	return broken("vsyscall gave %ld", r);
}
#else
static int absent(int argc, char **argv)
{
	(void)argc, (void)argv;
	return not_here("another architecture");
}
#define interrupt absent
#define compat absent
#define x32 absent
#define vsyscall absent
#endif

/* Barriers over all CPUs and nonsense registrations: costly or refused, never more. */
static int storms(int argc, char **argv)
{
	uint64_t until = now_ms() + number(argc, argv, 0, 1500), n = 0;
	static char area[64] __attribute__((aligned(32)));

	(void)syscall(SYS_rseq, P(area) + 1, 32, 0, 0);
	(void)syscall(SYS_rseq, P(area), 7, 0, 0);
	for (; now_ms() < until; n++) {
		(void)syscall(SYS_membarrier, 1 << 0, 0, 0); /* GLOBAL */
		(void)syscall(SYS_membarrier, 1 << 4, 0, 0); /* register private expedited */
		(void)syscall(SYS_membarrier, 1 << 3, 0, 0); /* private expedited */
		(void)syscall(SYS_membarrier, 1 << 2, 0, 0); /* register global expedited */
		(void)syscall(SYS_membarrier, 1 << 1, 0, 0); /* global expedited */
	}
	return held("%llu rounds of barriers", (unsigned long long)n);
}

const struct probe probes_abi[] = {
	{ "int80", interrupt },   { "compat", compat }, { "x32", x32 },
	{ "vsyscall", vsyscall }, { "storms", storms }, { NULL, NULL },
};
