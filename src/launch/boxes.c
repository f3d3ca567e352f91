/* A box from its cgroup to its end. Every way out of here gives back what was taken. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/news.h"
#include "launch/process.h"
#include "launch/sysdirs.h"
#include "launch/zygote.h"

static void drop_turn(struct launch *l, struct box *b)
{
	bool was_late = b->turn.state == ENDING_LATE;

	ending_done(&l->ending, &b->turn);
	if (was_late)
		builds_ends_late(l, l->ending.n_late);
}

struct box *boxes_free(struct launch *l, struct box *b)
{
	if (!b)
		return NULL;
	if (b->sock >= 0) {
		launch_unwatch(l, b->sock);
		(void)close(b->sock);
	}
	if (b->pidfd >= 0) {
		launch_unwatch(l, b->pidfd);
		(void)close(b->pidfd);
	}
	(void)fd_close(b->listener);
	b->disk = disk_use_free(l, b->disk);
	room_drop(l, b);
	cell_return(l, &b->cell);
	if (!l->closing)
		(void)netns_recycle(&l->netns, TAKE_FD(b->net_fd));
	(void)fd_close(b->net_fd);
	(void)map_remove(l->by_id, b->id, ID_LEN);
	if (b->pid > 0 && b->pidfd < 0)
		(void)map_remove(l->by_pid, (const char *)&b->pid, sizeof(b->pid));
	list_remove(&b->pool_link);
	drop_turn(l, b);
	if (b->is_given_up) {
		b->tmpl->stuck--;
		builds_ended(l);
	}
	builds_remove(l, b);
	free(b);
	boxes_end_waiting(l);
	return NULL;
}

static void fill_plan(const struct launch *l, struct box *b, const struct limits *limits)
{
	const struct template *t = b->tmpl;
	const struct seccomp_filter *f = &l->filters[t->profile];

	b->plan = (struct box_plan){
		.limits = *limits,
		.root = t->spec.root,
		.level = t->spec.level,
		.net = t->spec.net,
		.rootless = l->rootless,
		.unenforced = cgroups_missing(l->cgroups),
		.flags = t->spec.flags,
		.landlock_abi = l->landlock_abi,
		.init_fd = l->init_fd,
		.lib_fd = -1,
		.filter = f->insn,
		.filter_len = f->len,
	};
	memcpy(b->plan.writable, t->writable, sizeof(b->plan.writable));
	memcpy(b->plan.preload_node, t->preload_node, sizeof(b->plan.preload_node));
	/* Used by a box that no template interpreter makes. */
	if ((t->spec.flags & TEMPLATE_OWN_PRELOAD) && t->preload[0] != '\0') {
		b->plan.lib_fd = l->lib_fd;
		(void)str_copy(b->plan.preload, sizeof(b->plan.preload), t->preload); /* fits */
	}
}

/* The time since the box began, less what earlier steps took. */
static void step_done(struct box *b, enum launch_step step)
{
	uint64_t spent = clock_now_ns() - b->began_ns;

	for (int i = 0; i < (int)step; i++)
		spent -= b->step_ns[i];
	b->step_ns[step] = spent;
}

/* It has a process and will never be ready: the reaper answers whoever waits. */
static void spoiled(struct launch *l, struct box *b)
{
	if (!b->claim_id)
		b->tmpl->failures++;
	boxes_destroy(l, b);
}

static void built(struct launch *l, struct box *b)
{
	step_done(b, STEP_READY);
	builds_remove(l, b);
	builds_worked(l, b);
	launch_unwatch(l, b->sock);
	disk_hand_over(b->disk);
	b->room_fd = fd_close(b->room_fd);
	if (persist_prepare(l, b, &b->err) < 0) {
		spoiled(l, b);
		return;
	}
	if (!b->claim_id && b->generation != b->tmpl->generation) {
		boxes_destroy(l, b); /* what it was to be is not wanted any more */
		return;
	}
	b->tmpl->building_count--;
	if (b->plan.nested)
		zygote_worked(l, b);
	poolsize_made(&b->tmpl->size, clock_now_ns() - b->began_ns);
	if (b->claim_id)
		boxes_claim(l, b, &(struct claim){ b->claim_id, b->tag, NULL });
	else
		pool_add(b);
}

static int start_plain(struct launch *l, struct box *b, struct err *err);

/* No process to wait for: what was taken is given back here. */
static void give_up(struct launch *l, struct box *b)
{
	b->tmpl->building_count--;
	b->tmpl->failures++;
	if (b->claim_id)
		server_failed(l, b->claim_id, &b->err);
	boxes_free(l, b);
}

/* A warm interpreter could not make this box, and nothing of its attempt is left. It is built like
 * any other, and has no Python waiting. */
