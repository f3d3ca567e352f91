/* One connection to a SQLite database: settings, errors as errno, rows in and out of statements.
 * With one thread at a time. Only this folder includes sqlite3.h. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "store/job.h"

struct arena;
struct err;
struct row_table;

enum db_mode {
	CONN_WRITER, /* of a file that is there, in WAL mode */
	CONN_READER,
	CONN_MEMORY, /* path is not looked at */
};

struct db {
	sqlite3 *db;                        /* owned */
	sqlite3_stmt *puts[JOB_KIND_COUNT]; /* owned; prepared when first wanted */
	int wal_pages;                      /* in the log after the last commit */
	int wal_moved; /* and how many there were when it was last moved to the database */
	bool is_full_sync;
};

int db_open(const char *path, enum db_mode mode, struct db **ret, struct err *err);
struct db *db_close(struct db *c); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct db *, db_close)

int db_errno(const struct db *c, int rc); /* a result code of SQLite as 0 or -errno */
/* The same with SQLite's own words behind the text. */
int db_err(const struct db *c, int rc, struct err *err, const char *what);
/* Is it the fault of the one statement? Otherwise the whole transaction is to be given up. */
bool db_is_own_fault(int r);
int db_exec(struct db *c, const char *sql);
/* How commits from now on are brought to disk: FULL waits for it. Outside a transaction. */
int db_set_sync(struct db *c, bool full);

/* How long to wait for others' locks; 0: the usual time. */
void db_set_patience(struct db *c, int ms);

void db_finalize(sqlite3_stmt *stmt);
CLEANUP_FUNC(sqlite3_stmt *, db_finalize)
int db_prepare(struct db *c, const char *sql, sqlite3_stmt **ret);
/* Binds a row's columns to ?1, ?2, ...; the row must outlive the step. */
int db_bind_row(struct db *c, sqlite3_stmt *stmt, const struct row_table *t, const void *row);
/* The current row of a statement whose columns are the table's, in order. Texts and blobs are
 * copied into the arena; without one they are borrowed until the next step. -ENOMEM. */
int db_read_row(sqlite3_stmt *stmt, const struct row_table *t, struct arena *a, void *ret_row);
