#include "launch/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>

#include "base/err.h"
#include "launch/seccomp_arguments.h"
#include "launch/seccomp_policy.h"

#define NR_MAX 1024 /* well above any number in use; everything beyond is ENOSYS */
#define LIST_MAX 64 /* spans of one argument's list */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RET_ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define NAMESPACE_FLAGS                                                                            \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "holt-launch has no system call policy for this architecture"
#endif

/* Where a call leads: an answer, or a block that looks at the arguments. A block leads to answers
 * and to blocks behind it. */
enum verdict {
	V_ENOSYS,
	V_ALLOW,
	V_EPERM,
	V_EAFNOSUPPORT,
	V_EINVAL,
	V_ENOTTY,
	V_ENOPROTOOPT,
	V_EOPNOTSUPP,
	V_ENOMEM,
	V_NOTHING, /* nothing is done, and the caller is told that all went well */
	V_KILL,
	V_CLONE,
	V_SOCKET,
	V_SOCKETPAIR,
	V_SETSOCKOPT,
	V_SOCKET_OPTION,
	V_IP_OPTION,
	V_IPV6_OPTION,
	V_TCP_OPTION,
	V_UDP_OPTION,
	V_IOCTL,
	V_PRCTL,
	V_PERSONALITY,
	V_FCNTL,
	V_SETRLIMIT,
	V_PRLIMIT,
	V_PRLIMIT_OLD,
	V_MMAP,
	V_MADVISE,
	V_FADVISE,
	V_MEMFD,
	V_SHMGET,
	V_SETXATTR,
	V_ACL,
	V_COUNT
};
#define V_FIRST_BLOCK V_CLONE

static const uint32_t answers[V_FIRST_BLOCK] = {
	[V_ENOSYS] = RET_ERRNO(ENOSYS),
	[V_ALLOW] = SECCOMP_RET_ALLOW,
	[V_EPERM] = RET_ERRNO(EPERM),
	[V_EAFNOSUPPORT] = RET_ERRNO(EAFNOSUPPORT),
	[V_EINVAL] = RET_ERRNO(EINVAL),
	[V_ENOTTY] = RET_ERRNO(ENOTTY),
	[V_ENOPROTOOPT] = RET_ERRNO(ENOPROTOOPT),
	[V_EOPNOTSUPP] = RET_ERRNO(EOPNOTSUPP),
	[V_ENOMEM] = RET_ERRNO(ENOMEM),
	[V_NOTHING] = RET_ERRNO(0),
	[V_KILL] = SECCOMP_RET_KILL_PROCESS,
};

static const struct {
	const char *name;
	enum verdict verdict;
} by_argument[] = {
	{ "clone", V_CLONE },
	{ "socket", V_SOCKET },
	{ "socketpair", V_SOCKETPAIR },
	{ "setsockopt", V_SETSOCKOPT },
	{ "ioctl", V_IOCTL },
	{ "prctl", V_PRCTL },
	{ "personality", V_PERSONALITY },
	{ "fcntl", V_FCNTL },
	{ "setrlimit", V_SETRLIMIT },
	{ "prlimit64", V_PRLIMIT },
	{ "mmap", V_MMAP },
	{ "madvise", V_MADVISE },
	{ "fadvise64", V_FADVISE },
	{ "memfd_create", V_MEMFD },
	{ "shmget", V_SHMGET },
	{ "setxattr", V_SETXATTR },
	{ "lsetxattr", V_SETXATTR },
	{ "fsetxattr", V_SETXATTR },
	/* As by a kernel that was built without filters: what everybody who uses them expects. */
	{ "seccomp", V_EINVAL },
	/* All file systems of the machine; it may return before anything is written. */
	{ "sync", V_NOTHING },
};

/* A block is a list of tests on one argument after another, then a list of values that one argument
 * may have; `otherwise` is taken when no test and no value is. All arguments that are looked at are
 * of 32 bits for the kernel, but for pointers: of those HIGH() is the other half. */
struct test {
	uint8_t arg;
	uint16_t op;   /* BPF_JEQ or BPF_JSET */
	uint32_t mask; /* applied first; 0: none */
	uint32_t value;
	enum verdict then;
	bool negate; /* taken when the test fails */
};
struct block {
	size_t count;
	enum verdict otherwise;
	struct test tests[7];
	uint8_t list_arg;
	const struct span *list; /* NULL: none */
	size_t list_count;
};
#define HIGH(a) ((a) | 0x80)
#define EQ(a, v, t)                        \
	{                                  \
		a, BPF_JEQ, 0, v, t, false \
	}
