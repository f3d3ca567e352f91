#include "store/start.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "store/db.h"
#include "store/migrate.h"
#include "store/place.h"

#define BOOT_ID_SIZE 64

static void read_boot(char boot[BOOT_ID_SIZE])
{
	int n = fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, BOOT_ID_SIZE);

	boot[n > 0 ? strcspn(boot, "\n") : 0] = '\0';
}

/* Was the database opened for the last time since the machine was started? */
static bool is_same_boot(struct db *c, const char *boot)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;

	if (db_prepare(c, "SELECT 1 FROM meta WHERE name = 'boot' AND text = ?1", &stmt) < 0)
		return false; /* no tables yet */
	(void)sqlite3_bind_text(stmt, 1, boot, -1, SQLITE_STATIC);
	return *boot && sqlite3_step(stmt) == SQLITE_ROW;
}

static int check_health(struct db *c, struct err *err)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	const char *text;
	int rc = sqlite3_prepare_v2(c->db, "PRAGMA quick_check(1)", -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return db_err(c, rc, err, "check");
	text = (const char *)sqlite3_column_text(stmt, 0);
	if (text && strcmp(text, "ok") == 0)
		return 0;
	return err_set(err, EUCLEAN, "it is damaged: %.120s", text ? text : "no memory");
}

static int note_boot(struct db *c, const char *boot, struct err *err)
{
	_cleanup_(db_finalize_p) sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(c->db,
				    "INSERT INTO meta VALUES ('boot', ?1)"
				    " ON CONFLICT (name) DO UPDATE SET text = excluded.text",
				    -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(stmt, 1, boot, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	return rc == SQLITE_DONE ? 0 : db_err(c, rc, err, "meta");
}

/* The end of a process cannot damage a database; that of the machine can, when the disk did not
 * keep its promises. So all of it is read only when it was open while the machine went down. */
static int prepare(struct db *c, bool was_clean, struct err *err)
{
	char boot[BOOT_ID_SIZE];
	const struct migration *list;
	bool is_same;
	size_t n;
	int r = 0;

	read_boot(boot);
	is_same = is_same_boot(c, boot);
	if (!was_clean && !is_same)
		r = check_health(c, err);
	if (r < 0)
		return r;
	list = migrate_list(&n);
	r = migrate_run(c, list, n, err);
	return r < 0 || is_same ? r : note_boot(c, boot, err);
}

int start_database(const struct store_options *options, struct place *ret_place, struct db **ret,
		   struct err *err)
{
	_cleanup_(db_close_p) struct db *c = NULL;
	struct err why = { 0 };
	int r;

	r = place_open(options, ret_place, err);
	if (r < 0)
		return r;
	r = db_open(ret_place->path, CONN_WRITER, &c, &why);
	if (r == 0)
		r = db_set_sync(c, true); /* a schema is worth an fsync */
	if (r == 0)
		r = prepare(c, ret_place->was_clean, &why);
	if (r < 0)
		return err_set(err, -r, "database '%s': %s", ret_place->path,
			       why.code ? why.text : strerror(-r));
	*ret = TAKE(c);
	return 0;
}
