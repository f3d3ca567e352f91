/* Tar archives: the bytes alone, and whole trees through the file operations and GNU tar. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tar.h"
#include "check.h"
#include "fileop_rig.h"

#define FILE_OP(...) (&(struct guest_file){ __VA_ARGS__ })

/* --- crafted archives ------------------------------------------------------------------------ */

static void seal(struct tar_header *h)
{
	unsigned sum = 0;
	char text[8];

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((const uint8_t *)h)[i];
	(void)snprintf(text, sizeof(text), "%06o", sum);
	memcpy(h->checksum, text, 7);
}

/* A member as any hostile writer could make it: nothing is checked, the data is padded. */
static void craft(struct buf *b, char type, const char *name, const char *link, const char *data)
{
	struct tar_header h = { .magic = "ustar\00000", .mode = "0006777", .mtime = "00000000000" };
	size_t n = strlen(data);

	h.type = type;
	(void)snprintf(h.name, sizeof(h.name), "%s", name);
	(void)snprintf(h.link, sizeof(h.link), "%s", link);
	(void)snprintf(h.size, sizeof(h.size), "%011o", (unsigned)n & 0xfffffff);
	seal(&h);
	assert_int_equal(buf_append(b, &h, sizeof(h)), 0);
	assert_int_equal(buf_append(b, data, n), 0);
	assert_int_equal(buf_append(b, (char[TAR_BLOCK]){ 0 }, tar_padding(n)), 0);
}

static int put(const struct rig *g, struct buf *b, const char *path)
{
	return rig_do(g, FILE_OP(.op = FILE_TAR_PUT, .path = path), b->data, b->len);
}

/* Unpacks one crafted member below /t; its errno. */
static int put_one(const struct rig *g, char type, const char *name, const char *link,
		   const char *data)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	craft(&b, type, name, link, data);
	assert_int_equal(tar_write_end(&b), 0);
	return put(g, &b, "/t");
}

/* --- the bytes alone ------------------------------------------------------------------------- */

/* Reads an archive in steps of `step` bytes and checks that it holds just this member and data. */
static void expect_member(const struct buf *b, size_t step, const struct tar_member *want,
			  const char *contents)
{
	_cleanup_(tar_reader_done) struct tar_reader t;
	_cleanup_(buf_done) struct buf got = { 0 };
	unsigned members = 0, done = 0;
	int r;

	tar_reader_init(&t);
	for (size_t at = 0; at < b->len; at += step) {
		const uint8_t *p = (const uint8_t *)b->data + at;
		size_t n = b->len - at < step ? b->len - at : step;

		while ((r = tar_read(&t, &p, &n, NULL)) > 0) {
			if (r == TAR_DATA)
				assert_int_equal(buf_append(&got, t.data, t.data_len), 0);
			done += r == TAR_DONE;
			if (r != TAR_MEMBER)
				continue;
			members++;
			assert_int_equal(t.member.type, want->type);
			assert_int_equal(t.member.mode, want->mode);
			assert_int_equal(t.member.uid, want->uid);
			assert_int_equal(t.member.gid, want->gid);
			assert_int_equal(t.member.size, want->size);
			assert_int_equal(t.member.mtime_sec, want->mtime_sec);
			assert_int_equal(t.member.mtime_nsec, want->mtime_nsec);
			assert_string_equal(t.member.path, want->path);
			assert_string_equal(t.member.link, want->link);
		}
		assert_int_equal(r, 0);
		assert_int_equal(n, 0);
	}
	assert_int_equal(tar_read_finish(&t, NULL), 0);
	assert_int_equal(members, 1);
	assert_int_equal(done, 1);
	assert_string_equal(buf_str(&got), contents);
}

