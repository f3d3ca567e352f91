/* Executions of an earlier life: from the store's rows, and from what boxes tell. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "provider/guest_client.h"
#include "sandbox/execution.h"

void execution_load_output(struct execution *x)
{
	int dir = x->all->settings.spool_fd;
	struct err err = { 0 };
	int r;

	if (x->output || !x->is_found_again || dir < 0)
		return;
	r = output_open(dir, x->id, &x->output, &err);
	if (r == 0) {
		output_limit(x->output, x->all->output_budget);
		x->is_crediting = true; /* what is in the file, the box may forget */
		return;
	}
	if (r != -ENOENT) {
		log_debug("sandbox", "%s: %s", x->id, err.text);
		(void)unlinkat(dir, x->id, 0);
	}
}

/* ---- rows ---- */

static int add_row(struct sandboxes *all, const struct execution_row *row)
{
	struct sandbox *sb = map_get(all->by_id, row->sandbox_id, strlen(row->sandbox_id));
	struct execution *x = execution_alloc(all, row->id);

	if (!x)
		return -ENOMEM;
	x->content = str_dup(str_of(row->content));
	if (!x->content) {
		exec_unref(x);
		return -ENOMEM;
	}
	x->kind = execution_row_is_sound(row) ? row->kind : EXECUTION_COMMAND;
	x->flags = row->flags;
	x->guest_id = row->guest_id;
	x->pid = row->pid;
	x->started_ms = row->started_ms;
	x->is_found_again = true;
	if (sb) {
		execution_attach(x, sb);
		return 0;
	}
	(void)str_copy(x->sandbox_id, sizeof(x->sandbox_id), row->sandbox_id);
	(void)str_copy(x->owner, sizeof(x->owner), row->owner);
	list_push_back(&all->strays, &x->node);
	all->n_running++;
	return 0;
}

struct loading {
	struct sandboxes *all;
	int r;
};

static void on_row(void *user, const struct execution_row *row)
{
	struct loading *l = user;

	if (l->r == 0)
		l->r = add_row(l->all, row);
}

int executions_load(struct sandboxes *all, struct err *err)
{
	struct loading l = { .all = all };
	int r = store_load_live_executions(all->store, on_row, &l, err);

	if (r < 0)
		return r;
	if (l.r < 0)
		return err_sys(err, l.r, "load executions");
	/* Their sandbox ended, and we did before we could say so of them. */
	LIST_FOREACH (&all->strays, x, struct execution, node) {
		(void)str_format(x->reason, sizeof(x->reason), "its sandbox has ended");
		x->is_unkept = true;
		execution_finish(x, EXECUTION_INTERRUPTED);
	}
	return 0;
}

/* ---- one that the store does not list as running: was its end recorded, but not acknowledged? */

struct check {
	struct flight flight;
	struct execution *x; /* owned reference */
};

/* It was: the box may forget it, and so do we. */
static void drop(struct execution *x)
{
	struct sandbox *sb = x->sb;

	if (!sb)
		return;
	if (sb->guest) {
		(void)guest_cancel(sb->guest, x->guest_id);
		guest_forget(sb->guest, x->guest_id);
		(void)guest_ack(sb->guest, x->guest_id);
		link_kick(sb);
	}
	(void)unlinkat(x->all->settings.spool_fd, x->id, 0);
	if (x->state == EXECUTION_RUNNING) {
		x->state = EXECUTION_EXITED;
		x->is_bound = false;
		sb->n_running--;
		x->all->n_running--;
		sb->n_unrecorded++; /* detaching takes it back */
		execution_tell(x);
	}
	execution_detach(x);
}

static void checked(struct execution *x, int r, bool is_recorded)
{
	if (r < 0 && r != -ENOENT) {
		if (list_is_empty(&x->dirty))
			list_push_back(&x->all->dirty_executions, &x->dirty);
		tick_need(x->all);
		return;
	}
	x->is_checking = false;
	if (is_recorded)
		drop(x);
	else if (x->is_record_due)
		execution_record(x);
}

