/* No control groups: nothing is enforced, nothing is counted, and cgroups_missing() says so. */
#include <errno.h>
#include <stdlib.h>

#include "launch/cgroup_impl.h"

static int none_make(struct cgroups *all, struct cgroup **ret, struct err *err)
{
	struct cgroup *cg = cgroup_new(all);

	if (!cg)
		return err_sys(err, ENOMEM, "control group");
	*ret = cg;
	return 0;
}

static int none_limit(struct cgroup *cg, const struct limits *l, struct err *err)
{
	(void)err;
	cg->set = *l;
	return 0;
}

static int none_spawn_fd(struct cgroup *cg)
{
	(void)cg;
	return -1;
}

static int none_attach(struct cgroup *cg, pid_t pid, struct err *err)
{
	(void)cg, (void)pid, (void)err;
	return 0;
}

/* A pause that does not pause would be a lie; a resume of what runs is none. */
static int none_freeze(struct cgroup *cg, bool on, struct err *err)
{
	(void)cg;
	if (on)
		return err_set(err, ENOTSUP,
			       "pause needs control groups, which are not usable here");
	return 0;
}

static int none_usage(struct cgroup *cg, struct box_usage *ret, struct err *err)
{
	(void)cg, (void)err;
	*ret = (struct box_usage){ 0 };
	return 0;
}

static int none_reset(struct cgroup *cg)
{
	(void)cg;
	return 0;
}

static void none_destroy(struct cgroup *cg)
{
	free(cg);
}

const struct cgroup_ops cgroup_none_ops = {
	.name = "none",
	.kind = CGROUP_NONE,
	.make = none_make,
	.limit = none_limit,
	.spawn_fd = none_spawn_fd,
	.attach = none_attach,
	.freeze = none_freeze,
	.usage = none_usage,
	.reset = none_reset,
	.destroy = none_destroy,
};