static void check_round_trip(const struct tar_member *m, const char *contents)
{
	static const size_t steps[] = { 1, 7, 511, 512, 513, 1u << 20 };
	_cleanup_(buf_done) struct buf b = { 0 };

	assert_int_equal(tar_write_member(&b, m), 0);
	assert_int_equal(buf_append(&b, contents, strlen(contents)), 0);
	assert_int_equal(buf_append(&b, (char[TAR_BLOCK]){ 0 }, tar_padding(strlen(contents))), 0);
	assert_int_equal(tar_write_end(&b), 0);
	assert_int_equal(b.len % TAR_BLOCK, 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		expect_member(&b, steps[i], m, contents);
}

static void what_is_written_is_read_back_in_any_pieces(void **state)
{
	struct tar_member m = {
		.type = TAR_FILE, .mode = 0640, .size = 5, .path = "a/b", .link = ""
	};

	(void)state;
	check_round_trip(&m, "hello");
	m.mtime_sec = 1700000000;
	m.mtime_nsec = 123456789;
	check_round_trip(&m, "hello");
	m.mtime_sec = -2;
	m.mtime_nsec = 400000000;
	check_round_trip(&m, "hello");
	m.mtime_sec = 1ll << 40;
	m.mtime_nsec = 0;
	check_round_trip(&m, "hello");
	m = (struct tar_member){ .type = TAR_SYMLINK, .mode = 0777, .path = "l", .link = "../x" };
	check_round_trip(&m, "");
	m = (struct tar_member){ .type = TAR_DIR, .mode = 0755, .path = "d", .link = "" };
	check_round_trip(&m, "");
}

static void owners_of_every_size_survive(void **state)
{
	static const uint32_t ids[] = {
		0, 1, 1000, 65534, 07777777, 010000000, TAR_ID_NONE - 1, TAR_ID_NONE
	};
	struct tar_member m = { .type = TAR_DIR, .mode = 0755, .path = "d", .link = "" };

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		m.uid = ids[i];
		m.gid = ids[sizeof(ids) / sizeof(ids[0]) - 1 - i];
		check_round_trip(&m, "");
	}
}

static void who_asks_for_it_passes_over_devices(void **state)
{
	_cleanup_(tar_reader_done) struct tar_reader t;
	_cleanup_(buf_done) struct buf b = { 0 };
	const uint8_t *p;
	struct err err = { 0 };
	size_t n;

	(void)state;
	craft(&b, '3', "dev/null", "", "");
	craft(&b, '6', "fifo", "", "");
	craft(&b, '0', "file", "", "data");
	craft(&b, '4', "dev/sda", "", "");
	assert_int_equal(tar_write_end(&b), 0);
	tar_reader_init(&t);
	t.skips_special = true;
	p = (const uint8_t *)b.data;
	n = b.len;
	assert_int_equal(tar_read(&t, &p, &n, &err), TAR_MEMBER);
	assert_string_equal(t.member.path, "file");
	assert_int_equal(tar_read(&t, &p, &n, &err), TAR_DATA);
	assert_int_equal(tar_read(&t, &p, &n, &err), TAR_DONE);
	assert_int_equal(tar_read(&t, &p, &n, &err), TAR_END);
	assert_int_equal(t.skipped, 3);
	assert_int_equal(err.code, 0);
}

static void who_can_seek_need_not_read_a_member(void **state)
{
	_cleanup_(tar_reader_done) struct tar_reader t;
	_cleanup_(buf_done) struct buf b = { 0 };
	const uint8_t *p;
	size_t n, skip;

	(void)state;
	craft(&b, '0', "a", "", "bytes that nobody reads");
	craft(&b, '0', "b", "", "");
	assert_int_equal(tar_write_end(&b), 0);
	tar_reader_init(&t);
	p = (const uint8_t *)b.data;
	n = b.len;
	assert_int_equal(tar_read(&t, &p, &n, NULL), TAR_MEMBER);
	skip = (size_t)tar_skip(&t);
	assert_int_equal(skip, TAR_BLOCK);
	p += skip;
	n -= skip;
	assert_int_equal(tar_read(&t, &p, &n, NULL), TAR_MEMBER);
	assert_string_equal(t.member.path, "b");
}

