#include "httpc/url.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void addresses_are_taken_apart(void **state)
{
	static const struct {
		const char *text, *base, *host, *prefix, *socket;
		bool tls, loopback;
	} rows[] = {
		{ "http://127.0.0.1:8765", "http://127.0.0.1:8765", "127.0.0.1:8765", "", "", 0,
		  1 },
		{ "http://localhost", "http://localhost", "localhost", "", "", 0, 1 },
		{ "HTTP://[::1]:80/", "http://[::1]:80", "[::1]:80", "", "", 0, 1 },
		{ "https://holt.example/a/b//", "https://holt.example/a/b", "holt.example", "/a/b",
		  "", 1, 0 },
		{ "unix:/run/holt/api.sock", "http://localhost", "localhost", "",
		  "/run/holt/api.sock", 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct err err = { 0 };
		struct url u;

		assert_int_equal(url_parse(rows[i].text, &u, &err), 0);
		assert_string_equal(u.base, rows[i].base);
		assert_string_equal(u.host, rows[i].host);
		assert_string_equal(u.prefix, rows[i].prefix);
		assert_string_equal(u.socket, rows[i].socket);
		assert_int_equal(u.tls, rows[i].tls);
		assert_int_equal(u.loopback, rows[i].loopback);
	}
}

static void only_addresses_of_this_machine_are_loopback(void **state)
{
	static const struct {
		const char *text;
		bool loopback;
	} rows[] = {
		{ "http://127.0.0.1", true },
		{ "http://127.1.2.3:80", true },
		{ "http://LocalHost:1", true },
		{ "http://[::1]", true },
		{ "http://127.0.0.1.example", false },
		{ "http://127.example", false },
		{ "http://localhost.example", false },
		{ "http://128.0.0.1", false },
		{ "http://[::2]", false },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		struct url u;

		assert_int_equal(url_parse(rows[i].text, &u, NULL), 0);
		assert_int_equal(u.loopback, rows[i].loopback);
	}
}

static void what_is_no_address_of_a_server_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"127.0.0.1:8765",
		"localhost",
		"file:///etc/passwd",
		"gopher://x/",
		"http://",
		"http://h:99999",
		"http://u:p@h/",
		"http://u@h/",
		"http://h/?q=1",
		"http://h/#f",
		"http://h h/",
		"http://h\r\nX: y/",
		"unix:relative",
		"unix:",
	};

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++) {
		struct err err = { 0 };
		struct url u;

		assert_int_equal(url_parse(bad[i], &u, &err), -EINVAL);
		assert_non_null(strstr(err.text, "url"));
	}
}

static void a_socket_s_path_fits_whole_or_not_at_all(void **state)
{
	char text[128] = "unix:/";
	struct err err = { 0 };
	struct url u;

	(void)state;
	memset(text + 6, 'x', 106);
	assert_int_equal(url_parse(text, &u, &err), 0);
	assert_int_equal(strlen(u.socket), 107);
	text[112] = 'x';
	assert_int_equal(url_parse(text, &u, &err), -EINVAL);
}

static void what_a_target_must_not_hold_is_escaped(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	(void)url_escape(&b, "a/b c%?#&=\xc3\xa9~-_.Z9");
	assert_string_equal(b.data, "a%2Fb%20c%25%3F%23%26%3D%C3%A9~-_.Z9");
	buf_clear(&b);
	(void)url_escape_path(&b, "/a b/../c\r\n");
	assert_string_equal(b.data, "/a%20b/../c%0D%0A");
	buf_clear(&b);
	(void)buf_puts(&b, "/x");
	(void)url_add_query(&b, "k", "v&w");
	(void)url_add_query(&b, "metadata.a=b", "");
	assert_string_equal(b.data, "/x?k=v%26w&metadata.a%3Db=");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(only_addresses_of_this_machine_are_loopback),
		cmocka_unit_test(what_is_no_address_of_a_server_is_refused),
		cmocka_unit_test(a_socket_s_path_fits_whole_or_not_at_all),
		cmocka_unit_test(what_a_target_must_not_hold_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
