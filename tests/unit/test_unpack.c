/* What a hostile archive can do to the machine it is unpacked on: nothing outside of its directory.
 */
#include "cli/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tar.h"
#include "check.h"
#include "cli/pack.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct world {
	char dir[64];    /* holds target/ and outside/ */
	char target[80]; /* where it is unpacked */
	struct err err;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void begin(struct world *w)
{
	char outside[80];

	*w = (struct world){ .dir = "/tmp/holt-unpack.XXXXXX" };
	assert_non_null(mkdtemp(w->dir));
	(void)snprintf(w->target, sizeof(w->target), "%s/target", w->dir);
	(void)snprintf(outside, sizeof(outside), "%s/outside", w->dir);
	assert_int_equal(mkdir(outside, 0755), 0);
}

static void end(struct world *w)
{
	(void)nftw(w->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_there(const struct world *w, const char *path)
{
	char full[300];
	struct stat st;

	(void)snprintf(full, sizeof(full), "%s/%s", w->dir, path);
	return lstat(full, &st) == 0;
}

static mode_t mode_of(const struct world *w, const char *path)
{
	char full[300];
	struct stat st = { 0 };

	(void)snprintf(full, sizeof(full), "%s/%s", w->dir, path);
	assert_int_equal(lstat(full, &st), 0);
	return st.st_mode & 07777;
}

static void add(struct buf *b, enum tar_type type, uint32_t mode, const char *path,
		const char *text)
{
	bool is_file = type == TAR_FILE;
	struct tar_member m = {
		.type = type,
		.mode = mode,
		.path = path,
		.link = is_file || type == TAR_DIR ? "" : text,
		.size = is_file ? strlen(text) : 0,
	};

	assert_int_equal(tar_write_member(b, &m), 0);
	if (is_file)
		(void)buf_puts(b, text);
	for (size_t i = tar_padding(m.size); i > 0; i--)
		(void)buf_putc(b, '\0');
}

/* In pieces of an odd size, as a network brings them. */
static int unpack_all(struct world *w, const struct buf *b, bool finish)
{
	_cleanup_(unpack_free_p) struct unpack *u = NULL;
	int r = unpack_create(w->target, &u, &w->err);

	for (size_t at = 0; r == 0 && at < b->len; at += 77)
		r = unpack_feed(u, b->data + at, b->len - at < 77 ? b->len - at : 77, &w->err);
	if (r == 0 && finish)
		r = unpack_finish(u, &w->err);
	return r;
}

static void a_tree_comes_out_as_it_went_in(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct world w;
	char text[32] = "", path[200];

	(void)state;
	begin(&w);
	add(&b, TAR_DIR, 0755, ".", NULL);
	add(&b, TAR_DIR, 0555, "locked", NULL);
	add(&b, TAR_FILE, 0640, "locked/a", "inside");
	add(&b, TAR_FILE, 06755, "no/parents/b", "");
	add(&b, TAR_SYMLINK, 0777, "no/parents/up", "../../locked/a");
	(void)tar_write_end(&b);
	assert_int_equal(unpack_all(&w, &b, true), 0);
	assert_int_equal(mode_of(&w, "target/locked"), 0555);
	assert_int_equal(mode_of(&w, "target/locked/a"), 0640);
	assert_int_equal(mode_of(&w, "target/no/parents/b"), 0755); /* no set-user-id */
	(void)snprintf(path, sizeof(path), "%s/no/parents/up", w.target);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_equal(text, "inside");
	(void)snprintf(path, sizeof(path), "%s/locked", w.target);
	(void)chmod(path, 0700);
	end(&w);
}

static void a_path_that_leads_out_is_refused(void **state)
{
	static const char *const bad[] = { "/abs", "../outside/x", "a/../../outside/x",
					   "..",   "a/..",         "./../outside/x" };

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		struct world w;

		begin(&w);
		add(&b, TAR_FILE, 0644, bad[i], "x");
		(void)tar_write_end(&b);
		assert_int_equal(unpack_all(&w, &b, true), -EPERM);
		assert_false(is_there(&w, "outside/x"));
		end(&w);
	}
}

static void a_link_that_leads_out_is_left_out(void **state)
{
	static const char *const bad[] = {
		"/etc/passwd", "../../outside",           "..", "../..",
		"x/../../..",  "self/self/../../outside", /* each "self" is a link to "." */
	};

	(void)state;
	for (size_t i = 0; i < LEN(bad); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		struct world w;

		begin(&w);
		add(&b, TAR_SYMLINK, 0777, "self", ".");
		add(&b, TAR_SYMLINK, 0777, "out", bad[i]);
		add(&b, TAR_FILE, 0644, "after", "goes on");
		(void)tar_write_end(&b);
		assert_int_equal(unpack_all(&w, &b, true), 0);
		assert_true(is_there(&w, "target/self"));
		assert_false(is_there(&w, "target/out"));
		assert_true(is_there(&w, "target/after"));
		end(&w);
	}
}

static void a_link_is_never_walked_through(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct world w;

	(void)state;
	begin(&w);
	add(&b, TAR_DIR, 0755, "real", NULL);
	add(&b, TAR_SYMLINK, 0777, "alias", "real");
	add(&b, TAR_FILE, 0644, "alias/x", "x");
	(void)tar_write_end(&b);
	assert_int_equal(unpack_all(&w, &b, true), -EPERM);
	assert_non_null(strstr(w.err.text, "leads through a symbolic link"));
	assert_false(is_there(&w, "target/real/x"));
	end(&w);
}

static void a_link_that_was_there_before_is_not_followed(void **state)
{
	_cleanup_(buf_done) struct buf dir = { 0 }, file = { 0 };
	char link[200], text[8] = "";
	struct world w;

	(void)state;
	begin(&w);
	assert_int_equal(mkdir(w.target, 0755), 0);
	(void)snprintf(link, sizeof(link), "%s/way", w.target);
	assert_int_equal(symlink("../outside", link), 0);
	add(&dir, TAR_FILE, 0644, "way/x", "x");
	(void)tar_write_end(&dir);
	assert_int_equal(unpack_all(&w, &dir, true), -EPERM);
	assert_false(is_there(&w, "outside/x"));
	/* A file of the link's own name takes its place instead of being written through it. */
	(void)unlink(link);
	assert_int_equal(symlink("../outside/victim", link), 0);
	add(&file, TAR_FILE, 0644, "way", "new");
	(void)tar_write_end(&file);
	assert_int_equal(unpack_all(&w, &file, true), 0);
	assert_false(is_there(&w, "outside/victim"));
	assert_true(fd_read_file_at(AT_FDCWD, link, text, sizeof(text)) > 0);
	assert_string_equal(text, "new");
	end(&w);
}

static void a_second_name_is_left_out(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct world w;

	(void)state;
	begin(&w);
	add(&b, TAR_HARDLINK, 0644, "hard", "/etc/passwd");
	(void)tar_write_end(&b);
	assert_int_equal(unpack_all(&w, &b, true), 0);
	assert_false(is_there(&w, "target/hard"));
	end(&w);
}

static void an_archive_that_is_cut_off_is_told(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct world w;

	(void)state;
	begin(&w);
	add(&b, TAR_FILE, 0644, "a", "whole");
	assert_int_equal(unpack_all(&w, &b, true), -EBADMSG);
	end(&w);
}

static void what_is_no_archive_is_told(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < 600; i++)
		(void)buf_putc(&b, 'x');
	assert_int_equal(unpack_all(&w, &b, true), -EBADMSG);
	end(&w);
}

