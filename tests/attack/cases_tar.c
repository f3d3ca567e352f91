/* F11 and F12: archives that a client was talked into uploading. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attack.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BLOCK 512u

/* One entry; the numbers are octal text in the header, as tar has them. */
struct entry {
	const char *name;
	char type; /* '0' file, '1' hard link, '2' symlink, '3' char, '4' block, '5' directory, '6'
		      fifo */
	unsigned mode, uid;
	const char *link;
	const char *body;
	unsigned long long size; /* claimed; 0: the body's */
};

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar header is a block");

static void put_entry(struct buf *b, const struct entry *e)
{
	size_t body = e->body ? strlen(e->body) : 0;
	unsigned long long size = e->size ? e->size : body;
	struct header h = { .type = e->type, .magic = "ustar", .version = { '0', '0' } };
	unsigned sum = 0;

	(void)snprintf(h.name, sizeof(h.name), "%s", e->name);
	(void)snprintf(h.mode, sizeof(h.mode), "%07o", e->mode);
	(void)snprintf(h.uid, sizeof(h.uid), "%07o", e->uid);
	(void)snprintf(h.gid, sizeof(h.gid), "%07o", e->uid);
	if (size < 077777777777ull)
		(void)snprintf(h.size, sizeof(h.size), "%011llo", size);
	else
		memset(h.size, '\xff', sizeof(h.size)); /* base 256, negative */
	(void)snprintf(h.mtime, sizeof(h.mtime), "%011o", 0u);
	(void)snprintf(h.major, sizeof(h.major), "%07o", 1u);
	(void)snprintf(h.minor, sizeof(h.minor), "%07o", 3u);
	(void)snprintf(h.link, sizeof(h.link), "%s", e->link ? e->link : "");
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	(void)snprintf(h.sum, sizeof(h.sum), "%06o", sum);
	(void)buf_append(b, &h, sizeof(h));
	(void)buf_append(b, e->body ? e->body : "", body);
	while (b->len % BLOCK)
		(void)buf_putc(b, '\0');
}

static int put_tar(struct box *b, const struct entry *entries, size_t n, bool end, struct op *op)
{
	struct guest_file f = { .op = FILE_TAR_PUT,
				.flags = FILE_PARENTS,
				.user = "",
				.path = "/workspace/in",
				.target = "" };
	struct buf tar = { 0 };
	int r;

	for (size_t i = 0; i < n; i++)
		put_entry(&tar, &entries[i]);
	for (size_t i = 0; i < 2 * BLOCK && end; i++)
		(void)buf_putc(&tar, '\0');
	assert_false(tar.failed);
	r = api_put(b, &f, tar.data, tar.len, op);
	buf_done(&tar);
	return r;
}

