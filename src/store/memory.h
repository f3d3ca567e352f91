/* A store without a disk and without threads, for tests: the same statements on a database in
 * memory. A write happens in the call; its callback waits for store_dispatch() all the same. */
#pragma once

#include <stdbool.h>

#include "store/store.h"

struct store_faults {             /* zeroed: none. May be changed at any time */
	unsigned fail_in;         /* this many writes from now one fails: 1 is the next, 0 none */
	int fail_with;            /* positive errno of that failure */
	bool fail_on;             /* go on failing */
	unsigned refuse_in;       /* this many calls from now one is refused with -EAGAIN */
	bool is_held;             /* store_dispatch() calls nobody back while this is set */
	unsigned writes, queries; /* so far, refused ones not counted */
};

/* faults is borrowed and outlives the store; NULL: none. */
int store_open_memory(struct store_faults *faults, struct store *ret, struct err *err);
