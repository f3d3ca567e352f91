/* Whether a process is still the one that it was: its pid may be another's by now, its start may
 * not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Clock ticks from the machine's boot to the start of a process, from the text of its
 * /proc/PID/stat. -EINVAL. */
int process_parse_start(const char *stat, uint64_t *ret_ticks);
/* -ENOENT or -ESRCH when there is none. proc_fd: the machine's /proc. */
int process_start(int proc_fd, pid_t pid, uint64_t *ret_ticks);
/* Is it the first process of a pid namespace below ours, by the text of its /proc/PID/status? */
bool process_parse_is_init(const char *status);
bool process_is_init(int proc_fd, pid_t pid);
/* A descriptor of the process that began then. -ESRCH when it has ended. */
int process_open(int proc_fd, pid_t pid, uint64_t ticks);
/* Has it ended, or does it within so many milliseconds? */
int process_wait(int pidfd, int timeout_ms); /* 0: it has; -ETIMEDOUT */
void process_kill(int pidfd);
