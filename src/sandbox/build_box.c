/* One step of a build in a box of its own: the box begins with all that the steps before have made,
 * the step is done in it, what it has written becomes a layer, and the box ends. Whatever goes
 * wrong on the way, the box ends. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "sandbox/build_cache.h"
#include "sandbox/build_impl.h"
#include "sandbox/exec.h"
#include "sandbox/files.h"
#include "sandbox/output.h"
#include "sandbox/snapshot.h"
#include "telemetry/trace.h"

static void act(struct build_job *j);

/* ---- the end of it ---- */

void build_box_release(struct build_job *j)
{
	struct build_box *box = &j->box;

	j->is_acting = false;
	if (box->x)
		exec_on_room(box->x, NULL, NULL);
	exec_reader_close(box->reader);
	box->reader = NULL;
	if (box->x)
		exec_unref(box->x);
	box->x = NULL;
	file_cancel(box->op);
	box->op = NULL;
	if (box->way && j->all->builds->network)
		j->all->builds->network->close(box->way);
	box->way = NULL;
	box->sum = hash_free(box->sum);
	box->fd = fd_close(box->fd);
}

static void on_gone(void *user, struct sandbox *sb, const struct err *err)
{
	struct build_job *j = user;

	(void)sb;
	(void)err; /* an end that fails is tried again by itself */
	sandbox_unref(j->box.sb);
	j->box.sb = NULL;
	build_step_over(j);
}

static void end_box(struct build_job *j)
{
	build_box_release(j);
	loop_timer_stop(j->timer);
	if (j->box.sb)
		sandbox_delete(j->box.sb, "its step is over", on_gone, j);
	else
		build_step_over(j);
}

void build_box_stop(struct build_job *j)
{
	if (j->is_acting) /* else the answer that it waits for finds out */
		end_box(j);
}

static void fail(struct build_job *j, const struct err *err)
{
	if (!j->err.code)
		j->err = *err;
	end_box(j);
}

static void fail_with(struct build_job *j, int code, const char *what)
{
	struct err err = { 0 };

	(void)err_sys(&err, code, "%s", what);
	fail(j, &err);
}

static bool is_given_up(const struct build_job *j)
{
	return j->is_canceled || j->err.code;
}

/* ---- the layer ---- */

/* All that a box of the next step begins with. */
static int join_layers(const struct layers *base, const struct layers *top, struct layers *ret)
{
	*ret = *base;
	for (unsigned i = 0; i < top->n; i++)
		if (layers_push(ret, top->ids[i]) < 0)
			return -E2BIG;
	return 0;
}

void build_take_layers(struct build_job *j, const struct layers *now, uint64_t bytes)
{
	struct layers was = j->model.layers;

	/* A chain that was too long has become one layer: those before are not in it. */
	if (was.n > 0 && !layers_have(now, was.ids[was.n - 1]))
		j->model.bytes = 0;
	j->model.bytes += bytes;
	j->model.layers = *now;
	layers_drop(j->all, &was);
}

static int take_over(struct build_job *j, const struct layers *chain, const struct layer_info *info,
		     struct err *err)
{
	struct layers now;
	int r = join_layers(&j->box.sb->kit.layers, chain, &now);

	if (r == 0)
		r = layers_hold(j->all, &now);
	if (r < 0)
		return err_sys(err, r, "layers");
	build_take_layers(j, &now, info ? info->bytes : 0);
	return build_cache_put(j->all, j->owner, j->key, &now, info ? info->bytes : 0, err);
}

static void on_layer(void *user, const struct layers *chain, const struct layer_info *info,
		     const struct err *err)
{
	struct build_job *j = user;
	struct err failed = { 0 };

	if (!err && !is_given_up(j) && take_over(j, chain, info, &failed) < 0)
		err = &failed;
	if (err)
		fail(j, err);
	else
		end_box(j);
}

static void take_layer(struct build_job *j)
{
	build_box_release(j);
	layer_take(j->box.sb, SNAPSHOT_ROOT, on_layer, j);
}

/* ---- archives ---- */

/* Gives the step up for what reading it has answered. */
static bool is_damaged(struct build_job *j, int r)
{
	struct err err = { 0 };

	if (r >= 0)
		return false;
	if (r == -EBADMSG) {
		build_file_drop(j->all, j->box.file_id);
		(void)err_set(&err, EIO, "the archive is damaged: send it again");
		fail(j, &err);
	} else {
		fail_with(j, -r, "archive");
	}
	return true;
}

/* ---- commands ---- */

