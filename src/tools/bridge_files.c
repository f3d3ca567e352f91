/* The files of a sandbox's tools, put into its box and kept as what the servers offer changes: made
 * beside those that are there, and then in their place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sandbox/files.h"
#include "sandbox/grant.h"
#include "spec/guest.h"
#include "tools/bridge_impl.h"

#define WRITING_MAX 16u   /* boxes at a time that have files already, */
#define FIRST_MAX 32u     /* and that have none */
#define PATIENCE_MS 5000u /* of who waits for the first ones */
#define PLACE GUEST_TOOLS_DIR "/tools"
#define NEW GUEST_TOOLS_DIR "/.new"
#define OLD GUEST_TOOLS_DIR "/.old"

static const struct step {
	uint8_t op; /* enum guest_file_op */
	uint32_t flags;
	const char *path, *target;
	bool may_fail; /* there may be nothing of it */
} steps[] = {
	{ FILE_REMOVE, FILE_RECURSIVE, NEW, "", true },
	{ FILE_TAR_PUT, FILE_PARENTS, NEW, "", false },
	{ FILE_REMOVE, FILE_RECURSIVE, OLD, "", true },
	{ FILE_RENAME, 0, PLACE, OLD, true },
	{ FILE_RENAME, 0, NEW "/tools", PLACE, false },
	{ FILE_REMOVE, FILE_RECURSIVE, OLD, "", true },
	{ FILE_REMOVE, FILE_RECURSIVE, NEW, "", true },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct waiter {
	struct list node;
	void (*done)(void *user);
	void *user;
};

static void begin(struct bridge *b);
static void start_step(struct bridge *b);

static void tell_waiters(struct bridge *b)
{
	struct list gone = LIST_INIT(gone);

	b->patience = loop_timer_free(b->patience);
	while (!list_is_empty(&b->waiters)) {
		struct list *first = b->waiters.next;

		list_remove(first);
		list_push_back(&gone, first);
	}
	while (!list_is_empty(&gone)) {
		struct waiter *w = LIST_ENTRY(gone.next, struct waiter, node);

		list_remove(&w->node);
		if (!b->all->is_closing)
			w->done(w->user);
		free(w);
	}
}

/* ---- what they are made of ---- */

static bool add_tool(void *user, const struct mcpc_tool *tool)
{
	struct bridges *all = user;
	struct stub_tool stub = { .server = tool->server,
				  .name = tool->name,
				  .about = tool->about,
				  .input = tool->input,
				  .output = tool->output };

	if (grant_has(all->made.grant, tool->server))
		(void)stubs_add(all->made.stubs, &stub);
	return true;
}

/* Kept: most sandboxes have the same grant, and sandboxes come oftener than tools change. */
static int make(struct bridges *all, const char *grant)
{
	if (all->made.tar && all->made.version == all->version &&
	    strcmp(all->made.grant, grant) == 0)
		return 0;
	all->made.tar = NULL;
	all->made.stubs = stubs_free(all->made.stubs);
	free(all->made.grant);
	all->made.grant = strdup(grant);
	all->made.stubs = all->made.grant ? stubs_create() : NULL;
	if (!all->made.stubs)
		return -ENOMEM;
	mcpc_servers_tools(all->deps.servers, NULL, add_tool, all);
	if (stubs_left_off(all->made.stubs) > 0)
		log_info("tools", "%zu tools have no files: they can be called by name",
			 stubs_left_off(all->made.stubs));
	all->made.tar = stubs_end(all->made.stubs);
	all->made.version = all->version;
	return all->made.tar ? 0 : -ENOMEM;
}

/* ---- putting them there ---- */

/* When servers change, all boxes want others, and after a restart all want theirs: a few at a time,
 * and those that have none before the others. */
static bool may_write(const struct bridge *b)
{
	return !b->is_writing && !b->is_failed && b->version != b->all->version &&
	       b->all->n_writing < (b->version == 0 ? FIRST_MAX : WRITING_MAX);
}

static void go_on(struct bridges *all)
{
	if (all->is_closing)
		return;
	LIST_FOREACH (&all->all, b, struct bridge, node)
		if (may_write(b))
			begin(b);
}

static void stop(struct bridge *b)
{
	buf_done(&b->tar);
	b->all->n_writing -= b->is_writing;
	b->is_writing = false;
	tell_waiters(b);
}

static void next_step(struct bridge *b)
{
	b->op = NULL;
	b->step++;
	if (b->step < STEPS)
		return start_step(b);
	b->version = b->wanted;
	stop(b);
	go_on(b->all); /* also with this one, if they are others again */
}

static void on_done(void *user, uint64_t count)
{
	(void)count;
	next_step(user);
}

/* The box may be full, or gone: it is tried again when it is reached again. */
static void give_up(struct bridge *b, const char *why)
{
	b->op = NULL;
	b->is_failed = true;
	log_warn("tools", "sandbox %s has no files for its tools: %s", bridge_sandbox(b), why);
	stop(b);
}

static void on_failed(void *user, const struct err *err)
{
	struct bridge *b = user;
	struct bridges *all = b->all;

	if (steps[b->step].may_fail && err->code != EPIPE)
		return next_step(b);
	give_up(b, err->text);
	go_on(all);
}

static void on_room(void *user)
{
	struct bridge *b = user;
	ssize_t n;

	while (b->op && b->sent < b->tar.len) {
		n = file_send(b->op, b->tar.data + b->sent, b->tar.len - b->sent);
		if (n <= 0)
			return;
		b->sent += (size_t)n;
	}
	if (b->op && b->tar.len > 0) {
		buf_done(&b->tar);
		(void)file_send(b->op, NULL, 0);
	}
}

static void start_step(struct bridge *b)
{
	static const struct file_ops ops = { .room = on_room,
					     .done = on_done,
					     .failed = on_failed };
	const struct step *s = &steps[b->step];
	struct guest_file f = { .op = s->op,
				.flags = s->flags,
				.mode = 0755,
				.user = "",
				.path = s->path,
				.target = s->target };
	struct sandbox *sb = sandboxes_find(b->all->deps.sandboxes, bridge_sandbox(b), NULL);
	struct err err = { EPIPE, "the sandbox is gone" };

	if (!sb || file_start(sb, &f, &ops, b, &b->op, &err) < 0)
		return give_up(b, err.text);
	if (s->op == FILE_TAR_PUT)
		on_room(b);
}

static void begin(struct bridge *b)
{
	struct bridges *all = b->all;

	b->is_writing = true;
	all->n_writing++;
	b->wanted = all->version;
	b->step = b->sent = 0;
	if (make(all, b->grant) < 0 ||
	    buf_append(&b->tar, all->made.tar->data, all->made.tar->len) < 0)
		return give_up(b, "out of memory");
	start_step(b);
}

void bridge_files_want(struct bridge *b)
{
	b->is_failed = false;
	if (may_write(b))
		begin(b);
}

/* ---- who waits for the first ones ---- */

static void on_patience(void *user)
{
	tell_waiters(user);
}

void bridge_files_wait(struct bridge *b, void (*done)(void *user), void *user)
{
	struct waiter *w = b->version == 0 && !b->is_failed ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return done(user);
	w->done = done;
	w->user = user;
	list_push_back(&b->waiters, &w->node);
	if (!b->patience && loop_timer_create(b->all->deps.loop, on_patience, b, &b->patience) == 0)
		loop_timer_start(b->patience, PATIENCE_MS, 0);
}

void bridge_files_end(struct bridge *b)
{
	file_cancel(b->op);
	b->op = NULL;
	stop(b);
	go_on(b->all);
}
