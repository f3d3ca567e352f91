/* Rows of text under aligned heads. Cells come from outside: control characters are shown. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 12
#define TABLE_CELLS_MAX (1u << 20)

struct table {
	const char *const *heads; /* NULL-terminated; borrowed */
	char **cells;             /* owned */
	size_t len, room;
};

void table_init(struct table *t, const char *const *heads);
void table_done(struct table *t);
/* Cells from left to right, row by row; copied. NULL and "" become "-". -ENOMEM, -E2BIG. */
int table_add(struct table *t, const char *text);
/* Widths are counted in characters; the last column is not filled up. */
void table_print(const struct table *t, FILE *to);
