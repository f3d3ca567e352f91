#include "outbound/jwks_source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/jwks.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "http_rig.h"
#include "loop/loop.h"
#include "outbound/courier.h"

#define KEY(kid)                                              \
	"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"" kid \
	"\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"
#define SET(keys) "{\"keys\":[" keys "]}"

struct rig {
	struct loop *loop;
	struct courier *courier;
	struct jwks_source *source;
	struct jwks_wait wait;
	struct loop_timer *limit;
	char path[64];
	unsigned told;
};

static void done(void *user)
{
	struct rig *g = user;

	g->told++;
	loop_stop(g->loop);
}

static void too_long(void *user)
{
	(void)user;
	fail_msg("nothing came");
}

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ .wait = { .done = done, .user = &g }, .path = "/tmp/holt-jwks-XXXXXX" };
	assert_int_equal(fd_close(mkstemp(g.path)), -1);
	assert_int_equal(loop_create(&g.loop, NULL), 0);
	assert_int_equal(courier_create(g.loop, &g.courier, NULL), 0);
	assert_int_equal(loop_timer_create(g.loop, too_long, &g, &g.limit), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->courier = courier_free(g->courier);
	g->source = jwks_source_free(g->source);
	g->limit = loop_timer_free(g->limit);
	g->loop = loop_free(g->loop);
	(void)unlink(g->path);
	return 0;
}

static void write_set(struct rig *g, const char *text)
{
	char next[80];

	/* another file in its place, as a provider's tool would: never half of one */
	assert_int_equal(str_format(next, sizeof(next), "%s.new", g->path), 0);
	(void)fd_close(open(next, O_CREAT | O_TRUNC | O_CLOEXEC | O_WRONLY, 0600));
	assert_int_equal(fd_write_file_at(AT_FDCWD, next, text), 0);
	assert_int_equal(rename(next, g->path), 0);
}

static void open_source(struct rig *g, const char *where)
{
	struct err err = { 0 };

	assert_int_equal(jwks_source_create(g->loop, g->courier, where, 30000, &g->source, &err),
			 0);
	assert_null(jwks_source_keys(g->source));
}

/* Waits for what is being looked for. */
static void refresh(struct rig *g)
{
	unsigned before = g->told;

	assert_true(jwks_source_refresh(g->source, &g->wait));
	assert_int_equal(g->told, before);
	loop_timer_start(g->limit, 20000, 0);
	loop_run(g->loop);
	loop_timer_stop(g->limit);
	assert_int_equal(g->told, before + 1);
}

static bool knows(struct rig *g, const char *kid)
{
	const struct jwks *keys = jwks_source_keys(g->source);

	return keys && jwks_find(keys, kid, PUBKEY_ED25519);
}

static void a_file_is_read_again_when_it_has_changed(void **state)
{
	struct rig *g = *state;

	write_set(g, SET(KEY("a")));
	open_source(g, g->path);
	refresh(g);
	assert_true(knows(g, "a"));
	/* asked only just now: the file's keys are as good as known */
	assert_false(jwks_source_refresh(g->source, &g->wait));
	write_set(g, SET(KEY("b") "," KEY("c")));
	(void)usleep((JWKS_LOOK_MS + 50) * 1000);
	refresh(g);
	assert_true(knows(g, "b") && knows(g, "c") && !knows(g, "a"));
}

static void a_bad_or_missing_file_leaves_the_last_good_keys(void **state)
{
	struct rig *g = *state;

	write_set(g, SET(KEY("a")));
	open_source(g, g->path);
	refresh(g);
	write_set(g, "{\"keys\":[");
	(void)usleep((JWKS_LOOK_MS + 50) * 1000);
	refresh(g);
	assert_true(knows(g, "a"));
	assert_int_equal(unlink(g->path), 0);
	(void)usleep((JWKS_LOOK_MS + 50) * 1000);
	refresh(g);
	assert_true(knows(g, "a"));
}

static void an_address_is_asked_once_for_many_and_not_again_at_once(void **state)
{
	static const char body[] = SET(KEY("u"));
	struct rig *g = *state;
	struct http_rig http;
	char answer[512];
	struct http_step step = { .answer = answer };

	assert_int_equal(
		str_format(answer, sizeof(answer),
			   "HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\n"
			   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			   strlen(body), body),
		0);
	http_rig_start(&http, &step, 1);
	open_source(g, http.url);
	refresh(g);
	assert_true(knows(g, "u"));
	assert_false(jwks_source_refresh(g->source, &g->wait));
	http_rig_stop(&http);
	http_rig_done(&http);
}

static void an_address_without_an_answer_gives_no_keys(void **state)
{
	struct rig *g = *state;

	open_source(g, "http://127.0.0.1:1/keys");
	refresh(g);
	assert_null(jwks_source_keys(g->source));
}

static void an_oversize_set_is_not_taken(void **state)
{
	struct rig *g = *state;
	struct http_step step = { .answer = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" };
	struct http_rig http;
	char *more = malloc(300000);

	assert_non_null(more);
	memset(more, ' ', 300000);
	step.more = more;
	step.more_len = 300000;
	http_rig_start(&http, &step, 1);
	open_source(g, http.url);
	refresh(g);
	assert_null(jwks_source_keys(g->source));
	http_rig_done(&http);
	free(more);
}

static void what_is_no_address_is_refused(void **state)
{
	static const char *const bad[] = { "http://", "http://u:p@h/", "http://h/ x",  "ftp://h/",
					   "unix:/x", "http://h/#x",   "http://h/\r\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (courier_check_url(bad[i], NULL) == 0)
			fail_msg("%s", bad[i]);
	assert_int_equal(courier_check_url("https://h.example:8443/a/b?c=d", NULL), 0);
	assert_int_equal(courier_check_url("http://[::1]?c", NULL), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_read_again_when_it_has_changed),
		TEST(a_bad_or_missing_file_leaves_the_last_good_keys),
		TEST(an_address_is_asked_once_for_many_and_not_again_at_once),
		TEST(an_address_without_an_answer_gives_no_keys),
		TEST(an_oversize_set_is_not_taken),
		TEST(what_is_no_address_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
