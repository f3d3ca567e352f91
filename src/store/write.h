/* Writing jobs as statements: what they do, not when. */
#pragma once

struct db;
struct store_job;

/* One write, inside the caller's transaction: at least 0, or -errno. */
int write_apply(struct db *c, const struct store_job *job);
