#include "mcpc/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "http_rig.h"
#include "httpc/guard.h"
#include "loop/loop.h"
#include "outbound/courier.h"

#define NOT_FOUND "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
#define JSON(status, body)                                                                 \
	"HTTP/1.1 " status " X\r\nContent-Type: application/json\r\nConnection: close\r\n" \
	"\r\n" body
#define TOKEN JSON("200", "{\"access_token\":\"tok\",\"token_type\":\"Bearer\"}")
/* A server without metadata is its own authorization server: its addresses need not be known. */
#define NO_METADATA                                       \
	{ .answer = NOT_FOUND }, { .answer = NOT_FOUND }, \
	{                                                 \
		.answer = NOT_FOUND                       \
	}

struct rig {
	struct loop *loop;
	struct courier *courier;
	struct mcpc_auth *auth;
	struct loop_timer *limit;
	struct http_rig http;
	char url[96];
	char *kept;
	unsigned told, waited_for, kept_times, released;
	struct err err;
	char opened[512];
	uint64_t number;
	uint64_t login_ms;
	const char *file;                /* borrowed; NULL: nobody vouches for us */
	const struct guard_nets *closed; /* borrowed; NULL: nothing */
};

static void too_long(void *user)
{
	(void)user;
	fail_msg("nothing came");
}

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ 0 };
	assert_int_equal(loop_create(&g.loop, NULL), 0);
	assert_int_equal(courier_create(g.loop, &g.courier, NULL), 0);
	assert_int_equal(loop_timer_create(g.loop, too_long, &g, &g.limit), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->auth = mcpc_auth_free(g->auth);
	g->courier = courier_free(g->courier);
	g->limit = loop_timer_free(g->limit);
	g->loop = loop_free(g->loop);
	free(g->kept);
	if (g->url[0])
		http_rig_done(&g->http);
	return 0;
}

static void keep(void *user, const char *json)
{
	struct rig *g = user;

	free(g->kept);
	g->kept = json ? str_dup(str_of(json)) : NULL;
	g->kept_times++;
}

static void release(void *user)
{
	((struct rig *)user)->released++;
}

static void make(struct rig *g, enum oauth_grant grant, const struct http_step *steps, size_t n)
{
	struct mcpc_auth_options o = {
		.loop = g->loop,
		.courier = g->courier,
		.keep = keep,
		.release = release,
		.user = g,
		.assertion_file = g->file,
		.login_ms = g->login_ms,
		.closed = g->closed,
		.oauth = { .grant = grant, .allow_private = g->closed != NULL },
	};

	if (grant != OAUTH_GRANT_ASSERTION) {
		o.oauth.client_id = "me";
		o.oauth.client_secret = "hush";
	}

	http_rig_start(&g->http, steps, n);
	assert_int_equal(str_format(g->url, sizeof(g->url), "%s/mcp", g->http.url), 0);
	o.oauth.server = g->url;
	assert_int_equal(mcpc_auth_create(&o, &g->auth, NULL), 0);
}

#define MAKE(g, grant, ...)                                                 \
	do {                                                                \
		const struct http_step steps_[] = { __VA_ARGS__ };          \
		make(g, grant, steps_, sizeof(steps_) / sizeof(steps_[0])); \
	} while (0)

static void done(void *user, const struct err *err)
{
	struct rig *g = user;

	g->err = err ? *err : (struct err){ 0 };
	if (++g->told == g->waited_for)
		loop_stop(g->loop);
}

static void done_and_free(void *user, const struct err *err)
{
	struct rig *g = user;

	g->auth = mcpc_auth_free(g->auth);
	done(user, err);
}

static void run(struct rig *g, unsigned waited_for)
{
	g->waited_for = waited_for;
	loop_timer_start(g->limit, 30000, 0);
	loop_run(g->loop);
	loop_timer_stop(g->limit);
}

static const char *token(struct rig *g)
{
	return g->auth->ops->token(g->auth, &g->number);
}

/* A request that was sent with the token of the last look at it. */
static int refuse(struct rig *g, void (*fn)(void *user, const struct err *err), void *user)
{
	return g->auth->ops->refused(g->auth, g->number, 401, NULL, fn, user);
}

/* ---- tests ---- */