/* --- the other direction ------------------------------------------------------------------- */

static void what_is_packed_unpacks_to_the_same(void **state)
{
	_cleanup_(pack_free_p) struct pack *p = NULL;
	_cleanup_(buf_done) struct buf b = { 0 };
	char path[200], part[61], text[16] = "";
	struct world w;
	ssize_t n;

	(void)state;
	begin(&w);
	(void)snprintf(path, sizeof(path), "%s/outside/sub", w.dir);
	assert_int_equal(mkdir(path, 0750), 0);
	(void)snprintf(path, sizeof(path), "%s/outside/sub/file", w.dir);
	n = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all((int)n, "contents", 8), 0);
	(void)close((int)n);
	(void)snprintf(path, sizeof(path), "%s/outside/empty", w.dir);
	(void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)snprintf(path, sizeof(path), "%s/outside/link", w.dir);
	assert_int_equal(symlink("sub/file", path), 0);
	(void)snprintf(path, sizeof(path), "%s/outside/pipe", w.dir);
	assert_int_equal(mkfifo(path, 0600), 0);

	(void)snprintf(path, sizeof(path), "%s/outside", w.dir);
	assert_int_equal(pack_create(path, &p, &w.err), 0);
	while ((n = pack_read(p, part, sizeof(part), &w.err)) > 0)
		(void)buf_append(&b, part, (size_t)n);
	assert_int_equal(n, 0);
	assert_int_equal(b.len % TAR_BLOCK, 0);
	assert_int_equal(unpack_all(&w, &b, true), 0);
	assert_int_equal(mode_of(&w, "target/sub"), 0750);
	assert_int_equal(mode_of(&w, "target/sub/file"), 0600);
	assert_true(is_there(&w, "target/empty"));
	assert_false(is_there(&w, "target/pipe"));
	(void)snprintf(path, sizeof(path), "%s/link", w.target);
	assert_true(fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_equal(text, "contents");
	end(&w);
}

static void a_file_is_no_directory_to_pack(void **state)
{
	struct pack *p = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(pack_create("/dev/null", &p, &err), -ENOTDIR);
	assert_int_equal(pack_create("/nonexistent", &p, &err), -ENOENT);
	assert_null(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_comes_out_as_it_went_in),
		cmocka_unit_test(a_path_that_leads_out_is_refused),
		cmocka_unit_test(a_link_that_leads_out_is_left_out),
		cmocka_unit_test(a_link_is_never_walked_through),
		cmocka_unit_test(a_link_that_was_there_before_is_not_followed),
		cmocka_unit_test(a_second_name_is_left_out),
		cmocka_unit_test(an_archive_that_is_cut_off_is_told),
		cmocka_unit_test(what_is_no_archive_is_told),
		cmocka_unit_test(what_is_packed_unpacks_to_the_same),
		cmocka_unit_test(a_file_is_no_directory_to_pack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
