/* K: the kernel's surface. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NUMBERS 600
/* Newer than the oldest kernel we support: there they are ENOSYS by the kernel itself. */
#define YOUNGEST_EVERYWHERE 440

static void mark_numbers(const char *text, bool *ret)
{
	struct str rest = str_of(text), line;

	while (str_split(&rest, '\n', &line)) {
		char word[16];
		uint32_t nr;
		size_t n = 0;

		while (n < line.len && line.data[n] >= '0' && line.data[n] <= '9')
			n++;
		if (n == 0 || n >= sizeof(word))
			continue;
		memcpy(word, line.data, n);
		word[n] = '\0';
		if (parse_u32(word, 0, NUMBERS - 1, &nr) == 0)
			ret[nr] = true;
	}
}

/* uretprobe and uprobe: no filter is asked about them, because only the kernel's own trampolines
 * may call them; from anywhere else they end in SIGILL or ENXIO. */
static bool is_kernels_own(int nr)
{
	return nr == 335 || nr == 336;
}

/* Each number once in a box; the set that is let through is the one in the file, no more, no less.
 */
static void sweep_matches_golden(struct world *w, const struct attack *a)
{
	_cleanup_(buf_done) struct buf golden = { 0 }, diff = { 0 };
	bool want[NUMBERS] = { false }, have[NUMBERS] = { false };
	char path[600];
	struct op op;

	(void)a;
#ifndef __x86_64__
	world_skip(w, "the golden list is x86-64's");
#endif
	(void)snprintf(path, sizeof(path), "%s/syscalls.golden", w->data);
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_slurp(fd, &golden), 0);
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "sweep 0 600", &(struct attack){ .timeout_ms = 60000 }, &op);
	assert_true(box_wait(&w->box, &op, 70000));
	op_expect_held("sweep", &op, 0);
	mark_numbers(buf_str(&golden), want);
	mark_numbers(buf_str(&op.out), have);
	for (int nr = 0; nr < NUMBERS; nr++)
		if (is_kernels_own(nr))
			continue;
		else if (have[nr] && !want[nr])
			(void)buf_printf(&diff, "+%d ", nr);
		else if (want[nr] && !have[nr] && nr <= YOUNGEST_EVERYWHERE)
			(void)buf_printf(&diff, "-%d ", nr);
	if (diff.len)
		fail_msg("system calls that are let through differ from the list: %s",
			 buf_str(&diff));
	op_done(&op);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* A set-id file made by the box's root is nothing to its user. */
static void suid_gives_nothing(struct world *w, const struct attack *a)
{
	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "suid-make", AS_ROOT);
	box_expect_held(w, &w->box, "suid-use", 0);
	box_close(w, &w->box, NULL);
}

/* Everything that a box's user may kill, dead; the box, its next execution and others are not. */
static void kill_all_stays_inside(struct world *w, const struct attack *a)
{
	struct op quiet;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "sit beside", NULL, &quiet);
	box_wait_ready(&w->box, &quiet);
	box_expect_held(w, &w->box, "shoot-all", 0);
	assert_true(box_wait(&w->box, &quiet, 5000));
	op_done(&quiet);
	box_expect_answer(&w->box);
	box_expect_held(w, &w->box, "ids", 0);
	box_close(w, &w->box, NULL);
}

/* All signals to PID 1 while it works. */
static void init_stands_fire(struct world *w, const struct attack *a)
{
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	for (int i = 0; i < 5; i++) {
		box_expect_held(w, &w->box, "shoot-init", a->flags);
		box_expect_answer(&w->box);
		box_expect_held(w, &w->box, "ids", 0);
	}
	box_close(w, &w->box, NULL);
}

/* Whether the first page of a file is in memory, by whoever may know. */
static bool is_in_memory(const char *path)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char page = 0;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, 1, &page), 0);
	(void)munmap(p, 1);
	return page & 1;
}

/* What the machine has read stays in memory, whatever a box advises. */
static void shared_files_stay_in_memory(struct world *w, const struct attack *a)
{
	static const char path[] = "/usr/lib/os-release";
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	assert_true(fd >= 0 && pread(fd, &byte, 1, 0) == 1);
	assert_true(is_in_memory(path));
	box_expect_held(w, &w->box, "evict /usr/lib/os-release", 0);
	assert_true(is_in_memory(path));
	box_close(w, &w->box, NULL);
}

