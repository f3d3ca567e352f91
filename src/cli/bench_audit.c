/* What writing down costs: the same execution with a daemon that keeps an audit log and with one
 * that does not. Usage and events are kept by both. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/bench.h"
#include "cli/bench_daemon.h"

#define RATIO_MAX 1.05
#define BODY "{\"type\":\"command\",\"content\":\"true\"}"

struct side {
	struct own_daemon d;
	struct buf answer;
	char target[BENCH_TARGET];
};

static int once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct side *s = self;
	uint64_t began = clock_now_ns();
	int r = fetch_want(&s->d.conn, 200, "POST", s->target, BODY, &s->answer, err);

	*ret_ns = clock_now_ns() - began;
	return r;
}

static int begin(struct side *s, const char *audit, struct err *err)
{
	struct bench_sandbox box;
	int r;

	(void)setenv(BENCH_SETTING, audit, 1);
	r = bench_daemon_start(&s->d, err);
	(void)unsetenv(BENCH_SETTING);
	if (r == 0)
		r = bench_sandbox_create(&s->d, "{\"template\":\"bash\"}", &box, err);
	if (r == 0)
		bench_target(s->target, box.id, "/execute");
	return r;
}

static void end(struct side *s)
{
	own_daemon_stop(&s->d);
	buf_done(&s->answer);
}

int bench_audit(struct bench *b, struct err *err)
{
	static const char what[] = "execute with the audit log";
	struct side on = { 0 }, off = { 0 };
	const struct probe subject = { what, once, &on };
	const struct probe reference = { "without it", once, &off };
	struct bench_row *row = bench_add(b, "audit", what);
	int r = begin(&on, "true", err);

	if (r == 0)
		r = begin(&off, "false", err);
	if (r == 0)
		r = bench_pair(b, row, &subject, &reference, b->n, err);
	if (r == 0)
		bench_judge(row, RATIO_MAX, false);
	end(&off); /* first: its minder holds the other's lifeline, too */
	end(&on);
	return r;
}
