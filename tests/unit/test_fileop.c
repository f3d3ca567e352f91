/* The file operations, each run as holt-init runs it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "check.h"
#include "fileop_rig.h"
#include "spec/file_version.h"

#define FILE_OP(...) (&(struct guest_file){ __VA_ARGS__ })

static int write_text(const struct rig *g, const char *path, const char *text)
{
	return rig_do(g, FILE_OP(.op = FILE_WRITE, .path = path), text, strlen(text));
}

static void stat_tells_what_a_file_is(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_write(g, "f", "12345");
	rig_run(g, FILE_OP(.op = FILE_STAT, .path = "/f"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, 1);
	assert_int_equal(a.entry_count, 1);
	assert_int_equal(a.entries[0].e.type, ENTRY_FILE);
	assert_int_equal(a.entries[0].e.size, 5);
	assert_int_equal(a.entries[0].e.mode, 0644);
	assert_int_equal(a.entries[0].e.uid, geteuid());
	assert_string_equal(a.entries[0].path, "/f");
}

static void stat_follows_a_link_unless_told_not_to(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_write(g, "f", "12345");
	rig_symlink(g, "/f", "l");
	rig_run(g, FILE_OP(.op = FILE_STAT, .path = "l"), NULL, 0, &a);
	assert_int_equal(a.entries[0].e.type, ENTRY_FILE);
	rig_run(g, FILE_OP(.op = FILE_STAT, .path = "l", .flags = FILE_NOFOLLOW), NULL, 0, &a);
	assert_int_equal(a.entries[0].e.type, ENTRY_SYMLINK);
	assert_string_equal(a.entries[0].target, "/f");
}

static void stat_of_nothing_is_enoent_with_a_text(void **state)
{
	struct rig_answer a;

	rig_run(*state, FILE_OP(.op = FILE_STAT, .path = "/none"), NULL, 0, &a);
	assert_int_equal(a.error, ENOENT);
	assert_string_equal(a.text, "open '/none': No such file or directory");
}

static void list_goes_as_deep_as_asked(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_mkdir(g, "d");
	rig_mkdir(g, "d/e");
	rig_write(g, "d/e/f", "x");
	rig_symlink(g, "/d", "d/up"); /* shown, never followed */
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/d"), NULL, 0, &a);
	assert_int_equal(a.done, 2);
	assert_int_equal(a.entry_count, 2);
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/d", .depth = 9), NULL, 0, &a);
	assert_int_equal(a.done, 3);
	for (unsigned i = 0; i < 3; i++)
		if (a.entries[i].e.type == ENTRY_FILE)
			assert_string_equal(a.entries[i].path, "e/f");
}

static void list_passes_strange_names_through(void **state)
{
	static const char *const names[] = { "new\nline", "\xff\xfe", "-rf", " ", "a\tb\x1b[31m" };
	struct rig *g = *state;
	struct rig_answer a;
	char longest[256];
	unsigned found = 0;

	memset(longest, 'n', 255);
	longest[255] = '\0';
	rig_write(g, longest, "");
	for (unsigned i = 0; i < 5; i++)
		rig_write(g, names[i], "");
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/"), NULL, 0, &a);
	assert_int_equal(a.done, 6);
	for (unsigned i = 0; i < 6; i++)
		for (unsigned k = 0; k < 5; k++)
			found += strcmp(a.entries[i].path, names[k]) == 0;
	assert_int_equal(found, 5);
	assert_int_equal(a.longest_path, 255);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_do(g, FILE_OP(.op = FILE_REMOVE, .path = names[i]), NULL, 0),
				 0);
	assert_int_equal(rig_count(g, "."), 1);
}

static void list_of_a_file_is_enotdir(void **state)
{
	rig_write(*state, "f", "");
	assert_int_equal(rig_do(*state, FILE_OP(.op = FILE_LIST, .path = "f"), NULL, 0), ENOTDIR);
}

