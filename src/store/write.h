/* Writing jobs as statements: what they do, not when. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct db;
struct store_job;

/* One write, inside the caller's transaction: at least 0, or -errno. */
int write_apply(struct db *c, const struct store_job *job);
/* Whether what is kept takes no more than this. */
bool write_is_below(struct db *c, uint64_t size_max);
/* Deletes what ended first until it is so, or nothing is left that has ended: 0 or -errno. One call
 * does a bounded part of it. */
int write_trim(struct db *c, uint64_t size_max);