static void say_result(const struct exec_info *i, struct err *err)
{
	if (i->state == EXECUTION_FAILED)
		(void)err_set(err, ECHILD, "it could not be started: %s", i->reason);
	else if (i->flags & EXECUTION_TIMED_OUT)
		(void)err_set(err, ECHILD, "it took too long");
	else if (i->state != EXECUTION_EXITED)
		(void)err_set(err, ECHILD, "its box has ended: %s", i->reason);
	else if (i->signal > 0)
		(void)err_set(err, ECHILD, "it was ended by signal %d%s", i->signal,
			      i->flags & EXECUTION_OOM_KILLED ? ": out of memory" : "");
	else if (i->exit_code != 0)
		(void)err_set(err, ECHILD, "it ended with exit code %d", i->exit_code);
}

static void readable(void *user)
{
	struct build_job *j = user;
	struct build_step *s = build_step_now(j);
	struct output_chunk chunk;
	struct exec_info info;
	struct err err = { 0 };
	uint64_t omitted;
	int r;

	while ((r = exec_read(j->box.reader, &chunk, &omitted)) > 0)
		if (build_step_say(s, chunk.stream, chunk.data, chunk.len) < 0)
			return fail_with(j, ENOMEM, "output");
	build_tell(j);
	if (r == 0)
		return;
	exec_info(j->box.x, &info);
	say_result(&info, &err);
	if (err.code)
		fail(j, &err);
	else
		take_layer(j);
}

/* The archive is the command's standard input. */
static void feed(void *user)
{
	struct build_job *j = user;
	struct build_box *box = &j->box;
	int r;

	while (!box->is_sent && (r = build_archive_read(j)) != 0) {
		if (is_damaged(j, r))
			return;
		r = exec_stdin(box->x, box->chunk + box->sent, box->len - box->sent);
		if (r == -EAGAIN)
			return exec_on_room(box->x, feed, j);
		if (r < 0) { /* it does not want more: how it ends says why */
			box->is_sent = true;
			return;
		}
		box->sent = box->len;
	}
	if (!box->is_sent)
		(void)exec_stdin_end(box->x);
	box->is_sent = true;
	exec_on_room(box->x, NULL, NULL);
}

static void on_started(void *user, struct execution *x, const struct err *err)
{
	struct build_job *j = user;

	if (err || is_given_up(j)) {
		if (err)
			fail(j, err);
		else
			end_box(j);
		return;
	}
	j->box.x = exec_ref(x);
	j->box.reader = exec_reader_open(x, 0, readable, j);
	if (!j->box.reader)
		return fail_with(j, ENOMEM, "output");
	j->is_acting = true;
	if (j->box.fd >= 0)
		feed(j);
}

static uint64_t step_ms(const struct build_job *j, const struct build_step *s)
{
	uint64_t most = j->all->settings.exec_timeout_max_ms;
	uint64_t want = s->timeout_ms ? s->timeout_ms : BUILD_STEP_DEFAULT_MS;

	return most > 0 && most < want ? most : want;
}

static const char *user_of(const struct build_job *j, const struct build_step *s)
{
	return build_user(j, s->user ? s->user : j->user);
}

static void run_command(struct build_job *j, const struct exec_request *planned)
{
	const struct build_step *s = build_step_now(j);
	struct exec_request req = planned ? *planned : (struct exec_request){ 0 };
	struct err err = { 0 };

	if (s->type == BUILD_RUN && s->files) {
		if (build_archive_open(j, s, &err) < 0)
			return fail(j, &err);
		req.has_stdin = true;
	}

	req.kind = EXECUTION_COMMAND;
	req.user = user_of(j, s);
	req.timeout_ms = step_ms(j, s);
	if (s->type == BUILD_RUN) {
		req.command = s->args.len == 1 ? s->args.items[0] : NULL;
		req.argv = s->args.len == 1 ? NULL : s->args.items;
		req.argc = s->args.len == 1 ? 0 : s->args.len;
		req.cwd = j->workdir;
	}
	j->is_acting = false;
	exec_start(j->box.sb, &req, on_started, j);
}

static void on_way(void *user, const struct exec_request *req, const struct err *err)
{
	struct build_job *j = user;

	if (err && build_step_now(j)->type == BUILD_RUN)
		run_command(j, NULL); /* as it would where nobody may go out */
	else if (err)
		fail(j, err);
	else
		run_command(j, req);
}

static void install(struct build_job *j)
{
	const struct build_network *n = j->all->builds->network;
	const struct build_step *s = build_step_now(j);
	struct err err = { 0 };

	if (!n)
		return fail_with(j, EOPNOTSUPP, "packages");
	j->is_acting = true;
	if (n->open(n->user, j->box.sb, s->type, &s->args, on_way, j, &j->box.way, &err) < 0)
		fail(j, &err);
}

static void run_online(struct build_job *j)
{
	const struct build_network *n = j->all->builds->network;
	const struct build_step *s = build_step_now(j);
	struct err err = { 0 };

	if (s->is_online && n &&
	    n->open(n->user, j->box.sb, BUILD_RUN, &s->args, on_way, j, &j->box.way, &err) == 0)
		j->is_acting = true;
	else
		run_command(j, NULL);
}

