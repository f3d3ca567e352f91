/* What the process itself uses, for /metrics: read from /proc when somebody looks. */
#pragma once

struct metrics;

/* Brings the process's gauges up to date; what cannot be read stays as it was. */
void process_sample(struct metrics *m);
