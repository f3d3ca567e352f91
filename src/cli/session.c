#include "cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"

#define TEMPLATE_ID 1u

/* The root directory of a template that is not `host`, or -1. */
static int open_root(const char *name, int *ret, struct err *err)
{
	int fd;

	*ret = -1;
	if (!name || strcmp(name, "host") == 0)
		return 0;
	fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !strchr(name, '/'))
		return err_set(err, ENOENT,
			       "--template '%.60s': wants 'host' or an existing directory", name);
	if (fd < 0)
		return err_sys(err, errno, "--template '%.100s'", name);
	*ret = fd;
	return 0;
}

static int add_template(struct session *s, const struct box_args *a, struct err *err)
{
	_close_ int root = -1;
	struct template_spec t = {
		.id = TEMPLATE_ID,
		.level = (uint8_t)a->level,
		.net = (uint8_t)a->net,
		.limits = a->limits,
		.preload = "",
	};
	int r = open_root(a->template, &root, err);

	if (r < 0)
		return r;
	t.root = root < 0 ? ROOT_HOST : ROOT_DIR;
	return launcher_template_sync(s->launcher, &t, root, err);
}

static int claim(struct session *s, struct err *err)
{
	struct launch_spec spec = { .template_id = TEMPLATE_ID };
	int r = launcher_claim_sync(s->launcher, &spec, &s->box, err);

	if (r < 0)
		return r;
	return guest_create(TAKE_FD(s->box.sock), &s->guest, err);
}

int session_open(struct session *s, const struct box_args *a, struct err *err)
{
	const struct launcher_options options = { .spare_netns = 1, .spare_cgroups = 1 };
	int r;

	*s = (struct session){ .box = { .sock = -1, .pidfd = -1 } };
	if (a->level == LEVEL_HIGH)
		return err_set(err, ENOTSUP,
			       "level 'high' needs gVisor, which this version of Holt does not "
			       "have: nothing was run");
	r = launcher_start(&options, &s->launcher, err);
	if (r == 0)
		r = add_template(s, a, err);
	if (r == 0)
		r = claim(s, err);
	if (r < 0)
		(void)session_close(s, NULL, NULL);
	return r;
}

int session_close(struct session *s, struct box_usage *ret_usage, struct err *err)
{
	int r = 0;

	if (s->box.id[0])
		r = launcher_destroy_sync(s->launcher, s->box.id, ret_usage, err);
	s->guest = guest_free(s->guest);
	launcher_box_done(&s->box);
	s->launcher = launcher_stop(s->launcher);
	s->box.id[0] = '\0';
	return r;
}
