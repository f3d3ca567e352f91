/* Queries and loads as statements. */
#pragma once

struct db;
struct store_job;

/* A query: its rows are in the job afterwards. 0 or -errno; -ENOENT for one row that is not there.
 */
int read_query(struct db *c, struct store_job *job);
/* A load: calls back for each row. */
int read_load(struct db *c, const struct store_job *job);
