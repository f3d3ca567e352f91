/* Which era a server is of, and the handshake. The newest is tried first; whatever a server of the
 * legacy era makes of that, it is asked in its own way then. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "mcpc/client_impl.h"
#include "json/jw.h"

#define PROBE_MS 10000u

static const char *const legacy[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

enum modern_code { WRONG_HEADER = -32020, NEEDS_CLIENT = -32021, WRONG_VERSION = -32022 };

static void initialize(struct mcpc *c);
static void discover(struct mcpc *c);

static bool is_legacy(const char *version)
{
	for (size_t i = 0; version && i < sizeof(legacy) / sizeof(legacy[0]); i++)
		if (strcmp(legacy[i], version) == 0)
			return true;
	return false;
}

static bool has(struct jv versions, const char *version)
{
	JV_FOREACH (versions, it) {
		const char *one = jv_text(it.value);

		if (one && strcmp(one, version) == 0)
			return true;
	}
	return false;
}

/* ---- the end of it ---- */

static void tell(struct mcpc *c, const struct err *err)
{
	void (*ready)(void *user, const struct err *err) = TAKE(c->ready);

	mcpc_calls_go_on(c, err);
	if (ready)
		ready(c->ready_user, err);
	else if (err && c->handlers && c->handlers->lost)
		c->handlers->lost(c->user, c, err); /* it had been ready once */
}

static void fail(struct mcpc *c, const struct err *err)
{
	c->state = MCPC_FAILED;
	tell(c, err);
}

static void succeed(struct mcpc *c)
{
	c->state = MCPC_READY;
	c->was_ready = true;
	if (c->is_modern)
		mcpc_listen(c);
	tell(c, NULL);
}

static int keep_hello(struct mcpc *c, struct jv result, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct jv_doc *doc = NULL;
	int r;

	jw_value(&w, result);
	r = jw_end(&w);
	if (r == 0)
		r = jv_parse(b.data, b.len, b.len, &doc, err);
	if (r < 0)
		return err_sys(err, r, "handshake");
	c->hello = jv_free(c->hello);
	c->hello = doc;
	return 0;
}

static void start(struct mcpc *c, const struct mcpc_request *req)
{
	struct err err = { 0 };

	if (mcpc_call_start(c, req, true, NULL, &err) == 0)
		return;
	c->state = MCPC_FAILED;
	c->failure = err;
	mcpc_calls_go_on(c, &err);
	loop_task_post(c->loop, &c->late);
}

/* ---- the legacy era ---- */

static int send_initialized(struct mcpc *c, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct mcpc_send m = { .method = "notifications/initialized" };
	struct jw w = jw_begin(&b);

	rpc_notification_begin(&w, m.method);
	jw_object_begin(&w);
	jw_object_end(&w);
	rpc_end(&w);
	if (jw_end(&w) < 0)
		return err_sys(err, ENOMEM, "handshake");
	return mcpc_send_text(c, &m, &b, err);
}

static int agree(struct mcpc *c, struct jv result, struct err *err)
{
	const char *version = jv_text(jv_get(result, "protocolVersion"));
	int r;

	if (!is_legacy(version) || (c->only_version && strcmp(version, c->only_version) != 0))
		return err_set(err, EPROTO, "the server speaks version '%.40s', which we do not",
			       version ? version : "?");
	r = keep_hello(c, result, err);
	if (r < 0)
		return r;
	(void)str_copy(c->protocol, sizeof(c->protocol), version);
	r = send_initialized(c, err);
	if (r == 0 && c->t->ops->agreed)
		c->t->ops->agreed(c->t, c->protocol);
	return r;
}

static void initialized(void *user, const struct mcpc_outcome *o)
{
	struct mcpc *c = user;
	struct err err = o->err;

	if (err.code == 0)
		(void)agree(c, o->result, &err);
	if (err.code)
		fail(c, &err);
	else
		succeed(c);
}

