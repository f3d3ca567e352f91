/* Group commit: many writes in one transaction, and each with its own result. Knows no threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;
struct list;
struct place;

struct batch {
	const struct place *place; /* borrowed; NULL: the connection cannot be made anew */
	struct db *conn;           /* owned by whoever has the batch; another one after a failure */
	bool is_durable;           /* every commit, not only those that ask for it */
	uint64_t size_max;         /* of the database; 0: no limit */
	size_t written;            /* bytes of jobs since its size was looked at */
};

/* Does the n writing jobs of the list; each has its result and batch afterwards. */
void batch_run(struct batch *b, struct list *jobs, size_t n);
/* Moves the log into the database when it has grown; a failure shows at the next write. */
void batch_checkpoint(struct batch *b);
/* Makes room when the database has grown above its limit; a failure shows at the next write. */
void batch_trim(struct batch *b);
/* What was committed is on disk afterwards. */
int batch_flush(struct batch *b);