static void read_gives_the_range_asked_for(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_write(g, "f", "0123456789");
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "/f"), NULL, 0, &a);
	assert_string_equal(buf_str(&a.data), "0123456789");
	assert_int_equal(a.done, 10);
	assert_int_equal(a.entries[0].e.size, 10);
	rig_answer_done(&a);
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "/f", .offset = 3, .length = 4), NULL, 0, &a);
	assert_string_equal(buf_str(&a.data), "3456");
	rig_answer_done(&a);
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "/f", .offset = 8, .length = 40), NULL, 0, &a);
	assert_string_equal(buf_str(&a.data), "89");
	rig_answer_done(&a);
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "/f", .offset = 99), NULL, 0, &a);
	assert_int_equal(a.done, 0);
	rig_answer_done(&a);
}

static void read_of_a_proc_file_goes_to_its_end(void **state)
{
	struct rig whole = *(struct rig *)*state;
	_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct rig_answer a;

	whole.root_fd = fd;
	rig_run(&whole, FILE_OP(.op = FILE_READ, .path = "/proc/version"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	assert_true(a.done > 0);
	rig_answer_done(&a);
}

static void read_never_waits_for_a_fifo_socket_or_device(void **state)
{
	struct rig *g = *state, whole = *g;
	_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_close_ int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	struct rig_answer a;

	(void)snprintf(where.sun_path, sizeof(where.sun_path), "%s/sock", g->root);
	assert_int_equal(bind(sock, (struct sockaddr *)&where, sizeof(where)), 0);
	assert_int_equal(mkfifoat(g->root_fd, "fifo", 0666), 0);
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "/fifo"), NULL, 0, &a);
	assert_int_equal(a.error, EINVAL);
	assert_string_equal(a.text, "'/fifo' is not a regular file");
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_READ, .path = "/sock"), NULL, 0), EINVAL);
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_READ, .path = "/"), NULL, 0), EISDIR);
	assert_int_equal(write_text(g, "/fifo", "x"), EINVAL);
	assert_int_equal(write_text(g, "/sock", "x"), EINVAL);
	whole.root_fd = fd;
	assert_int_equal(rig_do(&whole, FILE_OP(.op = FILE_READ, .path = "/dev/zero"), NULL, 0),
			 EINVAL);
	assert_int_equal(write_text(&whole, "/dev/null", "x"), EINVAL);
}

static void write_replaces_in_one_step_and_keeps_the_mode(void **state)
{
	struct rig *g = *state;
	struct stat before, after;

	rig_write(g, "f", "old");
	assert_int_equal(fchmodat(g->root_fd, "f", 0751, 0), 0);
	assert_int_equal(fstatat(g->root_fd, "f", &before, 0), 0);
	assert_int_equal(write_text(g, "/f", "new"), 0);
	assert_string_equal(rig_text(g, "f"), "new");
	assert_int_equal(fstatat(g->root_fd, "f", &after, 0), 0);
	assert_true(before.st_ino != after.st_ino); /* whoever maps the old one keeps it */
	assert_int_equal(after.st_mode & 07777, 0751);
	assert_int_equal(rig_count(g, "."), 1);
}

static void write_makes_parents_only_when_asked(void **state)
{
	struct rig *g = *state;
	struct guest_file f = { .op = FILE_WRITE, .path = "a/b/../c/f", .mode = 0600 };

	assert_int_equal(rig_do(g, &f, "x", 1), ENOENT);
	f.flags = FILE_PARENTS;
	assert_int_equal(rig_do(g, &f, "x", 1), 0);
	assert_string_equal(rig_text(g, "a/c/f"), "x");
	assert_int_equal(rig_do(g, &f, "y", 1), 0);
}

static void write_can_append_and_can_refuse_to_replace(void **state)
{
	struct rig *g = *state;
	struct guest_file f = { .op = FILE_WRITE, .path = "f", .flags = FILE_APPEND };

	assert_int_equal(rig_do(g, &f, "one ", 4), 0);
	assert_int_equal(rig_do(g, &f, "two", 3), 0);
	assert_string_equal(rig_text(g, "f"), "one two");
	f.flags = FILE_EXCL;
	assert_int_equal(rig_do(g, &f, "three", 5), EEXIST);
	f.path = "g";
	assert_int_equal(rig_do(g, &f, "three", 5), 0);
	assert_string_equal(rig_text(g, "g"), "three");
}

