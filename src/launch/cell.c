/* Cells: cgroups made ahead, each with a parked process, and reused while they carry nothing. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/launch.h"

static int start_seed(struct launch *l, struct cell *cell, struct err *err)
{
	int pair[2];
	pid_t pid;

	if (cgroups_ops(l->cgroups)->kind != CGROUP_V1)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "cell");
	pid = fork();
	if (pid == 0)
		spawn_seed(l, cell->cgroup, pair[1]);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return err_sys(err, errno, "cell");
	}
	cell->seed = pid;
	cell->seed_sock = pair[0];
	return 0;
}

static int cell_make(struct launch *l, struct cell *ret, struct err *err)
{
	const struct cgroup_ops *ops = cgroups_ops(l->cgroups);
	struct cell cell = { .seed_sock = -1 };
	int r = ops->make(l->cgroups, &cell.cgroup, err);

	if (r < 0)
		return r;
	if (ops->kind == CGROUP_V1)
		cgroup_house(cell.cgroup, 1);
	r = start_seed(l, &cell, err);
	if (r < 0) {
		ops->destroy(cell.cgroup);
		return r;
	}
	*ret = cell;
	return 0;
}

/* The seed is gone when this returns: only an empty group can be removed. */
void cell_done(struct launch *l, struct cell *cell)
{
	if (!cell->cgroup)
		return;
	if (cell->seed > 0) {
		cell->seed_sock = fd_close(cell->seed_sock);
		(void)kill(cell->seed, SIGKILL);
		while (waitpid(cell->seed, NULL, 0) < 0 && errno == EINTR)
			;
	}
	cgroups_ops(l->cgroups)->destroy(cell->cgroup);
	*cell = (struct cell){ .seed_sock = -1 };
}

int cell_take(struct launch *l, const struct limits *limits, struct cell *ret, struct err *err)
{
	struct cell cell;
	int r = 0;

	if (l->cell_count > 0)
		cell = l->cells[--l->cell_count];
	else
		r = cell_make(l, &cell, err);
	if (r == 0)
		r = cgroups_ops(l->cgroups)->limit(cell.cgroup, limits, err);
	if (r < 0) {
		cell_done(l, &cell);
		return r;
	}
	*ret = cell;
	return 0;
}

void cell_return(struct launch *l, struct cell *cell)
{
	if (cell->cgroup && !l->closing && l->cell_count < l->cell_want &&
	    (cell->seed == 0 || kill(cell->seed, 0) == 0) &&
	    cgroups_ops(l->cgroups)->reset(cell->cgroup) == 0)
		l->cells[l->cell_count++] = *cell;
	else
		cell_done(l, cell);
}

bool cell_refill(struct launch *l)
{
	if (l->cell_count >= l->cell_want || cell_make(l, &l->cells[l->cell_count], NULL) < 0)
		return false;
	l->cell_count++;
	return true;
}
