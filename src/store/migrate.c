#include "store/migrate.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "crypto/hash.h"
#include "store/db.h"

__asm__(".section .rodata\n"
	"store_0001_initial:\n"
	".incbin \"store/migrations/0001_initial.sql\"\n"
	".byte 0\n"
	"store_0002_platform:\n"
	".incbin \"store/migrations/0002_platform.sql\"\n"
	".byte 0\n"
	"store_0003_usage:\n"
	".incbin \"store/migrations/0003_usage.sql\"\n"
	".byte 0\n"
	"store_0004_pid:\n"
	".incbin \"store/migrations/0004_pid.sql\"\n"
	".byte 0\n"
	"store_0005_key_parent:\n"
	".incbin \"store/migrations/0005_key_parent.sql\"\n"
	".byte 0\n"
	".previous\n");
extern const char store_0001_initial[], store_0002_platform[], store_0003_usage[], store_0004_pid[],
	store_0005_key_parent[];

static const struct migration migrations[] = {
	{ 1, "initial", store_0001_initial },       { 2, "platform", store_0002_platform },
	{ 3, "usage", store_0003_usage },           { 4, "pid", store_0004_pid },
	{ 5, "key_parent", store_0005_key_parent },
};

const struct migration *migrate_list(size_t *ret_n)
{
	*ret_n = sizeof(migrations) / sizeof(migrations[0]);
	return migrations;
}

static int hash_of(const struct migration *m, uint8_t hash[HASH_LEN], struct err *err)
{
	int r = hash_sha256(m->sql, strlen(m->sql), hash);

	return r < 0 ? err_sys(err, r, "hash of migration %u", m->number) : 0;
}

/* One recorded migration against the list; number is the next that is due. */
static int check_one(sqlite3_stmt *stmt, const struct migration *list, size_t n, unsigned number,
		     struct err *err)
{
	int64_t found = sqlite3_column_int64(stmt, 0);
	uint8_t hash[HASH_LEN];
	int r;

	if (found > (int64_t)n)
		return err_set(err, EPROTO,
			       "the database has migration %lld and this version knows %zu: it "
			       "belongs to a newer one",
			       (long long)found, n);
	if (found != number)
		return err_set(err, EPROTO, "the database lacks migration %u but has %lld", number,
			       (long long)found);
	r = hash_of(&list[number - 1], hash, err);
	if (r < 0)
		return r;
	if (sqlite3_column_bytes(stmt, 1) != HASH_LEN ||
	    memcmp(sqlite3_column_blob(stmt, 1), hash, HASH_LEN) != 0)
		return err_set(err, EPROTO,
			       "migration %u (%s) of the database is not the one of this version",
			       number, list[number - 1].name);
	return 0;
}

/* *ret_done: how many of the list are in the database. */
static int check(struct db *c, const struct migration *list, size_t n, size_t *ret_done,
		 struct err *err)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	size_t done = 0;
	int rc, r;

	rc = sqlite3_prepare_v2(c->db,
				"SELECT number, sha256 FROM schema_migrations ORDER BY number", -1,
				&stmt, NULL);
	if (rc != SQLITE_OK)
		return db_err(c, rc, err, "schema_migrations");
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		r = check_one(stmt, list, n, (unsigned)done + 1, err);
		if (r < 0)
			return r;
		done++;
	}
	if (rc != SQLITE_DONE)
		return db_err(c, rc, err, "schema_migrations");
	*ret_done = done;
	return 0;
}

static int record(struct db *c, const struct migration *m, struct err *err)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	uint8_t hash[HASH_LEN];
	int rc, r;

	r = hash_of(m, hash, err);
	if (r < 0)
		return r;
	rc = sqlite3_prepare_v2(c->db, "INSERT INTO schema_migrations VALUES (?1, ?2, ?3, ?4)", -1,
				&stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(stmt, 1, m->number);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(stmt, 2, m->name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(stmt, 3, hash, HASH_LEN, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(stmt, 4, clock_wall_ms());
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	return rc == SQLITE_DONE ? 0 : db_err(c, rc, err, "schema_migrations");
}

static int apply_in(struct db *c, const struct migration *m, struct err *err)
{
	int rc, r;

	rc = sqlite3_exec(c->db, m->sql, NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		return db_err(c, rc, err, m->name);
	r = record(c, m, err);
	if (r < 0)
		return r;
	rc = sqlite3_exec(c->db, "COMMIT", NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : db_err(c, rc, err, m->name);
}

/* With its record in one transaction: there is no database with half a migration. */
static int apply(struct db *c, const struct migration *m, struct err *err)
{
	int rc = sqlite3_exec(c->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), r;

	if (rc != SQLITE_OK)
		return db_err(c, rc, err, m->name);
	r = apply_in(c, m, err);
	if (r < 0)
		(void)db_exec(c, "ROLLBACK");
	return r;
}

/* A database of somebody else's has tables, but not ours. */
static int begin(struct db *c, struct err *err)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(c->db,
				    "SELECT count(*), sum(name = 'schema_migrations')"
				    " FROM sqlite_schema WHERE type = 'table'",
				    -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return db_err(c, rc, err, "schema");
	if (sqlite3_column_int(stmt, 0) > 0 && sqlite3_column_int(stmt, 1) == 0)
		return err_set(err, EPROTO, "the database has tables that are not ours");
	db_finalize(TAKE(stmt));
	rc = sqlite3_exec(c->db,
			  "CREATE TABLE IF NOT EXISTS schema_migrations ("
			  "number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 BLOB NOT NULL,"
			  " applied_ms INTEGER NOT NULL) STRICT",
			  NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : db_err(c, rc, err, "schema_migrations");
}

int migrate_run(struct db *c, const struct migration *list, size_t n, struct err *err)
{
	size_t done = 0;
	int r;

	r = begin(c, err);
	if (r == 0)
		r = check(c, list, n, &done, err);
	for (; r == 0 && done < n; done++)
		r = apply(c, &list[done], err);
	return r;
}
