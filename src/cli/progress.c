#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/outcome.h"

#define PATIENCE_MS 1000
#define STEP_MS 200

void progress_begin(struct progress *p, const char *what)
{
	*p = (struct progress){ .what = what, .began_ms = clock_now_ms() };
}

void progress_tick(struct progress *p)
{
	uint64_t now = clock_now_ms();
	char done[32], total[32];

	if (now - p->began_ms < PATIENCE_MS || now - p->shown_ms < STEP_MS ||
	    !isatty(STDERR_FILENO))
		return;
	p->shown_ms = now;
	outcome_size(p->done, done);
	outcome_size(p->total, total);
	(void)fprintf(stderr, "\r%s", p->what);
	if (p->done > 0)
		(void)fprintf(stderr, ": %s%s%s", done, p->total ? " of " : "",
			      p->total ? total : "");
	(void)fprintf(stderr, " (%llu s)\033[K", (unsigned long long)((now - p->began_ms) / 1000));
	(void)fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown_ms)
		(void)fputs("\r\033[K", stderr);
	p->shown_ms = 0;
}