static void names_of_every_length_survive(void **state)
{
	static char path[TAR_PATH], link[TAR_PATH];
	struct tar_member m = { .type = TAR_SYMLINK, .mode = 0777, .path = path, .link = link };

	(void)state;
	for (size_t n = 1; n < TAR_PATH - 1; n = n < 300 ? n + 1 : n * 2 - 37) {
		for (size_t i = 0; i < n; i++) {
			path[i] = i % 50 == 49 && i != n - 1 ? '/' : (char)('a' + i % 26);
			link[i] = path[i];
		}
		path[n] = link[n] = '\0';
		m.type = n % 2 ? TAR_SYMLINK : TAR_HARDLINK;
		check_round_trip(&m, "");
		m.type = TAR_DIR;
		m.link = "";
		check_round_trip(&m, "");
		m.link = link;
	}
}

static void sizes_beyond_eight_gigabytes_are_told(void **state)
{
	static const uint64_t sizes[] = { 077777777777, 0100000000000, 1ull << 40, INT64_MAX };
	struct tar_member m = { .type = TAR_FILE, .mode = 0644, .path = "f", .link = "" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		_cleanup_(tar_reader_done) struct tar_reader t;
		_cleanup_(buf_done) struct buf b = { 0 };

		m.size = sizes[i];
		assert_int_equal(tar_write_member(&b, &m), 0);
		const uint8_t *p = (const uint8_t *)b.data;
		size_t n = b.len;
		tar_reader_init(&t);
		assert_int_equal(tar_read(&t, &p, &n, NULL), TAR_MEMBER);
		assert_true(t.member.size == sizes[i]);
	}
}

/* The reader's result for bytes that are not an archive of ours. */
static int judge(const struct buf *b, struct err *err)
{
	_cleanup_(tar_reader_done) struct tar_reader t;
	const uint8_t *p = (const uint8_t *)b->data;
	size_t n = b->len;
	int r;

	tar_reader_init(&t);
	while ((r = tar_read(&t, &p, &n, err)) > 0)
		;
	return r < 0 ? r : tar_read_finish(&t, err);
}

static void what_is_no_archive_is_refused_with_a_reason(void **state)
{
	static const struct {
		char type;
		const char *name, *data;
		int code;
	} rows[] = {
		{ '3', "dev", "", EPERM },
		{ '4', "dev", "", EPERM },
		{ '6', "fifo", "", EPERM },
		{ 'S', "sparse", "", ENOTSUP },
		{ 'M', "more", "", ENOTSUP },
		{ '0', "", "", EBADMSG },
		{ 'x', "p", "12 path=abc", EBADMSG },
		{ 'x', "p", "0 path=abc\n", EBADMSG },
		{ 'x', "p", "5 pa\n", EBADMSG },
		{ 'x', "p", "99999999999999999999 path=a\n", EBADMSG },
		{ 'x', "p", "4 x\n", EBADMSG },
		{ 'x', "p", "13 mtime=a.b\n", EBADMSG },
		{ 'x', "p", "11 size=-1\n", EBADMSG },
		{ 'x', "p", "28 size=9223372036854775808\n", ERANGE },
		{ 'x', "p", "22 GNU.sparse.major=1\n", ENOTSUP },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		struct err err = { 0 };

		craft(&b, rows[i].type, rows[i].name, "", rows[i].data);
		assert_int_equal(tar_write_end(&b), 0);
		assert_int_equal(judge(&b, &err), -rows[i].code);
		assert_true(strlen(err.text) > 10);
	}
}

static void one_wrong_bit_in_a_header_is_seen(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	craft(&b, '0', "name", "", "data");
	assert_int_equal(tar_write_end(&b), 0);
	assert_int_equal(judge(&b, NULL), 0);
	for (unsigned bit = 0; bit < TAR_BLOCK * 8; bit += 3) {
		b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
		if (bit / 8 < 148 || bit / 8 >= 156) /* not the sum's own blanks */
			assert_int_equal(judge(&b, NULL), -EBADMSG);
		b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
	}
}