static void all_who_are_refused_wait_for_one_token(void **state)
{
	struct rig *g = *state;

	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA, { .answer = TOKEN });
	assert_null(token(g));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(refuse(g, done, g), 0);
	assert_int_equal(g->told, 0); /* never from inside */
	run(g, 3);
	assert_int_equal(g->told, 3);
	assert_int_equal(g->err.code, 0);
	assert_string_equal(token(g), "tok");
	http_rig_stop(&g->http); /* four requests, and no more */
	assert_non_null(strstr(buf_str(&g->http.got), "grant_type=client_credentials"));
	assert_non_null(strstr(buf_str(&g->http.got), "Authorization: Basic "));
	assert_non_null(strstr(g->kept, "\"access\":\"tok\""));
	g->auth = mcpc_auth_free(g->auth);
	assert_int_equal(g->released, 1);
}

static void a_failure_is_told_to_all_and_names_no_secret(void **state)
{
	struct rig *g = *state;

	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA,
	     { .answer = JSON("400", "{\"error\":\"invalid_client\",\"hush\":\"hush\"}") });
	assert_int_equal(refuse(g, done, g), 0);
	assert_int_equal(refuse(g, done, g), 0);
	run(g, 2);
	assert_int_equal(g->err.code, EACCES);
	assert_non_null(strstr(g->err.text, "invalid_client"));
	assert_null(strstr(g->err.text, "hush"));
	assert_null(token(g));
}

/* Where private addresses are open for what a server names, what the operator has closed is not. */
static void what_is_closed_is_closed_for_what_a_server_names(void **state)
{
	struct rig *g = *state;
	struct guard_nets closed = { 0 };
	char challenge[160];

	assert_int_equal(guard_nets_add(&closed, "127.0.0.0/8", NULL), 0);
	assert_int_equal(guard_nets_add(&closed, "::1", NULL), 0);
	g->closed = &closed;
	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA, { .answer = TOKEN });
	assert_int_equal(str_format(challenge, sizeof(challenge),
				    "Bearer resource_metadata=\"http://localhost%s/x\"",
				    strrchr(g->http.url, ':')),
			 0);
	assert_int_equal(g->auth->ops->refused(g->auth, g->number, 401, challenge, done, g), 0);
	run(g, 1);
	assert_int_equal(g->err.code, EACCES);
	assert_non_null(strstr(g->err.text, "closed"));
	/* what the operator has named is his to reach */
	g->told = 0;
	assert_int_equal(refuse(g, done, g), 0);
	run(g, 1);
	assert_int_equal(g->err.code, 0);
	http_rig_stop(&g->http);
	assert_null(strstr(buf_str(&g->http.got), "localhost"));
	assert_string_equal(token(g), "tok");
}

static void a_late_refusal_of_an_old_token_costs_no_new_one(void **state)
{
	struct rig *g = *state;
	int other = 0;

	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA, { .answer = TOKEN });
	assert_null(token(g));
	assert_int_equal(refuse(g, done, g), 0);
	run(g, 1);
	assert_int_equal(refuse(g, done, g), 0); /* of what was sent without a token, too */
	assert_int_equal(refuse(g, done_and_free, &other), 0);
	g->auth->ops->forget(g->auth, &other);
	assert_int_equal(g->told, 1);
	run(g, 2);
	assert_int_equal(g->err.code, 0);
	http_rig_stop(&g->http); /* there was nothing more to ask */
	assert_string_equal(token(g), "tok");
	/* of this one it is another matter: it is used up */
	assert_int_equal(refuse(g, done, g), 0);
	assert_null(token(g));
}

static void who_forgets_hears_nothing(void **state)
{
	struct rig *g = *state;
	int other = 0;

	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA, { .answer = TOKEN });
	assert_int_equal(refuse(g, done_and_free, &other), 0);
	assert_int_equal(refuse(g, done, g), 0);
	g->auth->ops->forget(g->auth, &other);
	run(g, 1);
	assert_int_equal(g->told, 1);
}

static void whoever_is_told_may_free_it(void **state)
{
	struct rig *g = *state;

	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA, { .answer = TOKEN });
	assert_int_equal(refuse(g, done_and_free, g), 0);
	assert_int_equal(refuse(g, done, g), 0); /* is not told: it is gone */
	run(g, 1);
	assert_int_equal(g->told, 1);
	assert_null(g->auth);
}

