/* The rows as tables of columns: what copies, binds and reads them is one piece of code each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;

enum column_type {
	COLUMN_TEXT,
	COLUMN_I64,
	COLUMN_U64,
	COLUMN_U32,
	COLUMN_I32,
	COLUMN_U8,
	COLUMN_BOOL,
	COLUMN_HASH, /* STORE_HASH_LEN bytes in the row itself */
	COLUMN_BLOB, /* a pointer, and its length right behind it */
};

struct column {
	const char *name;
	const char *when_empty; /* of a text: what an empty one is written as; NULL: as it is */
	enum column_type type;
	size_t offset; /* in the row's struct */
	size_t max;    /* bytes of a text or blob */
};

struct row_table {
	const char *name; /* in the database */
	const struct column *columns;
	size_t n_columns;
	size_t row_size;
	size_t n_key;        /* so many columns at the front are its key; 0: nothing is put */
	bool is_append_only; /* a put of a key that is there is refused */
};

struct meta_row {
	const char *name, *text;
};

extern const struct row_table rows_keys, rows_sandboxes, rows_executions, rows_meta, rows_objects,
	rows_journal, rows_usage, rows_usage_sums;

/* A copy with all its texts, which are never NULL in it. *ret_row is untouched on failure:
 * -EINVAL (no key), -E2BIG, -ENOMEM. */
int rows_copy(const struct row_table *t, const void *row, struct arena *a, const void **ret_row);
