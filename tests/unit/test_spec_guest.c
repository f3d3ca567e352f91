#include "spec/guest.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "frame.h"

/* One full example of each message. */
static const struct guest_exec exec_example = {
	.kind = EXEC_COMMAND,
	.flags = EXEC_PTY | EXEC_STDIN | EXEC_LOGIN | EXEC_KEEP,
	.rows = 50,
	.cols = 132,
	.timeout_ms = 30000,
	.grace_ms = 100,
	.cpu_seconds = 7,
	.output_limit = 1ull << 40,
	.user = "agent",
	.cwd = "/workspace",
	.code = "",
	.tag = "0123456789abcdef0123456789abcdef",
	.argc = 3,
	.envc = 2,
	.argv = { "sh", "-c", "" },
	.envp = { "A=", "PATH=/bin" },
};

static const struct guest_exit exit_example = {
	255, EXIT_TIMED_OUT | EXIT_TRUNCATED, 1, 2, 3, 4, UINT64_MAX
};

static const struct guest_live live_example = {
	.id = 9,
	.pid = 77,
	.flags = LIVE_ENDED | LIVE_PTY | LIVE_STDIN | LIVE_WARM,
	.age_ms = 1ull << 33,
	.offset = { UINT64_MAX, 1 },
	.stdin_taken = 1ull << 34,
	.stdin_kept = GUEST_WINDOW,
	.tag = "exec 5",
};

static const struct guest_ready ready_example = { 9, 1, 2, 1, 300, ENOPKG, "no x" };

static const struct guest_ready ready_plain = { .version = 9, .live = 300 };

static const struct guest_file file_example = {
	.op = FILE_TAR_PUT,
	.flags = FILE_RECURSIVE | FILE_EXCL,
	.mode = 07777,
	.depth = 3,
	.offset = 5,
	.length = INT64_MAX,
	.user = "",
	.path = "/a b",
	.target = "c",
};

static const struct guest_entry entry_example = {
	.type = ENTRY_SYMLINK,
	.mode = 0120777,
	.uid = 1000,
	.gid = 1001,
	.size = 99,
	.mtime_ns = 123456789,
	.inode = 77,
	.path = "l",
	.target = "../x",
};

static uint8_t frame[WIRE_FRAME_MAX];

