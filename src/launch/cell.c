/* Cells: what a box is put into, made ahead and used again while nothing of a box is left in it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/disk.h"
#include "launch/launch.h"
#include "launch/process.h"

#define COOLING_TRIES 32

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

/* Only a process in it keeps a new user namespace until it is opened. */
static void hold_user_ns(struct launch *l, const struct box_plan *plan, int sock)
{
	char word = 'u';

	if (box_become_owner(plan, NULL) < 0 || unshare(CLONE_NEWUSER) < 0 ||
	    (plan->rootless && box_limit_watches(l->proc_fd, NULL) < 0))
		_exit(1);
	(void)send(sock, &word, 1, MSG_NOSIGNAL);
	(void)recv(sock, &word, 1, 0);
	_exit(0);
}

static int open_user_ns(struct launch *l, const char *map, pid_t pid, int sock, struct err *err)
{
	char path[32], word;
	int r, fd;

	if (process_hear(sock, PROCESS_HELPER_MS) < 0)
		return err_set(err, ETIMEDOUT, "a user namespace was not made in %d ms",
			       PROCESS_HELPER_MS);
	if (recv(sock, &word, 1, 0) != 1)
		return err_set(err, EPERM, "a user namespace could not be made");
	r = boxes_write_map(l, map, pid, err);
	if (r < 0)
		return r;
	(void)str_format(path, sizeof(path), "%d/ns/user", (int)pid);
	fd = openat(l->proc_fd, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "user namespace of a box") : fd;
}

/* A user namespace with that map: its descriptor. */
static int new_user_ns(struct launch *l, const struct box_plan *plan, const char *map,
		       struct err *err)
{
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "cell");
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		hold_user_ns(l, plan, pair[1]);
	}
	(void)close(pair[1]);
	r = pid < 0 ? err_sys(err, errno, "cell") : open_user_ns(l, map, pid, pair[0], err);
	(void)close(pair[0]);
	if (pid > 0 && r == -ETIMEDOUT)
		(void)kill(pid, SIGKILL);
	if (pid > 0) /* one that does not end is reaped when it does */
		(void)process_reap(pid, PROCESS_KILLED_MS);
	return r;
}

static int make_user_ns(struct launch *l, struct cell *cell, struct err *err)
{
	struct box_plan plan = { .rootless = l->rootless };
	char map[64];
	int r = l->rootless ? 0 : ids_take(&l->ids, &cell->uid_base, err);

	if (r < 0)
		return r;
	plan.uid_base = cell->uid_base;
	r = box_id_map(&plan, map, sizeof(map));
	if (r == 0)
		r = cell->user_ns = new_user_ns(l, &plan, map, err);
	return r < 0 ? r : 0;
}

int cell_layer_ns(struct launch *l, struct cell *cell, struct err *err)
{
	struct box_plan plan = { .uid_base = cell->uid_base };
	char map[64];
	int r;

	if (l->rootless || cell->layer_ns >= 0)
		return 0;
	r = str_format(map, sizeof(map), "%u %u %u\n", LAYER_BASE, cell->uid_base, BOX_ID_COUNT);
	if (r == 0)
		r = cell->layer_ns = new_user_ns(l, &plan, map, err);
	return r < 0 ? r : 0;
}

static int cell_make(struct launch *l, struct cell *ret, struct err *err)
{
	const struct cgroup_ops *ops = cgroups_ops(l->cgroups);
	struct cell cell = CELL_NONE;
	int r = ops->make(l->cgroups, &cell.cgroup, err);

	if (r < 0)
		return r;
	if (ops->kind == CGROUP_V1)
		cgroup_house(cell.cgroup, 1);
	r = make_user_ns(l, &cell, err);
	if (r == 0)
		r = start_seed(l, &cell, err);
	if (r < 0) {
		cell_done(l, &cell);
		return r;
	}
	*ret = cell;
	return 0;
}

/* A cell whose seed was killed and has not ended. Its group cannot be removed before, and its ids
 * are not given to another. */
struct held_cell {
	struct list node;
	struct cell cell;
};

static void hold_cell(struct launch *l, const struct cell *cell)
{
	struct held_cell *h = malloc(sizeof(*h));

	log_error("launch", "process %d, which a box was to be made by, does not end",
		  (int)cell->seed);
	if (!h)
		return; /* lost until our end: never used again */
	h->cell = *cell;
	list_push_back(&l->held, &h->node);
}

/* Nothing of ours is in it any more: only an empty group can be removed. */
static void free_cell(struct launch *l, struct cell *cell)
{
	cgroup_ops_of(cell->cgroup)->destroy(cell->cgroup);
	(void)fd_close(cell->user_ns);
	(void)fd_close(cell->layer_ns);
	if (cell->uid_base)
		ids_give(&l->ids, cell->uid_base);
	*cell = CELL_NONE;
}