static void start_over(struct launch *l, struct box *b, const struct err *why)
{
	log_warn("launch", "box without a waiting Python: %s", why->text);
	zygote_failed(l, b);
	if (b->pid > 0)
		(void)map_remove(l->by_pid, (const char *)&b->pid, sizeof(b->pid));
	b->pid = 0;
	launch_unwatch(l, b->sock);
	b->sock = fd_close(b->sock);
	b->plan.nested = 0;
	b->err = (struct err){ 0 };
	if (b->generation != b->tmpl->generation)
		(void)err_set(&b->err, EAGAIN, "its template was defined anew");
	if (b->err.code || room_renew(l, b, &b->err) < 0 || start_plain(l, b, &b->err) < 0)
		give_up(l, b);
}

/* Before the first process is known. */
static void unborn(struct launch *l, struct box *b)
{
	struct err err = { 0 };

	int r = zygote_heard(l, b, &err);

	if (r >= 0 && (b->state == BOX_BUILDING || b->pid == 0))
		return;
	if (b->pid > 0) {
		launch_unwatch(l, b->sock);
		(void)kill(b->pid, SIGKILL); /* boxes_reaped() goes on */
	} else if (b->state == BOX_BUILDING) {
		start_over(l, b, &err);
	} else { /* nobody has the other end: whatever was to become a box is gone */
		zygote_failed(l, b);
		boxes_free(l, b);
	}
}

void boxes_abandon_unborn(struct launch *l)
{
	struct box *found;

	do {
		found = NULL;
		MAP_FOREACH (l->by_id, it) {
			struct box *b = it.value;

			if (b->pid == 0)
				found = b;
		}
		if (found) {
			zygote_failed(l, found);
			boxes_free(l, found);
		}
	} while (found);
}

static void building(struct launch *l, struct source *self)
{
	struct box *b = (struct box *)self;

	if (b->plan.nested && b->pid == 0) {
		unborn(l, b);
		return;
	}
	switch (news_read(b)) {
	case NEWS_NONE:
		return;
	case NEWS_READY:
		if (b->claim_id == 0 && news_prime(b) == 0)
			return;
		built(l, b);
		return;
	case NEWS_PRIMED:
		built(l, b);
		return;
	case NEWS_END:
		break;
	}
	launch_unwatch(l, b->sock);
	if (b->plan.nested)
		(void)kill(b->pid, SIGKILL); /* boxes_reaped() starts over */
	else
		spoiled(l, b);
}

int boxes_write_map(struct launch *l, const char *map, pid_t pid, struct err *err)
{
	char path[32];
	int r = 0;

	if (l->rootless) {
		(void)str_format(path, sizeof(path), "%d/setgroups", (int)pid);
		r = fd_write_file_at(l->proc_fd, path, "deny");
	}
	(void)str_format(path, sizeof(path), "%d/gid_map", (int)pid);
	if (r == 0)
		r = fd_write_file_at(l->proc_fd, path, map);
	(void)str_format(path, sizeof(path), "%d/uid_map", (int)pid);
	if (r == 0)
		r = fd_write_file_at(l->proc_fd, path, map);
	return r < 0 ? err_sys(err, r, "id maps of a box") : 0;
}

int boxes_write_maps(struct launch *l, const struct box_plan *plan, pid_t pid, struct err *err)
{
	char map[64];
	int r = box_id_map(plan, map, sizeof(map));

	return r < 0 ? r : boxes_write_map(l, map, pid, err);
}

static int know_pid(struct launch *l, struct box *b, struct err *err)
{
	if (map_put(l->by_pid, (const char *)&b->pid, sizeof(b->pid), b, NULL) == 0)
		return 0;
	(void)kill(b->pid, SIGKILL);
	(void)process_reap(b->pid, PROCESS_KILLED_MS);
	b->pid = 0;
	return err_sys(err, ENOMEM, "box");
}

/* Makes the process and watches what it says. */
static int start_by(struct launch *l, struct box *b,
		    int (*spawn)(struct launch *, struct box *, int, struct err *), struct err *err)
{
	_close_ int child_sock = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "control socket");
	b->sock = pair[0];
	child_sock = pair[1];
	step_done(b, STEP_STOCK);
	r = launch_watch(l, b->sock, &b->source, err);
	if (r == 0)
		r = spawn(l, b, child_sock, err);
	step_done(b, STEP_CLONE);
	if (r == 0 && b->pid > 0)
		r = know_pid(l, b, err);
	if (r < 0) {
		launch_unwatch(l, b->sock);
		b->sock = fd_close(b->sock);
	}
	return r;
}

static int start_plain(struct launch *l, struct box *b, struct err *err)
{
	return start_by(l, b, spawn_box, err);
}