static void too_many_do_not_wait(void **state)
{
	struct rig *g = *state;

	MAKE(g, OAUTH_GRANT_CLIENT, NO_METADATA, { .answer = TOKEN });
	for (unsigned i = 0; i < MCPC_AUTH_WAITS_MAX; i++)
		assert_int_equal(refuse(g, done, g), 0);
	assert_int_equal(refuse(g, done, g), -EAGAIN);
	run(g, MCPC_AUTH_WAITS_MAX);
}

static void a_fixed_token_is_all_there_is(void **state)
{
	struct rig *g = *state;
	struct err err = { 0 };

	assert_int_equal(mcpc_auth_create_fixed("a\r\nb", &g->auth, &err), -EINVAL);
	assert_int_equal(mcpc_auth_create_fixed("abc", &g->auth, &err), 0);
	assert_string_equal(token(g), "abc");
	assert_int_equal(refuse(g, done, g), -EACCES);
	assert_int_equal(mcpc_auth_load(g->auth, "{}", &err), -ENOTSUP);
	assert_int_equal(mcpc_auth_redirected(g->auth, "x", NULL, NULL, &err), -ENOTSUP);
	assert_true(mcpc_auth_is_ready(g->auth));
	mcpc_auth_logout(g->auth);
	assert_string_equal(token(g), "abc");
}

static void what_vouches_for_us_is_read_each_time(void **state)
{
	struct rig *g = *state;
	char file[] = "/tmp/holt-vouch-XXXXXX";
	int fd = mkostemp(file, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, "first\n", 6), 0);
	g->file = file;
	MAKE(g, OAUTH_GRANT_ASSERTION, NO_METADATA, { .answer = TOKEN }, NO_METADATA,
	     { .answer = TOKEN });
	assert_true(mcpc_auth_is_ready(g->auth));
	assert_null(token(g));
	assert_int_equal(refuse(g, done, g), 0);
	run(g, 1);
	assert_int_equal(pwrite(fd, "later", 5, 0), 5);
	assert_string_equal(token(g), "tok");
	assert_int_equal(refuse(g, done, g), 0);
	run(g, 2);
	http_rig_stop(&g->http);
	assert_non_null(strstr(buf_str(&g->http.got),
			       "jwt-bearer&assertion=first&resource=http%3A%2F%2F127"));
	assert_non_null(strstr(buf_str(&g->http.got), "assertion=later&"));
	assert_null(strstr(buf_str(&g->http.got), "hush"));
	assert_string_equal(token(g), "tok");
	assert_int_equal(unlink(file), 0);
	assert_int_equal(refuse(g, done, g), -ENOENT);
	(void)fd_close(fd);
}

/* ---- logins ---- */

static void opened(void *user, const char *url, const struct err *err)
{
	struct rig *g = user;

	if (url)
		assert_int_equal(str_copy(g->opened, sizeof(g->opened), url), 0);
	done(user, err);
}

static void a_login_opens_an_address_and_ends_with_what_comes_back(void **state)
{
	struct rig *g = *state;
	struct err err = { 0 };
	char query[256];

	MAKE(g, OAUTH_GRANT_CODE, NO_METADATA, { .answer = TOKEN });
	assert_false(mcpc_auth_is_ready(g->auth));
	assert_int_equal(mcpc_auth_login(g->auth, "http://127.0.0.1:1/cb", opened, g, &err), 0);
	run(g, 1);
	assert_int_equal(g->err.code, 0);
	assert_non_null(strstr(g->opened, "/authorize?response_type=code&client_id=me"));
	assert_int_equal(mcpc_auth_redirected(g->auth, "code=x&state=y", done, g, &err), -EINVAL);
	assert_int_equal(str_format(query, sizeof(query), "code=x&state=%.43s",
				    strstr(g->opened, "&state=") + 7),
			 0);
	assert_int_equal(mcpc_auth_redirected(g->auth, query, done, g, &err), 0);
	run(g, 2);
	assert_int_equal(g->err.code, 0);
	assert_true(mcpc_auth_is_ready(g->auth));
	assert_string_equal(token(g), "tok");
	mcpc_auth_logout(g->auth);
	assert_null(token(g));
	assert_null(g->kept); /* told to forget it */
	assert_int_equal(mcpc_auth_redirected(g->auth, query, done, g, &err), -EINVAL);
}

