/* The tar reader on any bytes; and what it understood, written and read again, must be the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DATA_MAX 65536

/* Everything that a reading gave, as bytes to compare. */
struct seen {
	struct buf log;
	int result;
};

static void note_member(struct buf *log, const struct tar_member *m)
{
	(void)buf_printf(log, "%d %o %u:%u %llu %lld.%u %s>%s;", m->type, m->mode, m->uid, m->gid,
			 (unsigned long long)m->size, (long long)m->mtime_sec, m->mtime_nsec,
			 m->path, m->link);
}

/* A member that was read can be written, and reads as itself. */
static void check_written(const struct tar_member *m)
{
	struct tar_reader t;
	struct buf b = { 0 };
	const uint8_t *p;
	size_t n;

	if (m->path[strlen(m->path) - 1] == '/')
		return; /* the root alone: not a name that we write */
	if (m->type == TAR_DIR && strlen(m->path) + 1 >= TAR_PATH)
		return;
	if (tar_write_member(&b, m) < 0)
		abort();
	tar_reader_init(&t);
	p = (const uint8_t *)b.data;
	n = b.len;
	if (tar_read(&t, &p, &n, NULL) != TAR_MEMBER || n != 0)
		abort();
	if (t.member.uid != m->uid || t.member.gid != m->gid)
		abort();
	if (t.member.type != m->type || t.member.mode != m->mode || t.member.size != m->size ||
	    t.member.mtime_sec != m->mtime_sec || t.member.mtime_nsec != m->mtime_nsec ||
	    strcmp(t.member.path, m->path) != 0 || strcmp(t.member.link, m->link) != 0)
		abort();
	tar_reader_done(&t);
	buf_done(&b);
}

static void on_event(struct tar_reader *t, int event, struct seen *s)
{
	if (event == TAR_MEMBER) {
		if (strlen(t->member.path) >= TAR_PATH || t->member.path[0] == '\0')
			abort();
		note_member(&s->log, &t->member);
		check_written(&t->member);
	} else if (event == TAR_DATA) {
		if (t->data_len == 0)
			abort();
		(void)buf_append(&s->log, t->data, t->data_len);
	} else if (event == TAR_DONE) {
		(void)buf_puts(&s->log, "|");
	}
}

static void read_in_steps(const uint8_t *data, size_t size, size_t step, struct seen *s)
{
	struct tar_reader t;
	struct err err = { 0 };
	int r = 0;

	tar_reader_init(&t);
	for (size_t at = 0; at < size && r >= 0; at += step) {
		const uint8_t *p = data + at;
		size_t n = size - at < step ? size - at : step;

		while ((r = tar_read(&t, &p, &n, &err)) > 0)
			on_event(&t, r, s);
		if (r == 0 && n != 0)
			abort(); /* it says it needs more, with some left */
	}
	s->result = r < 0 ? r : tar_read_finish(&t, &err);
	if (s->result < 0 && (err.code != -s->result || err.text[0] == '\0'))
		abort();
	tar_reader_done(&t);
}

static void check(const uint8_t *data, size_t size)
{
	struct seen whole = { 0 }, parts = { 0 };

	read_in_steps(data, size, size ? size : 1, &whole);
	read_in_steps(data, size, size ? data[0] % 61 + 1 : 1, &parts);
	/* Where a member's bytes were cut is the only difference there may be. */
	if (whole.result != parts.result || whole.log.len != parts.log.len ||
	    (whole.log.len && memcmp(whole.log.data, parts.log.data, whole.log.len) != 0))
		abort();
	buf_done(&whole.log);
	buf_done(&parts.log);
}

static void seal(struct tar_header *h)
{
	const uint8_t *p = (const uint8_t *)h;
	unsigned sum = 0;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	for (int i = 5; i >= 0; i--, sum >>= 3)
		h->checksum[i] = (char)('0' + sum % 8);
	h->checksum[6] = '\0';
}

/* Mutations seldom hit the right sum: each header that the reader is about to see gets it. */
static void repair(uint8_t *data, size_t size)
{
	struct tar_reader t;
	int r = 0;

	tar_reader_init(&t);
	for (size_t at = 0; at + TAR_BLOCK <= size && r >= 0; at += TAR_BLOCK) {
		const uint8_t *p = data + at;
		size_t n = TAR_BLOCK;

		if (t.state == TAR_IN_HEADER)
			seal((struct tar_header *)(data + at));
		while ((r = tar_read(&t, &p, &n, NULL)) > 0)
			;
	}
	tar_reader_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size == 0 || size > DATA_MAX)
		return 0;
	check(data, size);
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	repair(copy, size);
	check(copy, size);
	free(copy);
	return 0;
}
