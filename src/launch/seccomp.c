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
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/err.h"
#include "launch/seccomp_policy.h"

#define NR_MAX 1024 /* well above any number in use; everything beyond is ENOSYS */
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

/* Where a number leads: an answer, or a block that looks at the arguments. */
enum verdict {
	V_ENOSYS,
	V_ALLOW,
	V_EPERM,
	V_EAFNOSUPPORT,
	V_KILL,
	V_CLONE,
	V_SOCKET,
	V_SOCKETPAIR,
	V_IOCTL,
	V_PRCTL,
	V_PERSONALITY,
	V_FCNTL,
	V_PRLIMIT,
	V_COUNT
};
#define V_FIRST_BLOCK V_CLONE

static const uint32_t answers[V_FIRST_BLOCK] = {
	[V_ENOSYS] = RET_ERRNO(ENOSYS),      [V_ALLOW] = SECCOMP_RET_ALLOW,
	[V_EPERM] = RET_ERRNO(EPERM),        [V_EAFNOSUPPORT] = RET_ERRNO(EAFNOSUPPORT),
	[V_KILL] = SECCOMP_RET_KILL_PROCESS,
};

static const struct {
	const char *name;
	enum verdict verdict;
} by_argument[] = {
	{ "clone", V_CLONE }, { "socket", V_SOCKET },     { "socketpair", V_SOCKETPAIR },
	{ "ioctl", V_IOCTL }, { "prctl", V_PRCTL },       { "personality", V_PERSONALITY },
	{ "fcntl", V_FCNTL }, { "prlimit64", V_PRLIMIT },
};

/* A block is a list of tests on one argument after another; the last line is taken when no test is.
 */
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
};
#define EQ(a, v, t)                        \
	{                                  \
		a, BPF_JEQ, 0, v, t, false \
	}
#define NE(a, v, t)                       \
	{                                 \
		a, BPF_JEQ, 0, v, t, true \
	}

static const struct block blocks[V_COUNT] = {
	/* No new namespaces: most kernel holes of the last years were reached through them. */
	[V_CLONE] = { 1, V_ALLOW, { { 0, BPF_JSET, 0, NAMESPACE_FLAGS, V_EPERM, false } } },
	/* A list of families, not a list of exceptions: the next AF_ALG is closed already. AF_INET
	 * and AF_INET6 differ in one bit. Raw sockets and every transport but TCP and UDP are
	 * refused. */
	[V_SOCKET] = { 7,
		       V_EPERM,
		       { EQ(0, AF_UNIX, V_ALLOW),
			 { 0, BPF_JEQ, ~(uint32_t)(AF_INET ^ AF_INET6), AF_INET &AF_INET6,
			   V_EAFNOSUPPORT, true },
			 { 1, BPF_JSET, 0, 0xf & ~(SOCK_STREAM | SOCK_DGRAM), V_EPERM, false },
			 { 1, BPF_JEQ, 0xf, SOCK_STREAM | SOCK_DGRAM, V_EPERM, false },
			 EQ(2, 0, V_ALLOW),
			 EQ(2, IPPROTO_TCP, V_ALLOW),
			 EQ(2, IPPROTO_UDP, V_ALLOW) } },
	[V_SOCKETPAIR] = { 1, V_ALLOW, { NE(0, AF_UNIX, V_EAFNOSUPPORT) } },
	/* Typing into a terminal one shares with somebody else, and line disciplines by number. */
	[V_IOCTL] = { 4,
		      V_ALLOW,
		      { EQ(1, TIOCSTI, V_EPERM), EQ(1, TIOCLINUX, V_EPERM),
			EQ(1, TIOCCONS, V_EPERM), EQ(1, TIOCSETD, V_EPERM) } },
	[V_PRCTL] = { 2,
		      V_ALLOW,
		      { EQ(0, PR_SET_MM, V_EPERM), EQ(0, 62 /* PR_SCHED_CORE */, V_EPERM) } },
	/* Asking is fine, changing is not: READ_IMPLIES_EXEC and ADDR_NO_RANDOMIZE undo hardening.
	 */
	[V_PERSONALITY] = { 2, V_EPERM, { EQ(0, 0, V_ALLOW), EQ(0, 0xffffffff, V_ALLOW) } },
	/* Leases and directory notification reach other readers of a shared file. */
	[V_FCNTL] = { 2, V_ALLOW, { EQ(1, F_SETLEASE, V_EPERM), EQ(1, F_NOTIFY, V_EPERM) } },
	/* Of oneself only: without privilege PID 1 has the user's own id and could be crippled. */
	[V_PRLIMIT] = { 1, V_EPERM, { EQ(0, 0, V_ALLOW) } },
};

