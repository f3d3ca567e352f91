/* System calls that no box needs. The arguments are such that the call would fail or change nothing
 * where it is allowed: another answer than a refusal is what gives it away. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define BAD_FD (-1)
#define BAD_POINTER 8 /* an address that nothing is mapped at: EFAULT where the kernel looks */

static int mounts(int argc, char **argv)
{
	const struct call calls[] = {
		{ "mount tmpfs", SYS_mount, { P("none"), P("/tmp"), P("holt-nofs"), 0, 0 } },
		{ "mount bind", SYS_mount, { P("/none"), P("/none"), 0, 4096, 0 } },
		{ "mount remount rw", SYS_mount, { 0, P("/none"), 0, 4096 | 32, 0 } },
		{ "mount proc", SYS_mount, { P("proc"), P("/none"), P("proc"), 0, 0 } },
		{ "mount sysfs", SYS_mount, { P("sysfs"), P("/none"), P("sysfs"), 0, 0 } },
		{ "mount cgroup",
		  SYS_mount,
		  { P("cgroup"), P("/none"), P("cgroup"), 0, P("memory") } },
		{ "mount overlay", SYS_mount, { P("o"), P("/none"), P("overlay"), 0, P("x") } },
		{ "umount2", SYS_umount2, { P("/none"), 0 } },
		{ "umount2 detach of /proc/none", SYS_umount2, { P("/proc/none"), 2 } },
		{ "pivot_root", SYS_pivot_root, { P("/none"), P("/none") } },
		{ "chroot", SYS_chroot, { P("/none") } },
		{ "fsopen", SYS_fsopen, { P("holt-nofs"), 0 } },
		{ "fsconfig", SYS_fsconfig, { BAD_FD, 99, 0, 0, 0 } },
		{ "fsmount", SYS_fsmount, { BAD_FD, 0, 0 } },
		{ "fspick", SYS_fspick, { BAD_FD, P("none"), 0 } },
		{ "open_tree", SYS_open_tree, { BAD_FD, P("none"), 1 } },
		{ "move_mount", SYS_move_mount, { BAD_FD, P("none"), BAD_FD, P("none"), 0 } },
		{ "mount_setattr", SYS_mount_setattr, { BAD_FD, P("none"), 0, 0, 0 } },
		{ "statmount", 457, { 0, 0, 0, 0 } },
		{ "listmount", 458, { 0, 0, 0, 0 } },
		{ "open_tree_attr", 467, { BAD_FD, P("none"), 1, 0, 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int bpf(int argc, char **argv)
{
	const struct call calls[] = {
		{ "bpf MAP_CREATE", SYS_bpf, { 0, BAD_POINTER, 72 } },
		{ "bpf PROG_LOAD", SYS_bpf, { 5, BAD_POINTER, 72 } },
		{ "bpf OBJ_GET", SYS_bpf, { 7, BAD_POINTER, 72 } },
		{ "bpf BTF_LOAD", SYS_bpf, { 18, BAD_POINTER, 72 } },
		{ "bpf TOKEN_CREATE", SYS_bpf, { 36, BAD_POINTER, 72 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int perf(int argc, char **argv)
{
	char attr[128] = { 0 };
	const struct call calls[] = {
		{ "perf_event_open of nothing",
		  SYS_perf_event_open,
		  { BAD_POINTER, 0, -1, -1, 0 } },
		{ "perf_event_open of itself", SYS_perf_event_open, { P(attr), 0, -1, -1, 0 } },
		{ "perf_event_open of the machine",
		  SYS_perf_event_open,
		  { P(attr), -1, 0, -1, 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int userfault(int argc, char **argv)
{
	const struct call calls[] = {
		{ "userfaultfd", SYS_userfaultfd, { 0 } },
		{ "userfaultfd user-mode only", SYS_userfaultfd, { 1 } },
	};

	(void)argc, (void)argv;
	if (open("/dev/userfaultfd", O_RDWR | O_CLOEXEC) >= 0)
		return broken("/dev/userfaultfd opens");
	return refuse_calls(calls, COUNT(calls));
}

static int io_uring(int argc, char **argv)
{
	const struct call calls[] = {
		{ "io_uring_setup", SYS_io_uring_setup, { 4, BAD_POINTER } },
		{ "io_uring_enter", SYS_io_uring_enter, { BAD_FD, 1, 1, 0, 0, 0 } },
		{ "io_uring_register", SYS_io_uring_register, { BAD_FD, 0, 0, 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int keys(int argc, char **argv)
{
	const struct call calls[] = {
		{ "keyctl session", SYS_keyctl, { 0, -3, 0 } },
		{ "keyctl join session", SYS_keyctl, { 1, BAD_POINTER } },
		{ "keyctl describe user ring", SYS_keyctl, { 6, -4, 0, 0 } },
		{ "keyctl read", SYS_keyctl, { 11, -5, 0, 0 } },
		{ "keyctl persistent", SYS_keyctl, { 22, -1, -3 } },
		{ "add_key", SYS_add_key, { P("holt-none"), P("x"), P("x"), 1, -3 } },
		{ "request_key", SYS_request_key, { P("holt-none"), P("x"), 0, -3 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int modules(int argc, char **argv)
{
	const struct call calls[] = {
		{ "init_module", SYS_init_module, { BAD_POINTER, 16, P("") } },
		{ "finit_module", SYS_finit_module, { BAD_FD, P(""), 0 } },
		{ "delete_module", SYS_delete_module, { BAD_POINTER, 0 } },
		{ "kexec_load", SYS_kexec_load, { 0, 1000000, 0, -1 } },
		{ "kexec_file_load", SYS_kexec_file_load, { BAD_FD, BAD_FD, 0, 0, -1 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int handles(int argc, char **argv)
{
	struct {
		unsigned bytes;
		int type;
		char handle[128];
	} h = { .bytes = 128 };
	int mount_id = 0;
	const struct call calls[] = {
		{ "name_to_handle_at",
		  SYS_name_to_handle_at,
		  { AT_FDCWD, P("/tmp"), P(&h), P(&mount_id), 0 } },
		{ "name_to_handle_at of nsfs",
		  SYS_name_to_handle_at,
		  { AT_FDCWD, P("/proc/self/ns/net"), P(&h), P(&mount_id), AT_SYMLINK_FOLLOW } },
		{ "open_by_handle_at", SYS_open_by_handle_at, { AT_FDCWD, P(&h), O_RDONLY } },
		{ "open_by_handle_at without mount", SYS_open_by_handle_at, { BAD_FD, P(&h), 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int ports(int argc, char **argv)
{
#ifdef __x86_64__
	const struct call calls[] = {
		{ "iopl", SYS_iopl, { 99 } },
		{ "ioperm", SYS_ioperm, { 0x100000, 1, 1 } },
		{ "modify_ldt read", SYS_modify_ldt, { 0, 0, 0 } },
		{ "modify_ldt write", SYS_modify_ldt, { 1, 0, 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
#else
	(void)argc, (void)argv;
	return not_here("no such calls on this architecture");
#endif
}

/* Each would change the machine: times are the present ones, names too long, magic numbers wrong.
 */
static int machine(int argc, char **argv)
{
	struct timespec ts = { -1, -1 };
	struct timeval tv = { -1, -1 };
	struct timex tx = { .modes = 0x8000 | 0x2000, .offset = 0, .tick = -1 };
	const struct call calls[] = {
		{ "swapon", SYS_swapon, { P("/none"), 0 } },
		{ "swapoff", SYS_swapoff, { P("/none") } },
		{ "reboot", SYS_reboot, { 1, 2, 3, 0 } },
		{ "acct", SYS_acct, { P("/none/none") } },
		{ "quotactl", SYS_quotactl, { -1, P("/none"), 0, 0 } },
		{ "settimeofday", SYS_settimeofday, { P(&tv), 0 } },
		{ "clock_settime", SYS_clock_settime, { CLOCK_REALTIME, P(&ts) } },
		{ "clock_adjtime", SYS_clock_adjtime, { CLOCK_REALTIME, BAD_POINTER } },
		{ "adjtimex", SYS_adjtimex, { P(&tx) } },
		{ "sethostname", SYS_sethostname, { P("x"), 4096 } },
		{ "setdomainname", SYS_setdomainname, { P("x"), 4096 } },
		{ "vhangup", SYS_vhangup, { 0 } },
		{ "syslog read all", SYS_syslog, { 3, 0, 0 } },
		{ "syslog size", SYS_syslog, { 10, 0, 0 } },
		{ "lookup_dcookie", 212, { 0, 0, 0 } },
		{ "nfsservctl", 180, { 0, 0, 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int persona(int argc, char **argv)
{
	const struct call calls[] = {
		{ "ADDR_NO_RANDOMIZE", SYS_personality, { 0x0040000 } },
		{ "READ_IMPLIES_EXEC", SYS_personality, { 0x0400000 } },
		{ "MMAP_PAGE_ZERO", SYS_personality, { 0x0100000 } },
		{ "ADDR_COMPAT_LAYOUT", SYS_personality, { 0x0200000 } },
		{ "PER_LINUX32", SYS_personality, { 0x0008 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

static int watchers(int argc, char **argv)
{
	const struct call calls[] = {
		{ "fanotify_init", SYS_fanotify_init, { 0, O_RDONLY } },
		{ "fanotify_init with names", SYS_fanotify_init, { 0x200 | 0x400, O_RDONLY } },
		{ "fanotify_mark", SYS_fanotify_mark, { BAD_FD, 1, 1, AT_FDCWD, P("/") } },
		{ "memfd_secret", SYS_memfd_secret, { 0 } },
		{ "kcmp with PID 1", SYS_kcmp, { 1, 1, 0, 0, 0 } },
		{ "process_madvise", SYS_process_madvise, { BAD_FD, 0, 0, 4, 0 } },
		{ "set_mempolicy", SYS_set_mempolicy, { 99, 0, 0 } },
		{ "vmsplice", SYS_vmsplice, { BAD_FD, 0, 0, 0 } },
	};

	(void)argc, (void)argv;
	return refuse_calls(calls, COUNT(calls));
}

/* Numbers of tomorrow's calls, and numbers that are none. */
static int unknown(int argc, char **argv)
{
	static const long numbers[] = { 471,  472,   500,        599, 1023,      1024,
					4095, 65535, 0x3fffffff, -1,  INT32_MAX, INT32_MIN };

	(void)argc, (void)argv;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct outcome o = call_apart(&(struct call){ "", numbers[i], { 0 } });

		if (o.signal == 0 && (o.result != -1 || o.error != ENOSYS))
			return broken("number %ld gave %ld, %s", numbers[i], o.result,
				      strerror(o.error));
	}
	return held("%zu unknown numbers are ENOSYS", COUNT(numbers));
}

const struct probe probes_calls[] = {
	{ "mounts", mounts },       { "bpf", bpf },           { "perf", perf },
	{ "userfault", userfault }, { "io-uring", io_uring }, { "keys", keys },
	{ "modules", modules },     { "handles", handles },   { "ports", ports },
	{ "machine", machine },     { "persona", persona },   { "watchers", watchers },
	{ "unknown", unknown },     { NULL, NULL },
};
