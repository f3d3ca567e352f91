/* A file of small programs. A case begins with `=== name`; lines that begin with `--- ` say more,
 * and what follows is the code, up to the next case:
 *
 *   --- node            it is JavaScript (else Python)
 *   --- arg TEXT        one more argument
 *   --- env NAME=VALUE  one more variable
 *   --- cwd PATH
 *   --- stdin TEXT      standard input, with \n and \0 (an empty TEXT is an empty input)
 *   --- distinct        run several times, every output must differ
 *   --- cold            must be served by a fresh interpreter
 *   --- loose           helpers of its own may or may not outlive it by a moment
 *   --- first           what follows, up to `--- then`, runs before in the same box
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct err;

#define CASE_LIST_MAX 16

struct test_case {
	const char *name; /* all strings are borrowed from cases.text */
	const char *code, *first, *cwd;
	const char *args[CASE_LIST_MAX], *env[CASE_LIST_MAX];
	size_t argc, envc;
	struct buf in; /* owned */
	bool has_stdin, node, distinct, served_cold, loose;
};

struct cases {
	char *text;              /* owned, cut into strings */
	struct test_case *items; /* owned */
	size_t len, cap;
};

int cases_load(struct cases *c, const char *path, struct err *err);
void cases_done(struct cases *c);
