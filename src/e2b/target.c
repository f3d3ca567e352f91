#include "e2b/target.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "api/box_auth.h"
#include "api/call.h"
#include "api/open_calls.h"
#include "api/problem.h"
#include "api/proxy.h"
#include "auth/box_token.h"
#include "auth/buckets.h"
#include "auth/rate_limit.h"
#include "auth/users.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "e2b/e2b.h"
#include "e2b/signature.h"
#include "net/http.h"
#include "sandbox/ports.h"
#include "sandbox/sandbox.h"
#include "telemetry/metrics.h"
#include "json/jw.h"

#define HEADER_ID "E2b-Sandbox-Id"
#define HEADER_PORT "E2b-Sandbox-Port"
#define HEADER_TOKEN "X-Access-Token"

#define SEARCHES 50u                  /* a second */
#define SEARCHES_BUCKET "~signatures" /* no owner or key has this name */

/* ---- what the headers or the host name ---- */

/* An id that cannot be one is that of a sandbox that is not there. */
static bool find_header(struct api_call *c)
{
	const char *id = http_header(c->http, HEADER_ID);
	const char *text = http_header(c->http, HEADER_PORT);
	uint32_t port = E2B_PORT_ENVD;

	if (!id)
		return false;
	if (text && parse_u32(text, 1, UINT16_MAX, &port) < 0)
		port = 0;
	if (str_copy(c->claim.box_id, sizeof(c->claim.box_id), id) < 0)
		c->claim.box_id[0] = '\0';
	c->claim.port = (uint16_t)port;
	return true;
}

/* Ports that were exposed, and those of sandboxes that were not made by this protocol, are Holt's
 * own: that door says who may (proxy_door.c). A sandbox that is not there is nobody's: clients want
 * to learn that theirs has ended, and by its id alone anybody could (find_header). */
static bool is_holts(struct api_call *c)
{
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, c->claim.box_id, NULL);
	struct sandbox_info info;

	if (!sb)
		return false;
	sandbox_info(sb, &info);
	return info.note[0] == '\0' || port_find(sb, c->claim.port);
}

static bool find_host(struct api_call *c)
{
	if (proxy_host_names(c, &c->claim.port, c->claim.box_id) &&
	    (c->claim.port == E2B_PORT_ENVD || c->claim.port == E2B_PORT_CODE || !is_holts(c)))
		return true;
	c->claim.box_id[0] = '\0';
	return false;
}

/* ---- files of the oldest SDKs, and addresses that carry a signature: no header says whose ---- */

static bool is_loose_path(const struct api_call *c)
{
	const char *path = http_path(c->http);

	return strcmp(path, "/files") == 0 || strcmp(path, "/health") == 0;
}

static bool find_token(struct api_call *c)
{
	const char *token = http_header(c->http, HEADER_TOKEN);

	c->claim.port = E2B_PORT_ENVD;
	return token && box_token_names(token, c->claim.box_id);
}

struct presented { /* a signature of a request */
	struct api_call *call;
	const char *signature;
	struct e2b_signed what;
};

/* 1: there is one, 0: none, -errno. */
static int take_signature(struct api_call *c, struct presented *ret)
{
	const char *expires = NULL, *path = "", *user = "";
	uint64_t number = 0;
	int r;

	*ret = (struct presented){ .call = c };
	r = http_query(c->http, "signature", &ret->signature);
	if (r <= 0 || strcmp(http_path(c->http), "/files") != 0)
		return r < 0 ? r : 0;
	r = http_query(c->http, "path", &path);
	if (r >= 0)
		r = http_query(c->http, "username", &user);
	if (r >= 0)
		r = http_query(c->http, "signature_expiration", &expires);
	if (r >= 0 && expires)
		r = parse_u64(expires, 1, INT64_MAX / 1000, &number);
	ret->what = (struct e2b_signed){ .path = path,
					 .is_write = strcmp(http_method(c->http), "POST") == 0,
					 .user = user,
					 .expires = (int64_t)number };
	return r < 0 ? r : 1;
}

static bool is_signed_by(const struct presented *p, const struct sandbox *sb)
{
	const struct api_deps *deps = &p->call->api->deps;
	char id[1][ID_LEN + 1];

	if (str_copy(id[0], sizeof(id[0]), sandbox_id(sb)) < 0)
		return false;
	metrics_inc(deps->metrics, METRIC_SIGNATURE_CHECKS, LABELS());
	return e2b_signature_find(deps->secret, &p->what, p->signature, id, 1) == 0;
}