static void version_of(const struct rig *g, const char *name, char dst[FILE_VERSION_SIZE])
{
	struct rig_answer a;

	rig_run(g, FILE_OP(.op = FILE_STAT, .path = name), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	file_version(dst, a.entries[0].e.inode, a.entries[0].e.mtime_ns, a.entries[0].e.size);
	rig_answer_done(&a);
}

static void write_replaces_the_version_it_was_told_and_no_other(void **state)
{
	struct rig *g = *state;
	char version[FILE_VERSION_SIZE];
	struct guest_file f = { .op = FILE_WRITE, .path = "f", .target = version };

	rig_write(g, "f", "one");
	version_of(g, "f", version);
	assert_int_equal(rig_do(g, &f, "two", 3), 0);
	assert_int_equal(rig_do(g, &f, "three", 5), ESTALE);
	assert_string_equal(rig_text(g, "f"), "two");
	f.path = "none";
	assert_int_equal(rig_do(g, &f, "x", 1), ESTALE);
	assert_false(rig_exists(g, "none"));
	f.path = "f";
	f.flags = FILE_APPEND;
	assert_int_equal(rig_do(g, &f, "x", 1), EINVAL);
	assert_int_equal(rig_count(g, "."), 1);
}

static void set_lock(const struct rig *g, short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };

	assert_int_equal(fcntl(g->lock_fd, F_SETLKW, &whole), 0);
}

/* Its temporary file is there, whole, and it goes no further. */
static void wait_until_whole(const struct rig *g, size_t n)
{
	struct stat st = { 0 };
	struct dirent *e;

	for (int i = 0; i < 5000 && (size_t)st.st_size != n; i++) {
		DIR *d = fdopendir(dup(g->root_fd));

		assert_non_null(d);
		rewinddir(d);
		while ((e = readdir(d)))
			if (strncmp(e->d_name, ".holt-", 6) == 0)
				(void)fstatat(g->root_fd, e->d_name, &st, 0);
		(void)closedir(d);
		(void)usleep(1000);
	}
	assert_int_equal(st.st_size, n);
	(void)usleep(50000); /* enough for who does not wait to be through */
}

static void two_writers_of_one_version_do_not_both_win(void **state)
{
	struct rig *g = *state;
	char version[FILE_VERSION_SIZE];
	struct guest_file f = { .op = FILE_WRITE, .path = "f", .target = version };
	struct rig_answer a = { 0 };
	struct rig_op op;

	rig_write(g, "f", "one");
	version_of(g, "f", version);
	set_lock(g, F_WRLCK); /* as the one does who is about to win */
	op = rig_start(g, &f);
	rig_send(&op, G_DATA, "late", 4);
	rig_send(&op, G_DATA, "", 0);
	wait_until_whole(g, 4);
	assert_int_equal(unlinkat(g->root_fd, "f", 0), 0);
	rig_write(g, "f", "two");
	set_lock(g, F_UNLCK);
	rig_finish(&op, &a);
	assert_int_equal(a.error, ESTALE);
	rig_answer_done(&a);
	assert_string_equal(rig_text(g, "f"), "two");
	assert_int_equal(rig_count(g, "."), 1);
}

/* Who is between the look at a version and the new name has the lock: until then nobody takes or
 * gives a name. */
static void names_wait_for_who_is_about_to_give_one(void **state)
{
	static const struct {
		struct guest_file f;
		const char *gone, *made;
	} rows[] = {
		{ { .op = FILE_RENAME, .path = "a", .target = "b" }, "a", "b" },
		{ { .op = FILE_REMOVE, .path = "c", .target = "" }, "c", NULL },
		{ { .op = FILE_REMOVE, .path = "d", .target = "", .flags = FILE_RECURSIVE },
		  "d/e",
		  NULL },
	};
	struct rig *g = *state;

	rig_write(g, "a", "1");
	rig_write(g, "c", "1");
	rig_mkdir(g, "d");
	rig_write(g, "d/e", "1");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig_answer a = { 0 };
		struct rig_op op;

		set_lock(g, F_WRLCK);
		op = rig_start(g, &rows[i].f);
		(void)usleep(50000); /* enough for who does not wait to be through */
		assert_true(rig_exists(g, rows[i].gone));
		set_lock(g, F_UNLCK);
		rig_finish(&op, &a);
		assert_int_equal(a.error, 0);
		rig_answer_done(&a);
		assert_false(rig_exists(g, rows[i].gone));
		assert_true(!rows[i].made || rig_exists(g, rows[i].made));
	}
}