static void come_back_late(struct rig *g)
{
	struct err err = { 0 };
	char query[256];

	assert_int_equal(str_format(query, sizeof(query), "code=x&state=%.43s",
				    strstr(g->opened, "&state=") + 7),
			 0);
	assert_int_equal(mcpc_auth_redirected(g->auth, query, done, g, &err), -EINVAL);
}

static void who_takes_too_long_to_log_in_has_to_begin_again(void **state)
{
	struct rig *g = *state;
	struct err err = { 0 };

	g->login_ms = 1;
	MAKE(g, OAUTH_GRANT_CODE, NO_METADATA);
	assert_int_equal(mcpc_auth_login(g->auth, "http://127.0.0.1:1/cb", opened, g, &err), 0);
	assert_int_equal(refuse(g, done, g), 0);
	run(g, 2);
	assert_int_equal(g->err.code, ETIMEDOUT);
	come_back_late(g);
}

static void a_logout_ends_a_login(void **state)
{
	struct rig *g = *state;
	struct err err = { 0 };

	MAKE(g, OAUTH_GRANT_CODE, NO_METADATA);
	assert_int_equal(mcpc_auth_login(g->auth, "http://127.0.0.1:1/cb", opened, g, &err), 0);
	run(g, 1);
	assert_int_equal(refuse(g, done, g), 0);
	mcpc_auth_logout(g->auth);
	run(g, 2);
	assert_int_equal(g->err.code, ECANCELED);
	come_back_late(g);
}

static void a_browser_comes_back_to_this_machine_only(void **state)
{
	static const char *const bad[] = { "http://evil.example/", "https://127.0.0.1/",
					   "http://127.0.0.1.example/", "127.0.0.1", "" };
	struct rig *g = *state;
	struct err err = { 0 };

	make(g, OAUTH_GRANT_CODE, NULL, 0); /* nobody is asked anything */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(mcpc_auth_login(g->auth, bad[i], opened, g, &err), -EINVAL);
	assert_int_equal(g->told, 0);
}

static void who_has_left_is_not_told_of_a_login(void **state)
{
	struct rig *g = *state;
	struct err err = { 0 };

	MAKE(g, OAUTH_GRANT_CODE, { .answer = JSON("500", "{}") });
	assert_int_equal(mcpc_auth_login(g->auth, "http://127.0.0.1:1/cb", opened, g, &err), 0);
	mcpc_auth_leave(g->auth, g);
	assert_int_equal(refuse(g, done, g), 0); /* who waits beside it is */
	run(g, 1);
	assert_int_equal(g->told, 1);
	assert_string_equal(g->opened, "");
}

static void a_second_login_ends_the_first(void **state)
{
	struct rig *g = *state;
	struct err err = { 0 };

	MAKE(g, OAUTH_GRANT_CODE, NO_METADATA);
	assert_int_equal(mcpc_auth_login(g->auth, "http://127.0.0.1:1/cb", opened, g, &err), 0);
	assert_int_equal(mcpc_auth_login(g->auth, "http://127.0.0.1:2/cb", opened, g, &err), 0);
	assert_int_equal(g->told, 1);
	assert_int_equal(g->err.code, ECANCELED);
	run(g, 2);
	assert_int_equal(g->err.code, 0);
	assert_non_null(strstr(g->opened, "127.0.0.1%3A2%2Fcb"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_who_are_refused_wait_for_one_token),
		TEST(a_failure_is_told_to_all_and_names_no_secret),
		TEST(what_is_closed_is_closed_for_what_a_server_names),
		TEST(a_late_refusal_of_an_old_token_costs_no_new_one),
		TEST(who_forgets_hears_nothing),
		TEST(whoever_is_told_may_free_it),
		TEST(too_many_do_not_wait),
		TEST(a_fixed_token_is_all_there_is),
		TEST(what_vouches_for_us_is_read_each_time),
		TEST(a_login_opens_an_address_and_ends_with_what_comes_back),
		TEST(who_takes_too_long_to_log_in_has_to_begin_again),
		TEST(a_logout_ends_a_login),
		TEST(a_browser_comes_back_to_this_machine_only),
		TEST(who_has_left_is_not_told_of_a_login),
		TEST(a_second_login_ends_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