static void an_archive_cut_anywhere_is_an_error(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t whole;

	(void)state;
	craft(&b, 'x', "p", "", "12 path=abc\n");
	craft(&b, '0', "name", "", "data");
	whole = b.len;
	assert_int_equal(tar_write_end(&b), 0);
	assert_int_equal(judge(&b, NULL), 0);
	for (b.len = whole + TAR_BLOCK - 1; b.len > 0; b.len--)
		assert_int_equal(judge(&b, NULL), -EBADMSG);
}

static void numbers_in_base_256_are_read(void **state)
{
	static const struct {
		const char *field;
		int64_t value;
	} rows[] = {
		{ "\x80\0\0\0\0\0\0\x02\0\0\0\0", 1ll << 33 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe", -2 },
		{ "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", INT64_MAX },
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		_cleanup_(tar_reader_done) struct tar_reader t;
		struct tar_header h = { .name = "f", .type = '5', .magic = "ustar  " };
		const uint8_t *p = (const uint8_t *)&h;
		size_t n = sizeof(h);

		memcpy(h.mtime, rows[i].field, sizeof(h.mtime));
		seal(&h);
		tar_reader_init(&t);
		assert_int_equal(tar_read(&t, &p, &n, NULL), TAR_MEMBER);
		assert_true(t.member.mtime_sec == rows[i].value);
	}
}

/* --- trees ----------------------------------------------------------------------------------- */

/* A tree with everything that an archive can hold. */
static void make_tree(const struct rig *g)
{
	static const struct timespec when[] = { { 1600000000, 987654321 },
						{ 1600000001, 123456789 } };
	char deep[400] = "t/deep", name[256];
	size_t n = strlen(deep);

	rig_mkdir(g, "t");
	rig_write(g, "t/plain", "plain text\n");
	rig_write(g, "t/empty", "");
	rig_mkdir(g, "t/deep");
	rig_mkdir(g, "t/hollow");
	for (int i = 0; i < 7; i++) {
		n += (size_t)snprintf(deep + n, sizeof(deep) - n,
				      "/abcdefghijklmnopqrstuvwxyz0123456789-directory");
		rig_mkdir(g, deep);
	}
	(void)snprintf(deep + n, sizeof(deep) - n, "/file");
	rig_write(g, deep, "far down");
	memset(name, 'n', 250);
	memcpy(name, "t/", 2);
	name[250] = '\0';
	rig_write(g, name, "a long name");
	rig_write(g, "t/new\nline \xff", "strange");
	rig_symlink(g, "../../canary", "t/out");
	rig_symlink(g, deep, "t/long link");
	assert_int_equal(fchmodat(g->root_fd, "t/plain", 0751, 0), 0);
	assert_int_equal(utimensat(g->root_fd, "t/plain", when, 0), 0);
	assert_int_equal(utimensat(g->root_fd, "t/hollow", when, 0), 0);
	assert_int_equal(fchmodat(g->root_fd, "t/hollow", 0555, 0), 0);
}

static void check_same_trees(const struct rig *g, const char *a, const char *b)
{
	const char *const diff[] = { "diff", "-r", "--no-dereference", a, b, NULL };

	assert_int_equal(rig_command(g, diff), 0);
}

static void check_kept(const struct rig *g, const char *name, mode_t mode, long nsec)
{
	struct stat st;

	assert_int_equal(fstatat(g->root_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_mtim.tv_sec, 1600000001);
	assert_int_equal(st.st_mtim.tv_nsec, nsec);
}

static void a_tree_survives_being_got_and_put(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	make_tree(g);
	rig_run(g, FILE_OP(.op = FILE_TAR_GET, .path = "/t"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, a.data.len);
	assert_int_equal(
		rig_do(g, FILE_OP(.op = FILE_TAR_PUT, .path = "/u"), a.data.data, a.data.len),
		ENOENT);
	assert_int_equal(rig_do(g,
				FILE_OP(.op = FILE_TAR_PUT, .path = "/v/u", .flags = FILE_PARENTS),
				a.data.data, a.data.len),
			 0);
	rig_answer_done(&a);
	check_same_trees(g, "t", "v/u");
	check_kept(g, "v/u/plain", 0751, 123456789);
	check_kept(g, "v/u/hollow", 0555, 123456789);
}

static void gnu_tar_unpacks_what_we_packed(void **state)
{
	struct rig *g = *state;
	const char *const untar[] = { "tar", "-xf", "x.tar", "-C", "u", NULL };
	struct rig_answer a;
	_close_ int fd = -1;

	make_tree(g);
	rig_run(g, FILE_OP(.op = FILE_TAR_GET, .path = "/t"), NULL, 0, &a);
	fd = openat(g->root_fd, "x.tar", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, a.data.data, a.data.len), 0);
	rig_answer_done(&a);
	rig_mkdir(g, "u");
	assert_int_equal(rig_command(g, untar), 0);
	check_same_trees(g, "t", "u");
	check_kept(g, "u/plain", 0751, 123456789);
}

static void check_gnu_format(const struct rig *g, const char *format, long nsec)
{
	const char *const pack[] = { "tar", format, "-cf", "x.tar", "-C", "t", ".", NULL };
	_cleanup_(buf_done) struct buf b = { 0 };
	_close_ int fd = -1;

	assert_int_equal(rig_command(g, pack), 0);
	fd = openat(g->root_fd, "x.tar", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_slurp(fd, &b), 0);
	rig_mkdir(g, "u");
	assert_int_equal(put(g, &b, "u"), 0);
	check_same_trees(g, "t", "u");
	check_kept(g, "u/plain", 0751, nsec);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_REMOVE, .path = "u", .flags = FILE_RECURSIVE),
				NULL, 0),
			 0);
}

