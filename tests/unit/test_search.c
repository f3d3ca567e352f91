/* Find, grep and replace, each run as holt-init runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "check.h"
#include "fileop_rig.h"

#define FIND(path_, ...) \
	(&(struct guest_file){ .op = FILE_FIND, .path = (path_), .search = { __VA_ARGS__ } })
#define GREP(path_, flags_, ...) \
	(&(struct guest_file){   \
		.op = FILE_GREP, .path = (path_), .flags = (flags_), .search = { __VA_ARGS__ } })
#define REPLACE(path_, flags_, ...)                \
	(&(struct guest_file){ .op = FILE_REPLACE, \
			       .path = (path_),    \
			       .flags = (flags_),  \
			       .search = { __VA_ARGS__ } })

#define AT_ONCE_MS 60000 /* no test comes near it */

static void plant(const struct rig *g)
{
	rig_mkdir(g, "d");
	rig_mkdir(g, "d/node_modules");
	rig_write(g, "d/one.c", "int one;\nint two;\n");
	rig_write(g, "d/two.h", "int three;\n");
	rig_write(g, "d/node_modules/three.c", "int four;\n");
	rig_write(g, "top.c", "nothing\n");
	rig_symlink(g, "/d", "link");
}

static bool told(const struct rig_answer *a, const char *path)
{
	for (uint64_t i = 0; i < a->entry_count; i++)
		if (strcmp(a->entries[i].path, path) == 0)
			return true;
	return false;
}

/* --- find --- */

