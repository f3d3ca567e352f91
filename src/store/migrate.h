/* The schema and how a database comes to it: numbered texts, each applied once, in one transaction,
 * and recorded with its hash. */
#pragma once

#include <stddef.h>

struct db;
struct err;

struct migration {
	unsigned number; /* from 1 without a gap */
	const char *name;
	const char *sql;
};

const struct migration *migrate_list(size_t *ret_n); /* all that this version has */
/* Checks what was applied and applies the rest. -EPROTO: what was applied is not what we have, or
 * is more than we have. */
int migrate_run(struct db *c, const struct migration *list, size_t n, struct err *err);
