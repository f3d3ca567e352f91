/* The policy itself, as data: what each system call gets. Private to seccomp.c. */
#pragma once

/* Known and forbidden: EPERM. What is in neither list is ENOSYS, so that libc falls back and a new
 * kernel's calls are closed until somebody has looked at them. */
static const char *const denied[] = {
	"acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime",
	"delete_module", "fanotify_init", "fanotify_mark", "finit_module", "fsconfig", "fsmount",
	"fsopen", "fspick", "init_module", "ioperm", "iopl", "ioprio_set", "kcmp", "kexec_file_load",
	"kexec_load", "keyctl", "lookup_dcookie", "mbind", "memfd_secret", "migrate_pages",
	"modify_ldt", "mount", "mount_setattr", "move_mount", "move_pages", "name_to_handle_at",
	"open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root",
	"process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl",
	"quotactl_fd", "reboot", "request_key", "sched_setaffinity", "sched_setattr",
	"sched_setparam", "sched_setscheduler", "set_mempolicy", "set_mempolicy_home_node",
	"setdomainname", "sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog",
	"umount2", "unshare", "uselib", "userfaultfd", "ustat", "vhangup", "vmsplice",
};

static const char *const allowed[] = {
	"accept", "accept4", "access", "alarm", "arch_prctl", "bind", "brk", "cachestat", "capget",
	"capset", "chdir", "chmod", "chown", "clock_getres", "clock_gettime", "clock_nanosleep",
	"close", "close_range", "connect", "copy_file_range", "creat", "dup", "dup2", "dup3",
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"eventfd", "eventfd2", "execve", "execveat", "exit", "exit_group", "faccessat",
	"faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2",
	"fchown", "fchownat", "fdatasync", "fgetxattr", "flistxattr", "flock", "fork",
	"fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futex",
	"futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "futimesat", "get_robust_list",
	"get_thread_area", "getcpu", "getcwd", "getdents", "getdents64", "getegid", "geteuid",
	"getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp", "getpid",
	"getppid", "getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage",
	"getsid", "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "getxattr",
	"inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "ioprio_get",
	"io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit", "kill",
	"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "lchown",
	"lgetxattr", "link", "linkat", "listen", "listxattr", "llistxattr", "lremovexattr", "lseek",
	"lsetxattr", "lstat", "madvise", "membarrier", "memfd_create", "mincore", "mkdir", "mkdirat",
	"mknod", "mknodat", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mq_getsetattr",
	"mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "mremap", "mseal",
	"msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock", "munlockall", "munmap",
	"nanosleep", "newfstatat", "open", "openat", "openat2", "pause", "pidfd_open",
	"pidfd_send_signal", "pipe", "pipe2", "pkey_alloc", "pkey_free", "pkey_mprotect", "poll",
	"ppoll", "pread64", "preadv", "preadv2", "prlimit64", "pselect6", "pwrite64", "pwritev",
	"pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "recvfrom", "recvmmsg",
	"recvmsg", "remap_file_pages", "removexattr", "rename", "renameat", "renameat2",
	"restart_syscall", "rmdir", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	"rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
	"sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
	"sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_yield", "seccomp",
	"select", "semctl", "semget", "semop", "semtimedop", "sendfile", "sendmmsg", "sendmsg",
	"sendto", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid",
	"setgid", "setgroups", "setitimer", "setpgid", "setpriority", "setregid", "setresgid",
	"setresuid", "setreuid", "setrlimit", "setsid", "setsockopt", "setuid", "setxattr", "shmat",
	"shmctl", "shmdt", "shmget", "shutdown", "sigaltstack", "signalfd", "signalfd4", "splice",
	"stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs",
	"sysinfo", "tee", "tgkill", "time", "timer_create", "timer_delete", "timer_getoverrun",
	"timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
	"times", "tkill", "truncate", "umask", "uname", "unlink", "unlinkat", "utime", "utimensat",
	"utimes", "vfork", "wait4", "waitid", "write", "writev",
};

/* Also forbidden at the high level. */
static const char *const denied_high[] = {
	"memfd_create", "mq_open", "msgget", "semget", "shmget", "io_setup",
};

/* Also allowed for a template interpreter, whose children build their own box. */
static const char *const allowed_zygote[] = {
	"unshare", "mount", "umount2", "pivot_root", "sethostname", "fsopen", "fsconfig", "fsmount",
	"open_tree", "move_mount", "mount_setattr", "chroot",
};