#define NE(a, v, t)                       \
	{                                 \
		a, BPF_JEQ, 0, v, t, true \
	}
#define HAS(a, bits, t)                        \
	{                                      \
		a, BPF_JSET, 0, bits, t, false \
	}
#define TESTS(...) .tests = { __VA_ARGS__ }, .count = COUNT(((const struct test[]){ __VA_ARGS__ }))
#define LIST(a, spans) .list_arg = (a), .list = (spans), .list_count = COUNT(spans)

static const struct block blocks[V_COUNT] = {
	/* No new namespaces: most kernel holes of the last years were reached through them. And no
	 * process that shares descriptors with its parent without being a thread of it: locks that
	 * it leaves behind are nobody's. */
	[V_CLONE] = { .otherwise = V_ALLOW,
		      TESTS(HAS(0, NAMESPACE_FLAGS, V_EPERM),
			    { 0, BPF_JEQ, CLONE_FILES | CLONE_THREAD, CLONE_FILES, V_EPERM,
			      false }) },
	/* A list of families, not a list of exceptions: the next AF_ALG is closed already. AF_INET
	 * and AF_INET6 differ in one bit. Raw sockets and every transport but TCP and UDP are
	 * refused. */
	[V_SOCKET] = { .otherwise = V_EPERM,
		       TESTS(EQ(0, AF_UNIX, V_ALLOW),
			     { 0, BPF_JEQ, ~(uint32_t)(AF_INET ^ AF_INET6), AF_INET &AF_INET6,
			       V_EAFNOSUPPORT, true },
			     HAS(1, 0xf & ~(SOCK_STREAM | SOCK_DGRAM), V_EPERM),
			     { 1, BPF_JEQ, 0xf, SOCK_STREAM | SOCK_DGRAM, V_EPERM, false },
			     EQ(2, 0, V_ALLOW), EQ(2, IPPROTO_TCP, V_ALLOW),
			     EQ(2, IPPROTO_UDP, V_ALLOW)) },
	[V_SOCKETPAIR] = { .otherwise = V_ALLOW, TESTS(NE(0, AF_UNIX, V_EAFNOSUPPORT)) },
	[V_SETSOCKOPT] = { .otherwise = V_ENOPROTOOPT,
			   TESTS(EQ(1, SOL_SOCKET, V_SOCKET_OPTION), EQ(1, IPPROTO_IP, V_IP_OPTION),
				 EQ(1, IPPROTO_IPV6, V_IPV6_OPTION),
				 EQ(1, IPPROTO_TCP, V_TCP_OPTION),
				 EQ(1, IPPROTO_UDP, V_UDP_OPTION)) },
	[V_SOCKET_OPTION] = { .otherwise = V_ENOPROTOOPT, LIST(2, socket_options) },
	[V_IP_OPTION] = { .otherwise = V_ENOPROTOOPT, LIST(2, ip_options) },
	[V_IPV6_OPTION] = { .otherwise = V_ENOPROTOOPT, LIST(2, ipv6_options) },
	[V_TCP_OPTION] = { .otherwise = V_ENOPROTOOPT, LIST(2, tcp_options) },
	[V_UDP_OPTION] = { .otherwise = V_ENOPROTOOPT, LIST(2, udp_options) },
	/* Typing into a terminal one shares with somebody else, and line disciplines by number, are
	 * refused aloud. SIOCETHTOOL: the answer that programs take for "nothing to tell". */
	[V_IOCTL] = { .otherwise = V_ENOTTY,
		      TESTS(EQ(1, TIOCSTI, V_EPERM), EQ(1, TIOCLINUX, V_EPERM),
			    EQ(1, TIOCCONS, V_EPERM), EQ(1, TIOCSETD, V_EPERM),
			    EQ(1, SIOCETHTOOL, V_EOPNOTSUPP)),
		      LIST(1, ioctl_requests) },
	[V_PRCTL] = { .otherwise = V_EINVAL,
		      TESTS(EQ(0, PR_SET_MM, V_EPERM), EQ(0, PR_SCHED_CORE, V_EPERM)),
		      LIST(0, prctl_options) },
	/* Asking is fine, changing is not: READ_IMPLIES_EXEC and ADDR_NO_RANDOMIZE undo hardening.
	 */
	[V_PERSONALITY] = { .otherwise = V_EPERM,
			    TESTS(EQ(0, 0, V_ALLOW), EQ(0, 0xffffffff, V_ALLOW)) },
	/* Leases and directory notification reach other readers of a shared file. */
	[V_FCNTL] = { .otherwise = V_EINVAL,
		      TESTS(EQ(1, F_SETLEASE, V_EPERM), EQ(1, F_NOTIFY, V_EPERM)),
		      LIST(1, fcntl_commands) },
	/* RLIMIT_CORE stays 1: the machine's core handler does not run for a box. With 0 it would,
	 * and programs that set 0 mean what they have already: they are told that it is done. */
	[V_SETRLIMIT] = { .otherwise = V_ALLOW, TESTS(EQ(0, RLIMIT_CORE, V_NOTHING)) },
	/* Of oneself only: without privilege PID 1 has the user's own id and could be crippled. Who
	 * changes RLIMIT_CORE and wants to know what it was is refused. */
	[V_PRLIMIT] = { .otherwise = V_ALLOW,
			TESTS(NE(0, 0, V_EPERM), NE(1, RLIMIT_CORE, V_ALLOW),
			      NE(3, 0, V_PRLIMIT_OLD), NE(HIGH(3), 0, V_PRLIMIT_OLD),
			      NE(2, 0, V_NOTHING), NE(HIGH(2), 0, V_NOTHING)) },
	[V_PRLIMIT_OLD] = { .otherwise = V_ALLOW,
			    TESTS(NE(2, 0, V_EPERM), NE(HIGH(2), 0, V_EPERM)) },
	/* Huge pages are a stock of the machine's that is charged to no memory limit. */
	[V_MMAP] = { .otherwise = V_ALLOW, TESTS(HAS(3, MAP_HUGETLB, V_ENOMEM)) },
	[V_MEMFD] = { .otherwise = V_ALLOW, TESTS(HAS(1, MFD_HUGETLB, V_ENOMEM)) },
	[V_SHMGET] = { .otherwise = V_ALLOW, TESTS(HAS(2, SHM_HUGETLB, V_ENOMEM)) },
	/* A file in memory keeps its access control list outside all limits, 8191 entries of it.
	 * Names cannot be looked at here; a list is known by its size, which is 4 bytes more than a
	 * multiple of 8 and nothing else. What is longer is answered as by a file system without.
	 */
	[V_SETXATTR] = { .otherwise = V_ALLOW, TESTS({ 3, BPF_JEQ, 7, 4, V_ACL, false }) },
	[V_ACL] = { .otherwise = V_EOPNOTSUPP, LIST(3, acl_sizes) },
	[V_MADVISE] = { .otherwise = V_EINVAL, LIST(2, madvise_kinds) },
	/* It would take files that all boxes and the machine share out of memory. Advice may be
	 * passed over. */
	[V_FADVISE] = { .otherwise = V_ALLOW, TESTS(EQ(3, POSIX_FADV_DONTNEED, V_NOTHING)) },
};

