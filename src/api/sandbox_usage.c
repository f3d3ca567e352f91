/* GET of a sandbox's usage: what its box takes just now. */
#include <errno.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/err.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

static void looked(void *user, const struct box_usage *u, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(c, err);
	jw_object_begin(&w);
	jw_double_field(&w, "cpuSeconds", (double)u->cpu_us / 1e6);
	jw_uint_field(&w, "memory", u->memory_bytes);
	jw_uint_field(&w, "memoryPeak", u->memory_peak_bytes);
	jw_uint_field(&w, "processes", u->pids);
	jw_uint_field(&w, "outOfMemoryKills", u->oom_kills);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_sandbox_usage(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_usage(sb, looked, c);
}
