/* Whether a process is still the one that it was: its pid may be another's by now, its start may
 * not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Clock ticks from the machine's boot to the start of a process, from the text of its
 * /proc/PID/stat. -EINVAL. */
int process_parse_start(const char *stat, uint64_t *ret_ticks);
/* Is it `of` or a descendant of it, not too far down? */
bool process_descends(pid_t pid, pid_t of);
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
/* Waits for a child of ours to end, no longer than so many milliseconds: 0, or -ETIMEDOUT, and it
 * is reaped like any other when it does. */
int process_reap(pid_t pid, int timeout_ms);
/* Waits for a word on a socket: 0, or -ETIMEDOUT. */
int process_hear(int sock, int timeout_ms);
/* What a process does, for the log: its name, state, system call and kernel stack, as far as we may
 * know. proc_fd: the machine's /proc. */
void process_describe(int proc_fd, pid_t pid, char *dst, size_t size);
#define PROCESS_DETAIL_MAX 1400
#define PROCESS_HELPER_MS 5000 /* for a process of ours that does one thing for us */
#define PROCESS_KILLED_MS 1000 /* for one that we have killed */
