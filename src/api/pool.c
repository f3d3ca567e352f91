#include "api/pool.h"

#include <errno.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "sandbox/template.h"
#include "json/jw.h"

struct asking {
	struct api_call *call;
	void (*got)(struct api_call *c, const struct pool_row *rows, size_t n);
	const struct template_row *templates;
	size_t n_templates, at; /* at: the one being asked about */
	struct pool_row *rows;  /* arena */
	size_t n;
};

static void ask_next(struct asking *a);

static void told(void *user, const struct pool_state *s, const struct err *err)
{
	struct asking *a = user;

	if (!err)
		a->rows[a->n++] = (struct pool_row){ a->templates[a->at].name, *s };
	a->at++;
	ask_next(a);
}

static void ask_next(struct asking *a)
{
	if (a->at == a->n_templates)
		return a->got(a->call, a->rows, a->n);
	sandboxes_pool_state(a->call->api->deps.sandboxes, a->templates[a->at].name, told, a);
}

void pool_ask(struct api_call *c,
	      void (*got)(struct api_call *c, const struct pool_row *rows, size_t n))
{
	struct arena *arena = http_arena(c->http);
	struct asking *a = arena_alloc(arena, sizeof(*a));

	if (a) {
		a->call = c;
		a->got = got;
		a->templates = template_rows(&a->n_templates);
		a->rows = arena_array(arena, a->n_templates, sizeof(*a->rows));
	}
	if (!a || !a->rows)
		return problem_reply(c, &(struct err){ ENOMEM, "pools" });
	ask_next(a);
}

static void put_missed(struct jw *w, const struct pool_state *s)
{
	static const char *const names[MISS_COUNT] = { [MISS_EMPTY] = "empty",
						       [MISS_LIMITS] = "limits",
						       [MISS_FAILED] = "failed",
						       [MISS_OWN_FILES] = "ownFiles" };

	jw_key(w, "missed");
	jw_object_begin(w);
	for (int i = 0; i < MISS_COUNT; i++)
		jw_uint_field(w, names[i], s->missed[i]);
	jw_object_end(w);
}

void pool_put_builds(struct jw *w, const struct pool_state *s)
{
	put_missed(w, s);
	jw_uint_field(w, "givenUp", s->given_up);
	jw_uint_field(w, "stuck", s->stuck);
	if (s->why[0] != '\0')
		jw_str_field(w, "problem", s->why);
	else
		jw_null_field(w, "problem");
}

static void reply(struct api_call *c, const struct pool_row *rows, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++) {
		const struct pool_state *s = &rows[i].state;

		jw_object_begin(&w);
		jw_str_field(&w, "template", rows[i].template);
		jw_uint_field(&w, "ready", s->ready);
		jw_uint_field(&w, "building", s->building);
		jw_uint_field(&w, "claimed", s->claimed);
		jw_uint_field(&w, "target", s->target);
		jw_uint_field(&w, "hits", s->hits);
		jw_uint_field(&w, "misses", s->misses);
		pool_put_builds(&w, s);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_pool(struct api_call *c)
{
	pool_ask(c, reply);
}
