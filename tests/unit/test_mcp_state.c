#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "crypto/secret.h"
#include "mcp/server_impl.h"

struct rig {
	struct mcp_server server;
	struct secret *secret;
	struct jv_doc *doc;
	struct mcp_request q;
};

static void begin(struct rig *r, const char *key, const char *owner, const char *params)
{
	memset(r, 0, sizeof(*r));
	r->secret = secret_create(key, strlen(key));
	r->server.deps.secret = r->secret;
	assert_int_equal(jv_parse(params, strlen(params), strlen(params), &r->doc, NULL), 0);
	r->q.server = &r->server;
	r->q.arena = arena_create(1 << 20);
	r->q.method = "tools/call";
	r->q.params = jv_root(r->doc);
	(void)strncpy(r->q.who.owner, owner, sizeof(r->q.who.owner) - 1);
}

static void end(struct rig *r)
{
	(void)secret_free(r->secret);
	(void)jv_free(r->doc);
	(void)arena_free(r->q.arena);
}

#define CALL "{\"name\":\"x\",\"arguments\":{\"a\":1}}"

static void state_comes_back_as_it_was(void **state)
{
	_cleanup_(buf_done) struct buf sealed = { 0 };
	const char *back;
	struct rig r;

	(void)state;
	begin(&r, "key", "me", CALL);
	assert_int_equal(mcp_state_seal(&r.q, "a b \"c\"", &sealed), 0);
	assert_int_equal(mcp_state_open(&r.q, buf_str(&sealed), &back), 0);
	assert_string_equal(back, "a b \"c\"");
	end(&r);
}

static void state_of_something_else_is_refused(void **state)
{
	static const struct {
		const char *key, *owner, *params;
	} others[] = {
		{ "other", "me", CALL },
		{ "key", "you", CALL },
		{ "key", "me", "{\"name\":\"y\",\"arguments\":{\"a\":1}}" },
		{ "key", "me", "{\"name\":\"x\",\"arguments\":{\"a\":2}}" },
	};
	_cleanup_(buf_done) struct buf sealed = { 0 };
	const char *back;
	struct rig r;

	(void)state;
	begin(&r, "key", "me", CALL);
	assert_int_equal(mcp_state_seal(&r.q, "s", &sealed), 0);
	end(&r);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		begin(&r, others[i].key, others[i].owner, others[i].params);
		assert_int_equal(mcp_state_open(&r.q, buf_str(&sealed), &back), -EINVAL);
		end(&r);
	}
}

static void every_changed_byte_is_noticed(void **state)
{
	_cleanup_(buf_done) struct buf sealed = { 0 };
	const char *back;
	struct rig r;

	(void)state;
	begin(&r, "key", "me", CALL);
	assert_int_equal(mcp_state_seal(&r.q, "s", &sealed), 0);
	for (size_t i = 0; i < sealed.len; i++) {
		char was = sealed.data[i];

		sealed.data[i] = was == 'A' ? 'B' : 'A';
		assert_true(mcp_state_open(&r.q, sealed.data, &back) < 0);
		sealed.data[i] = was;
	}
	for (size_t n = 0; n < sealed.len; n++) {
		char was = sealed.data[n];

		sealed.data[n] = '\0';
		assert_true(mcp_state_open(&r.q, sealed.data, &back) < 0);
		sealed.data[n] = was;
	}
	assert_int_equal(mcp_state_open(&r.q, sealed.data, &back), 0);
	end(&r);
}

static void header_values_are_decoded(void **state)
{
	struct arena *a = arena_create(1 << 16);

	(void)state;
	assert_string_equal(mcp_head_decode("plain", a), "plain");
	assert_string_equal(mcp_head_decode("  trimmed\t", a), "trimmed");
	assert_string_equal(mcp_head_decode("=?base64?w6Q=?=", a), "\xc3\xa4");
	assert_string_equal(mcp_head_decode("=?base64?"
					    "?=",
					    a),
			    "");
	assert_null(mcp_head_decode("=?base64?!?=", a));
	assert_null(mcp_head_decode("=?base64?AA==?=", a)); /* a NUL */
	assert_string_equal(mcp_head_decode("=?base64?w6Q=", a), "=?base64?w6Q=");
	(void)arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_comes_back_as_it_was),
		cmocka_unit_test(state_of_something_else_is_refused),
		cmocka_unit_test(every_changed_byte_is_noticed),
		cmocka_unit_test(header_values_are_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
