#include "store/db.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "store/rows.h"

#define BUSY_MS 2000 /* how long a backup or a person's shell may hold the database up */
/* A row: its output, its texts, its numbers. SQLite's own ceiling is 1 GB. */
#define LENGTH_MAX ((int)(STORE_OUTPUT_MAX + 8 * STORE_TEXT_MAX))

/* The database is not trusted further than need be: what its schema says may call no function with
 * effects, and no part of it is mapped into memory. Caches are small, because the daemon's resident
 * memory is counted; hot pages are in the kernel's cache anyway. */
static const char settings[] = "PRAGMA trusted_schema = OFF;"
			       "PRAGMA foreign_keys = ON;"
			       "PRAGMA mmap_size = 0;"
			       "PRAGMA cache_size = -1024;"
			       "PRAGMA temp_store = MEMORY;"
			       "PRAGMA secure_delete = FAST;";

/* auto_vacuum counts only before the first table is made. The log is cut back to the limit when it
 * starts anew. */
static const char writer_settings[] = "PRAGMA auto_vacuum = INCREMENTAL;"
				      "PRAGMA journal_size_limit = 8388608;"
				      "PRAGMA synchronous = NORMAL;";

/* The errno of the last failure of the log or else of the database. SQLite tells that of opening by
 * itself, but not that of a commit. */
static int last_errno(const struct db *c)
{
	sqlite3_file *log = NULL;
	int code = 0;

	(void)sqlite3_file_control(c->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
	if (log && log->pMethods)
		(void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &code);
	if (code == 0)
		(void)sqlite3_file_control(c->db, "main", SQLITE_FCNTL_LAST_ERRNO, &code);
	return code ? code : sqlite3_system_errno(c->db);
}

/* What the operating system said, as far as it tells more than "input/output error". */
static int system_errno(const struct db *c)
{
	switch (last_errno(c)) {
	case ENOSPC:
	case EFBIG: /* a limit of the process on its files */
		return ENOSPC;
	case EDQUOT:
		return EDQUOT;
	case EROFS:
		return EROFS;
	case EACCES:
	case EPERM:
		return EACCES;
	case ENOMEM:
		return ENOMEM;
	default:
		return EIO;
	}
}

static int constraint_errno(int rc)
{
	switch (rc) {
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return EEXIST;
	case SQLITE_CONSTRAINT_FOREIGNKEY:
		return ENOENT;
	default:
		return EINVAL;
	}
}

static int positive_errno(const struct db *c, int rc)
{
	static const struct {
		int rc, code;
	} table[] = {
		{ SQLITE_OK, 0 },           { SQLITE_ROW, 0 },
		{ SQLITE_DONE, 0 },         { SQLITE_FULL, ENOSPC },
		{ SQLITE_READONLY, EROFS }, { SQLITE_BUSY, EBUSY },
		{ SQLITE_LOCKED, EBUSY },   { SQLITE_NOMEM, ENOMEM },
		{ SQLITE_TOOBIG, E2BIG },   { SQLITE_CORRUPT, EUCLEAN },
		{ SQLITE_NOTADB, EUCLEAN }, { SQLITE_PERM, EACCES },
	};

	if (rc == SQLITE_IOERR_NOMEM)
		return ENOMEM;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].rc == (rc & 0xff))
			return table[i].code;
	if ((rc & 0xff) == SQLITE_CONSTRAINT)
		return constraint_errno(rc);
	if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN)
		return system_errno(c);
	return EIO;
}

int db_errno(const struct db *c, int rc)
{
	return -positive_errno(c, rc);
}

int db_err(const struct db *c, int rc, struct err *err, const char *what)
{
	return err_set(err, positive_errno(c, rc), "%s: %s", what, sqlite3_errmsg(c->db));
}

bool db_is_own_fault(int r)
{
	return r == -EEXIST || r == -ENOENT || r == -EINVAL || r == -E2BIG;
}

int db_exec(struct db *c, const char *sql)
{
	return db_errno(c, sqlite3_exec(c->db, sql, NULL, NULL, NULL));
}