/* Decoders that leave a mark in what must stay untouched, and read every string to its end. */
#define DECODER(name, type, get, touch)                                            \
	static type name##_got;                                                    \
	static int decode_##name(struct rd *r)                                     \
	{                                                                          \
		static type before;                                                \
		int ret;                                                           \
		memset(&name##_got, 0xa5, sizeof(name##_got));                     \
		memcpy(&before, &name##_got, sizeof(before));                      \
		ret = get(r, &name##_got);                                         \
		if (ret < 0) {                                                     \
			assert_memory_equal(&before, &name##_got, sizeof(before)); \
			return ret;                                                \
		}                                                                  \
		touch(&name##_got);                                                \
		return 0;                                                          \
	}

static size_t touched; /* so that no read is optimised away */

static void touch_exec(const struct guest_exec *e)
{
	touched += strlen(e->user) + strlen(e->cwd) + strlen(e->code) + strlen(e->tag);
	for (size_t i = 0; i < e->argc; i++)
		touched += strlen(e->argv[i]);
	for (size_t i = 0; i < e->envc; i++)
		touched += strlen(e->envp[i]);
	assert_null(e->argv[e->argc]);
	assert_null(e->envp[e->envc]);
}

static void touch_file(const struct guest_file *f)
{
	touched += strlen(f->user) + strlen(f->path) + strlen(f->target);
	if (guest_is_search(f->op))
		touched += strlen(f->search.name) + strlen(f->search.exclude) +
			   strlen(f->search.pattern) + strlen(f->search.replacement);
}

static void touch_found(const struct guest_found *f)
{
	touched += strlen(f->path) + strlen(f->text);
}

static void touch_entry(const struct guest_entry *e)
{
	touched += strlen(e->path) + strlen(e->target);
}

static void touch_exit(const struct guest_exit *e)
{
	touched += e->code;
}

static void touch_ready(const struct guest_ready *e)
{
	touched += e->version;
}

static void touch_live(const struct guest_live *e)
{
	assert_true(e->id != 0);
	touched += strlen(e->tag);
}

static int get_live(struct rd *r, struct guest_live *ret)
{
	return guest_get_live(r, 9, ret);
}

DECODER(exec, struct guest_exec, guest_get_exec, touch_exec)
DECODER(exit, struct guest_exit, guest_get_exit, touch_exit)
DECODER(file, struct guest_file, guest_get_file, touch_file)
DECODER(entry, struct guest_entry, guest_get_entry, touch_entry)
DECODER(found, struct guest_found, guest_get_found, touch_found)
DECODER(live, struct guest_live, get_live, touch_live)
DECODER(ready, struct guest_ready, guest_get_ready, touch_ready)

/* The frame's head must say this; the payload is decoded where it lies. */
static int open_and(frame_decode *decode, long n, uint16_t type, uint32_t id)
{
	struct wire_head head;
	struct rd r;

	assert_true(n > 0);
	assert_int_equal(wire_open(frame, (size_t)n, &head, &r), 0);
	assert_int_equal(head.type, type);
	assert_int_equal(head.id, id);
	return decode(&r);
}

static int try_exec(const struct guest_exec *e)
{
	return open_and(decode_exec, guest_put_exec(frame, sizeof(frame), 5, e), G_EXEC, 5);
}

static int try_exit(const struct guest_exit *e)
{
	return open_and(decode_exit, guest_put_exit(frame, sizeof(frame), 6, e), G_EXIT, 6);
}

static int try_file(const struct guest_file *f)
{
	return open_and(decode_file, guest_put_file(frame, sizeof(frame), 7, f), G_FILE, 7);
}

static int try_entry(const struct guest_entry *e)
{
	return open_and(decode_entry, guest_put_entry(frame, sizeof(frame), 8, e), G_ENTRY, 8);
}

static int try_found(const struct guest_found *f)
{
	return open_and(decode_found, guest_put_found(frame, sizeof(frame), 8, f), G_FOUND, 8);
}

static int try_live(const struct guest_live *e)
{
	return open_and(decode_live, guest_put_live(frame, sizeof(frame), e), G_LIVE, e->id);
}

static int try_ready(const struct guest_ready *e)
{
	return open_and(decode_ready, guest_put_ready(frame, sizeof(frame), e), G_READY, 0);
}

static void an_execution_comes_back_as_it_was(void **state)
{
	const struct guest_exec *e = &exec_example, *got = &exec_got;

	(void)state;
	assert_int_equal(try_exec(e), 0);
	assert_int_equal(got->kind, e->kind);
	assert_int_equal(got->flags, e->flags);
	assert_int_equal(got->rows, e->rows);
	assert_int_equal(got->cols, e->cols);
	assert_int_equal(got->timeout_ms, e->timeout_ms);
	assert_int_equal(got->grace_ms, e->grace_ms);
	assert_int_equal(got->cpu_seconds, e->cpu_seconds);
	assert_true(got->output_limit == e->output_limit);
	assert_string_equal(got->user, e->user);
	assert_string_equal(got->cwd, e->cwd);
	assert_string_equal(got->code, e->code);
	assert_string_equal(got->tag, e->tag);
	assert_int_equal(got->argc, e->argc);
	assert_int_equal(got->envc, e->envc);
	for (size_t i = 0; i < e->argc; i++)
		assert_string_equal(got->argv[i], e->argv[i]);
	for (size_t i = 0; i < e->envc; i++)
		assert_string_equal(got->envp[i], e->envp[i]);
}

static void the_other_messages_come_back_as_they_were(void **state)
{
	(void)state;
	assert_int_equal(try_exit(&exit_example), 0);
	assert_memory_equal(&exit_got, &exit_example, sizeof(exit_got));
	assert_int_equal(try_file(&file_example), 0);
	assert_int_equal(file_got.op, file_example.op);
	assert_int_equal(file_got.flags, file_example.flags);
	assert_int_equal(file_got.mode, file_example.mode);
	assert_int_equal(file_got.depth, file_example.depth);
	assert_true(file_got.offset == file_example.offset);
	assert_true(file_got.length == file_example.length);
	assert_string_equal(file_got.path, file_example.path);
	assert_string_equal(file_got.target, file_example.target);
	assert_int_equal(try_entry(&entry_example), 0);
	assert_int_equal(entry_got.type, entry_example.type);
	assert_int_equal(entry_got.mode, entry_example.mode);
	assert_int_equal(entry_got.uid, entry_example.uid);
	assert_int_equal(entry_got.gid, entry_example.gid);
	assert_true(entry_got.size == entry_example.size);
	assert_true(entry_got.mtime_ns == entry_example.mtime_ns);
	assert_true(entry_got.inode == entry_example.inode);
	assert_string_equal(entry_got.path, entry_example.path);
	assert_string_equal(entry_got.target, entry_example.target);
	assert_int_equal(try_ready(&ready_example), 0);
	assert_int_equal(ready_got.version, 9);
	assert_int_equal(ready_got.warm_python, 1);
	assert_int_equal(ready_got.warm_node, 2);
	assert_int_equal(ready_got.resumed, 1);
	assert_int_equal(ready_got.live, 300);
	assert_int_equal(ready_got.why_code, ENOPKG);
	assert_string_equal(ready_got.why, "no x");
}

static void what_lives_comes_back_as_it_was(void **state)
{
	(void)state;
	assert_int_equal(try_live(&live_example), 0);
	assert_int_equal(live_got.id, live_example.id);
	assert_int_equal(live_got.pid, live_example.pid);
	assert_int_equal(live_got.flags, live_example.flags);
	assert_true(live_got.age_ms == live_example.age_ms);
	assert_true(live_got.offset[0] == UINT64_MAX);
	assert_true(live_got.offset[1] == 1);
	assert_true(live_got.stdin_taken == live_example.stdin_taken);
	assert_int_equal(live_got.stdin_kept, GUEST_WINDOW);
	assert_string_equal(live_got.tag, "exec 5");
}

static void what_lives_out_of_bounds_is_refused(void **state)
{
	struct guest_live e = live_example;
	struct guest_ready ready = ready_example;

	(void)state;
	e.flags = 1 << 4;
	assert_int_equal(try_live(&e), -EINVAL);
	e = live_example;
	e.stdin_kept = GUEST_WINDOW + 1;
	assert_int_equal(try_live(&e), -EINVAL);
	e = live_example;
	e.tag = "0123456789abcdef0123456789abcdef!";
	assert_int_equal(try_live(&e), -EINVAL);
	ready.why_code = 0; /* and then it is not sent, as by a box that knows nothing of it */
	assert_int_equal(try_ready(&ready), 0);
	assert_string_equal(ready_got.why, "");
	ready.resumed = 2;
	assert_int_equal(try_ready(&ready), -EINVAL);
}

static void nothing_lives_under_the_id_zero(void **state)
{
	struct guest_live got;
	struct wire_head head;
	struct rd r;
	long n = guest_put_live(frame, sizeof(frame), &live_example);

	(void)state;
	assert_int_equal(wire_open(frame, (size_t)n, &head, &r), 0);
	assert_int_equal(guest_get_live(&r, 0, &got), -EINVAL);
}

static void as_many_arguments_as_allowed_and_no_more(void **state)
{
	static struct guest_exec e;

	(void)state;
	e = exec_example;
	e.argc = e.envc = GUEST_ARGS_MAX;
	for (size_t i = 0; i < GUEST_ARGS_MAX; i++) {
		e.argv[i] = "x";
		e.envp[i] = "A=b";
	}
	assert_int_equal(try_exec(&e), 0);
	assert_int_equal(exec_got.argc, GUEST_ARGS_MAX);
	assert_int_equal(exec_got.envc, GUEST_ARGS_MAX);
	e.argc = GUEST_ARGS_MAX + 1;
	assert_int_equal(guest_put_exec(frame, sizeof(frame), 1, &e), -E2BIG);
	e.argc = 1;
	e.envc = GUEST_ARGS_MAX + 1;
	assert_int_equal(guest_put_exec(frame, sizeof(frame), 1, &e), -E2BIG);
}

/* A sender that lies about the count: it is refused before anything is stored. */
static int exec_with_counts(uint32_t argc, uint32_t envc, size_t strings)
{
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_EXEC, 5);
	wr_u16(&w, 0); /* kind, flags */
	wr_u32(&w, 0); /* rows, cols */
	for (int i = 0; i < 3; i++)
		wr_u32(&w, 0);
	wr_u64(&w, 0);
	for (int i = 0; i < 4; i++)
		wr_str(&w, "");
	wr_u32(&w, argc);
	for (size_t i = 0; i < strings; i++)
		wr_str(&w, "x");
	wr_u32(&w, envc);
	return open_and(decode_exec, wire_finish(&w), G_EXEC, 5);
}

static void a_count_that_lies_is_refused(void **state)
{
	(void)state;
	assert_int_equal(exec_with_counts(2, 0, 2), 0);
	assert_int_equal(exec_with_counts(GUEST_ARGS_MAX + 1, 0, GUEST_ARGS_MAX + 1), -EINVAL);
	assert_int_equal(exec_with_counts(UINT32_MAX, 0, 2), -EINVAL);
	assert_int_equal(exec_with_counts(2, UINT32_MAX, 2), -EINVAL);
	assert_int_equal(exec_with_counts(3, 0, 2), -EPROTO);
	assert_int_equal(exec_with_counts(1, 0, 2), -EPROTO);
	assert_int_equal(exec_with_counts(2, 1, 2), -EPROTO);
}

static void an_execution_out_of_bounds_is_refused(void **state)
{
	struct guest_exec e = exec_example;

	(void)state;
	e.kind = EXEC_KIND_COUNT;
	assert_int_equal(try_exec(&e), -EINVAL);
	e = exec_example;
	e.flags = 1 << 6;
	assert_int_equal(try_exec(&e), -EINVAL);
	e.flags = EXEC_SHELL;
	e.argc = 2; /* no line behind the shell */
	assert_int_equal(try_exec(&e), -EINVAL);
	e = exec_example;
	e.argc = 0;
	assert_int_equal(try_exec(&e), -EINVAL);
	e = exec_example;
	e.code = "print()"; /* nothing would run it */
	assert_int_equal(try_exec(&e), -EINVAL);
	e.kind = EXEC_PYTHON;
	e.argc = 0;
	e.tag = "0123456789abcdef0123456789abcdef!";
	assert_int_equal(try_exec(&e), -EINVAL);
	e.tag = "";
	assert_int_equal(try_exec(&e), 0);
	assert_string_equal(exec_got.code, "print()");
	e.envp[1] = "=x";
	assert_int_equal(try_exec(&e), -EINVAL);
	e.envp[1] = "PATH";
	assert_int_equal(try_exec(&e), -EINVAL);
}

static void an_exit_out_of_bounds_is_refused(void **state)
{
	struct guest_exit e = exit_example;

	(void)state;
	e.code = 256;
	assert_int_equal(try_exit(&e), -EINVAL);
	e.flags = EXIT_SIGNALED;
	e.code = 64;
	assert_int_equal(try_exit(&e), 0);
	e.code = 65;
	assert_int_equal(try_exit(&e), -EINVAL);
	e.code = 0;
	assert_int_equal(try_exit(&e), -EINVAL);
	e.flags = 1 << 5;
	assert_int_equal(try_exit(&e), -EINVAL);
}

static void a_file_operation_out_of_bounds_is_refused(void **state)
{
	struct guest_file f = file_example;

	(void)state;
	f.op = FILE_OP_COUNT;
	assert_int_equal(try_file(&f), -EINVAL);
	f = file_example;
	f.flags = 1 << 16;
	assert_int_equal(try_file(&f), -EINVAL);
	f = file_example;
	f.mode = 010000;
	assert_int_equal(try_file(&f), -EINVAL);
	f = file_example;
	f.offset = (uint64_t)INT64_MAX + 1;
	assert_int_equal(try_file(&f), -EINVAL);
	f = file_example;
	f.length = UINT64_MAX;
	assert_int_equal(try_file(&f), -EINVAL);
}

static void only_some_operations_take_another_root(void **state)
{
	static const uint8_t those[] = { FILE_STAT,  FILE_LIST,   FILE_READ, FILE_WRITE,
					 FILE_MKDIR, FILE_REMOVE, FILE_CHMOD };
	struct guest_file f = { .flags = FILE_BELOW, .user = "", .path = "/a", .target = "/mnt/v" };

	(void)state;
	for (int op = 0; op < FILE_OP_COUNT; op++) {
		f.op = (uint8_t)op;
		f.search = (struct guest_search){
			.limit = 1, .name = "", .exclude = "", .pattern = "x", .replacement = ""
		};
		f.sources = "/b";
		f.sources_len = 3;
		assert_int_equal(try_file(&f), memchr(those, op, sizeof(those)) ? 0 : -EINVAL);
	}
	f.op = FILE_STAT;
	f.target = "mnt";
	assert_int_equal(try_file(&f), -EINVAL);
	f.target = "";
	assert_int_equal(try_file(&f), -EINVAL);
}

static void an_entry_out_of_bounds_is_refused(void **state)
{
	struct guest_entry e = entry_example;

	(void)state;
	e.type = ENTRY_OTHER + 1;
	assert_int_equal(try_entry(&e), -EINVAL);
	e = entry_example;
	e.mode = 0200000;
	assert_int_equal(try_entry(&e), -EINVAL);
}

static int try_attrs(const char *attrs, size_t n)
{
	struct guest_file f = file_example;
	struct guest_entry e = entry_example;
	int r;

	f.op = FILE_WRITE;
	f.flags = FILE_ATTRS;
	f.attrs = e.attrs = attrs;
	f.attrs_len = e.attrs_len = n;
	e.owner = "o";
	e.group = "g";
	r = try_file(&f);
	assert_int_equal(try_entry(&e), r);
	return r;
}

static void attributes_are_whole_pairs(void **state)
{
	static char much[GUEST_ATTRS_BYTES + 1], name[GUEST_ATTR_NAME_MAX + 4];
	const char *key, *value;
	size_t at = 0;

	(void)state;
	assert_int_equal(try_attrs("", 0), 0);
	assert_int_equal(try_attrs("a\0b", 4), 0);
	assert_int_equal(try_attrs("a\0\0c\0d", 7), 0);
	assert_int_equal(try_attrs("a\0b", 3), -EINVAL);    /* no end */
	assert_int_equal(try_attrs("a\0b\0c", 6), -EINVAL); /* no value */
	assert_int_equal(try_attrs("\0b", 3), -EINVAL);     /* no name */
	memset(name, 'n', sizeof(name));
	memcpy(name + sizeof(name) - 3, "\0v", 3);
	assert_int_equal(try_attrs(name, sizeof(name)), -EINVAL);
	assert_int_equal(try_attrs(name + 1, sizeof(name) - 1), 0);
	memset(much, 'v', sizeof(much));
	memcpy(much, "k", 2);
	much[sizeof(much) - 2] = much[sizeof(much) - 1] = '\0';
	assert_int_equal(try_attrs(much, sizeof(much) - 1), 0);
	assert_int_equal(try_attrs(much, sizeof(much)), -EINVAL);
	assert_true(guest_attr_next("a\0b", 4, &at, &key, &value));
	assert_string_equal(key, "a");
	assert_string_equal(value, "b");
	assert_false(guest_attr_next("a\0b", 4, &at, &key, &value));
}

static void only_a_write_takes_attributes(void **state)
{
	struct guest_file f = file_example;

	(void)state;
	f.op = FILE_STAT;
	f.flags = FILE_ATTRS;
	f.attrs = "a\0b";
	f.attrs_len = 4;
	assert_int_equal(try_file(&f), -EINVAL);
}

static void sources_are_whole_paths(void **state)
{
	static char much[GUEST_SOURCES_BYTES + 1];
	struct guest_file f = file_example;

	(void)state;
	f.op = FILE_COMPOSE;
	f.sources = "/a\0/b";
	f.sources_len = 6;
	assert_int_equal(try_file(&f), 0);
	f.sources_len = 5;
	assert_int_equal(try_file(&f), -EINVAL);
	f.sources_len = 0;
	assert_int_equal(try_file(&f), -EINVAL);
	f.sources = much;
	f.sources_len = sizeof(much);
	assert_int_equal(try_file(&f), -EINVAL);
	f.sources_len--;
	assert_int_equal(try_file(&f), 0);
}

static void small_frames_say_what_they_hold(void **state)
{
	struct wire_head head;
	struct rd r;
	size_t n;
	long len;

	(void)state;
	len = guest_put_raw(frame, sizeof(frame), G_STDIN, 3, "abc", 3);
	assert_int_equal(wire_open(frame, (size_t)len, &head, &r), 0);
	assert_int_equal(head.type, G_STDIN);
	assert_memory_equal(rd_rest(&r, &n), "abc", 3);
	assert_int_equal(n, 3);
	len = guest_put_raw(frame, sizeof(frame), G_STDIN, 3, NULL, 0);
	assert_int_equal(len, sizeof(head));
	len = guest_put_u64(frame, sizeof(frame), G_CREDIT, 4, UINT64_MAX);
	assert_int_equal(wire_open(frame, (size_t)len, &head, &r), 0);
	assert_int_equal(head.type, G_CREDIT);
	assert_int_equal(head.id, 4);
	assert_true(rd_u64(&r) == UINT64_MAX);
	assert_int_equal(rd_end(&r), 0);
	for (int sign = -1; sign <= 1; sign += 2) {
		len = guest_put_error(frame, sizeof(frame), 9, sign * ENOENT, "no such file");
		assert_int_equal(wire_open(frame, (size_t)len, &head, &r), 0);
		assert_int_equal(head.type, G_ERROR);
		assert_int_equal(rd_u32(&r), ENOENT);
		assert_string_equal(rd_str(&r), "no such file");
		assert_int_equal(rd_end(&r), 0);
	}
}

static void what_does_not_fit_is_not_encoded(void **state)
{
	static char big[WIRE_PAYLOAD_MAX + 1];
	struct guest_file f = file_example;
	long whole = guest_put_file(frame, sizeof(frame), 1, &file_example);

	(void)state;
	for (size_t cap = 0; cap < (size_t)whole; cap++)
		assert_int_equal(guest_put_file(frame, cap, 1, &file_example), -E2BIG);
	memset(big, 'x', sizeof(big) - 1);
	f.path = big;
	assert_int_equal(guest_put_file(frame, sizeof(frame), 1, &f), -E2BIG);
	assert_int_equal(guest_put_raw(frame, sizeof(frame), G_DATA, 1, big, sizeof(big)), -E2BIG);
	assert_true(guest_put_raw(frame, sizeof(frame), G_DATA, 1, big, GUEST_CHUNK) > 0);
}

static const struct guest_file search_example = {
	.op = FILE_REPLACE,
	.flags = FILE_REGEX | FILE_ICASE | FILE_DRY_RUN,
	.depth = 3,
	.path = "/workspace",
	.search = { .limit = 10,
		    .context = 2,
		    .line_bytes = 100,
		    .cpu_ms = 5,
		    .types = 1u << ENTRY_FILE,
		    .size_min = 1,
		    .size_max = 1ull << 40,
		    .after_ns = 7,
		    .before_ns = 8,
		    .name = "*.c",
		    .exclude = "node_modules",
		    .pattern = "a+",
		    .replacement = "b" },
};
static const struct guest_found found_example = { FOUND_MATCH, 1, 3, 1ull << 40, "a/b", "text" };

static void a_search_and_what_it_finds_come_back_as_they_were(void **state)
{
	const struct guest_search *got = &file_got.search, *want = &search_example.search;

	(void)state;
	assert_int_equal(try_file(&search_example), 0);
	assert_int_equal(got->limit, want->limit);
	assert_int_equal(got->context, want->context);
	assert_int_equal(got->line_bytes, want->line_bytes);
	assert_int_equal(got->cpu_ms, want->cpu_ms);
	assert_int_equal(got->types, want->types);
	assert_true(got->size_min == want->size_min && got->size_max == want->size_max);
	assert_true(got->after_ns == want->after_ns && got->before_ns == want->before_ns);
	assert_string_equal(got->name, want->name);
	assert_string_equal(got->exclude, want->exclude);
	assert_string_equal(got->pattern, want->pattern);
	assert_string_equal(got->replacement, want->replacement);
	assert_int_equal(try_found(&found_example), 0);
	assert_int_equal(found_got.kind, FOUND_MATCH);
	assert_int_equal(found_got.is_cut, 1);
	assert_int_equal(found_got.column, 3);
	assert_true(found_got.number == found_example.number);
	assert_string_equal(found_got.path, "a/b");
	assert_string_equal(found_got.text, "text");
}

static void a_search_out_of_bounds_is_refused(void **state)
{
	struct guest_file f = search_example;
	struct guest_found e = found_example;

	(void)state;
	f.search.limit = 0;
	assert_int_equal(try_file(&f), -EINVAL);
	f = search_example;
	f.search.context = GUEST_CONTEXT_MAX + 1;
	assert_int_equal(try_file(&f), -EINVAL);
	f = search_example;
	f.search.line_bytes = GUEST_LINE_MAX + 1;
	assert_int_equal(try_file(&f), -EINVAL);
	f = search_example;
	f.search.types = 1u << (ENTRY_OTHER + 1);
	assert_int_equal(try_file(&f), -EINVAL);
	f = search_example;
	f.search.pattern = "";
	assert_int_equal(try_file(&f), -EINVAL);
	f.op = FILE_FIND; /* which needs none */
	assert_int_equal(try_file(&f), 0);
	e.kind = FOUND_KIND_COUNT;
	assert_int_equal(try_found(&e), -EINVAL);
	e = found_example;
	e.is_cut = 2;
	assert_int_equal(try_found(&e), -EINVAL);
}

static void cut_or_changed_frames_do_no_harm(void **state)
{
	(void)state;
	frame_torture(frame, (size_t)guest_put_exec(frame, sizeof(frame), 1, &exec_example),
		      decode_exec);
	frame_torture(frame, (size_t)guest_put_exit(frame, sizeof(frame), 1, &exit_example),
		      decode_exit);
	frame_torture(frame, (size_t)guest_put_file(frame, sizeof(frame), 1, &file_example),
		      decode_file);
	frame_torture(frame, (size_t)guest_put_file(frame, sizeof(frame), 1, &search_example),
		      decode_file);
	frame_torture(frame, (size_t)guest_put_found(frame, sizeof(frame), 1, &found_example),
		      decode_found);
	frame_torture(frame, (size_t)guest_put_entry(frame, sizeof(frame), 1, &entry_example),
		      decode_entry);
	/* Without its last part, which a box need not send. */
	frame_torture(frame, (size_t)guest_put_ready(frame, sizeof(frame), &ready_plain),
		      decode_ready);
	frame_torture(frame, (size_t)guest_put_live(frame, sizeof(frame), &live_example),
		      decode_live);
	assert_true(touched > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_execution_comes_back_as_it_was),
		cmocka_unit_test(the_other_messages_come_back_as_they_were),
		cmocka_unit_test(what_lives_comes_back_as_it_was),
		cmocka_unit_test(a_search_and_what_it_finds_come_back_as_they_were),
		cmocka_unit_test(a_search_out_of_bounds_is_refused),
		cmocka_unit_test(what_lives_out_of_bounds_is_refused),
		cmocka_unit_test(nothing_lives_under_the_id_zero),
		cmocka_unit_test(as_many_arguments_as_allowed_and_no_more),
		cmocka_unit_test(a_count_that_lies_is_refused),
		cmocka_unit_test(an_execution_out_of_bounds_is_refused),
		cmocka_unit_test(an_exit_out_of_bounds_is_refused),
		cmocka_unit_test(a_file_operation_out_of_bounds_is_refused),
		cmocka_unit_test(only_some_operations_take_another_root),
		cmocka_unit_test(an_entry_out_of_bounds_is_refused),
		cmocka_unit_test(attributes_are_whole_pairs),
		cmocka_unit_test(only_a_write_takes_attributes),
		cmocka_unit_test(sources_are_whole_paths),
		cmocka_unit_test(small_frames_say_what_they_hold),
		cmocka_unit_test(what_does_not_fit_is_not_encoded),
		cmocka_unit_test(cut_or_changed_frames_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