static void initialize(struct mcpc *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	c->state = MCPC_SHAKES;
	c->is_modern = false;
	c->session_no++;
	jw_object_begin(&w);
	jw_str_field(&w, "protocolVersion", c->only_version ? c->only_version : legacy[0]);
	jw_raw_field(&w, "capabilities", c->offers, strlen(c->offers));
	jw_key(&w, "clientInfo");
	jw_object_begin(&w);
	jw_str_field(&w, "name", c->name);
	jw_str_field(&w, "version", c->version);
	jw_object_end(&w);
	jw_object_end(&w);
	start(c, &(struct mcpc_request){ .method = "initialize",
					 .params = jw_end(&w) == 0 ? b.data : "",
					 .done = initialized,
					 .user = c });
}

int mcpc_renew(struct mcpc *c, struct mcpc_call *call, struct err *err)
{
	if (c->state == MCPC_SHAKES)
		return 0; /* on its way already */
	if (c->state == MCPC_READY && call->session_no != c->session_no)
		return mcpc_call_send(call, err); /* there is another by now */
	if (c->state != MCPC_READY || !c->may_renew)
		return err_set(err, EPIPE, "the server does not keep our session");
	c->may_renew = false;
	c->protocol[0] = '\0';
	initialize(c);
	return 0;
}

/* ---- the modern era ---- */

static void become_modern(struct mcpc *c, struct jv result)
{
	struct err err = { 0 };

	c->is_modern = true;
	(void)str_copy(c->protocol, sizeof(c->protocol), MCPC_MODERN);
	if (jv_kind(result) == JV_OBJECT && keep_hello(c, result, &err) < 0)
		fail(c, &err);
	else
		succeed(c);
}

/* Nobody is there, or nobody who would talk to us: another way of asking changes nothing. */
static bool is_hopeless(const struct err *err)
{
	static const int codes[] = { ECONNREFUSED, EHOSTUNREACH, EKEYREJECTED, EACCES,    EPERM,
				     EPIPE,        ENOMEM,       EXDEV,        ECONNRESET };

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (err->code == codes[i])
			return true;
	return false;
}

/* The version that we asked for is none of its; it says which ones are. */
static void try_another(struct mcpc *c, const struct mcpc_outcome *o)
{
	struct jv supported = jv_get(o->data, "supported");
	struct err err = o->err;

	if (!c->has_retried && has(supported, MCPC_MODERN)) {
		c->has_retried = true;
		discover(c);
	} else if (!c->only_version) {
		initialize(c);
	} else {
		fail(c, &err);
	}
}

static bool is_modern_answer(const struct mcpc *c, const struct mcpc_outcome *o)
{
	struct jv versions = jv_get(o->result, "supportedVersions");

	if (o->err.code == 0)
		return jv_kind(versions) == JV_ABSENT || has(versions, MCPC_MODERN);
	return o->rpc_code == WRONG_HEADER || o->rpc_code == NEEDS_CLIENT ||
	       (c->only_version && o->rpc_code == RPC_NO_METHOD);
}

static void discovered(void *user, const struct mcpc_outcome *o)
{
	struct mcpc *c = user;
	struct err err = o->err;

	if (o->rpc_code == WRONG_VERSION) {
		try_another(c, o);
	} else if (is_modern_answer(c, o)) {
		become_modern(c, o->result);
	} else if (c->only_version || is_hopeless(&err)) {
		if (err.code == 0)
			(void)err_set(&err, EPROTO, "the server does not speak version %s",
				      c->only_version);
		fail(c, &err);
	} else {
		initialize(c);
	}
}

static void discover(struct mcpc *c)
{
	c->state = MCPC_PROBES;
	start(c, &(struct mcpc_request){ .method = "server/discover",
					 .done = discovered,
					 .user = c,
					 .timeout_ms = PROBE_MS });
}

void mcpc_connect(struct mcpc *c, void (*ready)(void *user, const struct err *err), void *user)
{
	c->ready = ready;
	c->ready_user = user;
	if (is_legacy(c->only_version))
		initialize(c);
	else
		discover(c);
}
