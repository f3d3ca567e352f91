/* Writes the seed corpora. usage: fuzz_seeds tests/fuzz/corpus
 * Run it again when an encoding changes, and commit what it wrote. What a fuzzer finds is kept
 * beside them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/ids.h"
#include "launch/record.h"
#include "spec/guest.h"
#include "spec/launch.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Where the seeds of one target go; after a failure nothing more is written. */
struct corpus {
	int root;
	const char *target;
	int failed;
};

static uint8_t frame[WIRE_FRAME_MAX];

static int save(const struct corpus *c, const char *name, const void *data, size_t n)
{
	_close_ int fd = -1;
	char path[128];

	if (str_format(path, sizeof(path), "%s/%s", c->target, name) < 0)
		return -E2BIG;
	if (mkdirat(c->root, c->target, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(c->root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd_write_all(fd, data, n);
}

static void put(struct corpus *c, const char *name, const void *data, size_t n)
{
	if (c->failed == 0)
		c->failed = save(c, name, data, n);
}

/* The frame that an encoder has just written, or its error. */
static void put_frame(struct corpus *c, const char *name, long n)
{
	if (n < 0 && c->failed == 0)
		c->failed = (int)n;
	else
		put(c, name, frame, (size_t)n);
}

static void guest_requests(struct corpus *c)
{
	static const struct guest_exec command = {
		.kind = EXEC_COMMAND,
		.flags = EXEC_STDIN | EXEC_KEEP,
		.tag = "exec 5",
		.timeout_ms = 30000,
		.output_limit = 1 << 20,
		.cwd = "/workspace",
		.argc = 3,
		.envc = 1,
		.argv = { "sh", "-c", "echo hi" },
		.envp = { "LANG=C" },
	};
	static const struct guest_exec python = { .kind = EXEC_PYTHON, .code = "print(1)" };
	static const struct guest_exec node = {
		.kind = EXEC_NODE,
		.flags = EXEC_PTY | EXEC_LOGIN,
		.rows = 24,
		.cols = 80,
		.user = "agent",
		.argc = 1,
		.argv = { "a" },
	};
	struct guest_file write = {
		.op = FILE_WRITE, .flags = FILE_PARENTS, .mode = 0644, .path = "/a"
	};
	struct guest_file rename = { .op = FILE_RENAME, .path = "a", .target = "b" };
	struct guest_file grep = { .op = FILE_GREP,
				   .flags = FILE_REGEX,
				   .path = "/",
				   .search = { .limit = 9, .name = "*.c", .pattern = "a+" } };

	struct guest_file attrs = { .op = FILE_WRITE,
				    .flags = FILE_ATTRS | FILE_AT_HOME,
				    .path = "~/a",
				    .attrs = "e2b.key\0value",
				    .attrs_len = sizeof("e2b.key\0value") };
	struct guest_file compose = { .op = FILE_COMPOSE,
				      .path = "/c",
				      .sources = "/a\0/b",
				      .sources_len = sizeof("/a\0/b") };

	put_frame(c, "exec-command", guest_put_exec(frame, sizeof(frame), 1, &command));
	put_frame(c, "exec-python", guest_put_exec(frame, sizeof(frame), 2, &python));
	put_frame(c, "exec-node", guest_put_exec(frame, sizeof(frame), 3, &node));
	put_frame(c, "file-write", guest_put_file(frame, sizeof(frame), 4, &write));
	put_frame(c, "file-rename", guest_put_file(frame, sizeof(frame), 5, &rename));
	put_frame(c, "file-grep", guest_put_file(frame, sizeof(frame), 6, &grep));
	put_frame(c, "file-attrs", guest_put_file(frame, sizeof(frame), 7, &attrs));
	put_frame(c, "file-compose", guest_put_file(frame, sizeof(frame), 8, &compose));
}

static void guest_answers(struct corpus *c)
{
	struct guest_exit ended = { .code = 1, .wall_us = 1000, .output_bytes = 5 };
	struct guest_exit killed = { .code = 9, .flags = EXIT_SIGNALED | EXIT_TIMED_OUT };
	struct guest_entry link = { .type = ENTRY_SYMLINK,
				    .mode = 0777,
				    .uid = 1000,
				    .gid = 1000,
				    .size = 4,
				    .mtime_ns = 1,
				    .inode = 2,
				    .path = "link",
				    .target = "file" };
	struct guest_entry whole = link;
	struct guest_found found = { FOUND_MATCH, 1, 3, 12, "a.c", "int a;" };
	struct guest_ready ready = { WIRE_VERSION, 1, 0, 1, 2, 0, "" };
	struct guest_live live = { .id = 7,
				   .pid = 12,
				   .flags = LIVE_ENDED | LIVE_STDIN,
				   .age_ms = 5000,
				   .offset = { 300, 4 },
				   .stdin_taken = 9,
				   .stdin_kept = 1,
				   .tag = "exec 5" };

	put_frame(c, "exit", guest_put_exit(frame, sizeof(frame), 1, &ended));
	put_frame(c, "exit-killed", guest_put_exit(frame, sizeof(frame), 2, &killed));
	put_frame(c, "entry", guest_put_entry(frame, sizeof(frame), 3, &link));
	whole.owner = "user";
	whole.group = "1000";
	whole.attrs = "e2b.key\0value";
	whole.attrs_len = sizeof("e2b.key\0value");
	put_frame(c, "entry-details", guest_put_entry(frame, sizeof(frame), 3, &whole));
	put_frame(c, "found", guest_put_found(frame, sizeof(frame), 3, &found));
	put_frame(c, "ready", guest_put_ready(frame, sizeof(frame), &ready));
	ready.why_code = ENOPKG;
	ready.why = "no x";
	put_frame(c, "ready-lacking", guest_put_ready(frame, sizeof(frame), &ready));
	put_frame(c, "live", guest_put_live(frame, sizeof(frame), &live));
	put_frame(c, "error", guest_put_error(frame, sizeof(frame), 4, ENOENT, "no such file"));
}

static int guest_seeds(struct corpus *c)
{
	guest_requests(c);
	guest_answers(c);
	return c->failed;
}

/* Layers, snapshots and volumes. */
static void disk_seeds(struct corpus *c)
{
	static const char box_id[] = "abcdefghij0123456789", id[] = "0123456789abcdefghij";
	struct template_spec t = {
		.id = 7, .root = ROOT_LAYERS, .preload = "", .layers = { 2, { id, box_id } }
	};
	struct launch_spec claim = { .template_id = 7,
				     .layers = { 1, { id } },
				     .n_volumes = 2,
				     .volumes = { { id, "/mnt/data", 0 },
						  { box_id, "/workspace/a", 1 } } };
	struct snapshot_spec snapshot = { box_id, id, SNAPSHOT_WHOLE };
	struct layer_info layer = { id, 1 << 20, 12, 1, 1, 0 };
	struct volume_spec volume = { id, 16 << 20 };
	struct volume_info is = { id, box_id, 16 << 20, 4096 };

	put_frame(c, "template-layers", launch_put_template(frame, sizeof(frame), 1, &t));
	put_frame(c, "claim-volumes", launch_put_claim(frame, sizeof(frame), 2, &claim));
	put_frame(c, "snapshot", launch_put_snapshot(frame, sizeof(frame), 3, &snapshot));
	put_frame(c, "layer", launch_put_layer(frame, sizeof(frame), 4, &layer));
	put_frame(c, "volume", launch_put_volume(frame, sizeof(frame), 5, &volume));
	put_frame(c, "volume-is", launch_put_volume_info(frame, sizeof(frame), 6, &is));
}

static int launch_seeds(struct corpus *c)
{
	struct limits limits = { 256ull << 20, 64ull << 20, 4096, 500, 0x3, 64, 1024 };
	struct template_spec t = { .id = 1,
				   .flags = TEMPLATE_WARM_PYTHON,
				   .preload = "numpy,os.path",
				   .preload_node = "@scope/name,left-pad" };
	struct pool_spec pool = { 1, 2, 8, 5000, 80 };
	struct launch_spec plain = { .template_id = 1 }, cold = {
		.template_id = 64, .flags = LAUNCH_COLD, .limits = limits, .tag = "web-1"
	};
	struct launch_box box = { "abcdefghij0123456789", BOX_WARM, 42, limits,
				  { 1, 2, 3, 4 },         "no x" };
	struct launch_box_info is = { box.id, "web-1", 0, 42, limits, 0, 1 };
	struct launch_info info = { WIRE_VERSION, 1, CGROUP_V1, 6, CONTROLLER_CPUSET, 1, "why" };
	struct pool_state state = { 1, 2, 3, 4, 5, 6, 7, 8, 9, "no x", { 0 } };
	struct build_state builds = { 1, 2, 3, 4, 5, "late" };
	struct box_usage usage = { 1, 2, 3, 4, 5 };
	struct wr w;

	put_frame(c, "template", launch_put_template(frame, sizeof(frame), 1, &t));
	put_frame(c, "pool", launch_put_pool(frame, sizeof(frame), 2, &pool));
	put_frame(c, "claim", launch_put_claim(frame, sizeof(frame), 3, &plain));
	put_frame(c, "claim-limits", launch_put_claim(frame, sizeof(frame), 4, &cold));
	put_frame(c, "box", launch_put_box(frame, sizeof(frame), 5, &box));
	put_frame(c, "info", launch_put_info(frame, sizeof(frame), 6, &info));
	put_frame(c, "pool-state", launch_put_pool_state(frame, sizeof(frame), 7, &state));
	put_frame(c, "builds", launch_put_builds(frame, sizeof(frame), 0, &builds));
	put_frame(c, "box-is", launch_put_box_info(frame, sizeof(frame), 9, &is));
	wire_begin(&w, frame, sizeof(frame), L_GONE, 8);
	wr_str(&w, box.id);
	launch_wr_usage(&w, &usage);
	put_frame(c, "gone", wire_finish(&w));
	disk_seeds(c);
	return c->failed;
}

static int record_seeds(struct corpus *c)
{
	struct record rec = { .id = "abcdefghij0123456789",
			      .tag = "web-1",
			      .boot_id = "01234567-89ab-cdef-0123-456789abcdef",
			      .pid = 4711,
			      .start_ticks = 12345,
			      .group = { CGROUP_V1, "1f", 0, 1, 2, 3 },
			      .uid_base = IDS_FIRST };
	static const char stat[] = "12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99 0";
	static const char status[] = "Name:\tx\nNSpid:\t4711\t1\n";
	static const char groups[] = "4:memory:/a/holtd.abcdefghij0123456789/1f\n0::/a\n";

	c->failed = spec_fill_limits(&rec.limits, NULL, NULL);
	put_frame(c, "root", record_put(frame, sizeof(frame), &rec));
	rec.uid_base = 0;
	rec.tag = "";
	rec.group = (struct cgroup_mark){ CGROUP_NONE, "0", 0, 0, 0, 0 };
	put_frame(c, "rootless", record_put(frame, sizeof(frame), &rec));
	put(c, "stat", stat, strlen(stat));
	put(c, "status", status, strlen(status));
	put(c, "groups", groups, strlen(groups));
	return c->failed;
}

/* As many bytes of reads to make as the message behind them has: see fuzz_wire.c. */
static void put_program(struct corpus *c, const char *name, const char *ops, long n)
{
	static uint8_t data[2 * WIRE_FRAME_MAX];
	size_t len = n < 0 ? 0 : (size_t)n;

	memset(data, 6, len);
	memcpy(data, ops, strlen(ops) < len ? strlen(ops) : len);
	memcpy(data + len, frame, len);
	put(c, name, data, 2 * len);
}

static int wire_seeds(struct corpus *c)
{
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), 1, 1);
	put_program(c, "empty", "", wire_finish(&w));
	wire_begin(&w, frame, sizeof(frame), 2, 7);
	wr_u8(&w, 1);
	wr_u16(&w, 2);
	wr_u32(&w, 3);
	wr_u64(&w, 4);
	put_program(c, "numbers", "\x07\x01\x02\x03", wire_finish(&w));
	wire_begin(&w, frame, sizeof(frame), 3, 9);
	wr_str(&w, "text");
	wr_bytes(&w, "a\0b", 3);
	wr_raw(&w, "rest", 4);
	put_program(c, "strings", "\x04\x05\x06", wire_finish(&w));
	return c->failed;
}

static int put_texts(struct corpus *c, const char *const *texts, size_t count)
{
	char name[24];

	for (size_t i = 0; i < count && c->failed == 0; i++) {
		c->failed = str_format(name, sizeof(name), "text-%zu", i);
		put(c, name, texts[i], strlen(texts[i]));
	}
	return c->failed;
}

static int parse_seeds(struct corpus *c)
{
	static const char *const texts[] = {
		"0",
		"18446744073709551616",
		"-9223372036854775808",
		"1.5G",
		"256MiB",
		"250ms",
		"0.5h",
		"250m",
		"yes",
		"off",
		"007fffa5",
		"Zm9vYg==",
		"-_-_",
		"0.99999999999T",
	};

	return put_texts(c, texts, LEN(texts));
}

static int utf8_seeds(struct corpus *c)
{
	static const char *const texts[] = {
		"plain ascii of some length",
		"\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\xa6",
		"\xf0\x9f\xa6",
		"\xed\xa0\x80",
		"\xc0\x80\xe0\x9f\xbf",
		"\xf4\x90\x80\x80",
		"\"\\\b\f\n\r\t\x01\x7f",
		"12345678\xff",
	};

	return put_texts(c, texts, LEN(texts));
}

static const struct {
	const char *target;
	int (*write)(struct corpus *c);
} rows[] = {
	{ "guest", guest_seeds },   { "launch", launch_seeds }, { "wire", wire_seeds },
	{ "record", record_seeds }, { "parse", parse_seeds },   { "utf8", utf8_seeds },
};

int main(int argc, char **argv)
{
	_close_ int root = argc == 2 ? open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (root < 0) {
		fprintf(stderr, "usage: fuzz_seeds DIRECTORY\n");
		return 2;
	}
	for (size_t i = 0; i < LEN(rows); i++) {
		struct corpus c = { root, rows[i].target, 0 };
		int r = rows[i].write(&c);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", rows[i].target, strerror(-r));
			return 1;
		}
	}
	return 0;
}
