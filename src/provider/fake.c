#include "provider/fake.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/fd.h"

/* Every call comes through here first. */
static int maybe_fail(struct fake *f, const char *what, struct err *err)
{
	f->calls++;
	if (f->fail_in == 0 || --f->fail_in > 0)
		return 0;
	return err_set(err, f->fail_with ? f->fail_with : EIO, "%s refused", what);
}

static int find_for(struct fake *f, const char *what, const char *box_id, struct fake_box **ret,
		    struct err *err)
{
	int e = maybe_fail(f, what, err);

	if (e < 0)
		return e;
	*ret = fake_find(f, box_id);
	return *ret ? 0 : err_set(err, ENOENT, "no box '%.40s'", box_id);
}

static int fake_claim(void *self, const struct launch_spec *spec, struct launcher_box *ret,
		      struct err *err)
{
	struct fake *f = self;
	struct fake_box *box = fake_find(f, "");
	struct limits limits = spec->limits;
	int pair[2], e;

	e = maybe_fail(f, "claim", err);
	if (e < 0)
		return e;
	if (!box)
		return err_set(err, EAGAIN, "all %d boxes are in use", FAKE_BOXES_MAX);
	e = spec_fill_limits(&limits, NULL, err);
	if (e < 0)
		return e;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	id_make(box->id);
	box->guest = pair[1];
	box->frozen = false;
	box->limits = limits;
	f->live++;
	*ret = (struct launcher_box){ .sock = pair[0], .pidfd = -1, .limits = limits };
	memcpy(ret->id, box->id, sizeof(ret->id));
	return 0;
}

static void clear_box(struct fake *f, struct fake_box *box)
{
	(void)fd_close(box->guest);
	*box = (struct fake_box){ .guest = -1 };
	f->live--;
}

static int fake_destroy(void *self, const char *box_id, struct box_usage *ret_usage,
			struct err *err)
{
	struct fake *f = self;
	struct fake_box *box;
	int e = find_for(f, "destroy", box_id, &box, err);

	if (e < 0)
		return e;
	clear_box(f, box);
	if (ret_usage)
		*ret_usage = f->usage;
	return 0;
}

static int fake_freeze(void *self, const char *box_id, bool on, struct err *err)
{
	struct fake_box *box;
	int e = find_for(self, "freeze", box_id, &box, err);

	if (e == 0)
		box->frozen = on;
	return e;
}

static int fake_usage(void *self, const char *box_id, struct box_usage *ret, struct err *err)
{
	struct fake *f = self;
	struct fake_box *box;
	int e = find_for(f, "usage", box_id, &box, err);

	if (e == 0)
		*ret = f->usage;
	return e;
}

static int fake_limits(void *self, const char *box_id, const struct limits *limits, struct err *err)
{
	struct limits filled = *limits;
	struct fake_box *box;
	int e = find_for(self, "limits", box_id, &box, err);

	if (e < 0)
		return e;
	e = spec_fill_limits(&filled, &box->limits, err);
	if (e == 0)
		box->limits = filled;
	return e;
}

static const struct provider_ops fake_ops = {
	.name = "fake",
	.claim = fake_claim,
	.destroy = fake_destroy,
	.freeze = fake_freeze,
	.usage = fake_usage,
	.limits = fake_limits,
};

struct provider provider_fake(struct fake *f)
{
	return (struct provider){ &fake_ops, f };
}

struct fake_box *fake_find(struct fake *f, const char *box_id)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (strcmp(f->boxes[i].id, box_id) == 0)
			return &f->boxes[i];
	return NULL;
}

void fake_done(struct fake *f)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (f->boxes[i].id[0] != '\0')
			clear_box(f, &f->boxes[i]);
}
