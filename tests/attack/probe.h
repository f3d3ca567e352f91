/* The program that attacks a box from the inside: many small attacks behind one static binary.
 *
 * An attack tries the thing for real and then says, in one line and an exit code, how far it got.
 * It must be harmless where the box does not hold, because it then runs on the machine itself:
 * bombs have a ceiling, calls that change the machine carry arguments that change nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROBE_HELD = 0, PROBE_BROKEN = 1, PROBE_USAGE = 64, PROBE_NOT_HERE = 77 };

struct probe {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the first argument behind the name */
};

/* One table a family; each ends with an empty row. */
extern const struct probe probes_process[], probes_memory[], probes_disk[], probes_bulk[];
extern const struct probe probes_life[], probes_output[], probes_limits[];
extern const struct probe probes_calls[], probes_namespace[], probes_trace[], probes_abi[];
extern const struct probe probes_socket[], probes_signal[], probes_privilege[], probes_sweep[];
extern const struct probe probes_proc[], probes_files[], probes_race[], probes_layer[];
extern const struct probe probes_net[], probes_control[], probes_residue[], probes_leak[];
extern const struct probe probes_cross[], probes_device[], probes_terminal[], probes_sudo[];
extern const struct probe probes_arguments[];

/* Print the verdict and return its exit code. */
int held(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int not_here(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A system call as a row: what it is, its number, its arguments. */
struct call {
	const char *what;
	long nr;
	long args[6];
};
#define P(pointer) ((long)(uintptr_t)(pointer))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* How a call ended in a child of its own. */
struct outcome {
	long result;
	int error;  /* errno where result is -1 */
	int signal; /* the signal that ended the child, or 0 */
};
struct outcome call_apart(const struct call *c);
/* Makes every call; held when each one was refused before it meant anything: EPERM, ENOSYS, EACCES,
 * EAFNOSUPPORT, or the caller was killed. Any other answer shows that the kernel looked at it. */
int refuse_calls(const struct call *calls, size_t count);
bool all_refused(const struct call *calls, size_t count); /* the same, silent where it holds */
bool is_refusal(int error);

/* Tries to open every path with these flags; held when none opens. */
int refuse_open(const char *const *paths, size_t count, int flags);

uint64_t number(int argc, char **argv, int at, uint64_t otherwise); /* exits on nonsense */
const char *text(int argc, char **argv, int at, const char *otherwise);
uint64_t now_ms(void);
void sleep_ms(unsigned ms);
/* Memory that children share with us, zeroed; never NULL. */
void *shared(size_t size);
/* First bytes of a file, NUL-terminated; length or -1. */
ssize_t slurp(const char *path, char *dst, size_t size);
int spill(const char *path, const char *text_); /* writes a new file; 0 or -1 */
pid_t fork_or_die(void);
/* Kills and reaps all children of this process. */
void end_children(void);
/* Processes that this one can see under /proc; with a name, those called so. */
int count_processes(const char *name);
void rename_self(const char *name);
/* For the few attacks that would hurt the machine: PID 1 started us, and there is no /sys. */
bool in_a_box(void);

/* Numbers that older headers lack. */
#ifndef SYS_fsopen
#define SYS_fsopen 430
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