/* Program under construction. A conditional jump reaches 255 instructions, so each unit (the tree
 * of numbers, or a block) is followed by its own ways out: an answer, or a long jump to a block.
 * Jumps name labels until the unit is complete. */
struct asm_state {
	struct seccomp_filter *f;
	uint8_t jt_label[SECCOMP_INSN_MAX], jf_label[SECCOMP_INSN_MAX]; /* 0: as it stands */
	uint8_t far_label[SECCOMP_INSN_MAX]; /* of a long jump; 0: it is none */
	size_t block_at[V_COUNT];
	bool full;
	bool is_wrong; /* a list of arguments */
};
#define LABEL(v) ((uint8_t)((v) + 1))

static size_t emit(struct asm_state *a, struct sock_filter insn, uint8_t jt, uint8_t jf)
{
	size_t at = a->f->len;

	if (at >= SECCOMP_INSN_MAX) {
		a->full = true;
		return 0;
	}
	a->f->insn[at] = insn;
	a->jt_label[at] = jt;
	a->jf_label[at] = jf;
	a->far_label[at] = 0;
	a->f->len++;
	return at;
}

static void emit_load(struct asm_state *a, size_t offset)
{
	emit(a, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset), 0, 0);
}

static void emit_load_arg(struct asm_state *a, uint8_t arg)
{
	size_t at = offsetof(struct seccomp_data, args) + 8u * (arg & 0x7f);

	emit_load(a, arg & 0x80 ? at + 4 : at);
}