/* Program under construction; jumps name labels until they are known. */
struct asm_state {
	struct seccomp_filter *f;
	uint8_t jt_label[SECCOMP_INSN_MAX], jf_label[SECCOMP_INSN_MAX]; /* 0: as it stands */
	int label_at[V_COUNT];
	bool full;
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
	a->f->len++;
	return at;
}

static void emit_load(struct asm_state *a, size_t offset)
{
	emit(a, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset), 0, 0);
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

static void emit_block(struct asm_state *a, const struct block *b)
{
	int loaded = -1;

	for (size_t i = 0; i < b->count; i++) {
		const struct test *t = &b->tests[i];
		uint8_t label = LABEL(t->then);

		if (loaded != t->arg)
			emit_load(a, offsetof(struct seccomp_data, args) + 8u * t->arg);
		loaded = t->mask ? -1 : t->arg; /* a mask spoils the register */
		if (t->mask)
			emit(a, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask), 0,
			     0);
		emit(a, (struct sock_filter)BPF_JUMP(BPF_JMP | t->op | BPF_K, t->value, 0, 0),
		     t->negate ? 0 : label, t->negate ? label : 0);
	}
	/* An unconditional way out, through a test that both answers leave by. */
	emit(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0),
	     LABEL(b->otherwise), LABEL(b->otherwise));
}

static bool patch(struct asm_state *a, size_t at, uint8_t label, uint8_t *jump)
{
	int distance;

	if (label == 0)
		return true;
	distance = a->label_at[label - 1] - (int)at - 1;
	if (distance < 0 || distance > 255)
		return false;
	*jump = (uint8_t)distance;
	return true;
}

static int assemble(struct asm_state *a, const struct range *ranges, size_t count)
{
	emit_load(a, offsetof(struct seccomp_data, arch));
	emit(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_NATIVE, 0, 0), 0,
	     LABEL(V_KILL));
	emit_load(a, offsetof(struct seccomp_data, nr));
	emit_tree(a, ranges, 0, count);
	for (int v = V_FIRST_BLOCK; v < V_COUNT; v++) {
		a->label_at[v] = a->f->len;
		emit_block(a, &blocks[v]);
	}
	for (int v = 0; v < V_FIRST_BLOCK; v++) {
		a->label_at[v] = a->f->len;
		emit(a, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answers[v]), 0, 0);
	}
	for (size_t i = 0; i < a->f->len; i++)
		if (!patch(a, i, a->jt_label[i], &a->f->insn[i].jt) ||
		    !patch(a, i, a->jf_label[i], &a->f->insn[i].jf))
			return -E2BIG;
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
#define SET_ALL(table, names, v) set_all(table, names, sizeof(names) / sizeof((names)[0]), v)

static void fill_table(enum seccomp_profile profile, uint8_t *table)
{
	SET_ALL(table, allowed, V_ALLOW);
	SET_ALL(table, denied, V_EPERM);
	for (size_t i = 0; i < sizeof(by_argument) / sizeof(by_argument[0]); i++)
		set_all(table, &by_argument[i].name, 1, by_argument[i].verdict);
	if (profile == PROFILE_HIGH) {
		SET_ALL(table, denied_high, V_EPERM);
		/* What pairs may be made of, sockets may: no Internet, not even on loopback. */
		set_all(table, (const char *const[]){ "socket" }, 1, V_SOCKETPAIR);
	}
	if (profile == PROFILE_ZYGOTE) {
		SET_ALL(table, allowed_zygote, V_ALLOW);
		set_all(table, (const char *const[]){ "clone" }, 1, V_ALLOW);
	}
}

int seccomp_build(enum seccomp_profile profile, struct seccomp_filter *ret, struct err *err)
{
	struct asm_state a = { .f = ret };
	uint8_t table[NR_MAX] = { 0 };
	struct range ranges[NR_MAX];
	size_t count = 0;

	fill_table(profile, table);
	for (uint32_t nr = 0; nr < NR_MAX; nr++)
		if (nr == 0 || table[nr] != table[nr - 1])
			ranges[count++] = (struct range){ nr, (enum verdict)table[nr] };
	ret->len = 0;
	if (assemble(&a, ranges, count) < 0)
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