int db_set_sync(struct db *c, bool full)
{
	int r;

	if (c->is_full_sync == full)
		return 0;
	r = db_exec(c, full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
	if (r == 0)
		c->is_full_sync = full;
	return r;
}

void db_set_patience(struct db *c, int ms)
{
	(void)sqlite3_busy_timeout(c->db, ms ? ms : BUSY_MS);
}

static int note_wal(void *user, sqlite3 *db, const char *name, int pages)
{
	struct db *c = user;

	(void)db;
	(void)name;
	c->wal_pages = pages;
	return SQLITE_OK;
}

/* SQLite answers with the mode that it is in now, and calls another one than asked for no error. */
static int enter_wal(struct db *c, struct err *err)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(c->db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return db_err(c, rc, err, "journal");
	if (strcmp((const char *)sqlite3_column_text(stmt, 0), "wal") != 0)
		return err_set(err, ENOTSUP, "the file system cannot hold a write-ahead log");
	return 0;
}

static int configure(struct db *c, enum db_mode mode, struct err *err)
{
	int rc;

	sqlite3_extended_result_codes(c->db, 1);
	db_set_patience(c, 0);
	sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
	sqlite3_limit(c->db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	rc = sqlite3_exec(c->db, settings, NULL, NULL, NULL);
	if (rc == SQLITE_OK && mode == CONN_WRITER)
		rc = sqlite3_exec(c->db, writer_settings, NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		return db_err(c, rc, err, "settings");
	if (mode != CONN_WRITER)
		return 0;
	/* Takes the place of automatic checkpoints, which would make some write wait for them. */
	sqlite3_wal_hook(c->db, note_wal, c);
	return enter_wal(c, err);
}

int db_open(const char *path, enum db_mode mode, struct db **ret, struct err *err)
{
	static const int flags[] = {
		[CONN_WRITER] = SQLITE_OPEN_READWRITE,
		[CONN_READER] = SQLITE_OPEN_READONLY,
		[CONN_MEMORY] = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY,
	};
	_cleanup_(db_close_p) struct db *c = calloc(1, sizeof(*c));
	int rc, r;

	if (!c)
		return err_sys(err, ENOMEM, "database");
	rc = sqlite3_open_v2(mode == CONN_MEMORY ? ":memory:" : path, &c->db,
			     flags[mode] | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
				     SQLITE_OPEN_EXRESCODE,
			     NULL);
	if (!c->db)
		return err_sys(err, ENOMEM, "database");
	if (rc != SQLITE_OK)
		return db_err(c, rc, err, "open");
	r = configure(c, mode, err);
	if (r < 0)
		return r;
	*ret = TAKE(c);
	return 0;
}

struct db *db_close(struct db *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < JOB_KIND_COUNT; i++)
		db_finalize(c->puts[i]);
	(void)sqlite3_close(c->db);
	free(c);
	return NULL;
}

void db_finalize(sqlite3_stmt *stmt)
{
	(void)sqlite3_finalize(stmt);
}

int db_prepare(struct db *c, const char *sql, sqlite3_stmt **ret)
{
	return db_errno(c, sqlite3_prepare_v2(c->db, sql, -1, ret, NULL));
}

static int64_t number_of(const struct column *col, const char *at)
{
	switch (col->type) {
	case COLUMN_I64:
	case COLUMN_U64: /* the same 64 bits: the largest counts come back as they went */
		return *(const int64_t *)(const void *)at;
	case COLUMN_U32:
		return *(const uint32_t *)(const void *)at;
	case COLUMN_I32:
		return *(const int32_t *)(const void *)at;
	case COLUMN_BOOL:
		return *(const bool *)at;
	default:
		return *(const uint8_t *)at;
	}
}

static void set_number(const struct column *col, char *at, int64_t v)
{
	switch (col->type) {
	case COLUMN_I64:
	case COLUMN_U64:
		*(int64_t *)(void *)at = v;
		break;
	case COLUMN_U32:
		*(uint32_t *)(void *)at = (uint32_t)v;
		break;
	case COLUMN_I32:
		*(int32_t *)(void *)at = (int32_t)v;
		break;
	case COLUMN_BOOL:
		*(bool *)at = v != 0;
		break;
	default:
		*(uint8_t *)at = (uint8_t)v;
	}
}

static int bind_column(sqlite3_stmt *stmt, int i, const struct column *col, const char *at)
{
	const void *data;
	size_t n;

	switch (col->type) {
	case COLUMN_TEXT:
		memcpy(&data, at, sizeof(data));
		return sqlite3_bind_text(stmt, i, data, -1, SQLITE_STATIC);
	case COLUMN_HASH:
		return sqlite3_bind_blob(stmt, i, at, (int)col->max, SQLITE_STATIC);
	case COLUMN_BLOB:
		memcpy(&data, at, sizeof(data));
		memcpy(&n, at + sizeof(data), sizeof(n));
		return sqlite3_bind_blob64(stmt, i, data, n, SQLITE_STATIC);
	default:
		return sqlite3_bind_int64(stmt, i, number_of(col, at));
	}
}

int db_bind_row(struct db *c, sqlite3_stmt *stmt, const struct row_table *t, const void *row)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; i < t->n_columns && rc == SQLITE_OK; i++)
		rc = bind_column(stmt, (int)i + 1, &t->columns[i],
				 (const char *)row + t->columns[i].offset);
	return db_errno(c, rc);
}

/* SQLite gives NULL for an empty blob, and for a text when it finds no memory. */
static int read_bytes(sqlite3_stmt *stmt, int i, const struct column *col, struct arena *a,
		      char *at)
{
	bool is_text = col->type == COLUMN_TEXT;
	const void *data =
		is_text ? (const void *)sqlite3_column_text(stmt, i) : sqlite3_column_blob(stmt, i);
	size_t n = (size_t)sqlite3_column_bytes(stmt, i);
	void *copy;

	if (!data && is_text)
		return sqlite3_column_type(stmt, i) == SQLITE_NULL ? -EUCLEAN : -ENOMEM;
	if (data && a) {
		copy = arena_alloc(a, n + 1);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, data, n);
		data = copy;
	}
	memcpy(at, &data, sizeof(data));
	if (!is_text)
		memcpy(at + sizeof(data), &n, sizeof(n));
	return 0;
}

static int read_hash(sqlite3_stmt *stmt, int i, const struct column *col, char *at)
{
	const void *data = sqlite3_column_blob(stmt, i);

	if (!data || (size_t)sqlite3_column_bytes(stmt, i) != col->max)
		return -EUCLEAN;
	memcpy(at, data, col->max);
	return 0;
}

int db_read_row(sqlite3_stmt *stmt, const struct row_table *t, struct arena *a, void *ret_row)
{
	int r = 0;

	for (size_t i = 0; i < t->n_columns && r == 0; i++) {
		const struct column *col = &t->columns[i];
		char *at = (char *)ret_row + col->offset;

		if (col->type == COLUMN_TEXT || col->type == COLUMN_BLOB)
			r = read_bytes(stmt, (int)i, col, a, at);
		else if (col->type == COLUMN_HASH)
			r = read_hash(stmt, (int)i, col, at);
		else
			set_number(col, at, sqlite3_column_int64(stmt, (int)i));
	}
	return r;
}
