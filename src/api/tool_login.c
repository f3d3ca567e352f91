/* /tools/servers/{server}/login: an admin logs in at others' server, for all who call its tools.
 * The browser is the admin's; what it comes back with is handed in here, and tokens never come out.
 */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/tools.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "mcpc/auth.h"
#include "mcpc/servers_login.h"
#include "net/http.h"
#include "json/jw.h"

struct login { /* in the request's arena */
	struct api_call *call;
	struct mcpc_auth *auth; /* borrowed; NULL: over */
};

/* NULL after an answer. */
static struct login *begin(struct api_call *c)
{
	struct login *l = arena_alloc(http_arena(c->http), sizeof(*l));
	const char *server = call_param(c, "server");
	struct err err = { 0 };
	int r = -ENOENT;

	if (!l)
		(void)err_sys(&err, ENOMEM, "login");
	else if (!c->api->deps.servers)
		(void)err_set(&err, ENOENT, "there is no server '%.64s'", server);
	else
		r = mcpc_servers_auth(c->api->deps.servers, server, &l->auth, &err);
	if (l && r == 0) {
		l->call = c;
		return l;
	}
	if (r == -ENOTSUP)
		problem_status(c, 409, "%s", err.text);
	else
		problem_reply(c, &err);
	return NULL;
}

static void gone(void *user, struct http_request *r)
{
	struct login *l = user;

	(void)r;
	if (l->auth)
		mcpc_auth_leave(l->auth, l);
	l->auth = NULL;
}

/* What another server has done wrong is no failure of ours. */
static void refuse(struct api_call *c, const struct err *err)
{
	if (err->code == EINVAL)
		problem_status(c, 400, "%s", err->text);
	else if (err->code == ENOTSUP || err->code == ECANCELED)
		problem_status(c, 409, "%s", err->text);
	else
		problem_status(c, err->code == ETIMEDOUT ? 504 : 502, "%s", err->text);
}

static void opened(void *user, const char *url, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct login *l = user;

	l->auth = NULL;
	if (err)
		return refuse(l->call, err);
	jw_object_begin(&w);
	jw_str_field(&w, "url", url);
	jw_object_end(&w);
	call_reply(l->call, 200, &w);
}

void api_tool_login(struct api_call *c)
{
	const struct body_login *body = c->body;
	struct login *l = begin(c);
	struct err err = { 0 };

	if (!l)
		return;
	if (mcpc_auth_login(l->auth, body->redirect, opened, l, &err) < 0)
		return refuse(c, &err);
	http_on_gone(c->http, gone, l);
}

static void finished(void *user, const struct err *err)
{
	struct login *l = user;

	l->auth = NULL;
	if (err)
		return refuse(l->call, err);
	mcpc_servers_retry(l->call->api->deps.servers, call_param(l->call, "server"));
	call_reply_empty(l->call);
}

void api_tool_login_finish(struct api_call *c)
{
	const struct body_login_finish *body = c->body;
	struct login *l = begin(c);
	struct err err = { 0 };

	if (!l)
		return;
	if (mcpc_auth_redirected(l->auth, body->query, finished, l, &err) < 0)
		return refuse(c, &err);
	http_on_gone(c->http, gone, l);
}

void api_tool_logout(struct api_call *c)
{
	struct login *l = begin(c);

	if (!l)
		return;
	mcpc_auth_logout(l->auth);
	call_reply_empty(c);
}