/* Until there are enough. */
static bool add_signer(void *user, const struct sandbox *sb)
{
	struct recent *r = user;
	struct sandbox_info info;

	if (r->n == RECENT_MAX)
		return true;
	sandbox_info(sb, &info);
	if (info.note[0] != '\0') /* made by this protocol */
		recent_note(r, info.id);
	return false;
}

/* Who signs is not said. Once a peer has failed too often, these searches have a rate, for all such
 * peers together: what it takes is the same whoever asks, and who names the sandbox waits for none.
 */
static bool may_search(struct api_call *c)
{
	struct rate rate = { SEARCHES, 1000 };
	struct bucket_state state;

	return rate_limit_wait_ms(c->api->failures, http_peer(c->http), clock_now_ms()) == 0 ||
	       buckets_take(c->api->buckets, SEARCHES_BUCKET, RATE_READ, rate, clock_now_ns(),
			    &state);
}

/* Among so many sandboxes and no more, however many there are. */
static void search_signer(struct api_call *c, const struct presented *p)
{
	struct api *api = c->api;
	ssize_t i;

	if (!api->has_signers)
		(void)sandboxes_search(api->deps.sandboxes, add_signer, &api->signers);
	api->has_signers = true;
	metrics_add(api->deps.metrics, METRIC_SIGNATURE_CHECKS, LABELS(), api->signers.n);
	i = e2b_signature_find(api->deps.secret, &p->what, p->signature,
			       (const char(*)[ID_LEN + 1]) api->signers.ids, api->signers.n);
	if (i >= 0)
		(void)str_copy(c->claim.box_id, sizeof(c->claim.box_id), api->signers.ids[i]);
}

static bool find_signature(struct api_call *c)
{
	struct presented p;

	if (take_signature(c, &p) <= 0)
		return false;
	c->claim.port = E2B_PORT_ENVD;
	c->claim.box_id[0] = '\0';
	if (may_search(c))
		search_signer(c, &p);
	return true;
}

/* ---- claims ---- */

static bool is_control_path(const struct api_call *c)
{
	static const char *const roots[] = { "sandboxes",     "v2",       "v3",      "templates",
					     "snapshots",     "volumes",  "secrets", "teams",
					     "volumecontent", "api-keys", "nodes",   "events" };
	const char *path = http_path(c->http);
	struct str rest = str_of(path + (path[0] == '/')), first;

	if (!str_split(&rest, '/', &first))
		return false;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (first.len == strlen(roots[i]) && memcmp(first.data, roots[i], first.len) == 0)
			return true;
	return false;
}

/* Some SDKs for Python name the sandbox in the headers also where they speak of it to the control
 * plane. */
static bool is_about_box(const struct api_call *c)
{
	return c->claim.port == E2B_PORT_ENVD && is_control_path(c) && !is_loose_path(c);
}

/* The first that is asked: whether it is for a sandbox at all, and then which, and what of it. */
bool e2b_claims_envd(struct api_call *c)
{
	c->claim.is_for_box = find_header(c) || find_host(c) ||
			      (is_loose_path(c) && (find_token(c) || find_signature(c)));
	if (c->claim.is_for_box && is_about_box(c))
		c->claim.is_for_box = false;
	return c->claim.is_for_box && c->claim.port == E2B_PORT_ENVD;
}

bool e2b_claims_code(struct api_call *c)
{
	return c->claim.is_for_box && c->claim.port == E2B_PORT_CODE;
}

bool e2b_claims_port(struct api_call *c)
{
	return c->claim.is_for_box;
}

bool e2b_claims_control(struct api_call *c)
{
	return is_control_path(c);
}

/* ---- who may ---- */

/* What no token opens is not told apart from what is not there; "paused" is. */
void e2b_reply_gone(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "sandboxId", c->claim.box_id);
	jw_str_field(&w, "message", "The sandbox was not found");
	jw_int_field(&w, "code", 502);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return http_reply_error(c->http, 502, "bad_gateway", "out of memory");
	http_reply(c->http, 502, "application/json", b.data, b.len);
}

/* By its id alone; NULL also when it does not run. */
static struct sandbox *find_running(struct api_call *c, const char *id)
{
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, id, NULL);
	struct sandbox_info info;

	if (!sb || strcmp(sandbox_id(sb), id) != 0)
		return NULL;
	sandbox_info(sb, &info);
	return info.state == SANDBOX_RUNNING ? sb : NULL;
}

