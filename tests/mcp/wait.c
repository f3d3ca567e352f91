/* Tools that take their time. */
#include <string.h>

#include "base/arena.h"
#include "fixtures.h"
#include "loop/loop.h"
#include "tools/toolbox.h"
#include "json/jw.h"

struct waiting { /* arena: t->work */
	struct loop_timer *timer;
	void (*next)(struct tool_call *t);
};

static struct waiting *stop(struct tool_call *t)
{
	struct waiting *w = t->work;

	w->timer = loop_timer_free(w->timer);
	t->cancel = NULL;
	return w;
}

static void fired(void *user)
{
	struct tool_call *t = user;

	stop(t)->next(t);
}

static void cancelled(struct tool_call *t)
{
	(void)stop(t);
	tool_cancel_soon(t);
}

void fixture_wait(struct tool_call *t, unsigned ms, void (*next)(struct tool_call *t))
{
	struct waiting *w = arena_alloc(t->arena, sizeof(*w));

	if (!w || loop_timer_create(tools_deps(t->all)->loop, fired, t, &w->timer) < 0)
		return tool_fail(t, "out of memory");
	w->next = next;
	t->work = w;
	t->cancel = cancelled;
	loop_timer_start(w->timer, ms, 0);
}

void fixture_say(struct tool_call *t, const char *text)
{
	tool_text(t, text, strlen(text));
	tool_done(t);
}

void fixture_say_value(struct tool_call *t, const char *text, struct jv v)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w;

	(void)buf_puts(&b, text);
	w = jw_begin(&b);
	jw_value(&w, v);
	(void)jw_end(&w);
	fixture_say(t, buf_str(&b));
}