static void we_unpack_what_gnu_tar_packed(void **state)
{
	struct rig *g = *state;

	make_tree(g);
	check_gnu_format(g, "--format=pax", 123456789);
	check_gnu_format(g, "--format=gnu", 0);
	check_gnu_format(g, "--format=oldgnu", 0);
}

static void hard_links_of_an_archive_are_made_inside(void **state)
{
	struct rig *g = *state;
	const char *const pack[] = { "tar", "-cf", "x.tar", "-C", "t", ".", NULL };
	_cleanup_(buf_done) struct buf b = { 0 };
	struct stat one, two;
	_close_ int fd = -1;

	rig_mkdir(g, "t");
	rig_write(g, "t/one", "1");
	assert_int_equal(linkat(g->root_fd, "t/one", g->root_fd, "t/two", 0), 0);
	assert_int_equal(rig_command(g, pack), 0);
	fd = openat(g->root_fd, "x.tar", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_slurp(fd, &b), 0);
	rig_mkdir(g, "u");
	assert_int_equal(put(g, &b, "u"), 0);
	assert_int_equal(put(g, &b, "u"), 0); /* over itself */
	assert_int_equal(fstatat(g->root_fd, "u/one", &one, 0), 0);
	assert_int_equal(fstatat(g->root_fd, "u/two", &two, 0), 0);
	assert_true(one.st_ino == two.st_ino);
	assert_int_equal(rig_count(g, "u"), 2);
}