static void on_checked(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	_free_ struct check *c = user;

	(void)more;
	/* One of another sandbox is there, too, and stays as it is. */
	if (flight_end(&c->flight))
		checked(c->x, r,
			r == 0 && n > 0 &&
				(!rows[0].is_live ||
				 strcmp(rows[0].sandbox_id, c->x->sandbox_id) != 0));
	exec_unref(c->x);
}

void execution_check(struct execution *x)
{
	struct check *c = calloc(1, sizeof(*c));
	int r = c ? store_get_execution(x->all->store, x->id, on_checked, c) : -ENOMEM;

	x->is_checking = true;
	if (r < 0) {
		free(c);
		checked(x, r, false);
		return;
	}
	c->x = exec_ref(x);
	flight_begin(x->all, &c->flight);
}

/* ---- what a box tells ---- */

static bool is_known(struct sandboxes *all, const char *id)
{
	LIST_FOREACH (&all->strays, x, struct execution, node)
		if (strcmp(x->id, id) == 0)
			return true;
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (execution_by_id(sb, id))
			return true;
	return false;
}

static struct execution *add_unknown(struct sandbox *sb, const struct guest_live *live)
{
	struct execution *x = execution_alloc(sb->all, live->tag);

	if (!x)
		return NULL;
	x->kind = live->flags & LIVE_PTY ? EXECUTION_PTY : EXECUTION_COMMAND;
	x->started_ms = wall_ms(sb->all) - (int64_t)live->age_ms;
	x->is_found_again = true;
	execution_attach(x, sb);
	execution_check(x);
	return x;
}

static void bind(struct execution *x, const struct guest_live *live)
{
	x->guest_id = live->id;
	x->pid = live->pid;
	x->is_bound = true;
	x->is_cut = false;
	x->uncredited = 0;
	x->is_in_open = (live->flags & LIVE_STDIN) != 0;
	x->in.max = EXEC_STDIN_MAX;
	x->waits_for_start = false;
	if (live->flags & LIVE_WARM)
		x->flags |= EXECUTION_WARM;
	execution_load_output(x);
	guest_manual_credit(x->sb->guest, live->id);
}

bool execution_found(struct sandbox *sb, const struct guest_live *live,
		     struct guest_callbacks *ret_cb, void **ret_user)
{
	struct execution *x;

	if (!id_is_valid(live->tag))
		return false;
	x = execution_by_id(sb, live->tag);
	if (!x && !is_known(sb->all, live->tag)) /* another's is not this box's to speak of */
		x = add_unknown(sb, live);
	if (!x)
		return false;
	if (x->state != EXECUTION_RUNNING || x->is_exiting) {
		/* We know its end, and the box is told so when the store does, too. */
		*ret_cb = (struct guest_callbacks){ 0 };
		*ret_user = NULL;
		return true;
	}
	bind(x, live);
	*ret_cb = execution_callbacks;
	*ret_user = x;
	return true;
}

static struct execution *first_unknown(const struct sandbox *sb)
{
	LIST_FOREACH (&sb->executions, x, struct execution, node)
		if (x->state == EXECUTION_RUNNING && !x->is_bound && !x->is_exiting)
			return x;
	return NULL;
}

void executions_settle(struct sandbox *sb)
{
	struct execution *x;

	while ((x = first_unknown(sb))) {
		(void)str_format(x->reason, sizeof(x->reason), "its box does not know it any more");
		x->is_unkept = true;
		execution_finish(x, EXECUTION_INTERRUPTED);
	}
}

/* ---- files of nobody ---- */

/* A box that has not spoken may know executions that we do not, and their files are ours. */
static bool is_all_told(struct sandboxes *all)
{
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (state_is_live(sb->state) && sb->state != SANDBOX_CREATING &&
		    sb->state != SANDBOX_STOPPING && !sb->is_guest_ready)
			return false;
	return true;
}

void executions_clean_spool(struct sandboxes *all)
{
	int fd;
	DIR *d;

	if (all->is_spool_clean || !all->is_recovered || all->settings.spool_fd < 0 ||
	    !is_all_told(all))
		return;
	fd = openat(all->settings.spool_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		(void)fd_close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d));)
		if (id_is_valid(e->d_name) && !is_known(all, e->d_name))
			(void)unlinkat(all->settings.spool_fd, e->d_name, 0);
	(void)closedir(d);
	all->is_spool_clean = true;
}
