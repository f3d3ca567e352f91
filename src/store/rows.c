#include "store/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "store/store.h"

#define AT(row, field) offsetof(struct row, field)
#define NAME(row, field)                                                  \
	{                                                                 \
#field, NULL, COLUMN_TEXT, AT(row, field), STORE_NAME_MAX \
	}
#define TEXT(row, field)                                                  \
	{                                                                 \
#field, NULL, COLUMN_TEXT, AT(row, field), STORE_TEXT_MAX \
	}
#define NUMBER(row, field, type)                               \
	{                                                      \
#field, NULL, COLUMN_##type, AT(row, field), 0 \
	}
#define TABLE(table, list, row, n_key, is_append_only)                                    \
	{                                                                                 \
		table, list, sizeof(list) / sizeof((list)[0]), sizeof(struct row), n_key, \
			is_append_only                                                    \
	}

static const struct column key_columns[] = {
	NAME(key_row, id),
	{ "hash", NULL, COLUMN_HASH, AT(key_row, hash), STORE_HASH_LEN },
	NAME(key_row, name),
	NAME(key_row, owner),
	NUMBER(key_row, role, U8),
	NUMBER(key_row, created_ms, I64),
	NUMBER(key_row, expires_ms, I64),
	NUMBER(key_row, revoked_ms, I64),
	NUMBER(key_row, last_used_ms, I64),
	NUMBER(key_row, scopes, U32),
	NAME(key_row, sandbox_id),
	NAME(key_row, parent_id),
};
const struct row_table rows_keys = TABLE("keys", key_columns, key_row, 1, false);

static const struct column sandbox_columns[] = {
	NAME(sandbox_row, id),
	NAME(sandbox_row, owner),
	NAME(sandbox_row, name),
	NAME(sandbox_row, box_id),
	NAME(sandbox_row, template),
	NAME(sandbox_row, key_id),
	NUMBER(sandbox_row, state, U8),
	NUMBER(sandbox_row, level, U8),
	NUMBER(sandbox_row, is_live, BOOL),
	NUMBER(sandbox_row, flags, U32),
	NUMBER(sandbox_row, created_ms, I64),
	NUMBER(sandbox_row, updated_ms, I64),
	NUMBER(sandbox_row, ended_ms, I64),
	NUMBER(sandbox_row, expires_ms, I64),
	NUMBER(sandbox_row, remaining_ms, I64),
	NUMBER(sandbox_row, timeout_ms, I64),
	NUMBER(sandbox_row, idle_ms, I64),
	TEXT(sandbox_row, reason),
	{ "metadata", "{}", COLUMN_TEXT, AT(sandbox_row, metadata), STORE_TEXT_MAX },
	TEXT(sandbox_row, spec),
	TEXT(sandbox_row, env),
};
const struct row_table rows_sandboxes = TABLE("sandboxes", sandbox_columns, sandbox_row, 1, false);

_Static_assert(AT(execution_row, output_len) == AT(execution_row, output) + sizeof(void *),
	       "COLUMN_BLOB");

/* The output stands last: what lies before it is read without it. */
static const struct column execution_columns[] = {
	NAME(execution_row, id),
	NAME(execution_row, sandbox_id),
	NAME(execution_row, owner),
	NUMBER(execution_row, kind, U8),
	NUMBER(execution_row, state, U8),
	NUMBER(execution_row, is_live, BOOL),
	NUMBER(execution_row, flags, U32),
	NUMBER(execution_row, guest_id, U32),
	NUMBER(execution_row, pid, U32),
	NUMBER(execution_row, exit_code, I32),
	NUMBER(execution_row, signal, I32),
	NUMBER(execution_row, started_ms, I64),
	NUMBER(execution_row, ended_ms, I64),
	NUMBER(execution_row, wall_us, U64),
	NUMBER(execution_row, cpu_us, U64),
	NUMBER(execution_row, peak_bytes, U64),
	NUMBER(execution_row, output_bytes, U64),
	NUMBER(execution_row, output_start, U64),
	TEXT(execution_row, reason),
	TEXT(execution_row, content),
	{ "output", NULL, COLUMN_BLOB, AT(execution_row, output), STORE_OUTPUT_MAX },
};
const struct row_table rows_executions =
	TABLE("executions", execution_columns, execution_row, 1, false);

static const struct column meta_columns[] = {
	NAME(meta_row, name),
	TEXT(meta_row, text),
};
const struct row_table rows_meta = TABLE("meta", meta_columns, meta_row, 1, false);

static const struct column object_columns[] = {
	NAME(object_row, kind),
	NAME(object_row, id),
	NAME(object_row, owner),
	NAME(object_row, name),
	NUMBER(object_row, state, U32),
	NUMBER(object_row, created_ms, I64),
	NUMBER(object_row, updated_ms, I64),
	TEXT(object_row, text),
};
const struct row_table rows_objects = TABLE("objects", object_columns, object_row, 2, false);