void cell_done(struct launch *l, struct cell *cell)
{
	if (!cell->cgroup)
		return;
	cell->seed_sock = fd_close(cell->seed_sock);
	if (cell->seed > 0) {
		(void)kill(cell->seed, SIGKILL);
		if (process_reap(cell->seed, PROCESS_KILLED_MS) < 0) {
			hold_cell(l, cell);
			*cell = CELL_NONE;
			return;
		}
	}
	free_cell(l, cell);
}

bool cell_lose_seed(struct cell *cell, pid_t pid)
{
	if (cell->seed != pid)
		return false;
	cell->seed = -1;
	return true;
}

/* One that ended by itself: a box that runs out of memory takes it along. */
static bool lose_seed(struct launch *l, pid_t pid)
{
	bool is_found = false;

	for (unsigned i = 0; i < l->cell_count; i++)
		is_found |= cell_lose_seed(&l->cells[i], pid);
	for (unsigned i = 0; i < l->cooling_count; i++)
		is_found |= cell_lose_seed(&l->cooling[i], pid);
	MAP_FOREACH (l->by_id, it)
		is_found |= cell_lose_seed(&((struct box *)it.value)->cell, pid);
	return is_found;
}

bool cell_reaped(struct launch *l, pid_t pid)
{
	LIST_FOREACH (&l->held, h, struct held_cell, node) {
		if (h->cell.seed != pid)
			continue;
		list_remove(&h->node);
		free_cell(l, &h->cell);
		free(h);
		return true;
	}
	return lose_seed(l, pid);
}

void cell_abandon_held(struct launch *l)
{
	LIST_FOREACH (&l->held, h, struct held_cell, node) {
		list_remove(&h->node);
		h->cell.uid_base = 0; /* still somebody's */
		free_cell(l, &h->cell);
		free(h);
	}
}

/* True when the cell is in stock again. */
static bool put_back(struct launch *l, const struct cell *cell)
{
	if (cell->seed < 0 || l->cell_count >= l->cell_want ||
	    cgroup_ops_of(cell->cgroup)->reset(cell->cgroup) < 0)
		return false;
	l->cells[l->cell_count++] = *cell;
	return true;
}

/* The kernel frees some of what a box had used only after a while. The oldest is tried, and given
 * up when it has been tried often enough. */
bool cell_cool(struct launch *l)
{
	struct cell cell;

	if (l->cooling_count == 0)
		return false;
	cell = l->cooling[0];
	l->cooling_count--;
	memmove(l->cooling, l->cooling + 1, l->cooling_count * sizeof(cell));
	if (put_back(l, &cell))
		return true;
	if (l->closing || ++cell.tries > COOLING_TRIES)
		cell_done(l, &cell);
	else
		l->cooling[l->cooling_count++] = cell;
	return false;
}

static int take_or_make(struct launch *l, struct cell *ret, struct err *err)
{
	for (unsigned i = l->cooling_count; l->cell_count == 0 && i > 0; i--)
		(void)cell_cool(l);
	if (l->cell_count == 0)
		return cell_make(l, ret, err);
	*ret = l->cells[--l->cell_count];
	return 0;
}

int cell_take(struct launch *l, const struct limits *limits, struct cell *ret, struct err *err)
{
	struct cell cell = CELL_NONE;
	int r = take_or_make(l, &cell, err);

	/* Pinning moves what is in the group already; who comes later would not be pinned. */
	if (r == 0 && limits->cpu_mask) {
		r = spawn_seed_is_in(&cell);
		if (r < 0)
			r = err_set(err, r == -ETIMEDOUT ? ETIMEDOUT : EIO,
				    "the cell's own process could not enter its cgroup");
	}
	if (r == 0)
		r = cgroup_ops_of(cell.cgroup)->limit(cell.cgroup, limits, err);
	if (r < 0) {
		cell_done(l, &cell);
		return r;
	}
	cell.tries = 0;
	*ret = cell;
	return 0;
}

void cell_return(struct launch *l, struct cell *cell)
{
	bool is_whole = cell->cgroup && cell->user_ns >= 0 && !l->closing && !cell->seed_is_late &&
			cell->seed >= 0;

	if (is_whole && put_back(l, cell))
		return;
	if (is_whole && l->cell_count < l->cell_want && l->cooling_count < CELL_COOLING_MAX)
		l->cooling[l->cooling_count++] = *cell;
	else
		cell_done(l, cell);
}

bool cell_refill(struct launch *l)
{
	struct err err = { 0 };
	int r = l->cell_count >= l->cell_want || builds_check(l, NULL) < 0
			? -EAGAIN
			: cell_make(l, &l->cells[l->cell_count], &err);

	if (r == -ETIMEDOUT)
		builds_failed(l, NULL, false, &err);
	if (r < 0)
		return false;
	l->cell_count++;
	return true;
}
