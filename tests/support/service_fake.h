/* The sandbox service without sandboxes: the functions of sandbox/sandbox.h, exec.h and files.h on
 * tables in memory, for tests of the doors in front of it. The test says what happens; callbacks
 * come from the loop, as the contracts want it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"
#include "sandbox/exec.h"
#include "sandbox/files.h"
#include "sandbox/sandbox.h"

#define FAKE_FILES_MAX 32

struct service_file {
	char path[128]; /* "": free */
	struct buf data;
	uint8_t type; /* enum guest_entry_type */
	uint64_t inode, mtime_ns;
};

struct sandboxes {
	struct loop *loop;
	struct list boxes; /* struct sandbox */
	struct list execs; /* struct execution */
	struct list ops;   /* struct file_op */
	bool is_ready;
	int fail_with; /* the next call that answers by a callback fails; positive errno */
	char fail_text[64];
	unsigned creates, touches, cancels, signals, file_cancels;
	/* Of the last call: */
	struct limits limits;
	char template[32], command[64], language[16], stdin_text[256];
	size_t argc, n_env;
	uint64_t timeout_ms;
	bool cold, background, has_stdin;
	struct quota quota, used; /* of everybody */
	int signo, rows, cols;
	bool tree;
	/* What an execution does at once: writes this and ends, unless auto_end is false. */
	const char *auto_stdout, *auto_stderr;
	bool auto_end;
	int exit_code;
	size_t keep;       /* bytes of output that are kept */
	size_t stdin_room; /* bytes that an execution takes before it says EAGAIN */
	bool stdin_unsent; /* what is taken waits on its way */
	struct service_file files[FAKE_FILES_MAX];
	unsigned serial;
	uint64_t inodes;
	bool overtakes;         /* once: at the end of a FILE_WRITE the version is another one */
	uint64_t read_fails_at; /* FILE_READ and FILE_TAR_GET fail behind so many bytes; 0: never */
	size_t chunk;           /* bytes of one data() */
	size_t window;          /* bytes that file_send() takes before the loop turns */
	unsigned held;          /* how often a reader was held */
};

void service_init(struct sandboxes *s, struct loop *loop);
void service_done(struct sandboxes *s);
struct sandbox *service_add(struct sandboxes *s, const char *id, const char *owner,
			    const char *name);
struct execution *service_last(struct sandboxes *s); /* the youngest execution */
void service_write(struct execution *x, int stream, const char *data, size_t n);
void service_end(struct execution *x, int exit_code);
void service_room(struct execution *x); /* its program has read on */
struct service_file *service_put(struct sandboxes *s, const char *path, uint8_t type,
				 const char *data, size_t n);
struct service_file *service_file(struct sandboxes *s, const char *path); /* NULL */
/* To every watch. */
void service_happened(struct sandboxes *s, enum guest_event event, const char *path);
