/* Runs file operations the way holt-init does: in a forked process, over a socket pair, below a
 * root directory. Beside the root lies a canary that nothing may ever read or change. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "spec/guest.h"

struct rig {
	char base[64];   /* a temporary directory with ... */
	char root[80];   /* ... the root of the operations ... */
	char canary[80]; /* ... and a file outside of it */
	int root_fd;
	int lock_fd;            /* that all operations share */
	size_t fail_allocation; /* which one of the operation's fails; 0: none */
	bool skip_leak_check;   /* it takes longer than most operations: for tests that race */
};

#define RIG_ENTRIES 256
#define RIG_CANARY "the canary sings"

struct rig_entry {
	struct guest_entry e;
	char path[512], target[512], owner[64], group[64]; /* the last two of details */
	char attrs[GUEST_ATTRS_BYTES];
};

#define RIG_FOUND 128

struct rig_found {
	struct guest_found f;
	size_t len; /* of the whole text */
	char path[256], text[256];
};

/* All that came back from an operation. */
struct rig_answer {
	struct buf data;
	struct rig_entry entries[RIG_ENTRIES]; /* the first ones */
	uint64_t entry_count;
	struct rig_found found[RIG_FOUND]; /* the first ones */
	uint64_t found_count;
	size_t longest_path; /* of any entry */
	uint64_t done;
	bool is_done;
	uint64_t taken; /* bytes that the guest said it took */
	uint32_t error; /* 0: none */
	char text[256];
	int exit_code;
};

/* A running operation, for tests that speak with it frame by frame. */
struct rig_op {
	pid_t pid;
	int sock;
	uint32_t id;
};

/* Becomes an unprivileged user when run by root: the operations have no privileges either. */
int rig_drop_root(void **state);
int rig_setup(void **state);
int rig_teardown(void **state);
/* Asserts that the canary is what it was. */
void rig_check_canary(const struct rig *g);

struct rig_op rig_start(const struct rig *g, const struct guest_file *f);
void rig_send(const struct rig_op *op, uint16_t type, const void *data, size_t n);
void rig_credit(const struct rig_op *op, uint64_t n);
/* Takes frames until the operation has ended, crediting as it goes. Fills *a (rig_answer_done()).
 */
void rig_finish(struct rig_op *op, struct rig_answer *a);
void rig_answer_done(struct rig_answer *a);

/* One whole operation; in is sent as G_DATA when the operation takes any. */
void rig_run(const struct rig *g, const struct guest_file *f, const void *in, size_t n,
	     struct rig_answer *a);
/* The same, and only its outcome: the errno, or 0. */
int rig_do(const struct rig *g, const struct guest_file *f, const void *in, size_t n);

/* The test's own hands below the root. */
void rig_write(const struct rig *g, const char *name, const char *text);
/* The text of a file below the root, "" when there is none; good until the next call. */
const char *rig_text(const struct rig *g, const char *name);
bool rig_exists(const struct rig *g, const char *name);
void rig_mkdir(const struct rig *g, const char *name);
void rig_symlink(const struct rig *g, const char *target, const char *name);
/* Names in a directory below the root. */
unsigned rig_count(const struct rig *g, const char *dir);
/* Runs a command (no shell) in the root directory; its exit code. */
int rig_command(const struct rig *g, const char *const *argv);
