#include "record_rig.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

void record_done(struct record *r)
{
	buf_done(&r->stream[0]);
	buf_done(&r->stream[1]);
}

struct guest_exec record_script(const char *script, const char *tag)
{
	struct guest_exec e = rig_script(script);

	e.flags = EXEC_KEEP;
	e.tag = tag;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	return e;
}

/* Bytes go on where the record ends, or repeat what it has. */
static void record_output(struct record *r, struct rd *payload)
{
	struct buf *b = &r->stream[rd_u8(payload) - 1];
	uint64_t offset = rd_u64(payload), again;
	size_t n;
	const char *data = rd_rest(payload, &n);

	assert_true(n > 0 && n <= GUEST_CHUNK);
	assert_true(offset <= b->len);
	again = b->len - offset < n ? b->len - offset : n;
	assert_memory_equal(b->data + offset, data, again);
	assert_int_equal(buf_append(b, data + again, n - again), 0);
	r->uncredited += n;
	assert_true(r->uncredited <= GUEST_WINDOW);
}

/* One frame of the id; true when it was its end. */
bool record_frame(struct guest_rig *rig, uint32_t id, struct record *r)
{
	struct wire_head head;
	struct rd payload;

	assert_true(rig_recv(rig, &head, &payload));
	assert_int_equal(head.id, id);
	switch (head.type) {
	case G_STARTED:
		r->pid = rd_u32(&payload);
		return false;
	case G_OUTPUT:
		record_output(r, &payload);
		return false;
	case G_TAKEN:
		return false;
	case G_EXIT:
		assert_int_equal(guest_get_exit(&payload, &r->exit), 0);
		r->exits++;
		return true;
	default:
		fail_msg("frame of type %u", head.type);
		return true;
	}
}

void record_credit(struct guest_rig *rig, uint32_t id, struct record *r, uint64_t n)
{
	if (n > 0)
		rig_u64(rig, G_CREDIT, id, n);
	r->uncredited -= n;
}

void record_all(struct guest_rig *rig, uint32_t id, struct record *r)
{
	while (!record_frame(rig, id, r))
		record_credit(rig, id, r, r->uncredited);
}

/* The record's connection is a new one, on which nothing but this execution is told. */
void record_connect(struct guest_rig *rig, uint32_t id, struct record *r, struct guest_live *ret)
{
	struct guest_ready ready;

	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 1);
	rig_expect_live(rig, ret);
	assert_int_equal(ret->id, id);
	r->uncredited = 0;
}

void rig_expect_nothing(struct guest_rig *rig)
{
	struct guest_ready ready;

	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 0);
	assert_true(rig_is_quiet(rig, 50));
}

bool rig_is_running(uint32_t pid)
{
	char path[64], text[512];
	char *state;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	state = strrchr(text, ')');
	return state && state[2] != 'Z' && state[2] != 'X';
}

bool rig_dies_soon(uint32_t pid)
{
	for (int i = 0; i < 500 && rig_is_running(pid); i++)
		(void)usleep(10000);
	return !rig_is_running(pid);
}

void rig_expect_refusal(struct guest_rig *rig)
{
	struct wire_head head;
	struct rd payload;

	do
		assert_true(rig_recv(rig, &head, &payload));
	while (head.id != 0);
	assert_int_equal(head.type, G_ERROR);
	assert_false(rig_recv(rig, &head, &payload));
}