static void write_of_megabytes_arrives_whole(void **state)
{
	struct rig *g = *state;
	const size_t n = 3u << 20;
	_free_ char *data = malloc(n);
	struct rig_answer a;

	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = (char)(i * 2654435761u >> 13);
	rig_run(g, FILE_OP(.op = FILE_WRITE, .path = "big"), data, n, &a);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.done, n);
	assert_int_equal(a.taken, n);
	rig_run(g, FILE_OP(.op = FILE_READ, .path = "big"), NULL, 0, &a);
	assert_int_equal(a.data.len, n);
	assert_memory_equal(a.data.data, data, n);
	rig_answer_done(&a);
}

static void a_cancelled_write_leaves_the_old_file_and_nothing_else(void **state)
{
	struct rig *g = *state;
	struct rig_answer a = { 0 };
	struct rig_op op;

	rig_write(g, "f", "old");
	op = rig_start(g, FILE_OP(.op = FILE_WRITE, .path = "f"));
	rig_send(&op, G_DATA, "half", 4);
	rig_send(&op, G_CANCEL, "", 0);
	rig_finish(&op, &a);
	assert_int_equal(a.error, ECANCELED);
	assert_string_equal(rig_text(g, "f"), "old");
	assert_int_equal(rig_count(g, "."), 1);
}

static void a_client_that_goes_away_is_a_cancel(void **state)
{
	struct rig *g = *state;
	struct rig_op op;

	rig_write(g, "f", "old");
	op = rig_start(g, FILE_OP(.op = FILE_WRITE, .path = "f"));
	rig_send(&op, G_DATA, "half", 4);
	assert_int_equal(shutdown(op.sock, SHUT_WR), 0);
	rig_finish(&op, &(struct rig_answer){ 0 });
	assert_string_equal(rig_text(g, "f"), "old");
	assert_int_equal(rig_count(g, "."), 1);
}