/* Each hostile entry alone: an error or nothing, and the box and the machine stay whole. */
static void hostile_entries_stay_below(struct world *w, const struct attack *a)
{
	const struct entry hostile[] = {
		{ "../../etc/owned", '0', 0644, 0, NULL, "owned", 0 },
		{ "a/../../../owned", '0', 0644, 0, NULL, "owned", 0 },
		{ "/etc/owned", '0', 0644, 0, NULL, "owned", 0 },
		{ "/tmp/owned", '0', 0644, 0, NULL, "owned", 0 },
		{ "..", '5', 0777, 0, NULL, NULL, 0 },
		{ "", '0', 0644, 0, NULL, "owned", 0 },
		{ "x/./../../owned", '0', 0644, 0, NULL, "owned", 0 },
	};
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	for (size_t i = 0; i < COUNT(hostile); i++) {
		assert_int_not_equal(put_tar(&w->box, &hostile[i], 1, true, NULL), -ETIMEDOUT);
		box_expect_answer(&w->box);
	}
	assert_true(api_read(&w->box, "/tmp/owned", &op) < 0);
	op_done(&op);
	assert_true(api_read(&w->box, "/etc/owned", &op) < 0);
	op_done(&op);
	assert_true(api_read(&w->box, "/workspace/owned", &op) < 0);
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* A link first, then a file through it. */
static void links_in_archives_do_not_lead_out(struct world *w, const struct attack *a)
{
	const struct entry chains[][2] = {
		{ { "l", '2', 0777, 0, "/tmp", NULL, 0 },
		  { "l/owned", '0', 0644, 0, NULL, "owned", 0 } },
		{ { "m", '2', 0777, 0, "../..", NULL, 0 },
		  { "m/tmp/owned", '0', 0644, 0, NULL, "owned", 0 } },
		{ { "n", '2', 0777, 0, "/proc/self/root/tmp", NULL, 0 },
		  { "n/owned", '0', 0644, 0, NULL, "owned", 0 } },
		{ { "o", '1', 0644, 0, "/etc/passwd", NULL, 0 },
		  { "o", '0', 0644, 0, NULL, "owned", 0 } },
		{ { "p", '1', 0644, 0, "../../etc/passwd", NULL, 0 },
		  { "p", '0', 0644, 0, NULL, "owned", 0 } },
		{ { "q", '2', 0777, 0, "/etc/passwd", NULL, 0 },
		  { "q", '0', 0644, 0, NULL, "owned", 0 } },
	};
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	for (size_t i = 0; i < COUNT(chains); i++)
		assert_int_not_equal(put_tar(&w->box, chains[i], 2, true, NULL), -ETIMEDOUT);
	assert_true(api_read(&w->box, "/tmp/owned", &op) < 0);
	op_done(&op);
	assert_int_equal(api_read(&w->box, "/etc/passwd", &op), 0);
	assert_null(strstr(buf_str(&op.out), "owned"));
	op_done(&op);
	box_close(w, &w->box, NULL);
}

/* Devices, set-id bits and owners do not come out of an archive. */
static void privileges_do_not_unpack(struct world *w, const struct attack *a)
{
	const struct entry entries[] = {
		{ "suid", '0', 06755, 0, NULL, "x", 0 },
		{ "char", '3', 0666, 0, NULL, NULL, 0 },
		{ "block", '4', 0666, 0, NULL, NULL, 0 },
		{ "dir", '5', 07777, 0, NULL, NULL, 0 },
		{ "root", '0', 0644, 0, NULL, "x", 0 },
		{ "fifo", '6', 0666, 0, NULL, NULL, 0 },
		{ "far", '0', 0644, 0777777, NULL, "x", 0 },
	};
	static const char *const names[] = { "suid", "root", "far", "dir", "char", "block" };
	char path[64];

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	for (size_t i = 0; i < COUNT(entries); i++)
		assert_int_not_equal(put_tar(&w->box, &entries[i], 1, true, NULL), -ETIMEDOUT);
	for (size_t i = 0; i < COUNT(names); i++) {
		struct guest_file f = { .op = FILE_STAT,
					.flags = FILE_NOFOLLOW,
					.user = "",
					.path = path,
					.target = "" };
		unsigned type, mode, uid;
		struct op op;

		(void)snprintf(path, sizeof(path), "/workspace/in/%s", names[i]);
		if (api_file(&w->box, &f, &op) == 0) {
			assert_int_equal(sscanf(buf_str(&op.names), "%u %o %u", &type, &mode, &uid),
					 3);
			if (type == ENTRY_OTHER && i >= 4)
				fail_msg("%s became a device", names[i]);
			if (mode & 06000)
				fail_msg("%s has mode %o", names[i], mode);
			if (uid != 1000)
				fail_msg("%s belongs to %u", names[i], uid);
		}
		op_done(&op);
	}
	box_close(w, &w->box, NULL);
}

/* The same name twice: the later one wins, as with tar, and replaces, never follows. */
static void duplicates_replace(struct world *w, const struct attack *a)
{
	const struct entry entries[] = {
		{ "d", '0', 0644, 0, NULL, "first", 0 },
		{ "d", '0', 0600, 0, NULL, "second", 0 },
		{ "d", '5', 0755, 0, NULL, NULL, 0 },
	};

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	assert_int_not_equal(put_tar(&w->box, entries, 2, true, NULL), -ETIMEDOUT);
	assert_int_not_equal(put_tar(&w->box, entries, 3, true, NULL), -ETIMEDOUT);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Sizes that are lies: too large, negative, and more than the quota. */
static void lies_about_sizes_end(struct world *w, const struct attack *a)
{
	const struct entry entries[] = {
		{ "ten-gib", '0', 0644, 0, NULL, "x", 10ull << 30 },
		{ "negative", '0', 0644, 0, NULL, "x", UINT64_MAX },
		{ "sparse", 'S', 0644, 0, NULL, "x", 1ull << 40 },
		{ "pax", 'x', 0644, 0, NULL, "30 size=18446744073709551615\n", 0 },
		{ "longname", 'L', 0644, 0, NULL, "x", 1ull << 32 },
	};

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	for (size_t i = 0; i < COUNT(entries); i++) {
		assert_int_not_equal(put_tar(&w->box, &entries[i], 1, i % 2, NULL), -ETIMEDOUT);
		box_expect_answer(&w->box);
	}
	box_close(w, &w->box, NULL);
}

/* Ten gibibytes of zeros: stops at the quota, with an error. */
static void bombs_stop_at_the_quota(struct world *w, const struct attack *a)
{
	struct guest_file f = { .op = FILE_TAR_PUT,
				.flags = FILE_PARENTS,
				.user = "",
				.path = "/workspace/in",
				.target = "" };
	struct entry e = { "bomb", '0', 0644, 0, NULL, "", 10ull << 30 };
	struct buf tar = { .max = 80u << 20 };
	int r;

	box_open(w, &w->box, TEMPLATE_PLAIN, &a->limits);
	put_entry(&tar, &e);
	assert_int_equal(buf_reserve(&tar, 64u << 20), 0);
	memset(tar.data + tar.len, 0, 64u << 20);
	tar.len += 64u << 20;
	r = api_put(&w->box, &f, tar.data, tar.len, NULL);
	buf_done(&tar);
	assert_true(r < 0 && r != -ETIMEDOUT);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

/* Bytes that are no archive at all. */
static void garbage_is_no_archive(struct world *w, const struct attack *a)
{
	struct guest_file f = { .op = FILE_TAR_PUT,
				.flags = FILE_PARENTS,
				.user = "",
				.path = "/workspace/in",
				.target = "" };
	static char noise[64 << 10];
	unsigned seed = 1;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	for (int round = 0; round < 30; round++) {
		for (size_t i = 0; i < sizeof(noise); i++) {
			seed = seed * 1103515245 + 12345;
			noise[i] = (char)(seed >> 16);
		}
		assert_int_not_equal(
			api_put(&w->box, &f, noise, (size_t)(seed % sizeof(noise)), NULL),
			-ETIMEDOUT);
	}
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

static const struct attack rows[] = {
	{ "F11 devices, set-id bits and owners do not come out of an archive",
	  NULL,
	  0,
	  0,
	  { 0 },
	  privileges_do_not_unpack },
	{ "F12 archive entries stay below their directory",
	  NULL,
	  0,
	  0,
	  { 0 },
	  hostile_entries_stay_below },
	{ "F12 links in an archive do not lead out",
	  NULL,
	  0,
	  0,
	  { 0 },
	  links_in_archives_do_not_lead_out },
	{ "F12 entries of the same name replace each other",
	  NULL,
	  0,
	  0,
	  { 0 },
	  duplicates_replace },
	{ "F12 lies about sizes come to an end",
	  NULL,
	  0,
	  0,
	  { .disk_bytes = 16u << 20 },
	  lies_about_sizes_end },
	{ "F12 an archive larger than the quota is stopped",
	  NULL,
	  0,
	  0,
	  { .disk_bytes = 16u << 20 },
	  bombs_stop_at_the_quota },
	{ "F12 garbage is no archive", NULL, 0, 0, { 0 }, garbage_is_no_archive },
};

const struct attack_table attacks_tar = { rows, COUNT(rows) };
