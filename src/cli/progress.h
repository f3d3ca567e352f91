/* One line about what takes its time: shown on standard error after a second, when that is a
 * terminal, and taken away at the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;     /* "copying"; borrowed */
	uint64_t done, total; /* bytes; total 0: not known; both 0: only the time is shown */
	uint64_t began_ms, shown_ms;
};

void progress_begin(struct progress *p, const char *what);
void progress_tick(struct progress *p); /* as often as one likes */
void progress_end(struct progress *p);