/* ---- files ---- */

static void send_more(void *user)
{
	struct build_job *j = user;
	struct build_box *box = &j->box;
	ssize_t n;
	int r;

	while (!box->is_sent && (r = build_archive_read(j)) != 0) {
		if (is_damaged(j, r))
			return;
		n = file_send(box->op, box->chunk + box->sent, box->len - box->sent);
		if (n <= 0)
			return; /* room() comes, or why not */
		box->sent += (size_t)n;
	}
	if (!box->is_sent)
		(void)file_send(box->op, NULL, 0);
	box->is_sent = true;
}

static void on_unpacked(void *user, uint64_t count)
{
	struct build_job *j = user;

	(void)count;
	j->box.op = NULL;
	if (!j->box.is_sent) /* the box would have stopped in the middle */
		return fail_with(j, EPROTO, "archive");
	take_layer(j);
}

static void on_file_failed(void *user, const struct err *err)
{
	struct build_job *j = user;

	j->box.op = NULL;
	fail(j, err);
}

static void copy_files(struct build_job *j)
{
	static const struct file_ops ops = { .room = send_more,
					     .done = on_unpacked,
					     .failed = on_file_failed };
	const struct build_step *s = build_step_now(j);
	const char *to = s->args.items[s->args.len - 1];
	const char *base = j->workdir[0] ? j->workdir : "/workspace";
	char path[2 * MAKEUP_PATH_MAX + 2];
	struct guest_file f = { .op = FILE_TAR_PUT,
				.flags = FILE_PARENTS,
				.path = path,
				.user = user_of(j, s),
				.target = "" };
	struct err err = { 0 };
	int r = build_archive_open(j, s, &err);

	(void)str_format(path, sizeof(path), "%s%s%s", to[0] == '/' ? "" : base,
			 to[0] == '/' ? "" : "/", to);
	if (r == 0)
		r = file_start(j->box.sb, &f, &ops, j, &j->box.op, &err);
	if (r < 0)
		return fail(j, &err);
	j->is_acting = true;
	send_more(j);
}

/* ---- the working directory ---- */

static void mkdir_as(struct build_job *j, const char *user);

static void on_workdir(void *user, uint64_t count)
{
	struct build_job *j = user;

	(void)count;
	j->box.op = NULL;
	act(j);
}

/* Where its user may make none, the box's root does. */
static void on_no_workdir(void *user, const struct err *err)
{
	struct build_job *j = user;

	j->box.op = NULL;
	if (err->code == EEXIST)
		act(j);
	else if ((err->code == EACCES || err->code == EPERM) && !j->box.is_last_try)
		mkdir_as(j, build_user(j, "root"));
	else
		fail(j, err);
}

static void mkdir_as(struct build_job *j, const char *user)
{
	static const struct file_ops ops = { .done = on_workdir, .failed = on_no_workdir };
	struct guest_file f = { .op = FILE_MKDIR,
				.flags = FILE_PARENTS,
				.mode = 0755,
				.path = j->workdir,
				.user = user,
				.target = "" };
	struct err err = { 0 };

	j->box.is_last_try = strcmp(user, build_user(j, "root")) == 0;
	if (file_start(j->box.sb, &f, &ops, j, &j->box.op, &err) < 0)
		fail(j, &err);
	else
		j->is_acting = true;
}

/* ---- the beginning ---- */

static void act(struct build_job *j)
{
	j->is_acting = false;
	switch (build_step_now(j)->type) {
	case BUILD_COPY:
		copy_files(j);
		break;
	case BUILD_PIP:
	case BUILD_NPM:
		install(j);
		break;
	default:
		run_online(j);
		break;
	}
}

static void on_box(void *user, struct sandbox *sb, const struct err *err)
{
	struct build_job *j = user;

	if (err)
		return fail(j, err);
	j->box.sb = sandbox_ref(sb);
	if (is_given_up(j))
		end_box(j);
	else if (j->workdir[0] != '\0')
		mkdir_as(j, build_user(j, j->user));
	else
		act(j);
}

void build_box_begin(struct build_job *j)
{
	struct template_own m = j->model; /* its texts and layers are the job's */
	uint64_t most = j->all->settings.timeout_max_ms;
	uint64_t time = step_ms(j, build_step_now(j)) + BUILD_STEP_GRACE_MS;
	struct sandbox_request req = { .owner = j->owner,
				       .key_id = j->key_id,
				       .name = "",
				       .template = j->b->from,
				       .model = &m,
				       .is_internal = true,
				       .trace = span_context(j->step_span),
				       .timeout_ms = most > 0 && most < time ? most : time };

	/* A box to work in: its root can be written to, and nothing starts by itself. */
	m.make = (struct makeup){ .writable_root = true, .root = j->model.make.root };
	loop_timer_start(j->timer, time, 0);
	sandbox_create(j->all, &req, on_box, j);
}