static void mkdir_is_like_the_command(void **state)
{
	struct rig *g = *state;
	struct guest_file f = { .op = FILE_MKDIR, .path = "/a/b", .mode = 0700 };
	struct stat st;

	assert_int_equal(rig_do(g, &f, NULL, 0), ENOENT);
	f.flags = FILE_PARENTS;
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	assert_int_equal(fstatat(g->root_fd, "a/b", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	f.flags = 0;
	assert_int_equal(rig_do(g, &f, NULL, 0), EEXIST);
	f.path = "/";
	assert_int_equal(rig_do(g, &f, NULL, 0), EINVAL);
	rig_write(g, "file", "");
	f.path = "/file/x";
	f.flags = FILE_PARENTS;
	assert_int_equal(rig_do(g, &f, NULL, 0), ENOTDIR);
}

static void rename_moves_and_replaces(void **state)
{
	struct rig *g = *state;
	struct guest_file f = { .op = FILE_RENAME, .path = "a", .target = "sub/b" };

	rig_write(g, "a", "A");
	assert_int_equal(rig_do(g, &f, NULL, 0), ENOENT);
	f.flags = FILE_PARENTS;
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	assert_string_equal(rig_text(g, "sub/b"), "A");
	assert_false(rig_exists(g, "a"));
	rig_write(g, "a", "A2");
	f.flags = FILE_EXCL;
	assert_int_equal(rig_do(g, &f, NULL, 0), EEXIST);
	f.flags = 0;
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	assert_string_equal(rig_text(g, "sub/b"), "A2");
	assert_int_equal(rig_do(g, FILE_OP(.op = FILE_RENAME, .path = "/", .target = "x"), NULL, 0),
			 EINVAL);
}

static void chmod_sets_bits_but_never_setuid(void **state)
{
	struct rig *g = *state;
	struct guest_file f = { .op = FILE_CHMOD, .path = "f", .mode = 0 };
	struct rig_answer a;
	struct stat st;

	rig_write(g, "f", "");
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	f.mode = 0755; /* and back, although nobody may read it */
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	assert_int_equal(fstatat(g->root_fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	f.mode = 04755;
	rig_run(g, &f, NULL, 0, &a);
	assert_int_equal(a.error, EPERM);
	assert_string_equal(a.text, "mode 4755: set-user-id and set-group-id are refused");
	f.op = FILE_WRITE;
	f.mode = 02755;
	assert_int_equal(rig_do(g, &f, "", 0), EPERM);
	f.op = FILE_MKDIR;
	f.path = "d";
	assert_int_equal(rig_do(g, &f, NULL, 0), EPERM);
}

static void remove_takes_trees_only_when_asked(void **state)
{
	struct rig *g = *state;
	struct guest_file f = { .op = FILE_REMOVE, .path = "d" };

	rig_mkdir(g, "d");
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	rig_mkdir(g, "d");
	rig_mkdir(g, "d/closed");
	rig_write(g, "d/closed/f", "");
	assert_int_equal(fchmodat(g->root_fd, "d/closed", 0, 0), 0);
	rig_symlink(g, g->base, "d/out");
	assert_int_equal(rig_do(g, &f, NULL, 0), ENOTEMPTY);
	f.flags = FILE_RECURSIVE;
	assert_int_equal(rig_do(g, &f, NULL, 0), 0);
	assert_false(rig_exists(g, "d"));
	assert_int_equal(rig_do(g, &f, NULL, 0), ENOENT);
	f.path = "/";
	assert_int_equal(rig_do(g, &f, NULL, 0), EINVAL);
}

/* Whatever allocation fails: a clean error, nothing left behind, nothing leaked. A few may fail
 * unseen (a directory's time is then not restored). The first is the operation itself. */
static void check_out_of_memory(struct rig *g, const struct guest_file *f, const struct buf *in)
{
	const unsigned before = rig_count(g, "d");
	int code;

	for (g->fail_allocation = 2; g->fail_allocation < 40; g->fail_allocation++) {
		code = rig_do(g, f, in->data, in->len);
		assert_true(code == 0 || code == ENOMEM);
		assert_int_equal(rig_count(g, "d"), before);
	}
	g->fail_allocation = 0;
}

static void without_memory_an_operation_fails_cleanly(void **state)
{
	struct rig *g = *state;
	struct rig_answer a;

	rig_mkdir(g, "d");
	rig_mkdir(g, "d/e");
	rig_write(g,
		  "d/e/a name that does not fit into the header of a member of an archive, because "
		  "that has room for no more than a hundred bytes",
		  "text");
	rig_run(g, FILE_OP(.op = FILE_TAR_GET, .path = "d"), NULL, 0, &a);
	assert_int_equal(a.error, 0);
	check_out_of_memory(g, FILE_OP(.op = FILE_LIST, .path = "d", .depth = 9), &a.data);
	check_out_of_memory(g, FILE_OP(.op = FILE_TAR_GET, .path = "d"), &a.data);
	check_out_of_memory(g, FILE_OP(.op = FILE_TAR_PUT, .path = "d"), &a.data);
	rig_answer_done(&a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(stat_tells_what_a_file_is),
		TEST(stat_follows_a_link_unless_told_not_to),
		TEST(stat_of_nothing_is_enoent_with_a_text),
		TEST(list_goes_as_deep_as_asked),
		TEST(list_passes_strange_names_through),
		TEST(list_of_a_file_is_enotdir),
		TEST(read_gives_the_range_asked_for),
		TEST(read_of_a_proc_file_goes_to_its_end),
		TEST(read_never_waits_for_a_fifo_socket_or_device),
		TEST(write_replaces_in_one_step_and_keeps_the_mode),
		TEST(write_makes_parents_only_when_asked),
		TEST(write_can_append_and_can_refuse_to_replace),
		TEST(write_replaces_the_version_it_was_told_and_no_other),
		TEST(two_writers_of_one_version_do_not_both_win),
		TEST(names_wait_for_who_is_about_to_give_one),
		TEST(write_of_megabytes_arrives_whole),
		TEST(a_cancelled_write_leaves_the_old_file_and_nothing_else),
		TEST(a_client_that_goes_away_is_a_cancel),
		TEST(mkdir_is_like_the_command),
		TEST(rename_moves_and_replaces),
		TEST(chmod_sets_bits_but_never_setuid),
		TEST(remove_takes_trees_only_when_asked),
		TEST(without_memory_an_operation_fails_cleanly),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