static int start(struct launch *l, struct box *b, struct err *err)
{
	/* A warm interpreter's box begins with what the interpreter sees. */
	bool has_own = b->disk || sysdirs_are_for(l, &b->tmpl->spec);
	int r = has_own ? -EAGAIN : start_by(l, b, zygote_spawn, err);

	return r == -EAGAIN ? start_plain(l, b, err) : r;
}

static int prepare(struct launch *l, struct box *b, const struct limits *limits, struct err *err)
{
	int r;

	b->began_ns = clock_now_ns();
	fill_plan(l, b, limits);
	r = cell_take(l, limits, &b->cell, err);
	b->plan.uid_base = b->cell.uid_base;
	if (r == 0)
		r = room_make(l, b, err);
	return r < 0 ? r : map_put(l->by_id, b->id, ID_LEN, b, NULL);
}

/* Not even a process came of it in time. */
static void never_begun(struct launch *l, struct box *b, const struct err *err)
{
	char detail[PROCESS_DETAIL_MAX];

	process_describe(l->proc_fd, b->cell.seed, detail, sizeof(detail));
	log_error("launch", "box %s is given up before its process is there: %s; process %d: %s",
		  b->id, err->text, (int)b->cell.seed, detail);
	b->tmpl->given_up++;
	builds_failed(l, b->tmpl, b->has_own, err);
}

int boxes_create(struct launch *l, struct template *t, const struct limits *limits,
		 const struct claim *claim, struct err *err)
{
	struct box *b = calloc(1, sizeof(*b));
	struct err own = { 0 };
	int r;

	err = err ? err : &own;

	if (!b) {
		(void)disk_use_free(l, claim ? claim->disk : NULL);
		return err_sys(err, ENOMEM, "box");
	}
	b->source.ready = building;
	b->tmpl = t;
	b->generation = t->generation;
	b->sock = b->net_fd = b->pidfd = b->listener = b->room_fd = -1;
	b->cell = CELL_NONE;
	if (claim) {
		b->has_own = claim->disk != NULL;
		b->claim_id = claim->id;
		(void)str_copy(b->tag, sizeof(b->tag), claim->tag); /* fits: it was checked */
	}
	id_make(b->id);
	list_init(&b->pool_link);
	ending_turn_init(&b->turn);
	list_init(&b->build_link);
	r = disk_take(l, b, claim ? claim->disk : NULL, err);
	if (r == 0)
		r = prepare(l, b, limits, err);
	if (r == 0)
		r = start(l, b, err);
	if (r == -ETIMEDOUT)
		never_begun(l, b, err);
	if (r < 0) {
		boxes_free(l, b);
		return r;
	}
	t->building_count++;
	builds_add(l, b);
	return 0;
}

void boxes_claim(struct launch *l, struct box *b, const struct claim *claim)
{
	struct err err = { 0 };

	if (claim->tag != b->tag)
		(void)str_copy(b->tag, sizeof(b->tag), claim->tag);
	b->state = BOX_CLAIMED;
	b->claim_id = 0;
	b->tmpl->claimed_count++;
	b->tmpl->failures = 0;
	if (persist_box(l, b, &err) < 0) {
		server_failed(l, claim->id, &err);
		boxes_destroy(l, b);
		return;
	}
	if (server_box(l, b, claim->id, b->sock) < 0)
		boxes_destroy(l, b);
	b->sock =
		fd_close(b->sock); /* the client's alone now: what does not outlive us ends by it */
}

static int user_ns_of(struct launch *l, pid_t pid)
{
	char path[32];

	(void)str_format(path, sizeof(path), "%d/ns/user", (int)pid);
	return openat(l->proc_fd, path, O_RDONLY | O_CLOEXEC);
}

/* A frozen process dies when it thaws. */
static void thaw(struct box *b)
{
	if (b->frozen || b->held)
		(void)cgroup_ops_of(b->cell.cgroup)->freeze(b->cell.cgroup, false, NULL);
}

/* Nobody gets it any more. */
static void withdraw(struct launch *l, struct box *b)
{
	b->was_whole = b->state != BOX_BUILDING;
	builds_remove(l, b);
	if (b->state == BOX_BUILDING)
		b->tmpl->building_count--;
	else if (b->state == BOX_READY)
		pool_remove(b);
	else
		b->tmpl->claimed_count--;
	b->state = BOX_DYING;
	snapshot_cancel(l, b);
}

