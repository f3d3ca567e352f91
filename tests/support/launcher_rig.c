#include "launcher_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/str.h"
#include "check.h"

void rig_say(int far, const void *frame, long n, const int *fds, size_t nfds)
{
	assert_true(n > 0);
	assert_int_equal(fd_send(far, frame, (size_t)n, fds, nfds), n);
}

void rig_say_info(int far)
{
	struct launch_info info = { .version = 1, .cgroup = CGROUP_V1, .landlock_abi = 7 };
	uint8_t frame[256];

	rig_say(far, frame, launch_put_info(frame, sizeof(frame), 1, &info), NULL, 0);
}

void rig_say_type(int far, uint16_t type, uint32_t id)
{
	uint8_t frame[64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), type, id);
	rig_say(far, frame, wire_finish(&w), NULL, 0);
}

void rig_say_failed(int far, uint32_t id, int code, const char *text)
{
	uint8_t frame[256];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_FAILED, id);
	wr_u32(&w, (uint32_t)code);
	wr_str(&w, text);
	rig_say(far, frame, wire_finish(&w), NULL, 0);
}

void rig_say_died(int far, const char *id, int status)
{
	struct box_usage usage = { .oom_kills = 2 };
	uint8_t frame[256];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_DIED, 0);
	wr_str(&w, id);
	wr_u32(&w, (uint32_t)status);
	launch_wr_usage(&w, &usage);
	rig_say(far, frame, wire_finish(&w), NULL, 0);
}

void rig_say_box(int far, uint32_t id, const int *fds, size_t nfds)
{
	struct launch_box b = {
		.id = BOX_ID, .flags = BOX_WARM, .pid = 42, .step_ns = { 1, 2, 3, 4 }
	};
	uint8_t frame[512];

	b.limits.memory_bytes = 1 << 20;
	rig_say(far, frame, launch_put_box(frame, sizeof(frame), id, &b), fds, nfds);
}

void rig_say_box_is(int far, uint32_t id, const char *box_id, const char *tag)
{
	struct launch_box_info b = { .id = box_id, .tag = tag, .pid = 7 };
	uint8_t frame[512];

	rig_say(far, frame, launch_put_box_info(frame, sizeof(frame), id, &b), NULL, 0);
}

void rig_say_usage(int far, uint32_t id, uint64_t cpu_us)
{
	struct box_usage usage = { .cpu_us = cpu_us };
	uint8_t frame[256];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_USED, id);
	launch_wr_usage(&w, &usage);
	rig_say(far, frame, wire_finish(&w), NULL, 0);
}

int rig_open_pair(struct rig *rig)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	rig->far = pair[1];
	return pair[0];
}

int rig_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

void rig_hear(void *user, const struct provider_reply *r)
{
	struct heard *h = user;

	h->calls++;
	h->code = r->code;
	assert_int_equal(str_copy(h->text, sizeof(h->text), r->text), 0);
	h->usage = r->usage;
	h->pool = r->pool;
	if (r->box) {
		h->box = *r->box;
		h->box.sock = TAKE_FD(r->box->sock);
	}
	h->n_boxes = r->n_boxes;
	if (r->n_boxes > 0) {
		const struct launch_box_info *b = &r->boxes[r->n_boxes - 1];

		assert_int_equal(str_copy(h->last_id, sizeof(h->last_id), b->id), 0);
		assert_int_equal(str_copy(h->last_tag, sizeof(h->last_tag), b->tag), 0);
	}
}

int rig_setup(void **state)
{
	static struct rig rig;
	int sock = rig_open_pair(&rig);

	rig_say_info(rig.far);
	assert_int_equal(launcher_connect(sock, 0, &rig.launcher, NULL), 0);
	*state = &rig;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *rig = *state;

	launcher_stop(rig->launcher);
	rig->far = fd_close(rig->far);
	return 0;
}
