/* Control groups made ahead and reused while they carry nothing. */
#include "launch/launch.h"

int stock_cgroup(struct launch *l, const struct limits *limits, struct cgroup **ret,
		 struct err *err)
{
	const struct cgroup_ops *ops = cgroups_ops(l->cgroups);
	struct cgroup *cg = NULL;
	int r = 0;

	if (l->cgroup_count > 0)
		cg = l->cgroup_stock[--l->cgroup_count];
	else
		r = ops->make(l->cgroups, &cg, err);
	if (r < 0)
		return r;
	r = ops->limit(cg, limits, err);
	if (r < 0) {
		ops->destroy(cg);
		return r;
	}
	*ret = cg;
	return 0;
}

void stock_return(struct launch *l, struct cgroup *cg)
{
	const struct cgroup_ops *ops = cgroups_ops(l->cgroups);

	if (!cg)
		return;
	if (!l->closing && l->cgroup_count < l->cgroup_want && ops->reset(cg) == 0)
		l->cgroup_stock[l->cgroup_count++] = cg;
	else
		ops->destroy(cg);
}

bool stock_refill(struct launch *l)
{
	const struct cgroup_ops *ops = cgroups_ops(l->cgroups);
	struct cgroup *cg;

	if (l->cgroup_count >= l->cgroup_want / 2 || ops->make(l->cgroups, &cg, NULL) < 0)
		return false;
	l->cgroup_stock[l->cgroup_count++] = cg;
	return true;
}