static void kill_box(struct launch *l, struct box *b)
{
	if (b->pidfd >= 0) {
		process_kill(b->pidfd);
		thaw(b);
		return; /* what it was made of is not used again */
	}
	/* One of a warm interpreter's making belongs to its box's user namespace and ends with it.
	 */
	if (b->was_whole && b->plan.net == NET_NONE && b->net_fd < 0 && !b->plan.nested)
		b->net_fd = netns_of(&l->netns, b->pid);
	if (b->was_whole && b->cell.user_ns < 0)
		b->cell.user_ns = user_ns_of(l, b->pid);
	(void)kill(b->pid, SIGKILL);
	thaw(b);
}

static void tell_late(struct launch *l, const struct box *b)
{
	char detail[PROCESS_DETAIL_MAX];

	process_describe(l->proc_fd, b->pid, detail, sizeof(detail));
	log_error("launch", "box %s has not ended after %d ms; process %d: %s", b->id,
		  ENDING_SLOW_MS, (int)b->pid, detail);
	builds_ends_late(l, l->ending.n_late);
}

void boxes_end_waiting(struct launch *l)
{
	struct ending_turn *t;

	while ((t = ending_next_late(&l->ending, clock_now_ms())))
		tell_late(l, LIST_ENTRY(t, struct box, turn));
	while ((t = ending_next(&l->ending, clock_now_ms())))
		kill_box(l, LIST_ENTRY(t, struct box, turn));
}

void boxes_destroy(struct launch *l, struct box *b)
{
	if (b->state == BOX_DYING)
		return;
	withdraw(l, b);
	ending_add(&l->ending, &b->turn);
	boxes_end_waiting(l);
}

/* Whoever has it is told as of one that ends by itself. */
void boxes_abort(struct box *b)
{
	if (b->pidfd >= 0)
		process_kill(b->pidfd);
	else if (b->pid > 0)
		(void)kill(b->pid, SIGKILL);
	thaw(b);
}

void boxes_give_up(struct launch *l, struct box *b)
{
	if (b->claim_id)
		server_failed(l, b->claim_id, &b->err);
	b->claim_id = 0;
	if (b->pid > 0) {
		launch_unwatch(l, b->sock); /* what it says comes too late */
		boxes_destroy(l, b);
		return;
	}
	/* A warm interpreter makes it. Its socket tells when nobody is left who could. */
	builds_remove(l, b);
	b->tmpl->building_count--;
	b->state = BOX_DYING;
	zygote_kill(l, b->zygote);
}

static uint64_t rusage_us(const struct rusage *ru)
{
	return (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec);
}

/* Tells who is to know, and gives back what it held. */
static void ended(struct launch *l, struct box *b, int status, const struct box_usage *usage)
{
	enum box_state was = b->state;

	if (was != BOX_DYING) /* by itself: its number may be another's by now */
		withdraw(l, b);
	/* The client has never heard of a box that was to wait; the pool must not make the next one
	 * for ever. */
	if (was == BOX_READY || (was == BOX_BUILDING && !b->claim_id))
		b->tmpl->failures++;
	persist_forget(l, b); /* before anybody is told that it is gone */
	if (b->claim_id) {
		if (b->err.code == 0)
			(void)err_set(&b->err, ECHILD,
				      "box ended while it was built (wait status %#x)",
				      (unsigned)status);
		server_failed(l, b->claim_id, &b->err);
	} else if (b->destroy_id) {
		server_gone(l, b, L_GONE, status, usage);
	} else if (was == BOX_CLAIMED) {
		server_gone(l, b, L_DIED, status, usage);
	}
	boxes_free(l, b);
}

void boxes_ended(struct launch *l, struct source *self)
{
	struct box *b = (struct box *)self;
	struct box_usage usage = { 0 };

	(void)cgroup_ops_of(b->cell.cgroup)->usage(b->cell.cgroup, &usage, NULL);
	ended(l, b, (int)DIED_UNKNOWN, &usage); /* it was another's child */
}

void boxes_reaped(struct launch *l, pid_t pid, int status, const struct rusage *ru)
{
	struct box *b = map_get(l->by_pid, (const char *)&pid, sizeof(pid));
	struct box_usage usage = { 0 };

	if (!b)
		return;
	if (b->state == BOX_BUILDING) /* its last words may still lie in the socket */
		(void)news_read(b);
	if (b->state == BOX_BUILDING && b->plan.nested && !l->closing) {
		start_over(l, b, &b->err);
		return;
	}
	(void)cgroup_ops_of(b->cell.cgroup)->usage(b->cell.cgroup, &usage, NULL);
	/* The kernel adds up what PID 1 and all it reaped have used. */
	if (usage.cpu_us < rusage_us(ru))
		usage.cpu_us = rusage_us(ru);
	ended(l, b, status, &usage);
}

struct box *boxes_find(const struct launch *l, const char *id)
{
	return id_is_valid(id) ? map_get(l->by_id, id, ID_LEN) : NULL;
}
