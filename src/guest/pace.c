#include "guest/pace.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

#define STILL_MIN_MS 500 /* less may be a page that had to be read */

void pace_open(struct pace *p)
{
	*p = (struct pace){ .fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC) };
}

void pace_close(struct pace *p)
{
	p->fd = fd_close(p->fd);
}

void pace_rest(struct pace *p)
{
	p->at_ms = 0;
}

static uint64_t take_number(const char **at)
{
	uint64_t n = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		n = n * 10 + (uint64_t)(**at - '0');
	return n;
}

/* "time on a processor, time waiting for one, turns", in nanoseconds. */
static bool read_busy_ms(const struct pace *p, uint64_t *ret)
{
	const char *at;
	char text[96];
	ssize_t n = p->fd < 0 ? -1 : pread(p->fd, text, sizeof(text) - 1, 0);
	uint64_t ns;

	if (n <= 0)
		return false;
	text[n] = '\0';
	at = text;
	ns = take_number(&at);
	if (*at++ != ' ')
		return false;
	*ret = (ns + take_number(&at)) / 1000000;
	return true;
}

/* What of the time since the last look was neither a wait nor work. */
static uint64_t look(struct pace *p, uint64_t now_ms)
{
	uint64_t busy_ms, known_ms, passed_ms = now_ms - p->at_ms, still_ms = 0;

	if (!read_busy_ms(p, &busy_ms))
		return 0;
	known_ms = p->waited_ms + (busy_ms - p->busy_ms);
	if (p->at_ms > 0 && passed_ms > known_ms + STILL_MIN_MS)
		still_ms = passed_ms - known_ms;
	p->at_ms = now_ms;
	p->waited_ms = 0;
	p->busy_ms = busy_ms;
	return still_ms;
}

uint64_t pace_frozen_ms(struct pace *p, const struct pace_wait *w)
{
	uint64_t took_ms = w->to_ms - w->from_ms;
	uint64_t frozen_ms = w->is_interrupted ? took_ms : 0;

	/* What came of the wait is in its time too, and may have stood still as well. */
	p->waited_ms += w->is_interrupted || took_ms < w->asked_ms ? took_ms : w->asked_ms;
	if (p->at_ms == 0 || w->to_ms - p->at_ms >= PACE_TICK_MS)
		frozen_ms += look(p, w->to_ms);
	return frozen_ms;
}
