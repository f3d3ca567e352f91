/* All processes of an execution, however they detached themselves: each carries the execution's
 * mark (see GUEST_MARK_SUM). A process whose two limits do not belong together has tampered with
 * them and counts as part of every tree that is ended. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct tree_view {
	int proc_fd;        /* owned: the /proc of our pid namespace */
	int load_fd;        /* owned: tells the newest pid; -1: not there */
	int spare_fd;       /* owned: given up while we look, so that looking never lacks one */
	bool is_everything; /* we are PID 1: whatever is not ours is the box's, tampered ones too */
};

enum tree_claim { TREE_FREE, TREE_MEMBER, TREE_TAMPERED };

int tree_open(struct tree_view *v, struct err *err);
void tree_close(struct tree_view *v);

/* What the two hard limits say about a process. RLIM_INFINITY twice is a process of our own. */
enum tree_claim tree_claim_of(uint64_t locks, uint64_t rss, uint64_t mark);
/* Finds the two hard limits in the text of /proc/<pid>/limits. -EINVAL when they are not there. */
int tree_parse_limits(const char *text, uint64_t *ret_locks, uint64_t *ret_rss);
/* Finds state and thread count in the text of /proc/<pid>/stat, whatever the program's name holds.
 */
int tree_parse_stat(const char *text, char *ret_state, unsigned *ret_threads);

/* The newest process or thread of our pid namespace; -1 where that is not told. While it stays the
 * same, nothing has been started. */
int64_t tree_newest(const struct tree_view *v);
/* How many members live (zombies do not). -errno when /proc cannot be read. */
int tree_count(struct tree_view *v, uint64_t mark);
/* The same, without the process `except`. */
int tree_count_but(struct tree_view *v, uint64_t mark, pid_t except);
/* Sends a signal to every live member; how many that were. */
int tree_signal(struct tree_view *v, uint64_t mark, int signo);
/* Stops every member until no pass finds one that runs, then kills them all: what is stopped cannot
 * fork away. They may take a moment to die. Those that multiply faster than they can be found are
 * left to tree_kill_still() (as PID 1 only, else -EBUSY). */
int tree_kill(struct tree_view *v, uint64_t mark);
/* Stops everything in the box, kills the members and lets the others go on, but for those that
 * stood still before. Only PID 1 may call it. */
int tree_kill_still(struct tree_view *v, uint64_t mark);
