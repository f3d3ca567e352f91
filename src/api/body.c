#include "api/body.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/err.h"
#include "net/http.h"
#include "json/jv_decode.h"

struct taking { /* arena */
	struct api_call *call;
	struct body_plan plan;
};

static void refuse(struct api_call *c, const struct body_plan *p, const struct err *err,
		   const char *field)
{
	if (p->refuse)
		p->refuse(c, err, field);
	else if (field[0])
		problem_field(c, field, "%s", err->text);
	else
		problem_reply(c, err);
}

static int decode(struct api_call *c, const struct body_plan *p, struct jv v,
		  struct jv_problem *problem, struct err *err)
{
	const struct route_body *t = &p->table;
	int r = (p->takes_unknown ? jv_decode_known : jv_decode)(
		v, t->fields, t->count, http_arena(c->http), c->body, problem);

	if (r == -ENOMEM)
		return err_set(err, ENOMEM, "the body");
	if (r < 0)
		return err_set(err, EINVAL, "%s%s%s", problem->field, problem->field[0] ? ": " : "",
			       problem->text);
	return 0;
}

static int read_body(struct api_call *c, const struct body_plan *p, struct str data,
		     struct jv_doc **ret, struct jv_problem *problem, struct err *err)
{
	int r;

	if (data.len == 0 && p->table.is_optional)
		return 0;
	if (data.len == 0)
		return err_set(err, EINVAL, "a JSON object is wanted as the body");
	r = jv_parse(data.data, data.len, p->max, ret, err);
	if (r < 0 || p->table.size == 0)
		return r;
	return decode(c, p, jv_root(*ret), problem, err);
}

/* The call may be over, and its memory with it, when got() or refuse() return. */
static void finish(struct api_call *c, const struct body_plan *p, struct str data)
{
	struct jv_problem problem = { 0 };
	struct jv_doc *doc = NULL; /* owned */
	struct err err = { 0 };

	if (p->unwrap && !p->unwrap(c, &data))
		return;
	if (read_body(c, p, data, &doc, &problem, &err) < 0)
		refuse(c, p, &err, problem.field);
	else
		p->got(c, p->user, &doc);
	(void)jv_free(doc);
}

static void got_bytes(void *user, struct http_request *r, const char *data, size_t n)
{
	struct taking *t = user;

	(void)r;
	finish(t->call, &t->plan, (struct str){ data, n });
}

static bool make_room(struct api_call *c, const struct route_body *t)
{
	c->body = arena_alloc(http_arena(c->http), t->size);
	if (c->body && t->defaults)
		memcpy(c->body, t->defaults, t->size);
	return c->body;
}

void body_take(struct api_call *c, const struct body_plan *plan)
{
	struct taking *t = arena_alloc(http_arena(c->http), sizeof(*t));

	if (!t || (plan->table.size > 0 && !make_room(c, &plan->table)))
		return refuse(c, plan, &(struct err){ ENOMEM, "the body" }, "");
	if (http_body_length(c->http) == 0)
		return finish(c, plan, (struct str){ "", 0 });
	t->call = c;
	t->plan = *plan;
	http_body_collect(c->http, plan->max, got_bytes, t);
}