bool e2b_claimed_runs(struct api_call *c)
{
	if (find_running(c, c->claim.box_id))
		return true;
	e2b_reply_gone(c);
	return false;
}

struct sandbox *e2b_sandbox(struct api_call *c)
{
	struct sandbox *sb = find_running(c, c->box_id);

	if (!sb)
		e2b_reply_gone(c);
	else
		sandbox_touch(sb);
	return sb;
}

/* A signature is looked at first, then its time: as their server does, and in its words. */
static int check_signature(struct api_call *c, struct sandbox *sb, struct err *err)
{
	struct presented p;
	int r = take_signature(c, &p);

	if (r == 0)
		return err_set(err, EACCES, "want the sandbox's token in " HEADER_TOKEN);
	if (r < 0 || !is_signed_by(&p, sb))
		return err_set(err, EACCES, "invalid signature");
	if (p.what.expires != 0 && p.what.expires * 1000 < clock_wall_ms())
		return err_set(err, EACCES, "signature is already expired");
	return 0;
}

static int check_token(struct api_call *c, struct sandbox *sb, struct err *err)
{
	const char *token = http_header(c->http, HEADER_TOKEN);
	const char *traffic = http_header(c->http, E2B_HEADER_TRAFFIC);

	/* To its SDK the interpreter is one of the sandbox's ports: but for code it sends this
	 * token alone. */
	if (!token && traffic && c->claim.port == E2B_PORT_CODE) {
		if (box_token_is(c->api->deps.secret, BOX_TOKEN_TRAFFIC, c->claim.box_id, traffic))
			return 0;
		return err_set(err, EACCES,
			       "the token in " E2B_HEADER_TRAFFIC " is not this sandbox's");
	}
	if (!token)
		return check_signature(c, sb, err);
	if (!box_token_is(c->api->deps.secret, BOX_TOKEN_ENVD, c->claim.box_id, token))
		return err_set(err, EACCES, "the token in " HEADER_TOKEN " is not this sandbox's");
	return 0;
}

struct waiting { /* in the request's arena: it waits, also for a client that has left */
	struct api_call *call;
	void (*again)(struct api_call *c);
};

static void woken(void *user, struct sandbox *sb, const struct err *err)
{
	struct waiting *w = user;

	(void)sb;
	if (!err)
		w->again(w->call);
	else if (err->code == EBUSY || err->code == EPIPE)
		e2b_reply_gone(w->call); /* it has ended meanwhile, or its box */
	else
		problem_reply(w->call, err);
}

/* Only for who has shown the token: strangers wake nobody. */
static void wake(struct api_call *c, struct sandbox *sb, void (*again)(struct api_call *c))
{
	struct waiting *w = arena_alloc(http_arena(c->http), sizeof(*w));
	struct sandbox_info info;

	if (!w)
		return problem_reply(c, &(struct err){ ENOMEM, "wake the sandbox" });
	sandbox_info(sb, &info);
	if (!open_calls_begin(c, info.owner)) /* who waits takes a connection, too */
		return;
	*w = (struct waiting){ c, again };
	c->has_woken = true;
	sandbox_wake(sb, woken, w);
}

int e2b_authenticate(struct api_call *c, void (*again)(struct api_call *c), struct principal *ret,
		     struct err *err)
{
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, c->claim.box_id, NULL);
	struct presented p;
	int r;

	/* An address that no sandbox has signed says nothing of any of them. */
	if (c->claim.box_id[0] == '\0' && take_signature(c, &p) > 0)
		return err_set(err, EACCES, "invalid signature");
	if (!sb || strcmp(sandbox_id(sb), c->claim.box_id) != 0) {
		e2b_reply_gone(c);
		return -EINPROGRESS;
	}
	r = check_token(c, sb, err);
	if (r < 0)
		return r;
	/* Good as long as the sandbox is there and its owner is let in, whichever key has made it.
	 */
	box_auth_fill(sb, box_token_scopes(BOX_TOKEN_ENVD), ret);
	if (!users_is_good(c->api->deps.users, ret->owner)) /* before anything is woken */
		return err_set(err, EACCES, "the user is disabled");
	if (!find_running(c, sandbox_id(sb))) {
		if (sandbox_wakes(sb) && !c->has_woken)
			wake(c, sb, again);
		else
			e2b_reply_gone(c);
		return -EINPROGRESS;
	}
	recent_note(&c->api->signers, ret->sandbox_id);
	return 0;
}
