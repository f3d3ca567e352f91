/* Files as E2B's clients see them, and the encodings that they accept. */
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "e2b/encoding.h"
#include "e2b/entry.h"
#include "json/jw.h"

static void permissions_are_letters(void **state)
{
	static const struct {
		uint32_t mode;
		const char *text;
	} rows[] = {
		{ S_IFREG | 0644, "-rw-r--r--" },  { S_IFREG, "----------" },
		{ S_IFDIR | 0755, "drwxr-xr-x" },  { S_IFDIR | 01777, "dtrwxrwxrwx" },
		{ S_IFLNK | 0777, "Lrwxrwxrwx" },  { S_IFCHR | 0666, "Dcrw-rw-rw-" },
		{ S_IFBLK | 0600, "Drw-------" },  { S_IFIFO | 0600, "prw-------" },
		{ S_IFSOCK | 0600, "Srw-------" }, { S_IFREG | 04755, "urwxr-xr-x" },
		{ S_IFREG | 02711, "grwx--x--x" }, { S_IFDIR | 07777, "dugtrwxrwxrwx" },
	};
	char text[ENTRY_PERMISSIONS_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		entry_permissions(rows[i].mode, text);
		assert_string_equal(text, rows[i].text);
	}
	entry_permissions(UINT32_MAX, text); /* no mode at all does no harm */
	assert_true(strlen(text) < sizeof(text));
}

static void times_have_nanoseconds(void **state)
{
	char text[ENTRY_TIME_SIZE];

	(void)state;
	entry_time(1700000000123456789u, text);
	assert_string_equal(text, "2023-11-14T22:13:20.123456789Z");
	entry_time(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000000Z");
	entry_time(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709551615Z");
}

static void a_name_is_the_last_part(void **state)
{
	(void)state;
	assert_string_equal(entry_name("/a/b"), "b");
	assert_string_equal(entry_name("/"), "/");
	assert_string_equal(entry_name("a"), "a");
}

static struct guest_entry example(void)
{
	return (struct guest_entry){
		.type = ENTRY_SYMLINK,
		.mode = S_IFLNK | 0777,
		.size = 1ull << 60,
		.mtime_ns = 1000000001,
		.path = "/d/l",
		.target = "/x",
		.owner = "o",
		.group = "7",
		.real_type = ENTRY_DIR,
		.real_mode = S_IFDIR | 01750,
		.attrs = "e2b.k\0v\0other\0w\0e2b.\0z",
		.attrs_len = sizeof("e2b.k\0v\0other\0w\0e2b.\0z"),
	};
}

static const char *written(struct buf *b, const struct guest_entry *e)
{
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	entry_json(&w, e);
	jw_object_end(&w);
	assert_int_equal(jw_end(&w), 0);
	return buf_str(b);
}

static void a_link_has_its_targets_type_and_mode(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct guest_entry e = example();

	(void)state;
	assert_string_equal(
		written(&b, &e),
		"{\"name\":\"l\",\"type\":\"FILE_TYPE_DIRECTORY\",\"path\":\"/d/l\","
		"\"size\":\"1152921504606846976\",\"mode\":488,\"permissions\":\"Lrwxrwxrwx\","
		"\"owner\":\"o\",\"group\":\"7\",\"modifiedTime\":\"1970-01-01T00:00:01."
		"000000001Z\","
		"\"symlinkTarget\":\"/x\",\"metadata\":{\"k\":\"v\"}}");
}

static void a_link_to_nowhere_leads_to_itself(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct guest_entry e = example();

	(void)state;
	e.real_type = ENTRY_OTHER;
	e.target = "";
	e.attrs_len = 0;
	assert_non_null(strstr(written(&b, &e), "\"type\":\"FILE_TYPE_UNSPECIFIED\""));
	assert_non_null(strstr(buf_str(&b), "\"symlinkTarget\":\"/d/l\"}"));
}

static void an_event_may_have_an_entry(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct guest_entry e = example();
	struct jw w = jw_begin(&b);

	(void)state;
	jw_array_begin(&w);
	entry_event_json(&w, EVENT_RENAME, "a/b", NULL);
	entry_event_json(&w, EVENT_REMOVE, "", NULL);
	entry_event_json(&w, EVENT_CREATE, "l", &e);
	jw_array_end(&w);
	assert_int_equal(jw_end(&w), 0);
	assert_int_equal(
		strncmp(b.data,
			"[{\"name\":\"a/b\",\"type\":\"EVENT_TYPE_RENAME\"},"
			"{\"name\":\".\",\"type\":\"EVENT_TYPE_REMOVE\"},"
			"{\"name\":\"l\",\"type\":\"EVENT_TYPE_CREATE\",\"entry\":{\"name\":\"l\"",
			140),
		0);
}

static void the_encoding_is_one_that_is_accepted(void **state)
{
	static const struct {
		const char *header;
		enum encoding chosen;
		bool takes_identity;
	} rows[] = {
		{ NULL, ENCODING_IDENTITY, true },
		{ "", ENCODING_IDENTITY, true },
		{ "gzip, deflate", ENCODING_GZIP, true },
		{ "deflate , GZIP", ENCODING_GZIP, true },
		{ "x-gzip", ENCODING_GZIP, true },
		{ "identity", ENCODING_IDENTITY, true },
		{ "br", ENCODING_IDENTITY, true },
		{ "*", ENCODING_IDENTITY, true },
		{ "*;q=0", ENCODING_REFUSED, false },
		{ "gzip;q=0", ENCODING_IDENTITY, true },
		{ "gzip;q=0.001", ENCODING_GZIP, true },
		{ "gzip;q=0.5, identity;q=0.8", ENCODING_IDENTITY, true },
		{ "gzip; Q=0.8 ; x=y, identity; q=0.5", ENCODING_GZIP, true },
		{ "identity;q=0", ENCODING_REFUSED, false },
		{ "identity;q=0, gzip", ENCODING_GZIP, false },
		{ "identity;q=0, *", ENCODING_GZIP, false },
		{ "identity;q=0, *, gzip;q=0", ENCODING_REFUSED, false },
		{ "br, *;q=0", ENCODING_REFUSED, false },
		{ "*;q=0, identity;q=1", ENCODING_IDENTITY, true },
		{ "gzip;q=nonsense", ENCODING_IDENTITY, true },
		{ "gzip;q=9", ENCODING_GZIP, true },
		{ ",,;,gzip", ENCODING_GZIP, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (encoding_choose(rows[i].header) != rows[i].chosen ||
		    encoding_takes_identity(rows[i].header) != rows[i].takes_identity)
			fail_msg("'%s'", rows[i].header ? rows[i].header : "(none)");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permissions_are_letters),
		cmocka_unit_test(times_have_nanoseconds),
		cmocka_unit_test(a_name_is_the_last_part),
		cmocka_unit_test(a_link_has_its_targets_type_and_mode),
		cmocka_unit_test(a_link_to_nowhere_leads_to_itself),
		cmocka_unit_test(an_event_may_have_an_entry),
		cmocka_unit_test(the_encoding_is_one_that_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
