/* One error currency from the syscall to the HTTP status. */
#pragma once

struct err {
	int code;       /* positive errno; 0 while nothing has failed */
	char text[240]; /* "open '/etc/x': No such file or directory" */
};

/* A function that may fail takes a `struct err *err`, which the caller leaves NULL when it does not
 * want the reason. So nobody looks into one that was given to it, but by these functions, for which
 * NULL is nobody listening; tools/check-err holds it. Who needs a callee's reason gives it one of
 * its own. */

/* Records the failure and returns -code, so a failing line is one line. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": strerror(code)" behind the text. code may be negative (a function's result). */
int err_sys(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* What has been recorded: a positive errno, 0 for nothing. */
int err_code(const struct err *err);
/* The same as a result: -code, or -fallback while nothing is recorded. */
int err_result(const struct err *err, int fallback);
/* Records what another call has recorded; returns -code. */
int err_copy(struct err *err, const struct err *from);
/* It was no failure after all. */
void err_clear(struct err *err);