static void find_tells_what_fits_the_name(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	plant(g);
	rig_run(g, FIND("/", .name = "*.c"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, 3);
	assert_true(told(&a, "d/one.c") && told(&a, "top.c") && told(&a, "d/node_modules/three.c"));
	rig_run(g, FIND("/", .name = "d/*.c"), NULL, 0, &a); /* a path, part by part */
	assert_int_equal(a.done, 1);
	assert_true(told(&a, "d/one.c"));
	rig_run(g, FIND("/", .name = "*.c", .exclude = "node_modules"), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	rig_run(g, FIND("link", .name = "*.h"), NULL, 0, &a); /* what the path itself names */
	assert_int_equal(a.done, 1);
	rig_run(g, FIND("top.c"), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_string_equal(a.entries[0].path, "");
	rig_run(g, FIND("none"), NULL, 0, &a);
	assert_int_equal(a.error, ENOENT);
}

static void find_tells_what_fits_type_size_time_and_depth(void **state)
{
	struct rig *g = *state;
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	struct guest_file shallow = { .op = FILE_FIND, .path = "/", .depth = 1 };
	struct rig_answer a;

	plant(g);
	assert_int_equal(utimensat(g->root_fd, "d/one.c", old, 0), 0);
	rig_run(g, FIND("/", .types = 1u << ENTRY_DIR), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	rig_run(g, FIND("/", .types = 1u << ENTRY_SYMLINK), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_string_equal(a.entries[0].target, "/d");
	rig_run(g, FIND("/", .size_min = 11), NULL, 0, &a);
	assert_int_equal(a.done, 2); /* files only */
	rig_run(g, FIND("/", .size_max = 8), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	rig_run(g, FIND("/", .before_ns = 2000ull * 1000000000), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_string_equal(a.entries[0].path, "d/one.c");
	rig_run(g, FIND("/", .name = "*.c", .after_ns = 2000ull * 1000000000), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	rig_run(g, &shallow, NULL, 0, &a);
	assert_int_equal(a.done, 3);
}

static void find_ends_at_its_limit_and_says_that_there_is_more(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	plant(g);
	rig_run(g, FIND("/", .limit = 2), NULL, 0, &a);
	assert_int_equal(a.entry_count, 2);
	assert_int_equal(a.done, 3);
	rig_run(g, FIND("/", .name = "*.h", .limit = 1), NULL, 0, &a);
	assert_int_equal(a.done, 1);
}

static void find_follows_no_link_and_no_way_out(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_mkdir(g, "d");
	rig_symlink(g, ".", "d/loop");
	rig_symlink(g, "../..", "d/up");
	rig_run(g, FIND("d"), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	rig_run(g, FIND("d/up", .name = "canary"), NULL, 0, &a);
	assert_int_equal(a.done, 0);
}

/* --- grep --- */

static void grep_tells_lines_with_their_place(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	plant(g);
	rig_run(g, GREP("/d", 0, .pattern = "two"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.found_count, 1);
	assert_int_equal(a.found[0].f.kind, FOUND_MATCH);
	assert_int_equal(a.found[0].f.number, 2);
	assert_int_equal(a.found[0].f.column, 5);
	assert_string_equal(a.found[0].path, "one.c");
	assert_string_equal(a.found[0].text, "int two;");
	rig_run(g, GREP("/", 0, .pattern = "int", .name = "*.c", .exclude = "node_*"), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	rig_run(g, GREP("d/two.h", 0, .pattern = "three"), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_string_equal(a.found[0].path, "");
}

static void grep_knows_expressions_and_case(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_write(g, "f", "Alpha.1\nalpha 22\nbeta(3)\n");
	rig_run(g, GREP("f", FILE_REGEX, .pattern = "^[a-z]+ [0-9]{2}$"), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.found[0].f.number, 2);
	rig_run(g, GREP("f", FILE_ICASE, .pattern = "ALPHA."), NULL, 0, &a);
	assert_int_equal(a.done, 1); /* plain text: the dot is a dot */
	rig_run(g, GREP("f", FILE_ICASE | FILE_REGEX, .pattern = "ALPHA."), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	rig_run(g, GREP("f", FILE_ICASE, .pattern = "BETA(3)"), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	rig_run(g, GREP("f", FILE_REGEX, .pattern = "(("), NULL, 0, &a);
	assert_int_equal(a.error, EINVAL);
	rig_run(g, GREP("f", 0, .pattern = "a\nb"), NULL, 0, &a);
	assert_int_equal(a.error, EINVAL);
}

static void grep_tells_lines_around_a_match_once(void **state)
{
	static const struct {
		uint8_t kind;
		uint64_t number;
	} want[] = { { FOUND_CONTEXT, 2 }, { FOUND_MATCH, 3 },   { FOUND_CONTEXT, 4 },
		     { FOUND_MATCH, 5 },   { FOUND_CONTEXT, 6 }, { FOUND_CONTEXT, 8 },
		     { FOUND_MATCH, 9 } };
	struct rig *g = *state;
	struct rig_answer a;

	rig_write(g, "f", "1\n2\nx\n4\nx\n6\n7\n8\nx");
	rig_run(g, GREP("f", 0, .pattern = "x", .context = 1), NULL, 0, &a);
	assert_int_equal(a.done, 3);
	assert_int_equal(a.found_count, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < a.found_count; i++) {
		assert_int_equal(a.found[i].f.kind, want[i].kind);
		assert_int_equal(a.found[i].f.number, want[i].number);
	}
	rig_run(g, GREP("f", 0, .pattern = "7", .context = GUEST_CONTEXT_MAX), NULL, 0, &a);
	assert_int_equal(a.found_count, 9);
	assert_string_equal(a.found[0].text, "1");
}

static void grep_names_files_once_and_ends_at_its_limit(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	plant(g);
	rig_run(g, GREP("/", FILE_NAMES, .pattern = "int"), NULL, 0, &a);
	assert_int_equal(a.done, 3);
	assert_int_equal(a.found[0].f.kind, FOUND_FILE);
	rig_run(g, GREP("/", 0, .pattern = "int", .limit = 2), NULL, 0, &a);
	assert_int_equal(a.found_count, 2);
	assert_int_equal(a.done, 3);
}

static void write_big(const struct rig *g, const char *name, size_t n, const char *last)
{
	_close_ int fd = openat(g->root_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	char part[4096];

	assert_true(fd >= 0);
	memset(part, 'a', sizeof(part));
	for (size_t done = 0; done < n; done += sizeof(part))
		assert_int_equal(fd_write_all(fd, part, sizeof(part)), 0);
	assert_int_equal(fd_write_all(fd, last, strlen(last)), 0);
}

static void grep_cuts_long_lines_around_what_matched(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	write_big(g, "f", 8192, "needle and more\nneedle\n");
	rig_run(g, GREP("f", 0, .pattern = "needle", .line_bytes = 40), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	assert_true(a.found[0].f.is_cut);
	assert_true(a.found[0].len <= 40);
	assert_non_null(strstr(a.found[0].text, "needle and more"));
	assert_int_equal(a.found[0].f.column, 8193);
	assert_false(a.found[1].f.is_cut);
	rig_write(g, "u", "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\n"); /* no half of a character */
	rig_run(g, GREP("u", 0, .pattern = "\xc3\xa4", .line_bytes = 3), NULL, 0, &a);
	assert_string_equal(a.found[0].text, "\xc3\xa4");
}

static void grep_looks_at_the_beginning_of_an_endless_line(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	write_big(g, "f", 1u << 20, "needle\nsecond needle\n");
	rig_run(g, GREP("f", 0, .pattern = "needle"), NULL, 0, &a);
	assert_int_equal(a.done, 1); /* not the one behind what is looked at */
	assert_int_equal(a.found[0].f.number, 2);
	rig_run(g, GREP("f", FILE_REGEX, .pattern = "^a+$"), NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.found[0].len, GUEST_LINE_MAX);
}

static void grep_passes_over_what_is_no_text_or_not_to_be_read(void **state)
{
	struct rig *g = *state;
	_close_ int fd = -1;
	struct rig_answer a;

	rig_write(g, "good", "needle\n");
	fd = openat(g->root_fd, "binary", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(fd_write_all(fd, "\0needle\n", 8), 0);
	rig_write(g, "closed", "needle\n");
	assert_int_equal(fchmodat(g->root_fd, "closed", 0, 0), 0);
	assert_int_equal(mkfifoat(g->root_fd, "fifo", 0644), 0);
	fd = fd_close(fd);
	fd = openat(g->root_fd, "holes", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	rig_run(g, GREP("/", 0, .pattern = "needle", .cpu_ms = AT_ONCE_MS), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.found_count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_true(a.found[i].f.kind == FOUND_SKIPPED ||
			    strcmp(a.found[i].path, "good") == 0);
	rig_run(g, GREP("fifo", 0, .pattern = "needle"), NULL, 0, &a);
	assert_int_equal(a.done, 0);
}

/* The library that the test has knows references back, and those take exponential time. */
static void a_pattern_that_never_ends_is_ended(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	write_big(g, "f", 8192, "\n");
	rig_run(g,
		GREP("f", FILE_REGEX, .pattern = "^(.*)(.*)(.*)(.*)\\4\\3\\2\\1z$", .cpu_ms = 100),
		NULL, 0, &a);
	assert_int_equal(a.error, ETIMEDOUT);
	assert_non_null(strstr(a.text, "100 ms"));
	rig_run(g,
		REPLACE("f", FILE_REGEX, .pattern = "^(.*)(.*)(.*)(.*)\\4\\3\\2\\1z$",
			.cpu_ms = 100),
		NULL, 0, &a);
	assert_int_equal(a.error, ETIMEDOUT);
	assert_int_equal(rig_count(g, "."), 1); /* and nothing lies about */
}

static void a_pattern_that_needs_much_memory_is_refused(void **state)
{
	_cleanup_(buf_done) struct buf pattern = { 0 };
	struct rig *g = *state;
	struct rig_answer a;

	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(buf_putc(&pattern, '('), 0);
	assert_int_equal(buf_puts(&pattern, "ab"), 0);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(buf_puts(&pattern, "{1,200})"), 0);
	rig_write(g, "f", "x\n");
	rig_run(g, GREP("f", FILE_REGEX, .pattern = pattern.data, .cpu_ms = 3000), NULL, 0, &a);
	assert_true(a.error == EINVAL || a.error == ETIMEDOUT);
}

/* --- replace --- */

static void replace_changes_many_files_and_counts(void **state)
{
	struct rig *g = *state;
	uint64_t sum = 0;
	struct rig_answer a;

	plant(g);
	assert_int_equal(fchmodat(g->root_fd, "d/one.c", 0640, 0), 0);
	rig_run(g, REPLACE("/", FILE_DRY_RUN, .pattern = "int", .replacement = "long"), NULL, 0,
		&a);
	assert_int_equal(a.done, 3);
	assert_string_equal(rig_text(g, "d/two.h"), "int three;\n");
	rig_run(g, REPLACE("/", 0, .pattern = "int", .replacement = "interior"), NULL, 0, &a);
	assert_int_equal(a.done, 3);
	for (uint64_t i = 0; i < a.found_count; i++)
		sum += a.found[i].f.number;
	assert_int_equal(sum, 4);
	assert_string_equal(rig_text(g, "d/one.c"), "interior one;\ninterior two;\n");
	assert_string_equal(rig_text(g, "d/node_modules/three.c"), "interior four;\n");
	assert_string_equal(rig_text(g, "top.c"), "nothing\n");
	assert_int_equal(rig_count(g, "d"), 3);
	rig_run(g, FIND("d/one.c"), NULL, 0, &a);
	assert_int_equal(a.entries[0].e.mode, 0640);
}

static void replace_takes_text_over_lines_and_expressions_within_them(void **state)
{
	struct rig *g = *state;

	rig_write(g, "f", "a\nb\nc\n");
	assert_int_equal(
		rig_do(g, REPLACE("f", 0, .pattern = "a\nb", .replacement = "\\1"), NULL, 0), 0);
	assert_string_equal(rig_text(g, "f"), "\\1\nc\n");
	rig_write(g, "f", "key = value\nno\nk=v");
	assert_int_equal(rig_do(g,
				REPLACE("f", FILE_REGEX, .pattern = "^([a-z]+) *= *([a-z]+)$",
					.replacement = "\\2\\t\\1\\\\"),
				NULL, 0),
			 0);
	assert_string_equal(rig_text(g, "f"), "value\tkey\\\nno\nv\tk\\");
	rig_write(g, "f", "Ab aB\n");
	assert_int_equal(
		rig_do(g, REPLACE("f", FILE_ICASE, .pattern = "ab", .replacement = "\\0"), NULL, 0),
		0);
	assert_string_equal(rig_text(g, "f"), "\\0 \\0\n");
	rig_write(g, "f", "abc\n\n");
	assert_int_equal(
		rig_do(g, REPLACE("f", FILE_REGEX, .pattern = "x*", .replacement = "-"), NULL, 0),
		0);
	assert_string_equal(rig_text(g, "f"), "-a-b-c-\n-\n");
}

static void replace_refuses_what_means_nothing(void **state)
{
	static const char *const bad[] = { "\\", "\\q", "x\\", "\\2" };
	struct rig *g = *state;

	rig_write(g, "f", "a\n");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(
			rig_do(g, REPLACE("f", FILE_REGEX, .pattern = "(a)", .replacement = bad[i]),
			       NULL, 0),
			EINVAL);
	assert_int_equal(
		rig_do(g, REPLACE("f", FILE_REGEX, .pattern = "a\nb", .replacement = ""), NULL, 0),
		EINVAL);
	assert_string_equal(rig_text(g, "f"), "a\n");
}

static void replace_leaves_alone_what_it_may_not_change(void **state)
{
	char pattern[4096] = "", longer[20000] = "";
	struct rig *g = *state;
	struct rig_answer a;

	rig_write(g, "good", "needle\n");
	rig_write(g, "fixed", "needle\n");
	assert_int_equal(fchmodat(g->root_fd, "fixed", 0444, 0), 0);
	write_big(g, "large", GUEST_REPLACE_MAX + 1, "needle\n");
	rig_run(g, REPLACE("/", 0, .pattern = "needle", .replacement = "pin"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.found_count, 3);
	assert_string_equal(rig_text(g, "good"), "pin\n");
	assert_string_equal(rig_text(g, "fixed"), "needle\n");
	assert_int_equal(rig_count(g, "."), 3);
	/* One that grows too large is left as it was. */
	memset(pattern, 'a', sizeof(pattern) - 1);
	memset(longer, 'b', sizeof(longer) - 1);
	write_big(g, "grows", 4u << 20, "");
	rig_run(g, REPLACE("grows", 0, .pattern = pattern, .replacement = longer), NULL, 0, &a);
	assert_int_equal(a.done, 0);
	assert_int_equal(a.found_count, 1);
	assert_int_equal(a.found[0].f.kind, FOUND_SKIPPED);
}

static void replace_ends_at_its_limit_of_files(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	plant(g);
	rig_run(g, REPLACE("/d", 0, .pattern = "int", .replacement = "long", .limit = 2), NULL, 0,
		&a);
	assert_int_equal(a.done, 3);
	rig_run(g, GREP("/d", FILE_NAMES, .pattern = "int"), NULL, 0, &a);
	assert_int_equal(a.done, 1);
}

/* A directory may list a file again that took its name meanwhile. */
static void replace_changes_no_file_twice(void **state)
{
	struct rig *g = *state;
	char name[32];

	for (unsigned i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "file-%u", i);
		rig_write(g, name, "x");
	}
	assert_int_equal(rig_do(g,
				REPLACE("/", 0, .pattern = "x", .replacement = "xx", .limit = 1000),
				NULL, 0),
			 0);
	for (unsigned i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "file-%u", i);
		assert_string_equal(rig_text(g, name), "xx");
	}
}

static void replace_follows_links_only_inside(void **state)
{
	struct rig *g = *state;

	rig_write(g, "f", "sings\n");
	rig_symlink(g, "../canary", "out");
	rig_symlink(g, "f", "in");
	assert_int_equal(
		rig_do(g, REPLACE("out", 0, .pattern = "sings", .replacement = "dies"), NULL, 0),
		ENOENT);
	assert_int_equal(
		rig_do(g, REPLACE("/", 0, .pattern = "sings", .replacement = "hums"), NULL, 0), 0);
	assert_string_equal(rig_text(g, "f"), "hums\n");
	assert_int_equal(
		rig_do(g, REPLACE("in", 0, .pattern = "hums", .replacement = "sings"), NULL, 0), 0);
	assert_string_equal(rig_text(g, "f"), "sings\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(find_tells_what_fits_the_name),
		TEST(find_tells_what_fits_type_size_time_and_depth),
		TEST(find_ends_at_its_limit_and_says_that_there_is_more),
		TEST(find_follows_no_link_and_no_way_out),
		TEST(grep_tells_lines_with_their_place),
		TEST(grep_knows_expressions_and_case),
		TEST(grep_tells_lines_around_a_match_once),
		TEST(grep_names_files_once_and_ends_at_its_limit),
		TEST(grep_cuts_long_lines_around_what_matched),
		TEST(grep_looks_at_the_beginning_of_an_endless_line),
		TEST(grep_passes_over_what_is_no_text_or_not_to_be_read),
		TEST(a_pattern_that_never_ends_is_ended),
		TEST(a_pattern_that_needs_much_memory_is_refused),
		TEST(replace_changes_many_files_and_counts),
		TEST(replace_takes_text_over_lines_and_expressions_within_them),
		TEST(replace_refuses_what_means_nothing),
		TEST(replace_leaves_alone_what_it_may_not_change),
		TEST(replace_ends_at_its_limit_of_files),
		TEST(replace_changes_no_file_twice),
		TEST(replace_follows_links_only_inside),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
