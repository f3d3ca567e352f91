/* A store for a test: in a directory of its own or in memory, with rows to put and calls to wait
 * for. */
#pragma once

#include "store/memory.h"
#include "store/store.h"

struct store_rig {
	char dir[64]; /* "" in memory */
	struct store st;
	struct store_faults faults; /* of the one in memory */
};

/* Results of calls, in the order in which they came. Give it as user with store_rig_done(). */
#define STORE_RIG_RESULTS 8192
struct store_results {
	int r[STORE_RIG_RESULTS];
	size_t n;
};
void store_rig_done(void *user, int r);

void store_rig_dir(struct store_rig *rig); /* only makes the directory */
void store_rig_open(struct store_rig *rig);
void store_rig_open_memory(struct store_rig *rig);
void store_rig_end(struct store_rig *rig); /* closes, and removes the directory */

/* Another connection to the same database, as a person's shell would have. The test closes it. */
struct sqlite3 *store_rig_beside(const struct store_rig *rig);

/* Dispatches until *count is at least want; fails the test after 20 seconds. */
void store_rig_wait(const struct store *st, const size_t *count, size_t want);
/* One write, waited for: its result. A refusal fails the test. */
int store_rig_put_key(const struct store *st, const struct key_row *row);
int store_rig_put_sandbox(const struct store *st, const struct sandbox_row *row);
int store_rig_put_execution(const struct store *st, const struct execution_row *row);
int store_rig_probe(const struct store *st);
/* Is this sandbox there? */
bool store_rig_has_sandbox(const struct store *st, const char *id);

/* Rows in which every field has a value of its own. */
struct key_row store_rig_key(const char *id);
struct sandbox_row store_rig_sandbox(const char *id);
struct execution_row store_rig_execution(const char *id, const char *sandbox_id);
char *store_rig_text(size_t n); /* owned: n times x */

/* Fail the test when the rows differ; output is not looked at. */
void store_rig_same_sandbox(const struct sandbox_row *a, const struct sandbox_row *b);
void store_rig_same_execution(const struct execution_row *a, const struct execution_row *b);

/* What queries called back with. */
struct store_seen {
	size_t calls, rows;
	int r; /* of the last call */
	bool more;
	struct sandbox_row want; /* what the last row must be, if it has an id */
	char ids[1024];          /* of all rows: "b a " */
};
void store_rig_note(struct store_seen *s, const char *id);
void store_rig_see_sandboxes(void *user, int r, const struct sandbox_row *rows, size_t n,
			     bool more);
/* Of lists: there must be no output. */
void store_rig_see_executions(void *user, int r, const struct execution_row *rows, size_t n,
			      bool more);

/* A test's state is a rig; STORE_RIG_ON_BOTH makes two tests of one. */
int store_rig_setup_disk(void **state);
int store_rig_setup_memory(void **state);
int store_rig_teardown(void **state);
const struct store *store_rig_of(void **state);
#define STORE_RIG_ON(where, test)                                                              \
	{                                                                                      \
#test " (" #where ")", test, store_rig_setup_##where, store_rig_teardown, NULL \
	}
#define STORE_RIG_ON_BOTH(test) STORE_RIG_ON(disk, test), STORE_RIG_ON(memory, test)
