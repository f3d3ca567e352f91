/* One error currency from the syscall to the HTTP status. */
#pragma once

struct err {
	int code;       /* positive errno; 0 while nothing has failed */
	char text[240]; /* "open '/etc/x': No such file or directory" */
};

/* Records the failure and returns -code, so a failing line is one line. err may be NULL. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": strerror(code)" behind the text. code may be negative (a function's result). */
int err_sys(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
