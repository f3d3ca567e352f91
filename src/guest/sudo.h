/* The box's user becomes root, in boxes whose template says so (TEMPLATE_SUDO). Nothing in a box is
 * setuid and no process gains a privilege: `sudo` is this same program under another name. It asks
 * holt-init over a socket in the box to run a command, and hands over its own streams and working
 * directory. holt-init does no more than to fork for each connection. That process accepts it,
 * reads what comes over it, carries the limits of whoever asked and with them the mark of his
 * execution, and ends with it. holt-init itself never has a connection: to close one may close
 * descriptors that were sent along, and that can take as long as their sender likes, but for a
 * process that ends.
 *
 * The frames are those of spec/guest.h. To holt-init: one G_EXEC of a command with the descriptors
 * 0, 1, 2 and a directory, then G_SIGNAL. Back: G_STARTED (of the process that serves; with a
 * terminal's master for EXEC_PTY) and G_EXIT, or G_ERROR. An end of the connection without a word
 * is taken for SIGKILL. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "guest/deadline.h"
#include "guest/loop.h"

struct err;
struct guest;
struct guest_exec;
struct user;

#define SUDO_PATH "/run/sudo.sock"
#define SUDO_MAX 32 /* commands at a time */
#define SUDO_FDS 4  /* of a request: three streams and a directory */

/* In holt-init. */
struct sudo {
	struct source listener;
	struct source accepting;  /* ends when a new process has its connection, or is dead */
	struct deadline again;    /* when it is listened again */
	pid_t pids[SUDO_MAX + 1]; /* who serves; 0: none. The last one says that it is too many */
};

void sudo_init(struct guest *g);
int sudo_open(struct guest *g, struct err *err); /* listens */
bool sudo_reaped(struct guest *g, pid_t pid);
void sudo_done(struct guest *g);
/* sudo_run.c: serves one connection, in a process of its own. is_full: only says so. */
_Noreturn void sudo_serve(int conn, bool is_full);

/* The program: sudo_main.c and what it calls. */
bool sudo_is_name(const char *argv0);
int sudo_main(int argc, char **argv);

enum sudo_mode {
	SUDO_RUN,
	SUDO_SHELL, /* -s: the caller's shell */
	SUDO_LOGIN, /* -i: the new user's, as at a login */
	SUDO_LIST,
	SUDO_VALIDATE, /* -v, -k, -K: nothing is asked for, so nothing is forgotten */
	SUDO_VERSION,
	SUDO_HELP
};

struct sudo_args {
	enum sudo_mode mode;
	bool keep_env, set_home, is_background;
	const char *keep;        /* names with commas between them; NULL: none */
	const char *user;        /* a name, or a number behind '#' */
	const char *dir;         /* NULL: where the caller is */
	int n_vars;              /* NAME=value, in vars */
	const char *const *vars; /* borrowed from argv */
	int argc;                /* of the command */
	const char *const *argv; /* borrowed, NULL-terminated */
};

/* -EINVAL with a sentence. */
int sudo_parse_args(int argc, const char *const *argv, struct sudo_args *ret, struct err *err);
/* A shell's line that means these words. -E2BIG */
int sudo_quote(const char *const *argv, int argc, char *dst, size_t size);

struct sudo_text; /* memory of what a request points to */
struct sudo_text *sudo_text_create(void);
/* Fills argv, envp, cwd and user. -errno with a sentence. */
int sudo_fill(const struct sudo_args *a, const char *const *environ_now, struct sudo_text *text,
	      struct guest_exec *ret, struct err *err);

/* sudo_tty.c: between the caller's terminal and the command's. */
struct sudo_tty {
	int master;           /* owned; -1: none */
	bool is_raw, is_deaf; /* the caller's terminal is changed; it has ended */
	struct termios before;
	size_t held, at; /* bytes of input that the command has not taken */
	char input[4096];
};
struct sudo_ready {
	bool conn, signals;
};

bool sudo_tty_is_wanted(void);
void sudo_tty_begin(struct sudo_tty *t, int master); /* takes it; -1: the command has none */
void sudo_tty_resize(const struct sudo_tty *t);
/* Waits, carries what there is, and says which of the two others is ready. */
struct sudo_ready sudo_tty_wait(struct sudo_tty *t, int conn, int signals);
void sudo_tty_end(struct sudo_tty *t);