static void one_file_becomes_an_archive_of_one(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_mkdir(g, "t");
	rig_write(g, "t/f", "contents");
	rig_run(g, FILE_OP(.op = FILE_TAR_GET, .path = "/t/f"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	rig_mkdir(g, "u");
	assert_int_equal(put(g, &a.data, "u"), 0);
	rig_answer_done(&a);
	assert_string_equal(rig_text(g, "u/f"), "contents");
}

/* --- hostile archives ------------------------------------------------------------------------ */

static void paths_that_lead_out_are_refused(void **state)
{
	static const char *const up[] = { "../canary", "a/../../canary", "..", "a/.." };
	struct rig *g = *state;

	rig_mkdir(g, "t");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(put_one(g, '0', up[i], "", "evil"), EINVAL);
	/* An absolute path is taken from the directory. */
	assert_int_equal(put_one(g, '0', "/etc/x", "", "fine"), 0);
	assert_string_equal(rig_text(g, "t/etc/x"), "fine");
	assert_int_equal(put_one(g, '1', "hard", "../canary", ""), EINVAL);
	assert_int_equal(put_one(g, '1', "hard", g->canary, ""), ENOENT);
}

static void links_of_the_archive_are_not_walked_through(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	rig_mkdir(g, "t");
	craft(&b, '2', "door", g->base, "");
	craft(&b, '0', "door/canary", "", "evil");
	assert_int_equal(tar_write_end(&b), 0);
	assert_int_equal(put(g, &b, "t"), ELOOP);
	rig_check_canary(g);
	/* Nor through one that was there before, nor by a hard link whose way leads through it. */
	assert_int_equal(put_one(g, '0', "door/canary", "", "evil"), ELOOP);
	assert_int_equal(put_one(g, '5', "door/new", "", ""), ELOOP);
	assert_int_equal(put_one(g, '1', "hard", "door/canary", ""), ELOOP);
	/* A link where a file shall be is replaced, not followed. */
	rig_symlink(g, g->canary, "t/file");
	assert_int_equal(put_one(g, '0', "file", "", "mine"), 0);
	assert_string_equal(rig_text(g, "t/file"), "mine");
	assert_int_equal(put_one(g, '5', "door", "", ""), 0);
	assert_int_equal(put_one(g, '0', "door/canary", "", "mine"), 0);
}

static void a_hard_link_to_a_link_does_not_reach_its_target(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	rig_mkdir(g, "t");
	craft(&b, '2', "soft", g->canary, "");
	craft(&b, '1', "hard", "soft", "");
	craft(&b, '0', "hard", "", "mine");
	assert_int_equal(tar_write_end(&b), 0);
	assert_int_equal(put(g, &b, "t"), 0);
	assert_string_equal(rig_text(g, "t/hard"), "mine");
}

static void devices_are_refused_and_setuid_bits_dropped(void **state)
{
	struct rig *g = *state;
	struct stat st;

	rig_mkdir(g, "t");
	assert_int_equal(put_one(g, '3', "null", "", ""), EPERM);
	assert_int_equal(put_one(g, '4', "disk", "", ""), EPERM);
	assert_int_equal(put_one(g, '6', "fifo", "", ""), EPERM);
	assert_int_equal(rig_count(g, "t"), 0);
	assert_int_equal(put_one(g, '0', "su", "", "#!"), 0); /* craft() says 6777 and owner 0 */
	assert_int_equal(fstatat(g->root_fd, "t/su", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(put_one(g, '5', "sd", "", ""), 0);
	assert_int_equal(fstatat(g->root_fd, "t/sd", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
}

static void of_duplicates_the_last_wins(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	rig_mkdir(g, "t");
	craft(&b, '0', "x", "", "one");
	craft(&b, '5', "x", "", "");
	craft(&b, '2', "x", "nowhere", "");
	craft(&b, '0', "x", "", "two");
	assert_int_equal(tar_write_end(&b), 0);
	assert_int_equal(put(g, &b, "t"), 0);
	assert_string_equal(rig_text(g, "t/x"), "two");
	assert_int_equal(rig_count(g, "t"), 1);
	/* But a directory with something in it is not thrown away for a file. */
	assert_int_equal(put_one(g, '0', "d/f", "", "inner"), 0);
	assert_int_equal(put_one(g, '0', "d", "", "file"), EISDIR);
	assert_string_equal(rig_text(g, "t/d/f"), "inner");
}

static void a_cut_archive_leaves_only_whole_files(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 };

	rig_mkdir(g, "t");
	craft(&b, '0', "whole", "", "whole");
	craft(&b, '0', "half", "", "half");
	b.len -= TAR_BLOCK - 2;
	assert_int_equal(put(g, &b, "t"), EBADMSG);
	assert_string_equal(rig_text(g, "t/whole"), "whole");
	assert_int_equal(rig_count(g, "t"), 1);
}

static void a_cancelled_unpacking_leaves_no_half_file(void **state)
{
	struct rig *g = *state;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct rig_answer a = { 0 };
	struct rig_op op;

	rig_mkdir(g, "t");
	craft(&b, '0', "half", "", "half");
	op = rig_start(g, FILE_OP(.op = FILE_TAR_PUT, .path = "t"));
	rig_send(&op, G_DATA, b.data, TAR_BLOCK + 2);
	rig_send(&op, G_CANCEL, "", 0);
	rig_finish(&op, &a);
	assert_int_equal(a.error, ECANCELED);
	assert_int_equal(rig_count(g, "t"), 0);
}

/* A member that claims and sends gigabytes ends where the file size limit is, like a full disk. */
static void a_bomb_of_zeros_stops_at_the_limit(void **state)
{
	struct rig *g = *state;
	struct rlimit old, small = { 1u << 20, 1u << 20 };
	struct tar_member m = { .type = TAR_FILE, .mode = 0644, .path = "bomb", .link = "" };
	static const char zeros[GUEST_CHUNK];
	_cleanup_(buf_done) struct buf b = { 0 };
	struct rig_answer a = { 0 };
	struct rig_op op;

	m.size = 10ull << 30;
	assert_int_equal(tar_write_member(&b, &m), 0);
	rig_mkdir(g, "t");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	op = rig_start(g, FILE_OP(.op = FILE_TAR_PUT, .path = "t"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	rig_send(&op, G_DATA, b.data, b.len);
	for (unsigned i = 0; i < (2u << 20) / sizeof(zeros); i++)
		rig_send(&op, G_DATA, zeros, sizeof(zeros));
	rig_finish(&op, &a);
	assert_int_equal(a.error, EFBIG);
	assert_int_equal(rig_count(g, "t"), 0);
}

/* --- what cannot be packed ------------------------------------------------------------------- */

static void special_files_are_left_out_and_named(void **state)
{
	struct rig *g = *state;
	_close_ int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	struct rig_answer a;

	rig_mkdir(g, "t");
	rig_mkdir(g, "u");
	rig_write(g, "t/f", "text");
	rig_write(g, "t/secret", "text");
	rig_mkdir(g, "t/closed");
	assert_int_equal(fchmodat(g->root_fd, "t/secret", 0, 0), 0);
	assert_int_equal(fchmodat(g->root_fd, "t/closed", 0, 0), 0);
	assert_int_equal(mkfifoat(g->root_fd, "t/fifo", 0666), 0);
	(void)snprintf(where.sun_path, sizeof(where.sun_path), "%s/t/sock", g->root);
	assert_int_equal(bind(sock, (struct sockaddr *)&where, sizeof(where)), 0);
	rig_run(g, FILE_OP(.op = FILE_TAR_GET, .path = "t"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.entry_count, 4); /* fifo, sock, secret, and the inside of closed */
	assert_int_equal(put(g, &a.data, "u"), 0);
	rig_answer_done(&a);
	assert_string_equal(rig_text(g, "u/f"), "text");
	assert_int_equal(rig_count(g, "u"), 2);
}

static void a_sparse_giant_streams_until_it_is_cancelled(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { 0 };
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_head head;
	struct rd payload;
	struct rig_op op;
	size_t got = 0;

	rig_mkdir(g, "t");
	rig_write(g, "t/giant", "x");
	_close_ int fd = openat(g->root_fd, "t/giant", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1ll << 43), 0); /* what this file system can */
	op = rig_start(g, FILE_OP(.op = FILE_TAR_GET, .path = "t"));
	while (got < 4 * GUEST_WINDOW) {
		ssize_t n = fd_recv(op.sock, frame, sizeof(frame), NULL, NULL);

		assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
		assert_int_equal(head.type, G_DATA);
		got += head.len;
		rig_credit(&op, head.len);
	}
	rig_send(&op, G_CANCEL, "", 0);
	rig_finish(&op, &a);
	assert_int_equal(a.error, ECANCELED);
	assert_true(a.data.len <= GUEST_WINDOW);
	rig_answer_done(&a);
}

/* The header has gone out when the file changes: the archive stays well-formed, and it is told. */
static void check_changed(const struct rig *g, off_t size)
{
	const size_t before = 2 * GUEST_WINDOW;
	struct rig_answer a = { 0 };
	struct rig_op op;
	struct stat st;

	rig_write(g, "t/f", "");
	_close_ int fd = openat(g->root_fd, "t/f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)before), 0);
	op = rig_start(g, FILE_OP(.op = FILE_TAR_GET, .path = "t"));
	/* The window holds it back until we credit; one byte shows that it has begun. */
	assert_int_equal(recv(op.sock, &st, 1, MSG_PEEK), 1);
	assert_int_equal(ftruncate(fd, size), 0);
	rig_finish(&op, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.entry_count, 1);
	assert_string_equal(a.entries[0].path, "f");
	assert_int_equal(a.entries[0].e.size, size);
	assert_int_equal(put(g, &a.data, "u"), 0);
	rig_answer_done(&a);
	assert_int_equal(fstatat(g->root_fd, "u/f", &st, 0), 0);
	assert_int_equal(st.st_size, before);
}

static void a_file_that_changes_while_it_is_packed_is_told(void **state)
{
	struct rig *g = *state;

	rig_mkdir(g, "t");
	rig_mkdir(g, "u");
	check_changed(g, 10);
	check_changed(g, 8 * GUEST_WINDOW);
}

#define PURE(name) cmocka_unit_test(name)
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		PURE(what_is_written_is_read_back_in_any_pieces),
		PURE(owners_of_every_size_survive),
		PURE(who_asks_for_it_passes_over_devices),
		PURE(who_can_seek_need_not_read_a_member),
		PURE(names_of_every_length_survive),
		PURE(sizes_beyond_eight_gigabytes_are_told),
		PURE(what_is_no_archive_is_refused_with_a_reason),
		PURE(one_wrong_bit_in_a_header_is_seen),
		PURE(an_archive_cut_anywhere_is_an_error),
		PURE(numbers_in_base_256_are_read),
		TEST(a_tree_survives_being_got_and_put),
		TEST(gnu_tar_unpacks_what_we_packed),
		TEST(we_unpack_what_gnu_tar_packed),
		TEST(hard_links_of_an_archive_are_made_inside),
		TEST(one_file_becomes_an_archive_of_one),
		TEST(paths_that_lead_out_are_refused),
		TEST(links_of_the_archive_are_not_walked_through),
		TEST(a_hard_link_to_a_link_does_not_reach_its_target),
		TEST(devices_are_refused_and_setuid_bits_dropped),
		TEST(of_duplicates_the_last_wins),
		TEST(a_cut_archive_leaves_only_whole_files),
		TEST(a_cancelled_unpacking_leaves_no_half_file),
		TEST(a_bomb_of_zeros_stops_at_the_limit),
		TEST(special_files_are_left_out_and_named),
		TEST(a_sparse_giant_streams_until_it_is_cancelled),
		TEST(a_file_that_changes_while_it_is_packed_is_told),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