/* The way to a verdict, in one instruction. */
static void emit_exit(struct asm_state *a, enum verdict v)
{
	size_t at;

	if (v < V_FIRST_BLOCK) {
		emit(a, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answers[v]), 0, 0);
		return;
	}
	at = emit(a, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0), 0, 0);
	a->far_label[at] = LABEL(v);
}

struct range {
	uint32_t from;
	enum verdict verdict;
};

/* Node for ranges[lo..hi): left half follows directly, right half is jumped to. */
static void emit_tree(struct asm_state *a, const struct range *ranges, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2, at;
	bool left_leaf = mid - lo == 1, right_leaf = hi - mid == 1;

	at = emit(a,
		  (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ranges[mid].from, 0, 0),
		  right_leaf ? LABEL(ranges[mid].verdict) : 0,
		  left_leaf ? LABEL(ranges[lo].verdict) : 0);
	if (!left_leaf)
		emit_tree(a, ranges, lo, mid);
	if (right_leaf)
		return;
	if (a->f->len - at - 1 > 255)
		a->full = true;
	a->f->insn[at].jt = (uint8_t)(a->f->len - at - 1);
	emit_tree(a, ranges, mid, hi);
}

static int compare_spans(const void *a, const void *b)
{
	uint32_t x = ((const struct span *)a)->first, y = ((const struct span *)b)->first;

	return (x > y) - (x < y);
}

int seccomp_sort(const struct span *list, size_t n, struct span *ret)
{
	if (n == 0)
		return -EINVAL;
	memcpy(ret, list, n * sizeof(ret[0]));
	qsort(ret, n, sizeof(ret[0]), compare_spans);
	for (size_t i = 0; i < n; i++)
		if (ret[i].first > ret[i].last || ret[i].last == UINT32_MAX ||
		    (i > 0 && ret[i].first <= ret[i - 1].last))
			return -EINVAL;
	return 0;
}

/* The values in the list, and what lies between them. */
static void emit_list(struct asm_state *a, const struct block *b)
{
	struct span sorted[LIST_MAX];
	struct range ranges[2 * LIST_MAX + 1];
	size_t count = 0;

	if (b->list_count > LIST_MAX) {
		a->full = true;
		return;
	}
	if (seccomp_sort(b->list, b->list_count, sorted) < 0) {
		a->is_wrong = true;
		return;
	}
	if (sorted[0].first > 0)
		ranges[count++] = (struct range){ 0, b->otherwise };
	for (size_t i = 0; i < b->list_count; i++) {
		bool goes_on = count > 0 && ranges[count - 1].from == sorted[i].first;

		if (goes_on) /* the last one ends where this one begins */
			count--;
		else
			ranges[count++] = (struct range){ sorted[i].first, V_ALLOW };
		ranges[count++] = (struct range){ sorted[i].last + 1, b->otherwise };
	}
	emit_load_arg(a, b->list_arg);
	emit_tree(a, ranges, 0, count);
}

static void emit_block(struct asm_state *a, const struct block *b)
{
	int loaded = -1;

	for (size_t i = 0; i < b->count; i++) {
		const struct test *t = &b->tests[i];
		uint8_t label = LABEL(t->then);

		if (loaded != t->arg)
			emit_load_arg(a, t->arg);
		loaded = t->mask ? -1 : t->arg; /* a mask spoils the register */
		if (t->mask)
			emit(a, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask), 0,
			     0);
		emit(a, (struct sock_filter)BPF_JUMP(BPF_JMP | t->op | BPF_K, t->value, 0, 0),
		     t->negate ? 0 : label, t->negate ? label : 0);
	}
	if (b->list)
		emit_list(a, b);
	else
		emit_exit(a, b->otherwise);
}

/* Where the unit's way out to a label is; it is made when it is first asked for. */
static size_t find_exit(struct asm_state *a, size_t exits[V_COUNT + 1], uint8_t label)
{
	if (exits[label] == 0) {
		exits[label] = a->f->len;
		emit_exit(a, (enum verdict)(label - 1));
	}
	return exits[label];
}

static void patch(struct asm_state *a, size_t at, uint8_t label, size_t exits[V_COUNT + 1],
		  uint8_t *jump)
{
	size_t distance;

	if (label == 0)
		return;
	distance = find_exit(a, exits, label) - at - 1;
	if (distance > 255)
		a->full = true;
	*jump = (uint8_t)distance;
}