/* A program that the machine runs is not seen by a box that watches its directory. */
static void watches_see_nothing(struct world *w, const struct attack *a)
{
	char byte;
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "watch /usr/bin 1200", NULL, &op);
	box_wait_ready(&w->box, &op);
	for (int i = 0; i < 5; i++) {
		_close_ int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0 && read(fd, &byte, 1) == 1);
		(void)usleep(20000);
	}
	assert_true(box_wait(&w->box, &op, 10000));
	op_expect_held("watch", &op, 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

#define PLAIN(name, probe)                     \
	{                                      \
		name, probe, 0, 0, { 0 }, NULL \
	}
#define BOTH(name, probe)                                                      \
	{ name, probe, 0, 0, { 0 }, NULL },                                    \
	{                                                                      \
		name ", by the box's root too", probe, AS_ROOT, 0, { 0 }, NULL \
	}

static const struct attack rows[] = {
	BOTH("K1 nothing can be mounted, moved or unmounted", "mounts"),
	BOTH("K1 the root cannot be changed or walked out of", "chroot-walk"),
	BOTH("K2 no new namespace by unshare", "by-unshare"),
	BOTH("K2 no new namespace by clone", "by-clone"),
	PLAIN("K2 clone3 is not there", "by-clone3"),
	BOTH("K2 no namespace can be joined", "join"),
	BOTH("K3 PID 1 cannot be traced", "trace 1"),
	PLAIN("K3 siblings cannot be traced", "trace-sibling"),
	BOTH("K3 the memory of PID 1 cannot be read or written", "memory-of 1"),
	BOTH("K3 no descriptor of PID 1 can be copied", "steal-fd"),
	PLAIN("K4 bpf is refused", "bpf"),
	BOTH("K4 no filter can be attached to a socket or a process", "filters"),
	PLAIN("K5 perf events are refused", "perf"),
	PLAIN("K6 userfaultfd is refused", "userfault"),
	PLAIN("K7 io_uring is refused", "io-uring"),
	BOTH("K8 keyrings are refused", "keys"),
	BOTH("K9 modules and kexec are refused", "modules"),
	BOTH("K10 file handles are refused", "handles"),
	PLAIN("K11 ports and descriptor tables are refused", "ports"),
	BOTH("K12 the machine's clock, name, swap and power are refused", "machine"),
	PLAIN("K13 personalities that weaken are refused", "persona"),
	{ "K14 nothing can be typed into one's terminal", "inject", ON_TERMINAL, 0, { 0 }, NULL },
	PLAIN("K14 without a terminal none can be taken", "take-terminal"),
	PLAIN("K14 a box's terminals are its own", "own-terminals"),
	PLAIN("K15 int 0x80 leads nowhere", "int80"),
	PLAIN("K15 32-bit code has no kernel", "compat"),
	PLAIN("K15 x32 numbers lead nowhere", "x32"),
	PLAIN("K15 unknown numbers do not exist", "unknown"),
	PLAIN("K16 vsyscall is harmless", "vsyscall"),
	PLAIN("K16 storms of barriers are harmless", "storms 1500"),
	BOTH("K18 netlink is refused", "netlink"),
	BOTH("K18 every socket family but three is refused", "families"),
	BOTH("K18 every transport but TCP and UDP is refused", "transports"),
	PLAIN("K18 credentials on sockets cannot be forged", "credentials"),
	PLAIN("K19 abstract sockets of the machine and of other boxes are out of reach",
	      "abstract @abstract holt-residue"),
	BOTH("K20 packet filters are out of reach", "netfilter"),
	PLAIN("K21 fanotify and its like are refused", "watchers"),
	{ "K21 a watch on shared directories tells nothing",
	  NULL,
	  0,
	  0,
	  { 0 },
	  watches_see_nothing },
	PLAIN("K22 a process has no capability, no new privileges and a filter", "nothing-held"),
	{ "K22 the box's root has no capability, no new privileges and a filter",
	  "nothing-held",
	  AS_ROOT,
	  0,
	  { 0 },
	  NULL },
	PLAIN("K22 no other id can be taken", "become"),
	{ "K22 a set-id file gives nothing", NULL, 0, 0, { 0 }, suid_gives_nothing },
	PLAIN("K22 set-id programs of the system are powerless", "suid-system"),
	BOTH("K22 file capabilities give nothing", "file-caps"),
	PLAIN("K23 a program from memory is bound like any other", "from-memory"),
	PLAIN("K23 mounts carry nosuid, nodev, noexec and read-only as documented", "noexec"),
	BOTH("K24 nothing that was tightened can be loosened", "loosen"),
	PLAIN("K24 becoming dumpable opens nobody else", "dumpable"),
	{ "K25 PID 1 stands all signals", NULL, 0, 0, { 0 }, init_stands_fire },
	{ "K25 PID 1 stands all signals of the box's root",
	  NULL,
	  AS_ROOT,
	  0,
	  { 0 },
	  init_stands_fire },
	{ "K25 kill(-1) stays inside", NULL, 0, 0, { 0 }, kill_all_stays_inside },
	PLAIN("K25 processes outside are unknown", "signal-outside @pids"),
	PLAIN("K25 asynchronous signals do not reach PID 1", "signal-owner"),
	BOTH("K27 only harmless options of sockets can be set", "socket-options"),
	BOTH("K27 only harmless requests reach files and devices", "requests"),
	BOTH("K27 only harmless attributes of a process can be set", "attributes"),
	BOTH("K27 only harmless commands reach descriptors", "commands"),
	BOTH("K27 huge pages and pages of others are out of reach", "advice"),
	{ "K27 no advice takes shared files out of memory",
	  NULL,
	  0,
	  0,
	  { 0 },
	  shared_files_stay_in_memory },
	PLAIN("K27 asynchronous I/O is refused", "async-io"),
	BOTH("K28 a crash runs no core handler of the machine", "core-limit"),
	PLAIN("K26 wild robust lists are harmless", "robust"),
	{ "K26 races of ending threads are harmless",
	  "exit-storm 500",
	  0,
	  60000,
	  { .cpu_milli = 2000 },
	  NULL },
	{ "K26 the system calls that are let through are those of the list",
	  NULL,
	  0,
	  0,
	  { .cpu_milli = 2000 },
	  sweep_matches_golden },
};

const struct attack_table attacks_kernel = { rows, COUNT(rows) };