static const struct column journal_columns[] = {
	NAME(journal_row, stream),
	NUMBER(journal_row, seq, U64),
	NUMBER(journal_row, at_ms, I64),
	NAME(journal_row, owner),
	NAME(journal_row, kind),
	TEXT(journal_row, text),
	{ "hash", NULL, COLUMN_HASH, AT(journal_row, hash), STORE_HASH_LEN },
};
const struct row_table rows_journal = TABLE("journal", journal_columns, journal_row, 2, true);

static const struct column usage_columns[] = {
	NAME(usage_row, sandbox_id),
	NUMBER(usage_row, day, I32),
	NAME(usage_row, owner),
	NAME(usage_row, key_id),
	NUMBER(usage_row, cpu_us, U64),
	NUMBER(usage_row, memory_byte_ms, U64),
	NUMBER(usage_row, disk_byte_ms, U64),
	NUMBER(usage_row, net_bytes, U64),
	NUMBER(usage_row, executions, U64),
	NUMBER(usage_row, wall_ms, U64),
	NUMBER(usage_row, until_ms, I64),
	NUMBER(usage_row, box_cpu_us, U64),
	NUMBER(usage_row, exec_cpu_us, U64),
};
const struct row_table rows_usage = TABLE("usage", usage_columns, usage_row, 3, false);

/* What is grouped by is in ?1, as bits of enum store_group. Byte-milliseconds of a few hundred
 * sandboxes are more than 64 bits hold: their sums are in MiB, and lose nothing but the last one's
 * fraction. */
#define GROUPED(bit, column, other) "iif(?1 & " #bit ", " #column ", " other ")"
#define SUM(field, type)                                                            \
	{                                                                           \
		"sum(" #field ")", NULL, COLUMN_##type, AT(usage_sum_row, field), 0 \
	}
#define SUM_MIB(from, field)                                                                 \
	{                                                                                    \
		"sum(" #from " >> 20) + (sum(" #from " & 1048575) >> 20)", NULL, COLUMN_U64, \
			AT(usage_sum_row, field), 0                                          \
	}
static const struct column usage_sum_columns[] = {
	{ GROUPED(1, day, "0"), NULL, COLUMN_I32, AT(usage_sum_row, day), 0 },
	{ GROUPED(2, owner, "''"), NULL, COLUMN_TEXT, AT(usage_sum_row, owner), 0 },
	{ GROUPED(4, key_id, "''"), NULL, COLUMN_TEXT, AT(usage_sum_row, key_id), 0 },
	{ GROUPED(8, sandbox_id, "''"), NULL, COLUMN_TEXT, AT(usage_sum_row, sandbox_id), 0 },
	SUM(cpu_us, U64),
	SUM_MIB(memory_byte_ms, memory_mib_ms),
	SUM_MIB(disk_byte_ms, disk_mib_ms),
	SUM(net_bytes, U64),
	SUM(executions, U64),
	SUM(wall_ms, U64),
};
_Static_assert(STORE_BY_DAY == 1 && STORE_BY_OWNER == 2 && STORE_BY_KEY == 4 &&
		       STORE_BY_SANDBOX == 8,
	       "GROUPED");
const struct row_table rows_usage_sums = TABLE("usage", usage_sum_columns, usage_sum_row, 0, false);

static int copy_text(const struct column *col, char *at, struct arena *a)
{
	const char *text;
	size_t n;

	memcpy(&text, at, sizeof(text));
	if (!text || (!*text && col->when_empty))
		text = col->when_empty ? col->when_empty : "";
	n = strnlen(text, col->max + 1);
	if (n > col->max)
		return -E2BIG;
	text = arena_strndup(a, text, n);
	if (!text)
		return -ENOMEM;
	memcpy(at, &text, sizeof(text));
	return 0;
}

static int copy_blob(const struct column *col, char *at, struct arena *a)
{
	const void *data;
	void *copy;
	size_t n;

	memcpy(&data, at, sizeof(data));
	memcpy(&n, at + sizeof(data), sizeof(n));
	if (n > col->max)
		return -E2BIG;
	if (n == 0)
		return 0;
	if (!data)
		return -EINVAL;
	copy = arena_alloc(a, n);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, n);
	memcpy(at, &copy, sizeof(copy));
	return 0;
}

static bool has_key(const struct row_table *t, const char *row)
{
	bool has = t->n_key > 0;

	for (size_t i = 0; i < t->n_key; i++) {
		const char *key;

		if (t->columns[i].type != COLUMN_TEXT)
			continue;
		memcpy(&key, row + t->columns[i].offset, sizeof(key));
		has = has && key && *key;
	}
	return has;
}

int rows_copy(const struct row_table *t, const void *row, struct arena *a, const void **ret_row)
{
	char *copy;
	int r = 0;

	if (!has_key(t, row))
		return -EINVAL;
	copy = arena_alloc(a, t->row_size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, row, t->row_size);
	for (size_t i = 0; i < t->n_columns && r == 0; i++) {
		const struct column *col = &t->columns[i];

		if (col->type == COLUMN_TEXT)
			r = copy_text(col, copy + col->offset, a);
		else if (col->type == COLUMN_BLOB)
			r = copy_blob(col, copy + col->offset, a);
	}
	if (r == 0)
		*ret_row = copy;
	return r;
}