static void end_unit(struct asm_state *a, size_t begin)
{
	size_t exits[V_COUNT + 1] = { 0 }, end = a->f->len;

	for (size_t i = begin; i < end; i++) {
		patch(a, i, a->jt_label[i], exits, &a->f->insn[i].jt);
		patch(a, i, a->jf_label[i], exits, &a->f->insn[i].jf);
	}
}

static int assemble(struct asm_state *a, const struct range *ranges, size_t count)
{
	emit_load(a, offsetof(struct seccomp_data, arch));
	emit(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 0, 0), 0,
	     LABEL(V_KILL));
	emit_load(a, offsetof(struct seccomp_data, nr));
	emit_tree(a, ranges, 0, count);
	end_unit(a, 0);
	for (int v = V_FIRST_BLOCK; v < V_COUNT; v++) {
		a->block_at[v] = a->f->len;
		emit_block(a, &blocks[v]);
		end_unit(a, a->block_at[v]);
	}
	for (size_t i = 0; i < a->f->len; i++)
		if (a->far_label[i])
			a->f->insn[i].k = (uint32_t)(a->block_at[a->far_label[i] - 1] - i - 1);
	if (a->is_wrong)
		return -EINVAL;
	return a->full ? -E2BIG : 0;
}

static void set_all(uint8_t *table, const char *const *names, size_t count, enum verdict v)
{
	for (size_t i = 0; i < count; i++) {
		/* A name that this libseccomp does not know stays ENOSYS: closed. */
		int nr = seccomp_syscall_resolve_name(names[i]);

		if (nr >= 0 && nr < NR_MAX)
			table[nr] = (uint8_t)v;
	}
}
#define SET_ALL(table, names, v) set_all(table, names, COUNT(names), v)

static void fill_table(enum seccomp_profile profile, uint8_t *table)
{
	SET_ALL(table, allowed, V_ALLOW);
	SET_ALL(table, denied, V_EPERM);
	for (size_t i = 0; i < COUNT(by_argument); i++)
		set_all(table, &by_argument[i].name, 1, by_argument[i].verdict);
	if (profile == PROFILE_HIGH) {
		SET_ALL(table, denied_high, V_EPERM);
		/* What pairs may be made of, sockets may: no Internet, not even on loopback. */
		set_all(table, (const char *const[]){ "socket" }, 1, V_SOCKETPAIR);
	}
	if (profile == PROFILE_ZYGOTE) {
		SET_ALL(table, allowed_zygote, V_ALLOW);
	}
}

int seccomp_build(enum seccomp_profile profile, struct seccomp_filter *ret, struct err *err)
{
	struct asm_state a = { .f = ret };
	uint8_t table[NR_MAX] = { 0 };
	struct range ranges[NR_MAX];
	size_t count = 0;
	int r;

	fill_table(profile, table);
	for (uint32_t nr = 0; nr < NR_MAX; nr++)
		if (nr == 0 || table[nr] != table[nr - 1])
			ranges[count++] = (struct range){ nr, (enum verdict)table[nr] };
	ret->len = 0;
	r = assemble(&a, ranges, count);
	if (r == -EINVAL)
		return err_set(err, EINVAL, "system call filter: a list of arguments is wrong");
	if (r < 0)
		return err_set(err, E2BIG, "system call filter is longer than %d instructions",
			       SECCOMP_INSN_MAX);
	return 0;
}

static uint32_t load(uint32_t arch, int nr, const uint64_t args[6], uint32_t offset)
{
	struct seccomp_data d = { .nr = nr, .arch = arch };
	uint32_t v;

	memcpy(d.args, args, sizeof(d.args));
	memcpy(&v, (const char *)&d + offset, sizeof(v));
	return v;
}

uint32_t seccomp_verdict(const struct seccomp_filter *f, uint32_t arch, int nr,
			 const uint64_t args[6])
{
	uint32_t acc = 0;

	for (size_t pc = 0; pc < f->len; pc++) {
		const struct sock_filter *in = &f->insn[pc];
		bool yes;

		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			acc = load(arch, nr, args, in->k);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= in->k;
			continue;
		case BPF_RET | BPF_K:
			return in->k;
		case BPF_JMP | BPF_JA:
			pc += in->k;
			continue;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = acc >= in->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (acc & in->k) != 0;
			break;
		default:
			yes = acc == in->k;
			break;
		}
		pc += yes ? in->jt : in->jf;
	}
	return SECCOMP_RET_KILL_PROCESS;
}
