#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/command.h"
#include "cli/follow.h"
#include "json/jw.h"

struct logs_args {
	struct client_args client;
	bool follow;
};

const struct opt logs_opts[] = {
	{ .name = "follow",
	  .letter = 'f',
	  .type = OPT_FLAG,
	  .help = "go on until the execution ends",
	  .offset = offsetof(struct logs_args, follow) },
	CLIENT_OPTS(struct logs_args, client),
	{ 0 },
};

struct logs {
	struct client *client;
	const char *sandbox, *execution;
};

static int write_to(int stream, const struct buf *bytes)
{
	return fd_write_all(stream == 2 ? STDERR_FILENO : STDOUT_FILENO, buf_str(bytes),
			    bytes->len);
}

static int tell_gap(bool json, uint64_t omitted)
{
	if (omitted == 0)
		return 0;
	if (json)
		return printf("{\"omitted\":%" PRIu64 "}\n", omitted) < 0 ? -EIO : 0;
	cli_say("%" PRIu64 " bytes of output were not kept", omitted);
	return 0;
}

/* --- what there is ------------------------------------------------------------------------- */

static int write_chunk(const struct logs *l, struct jv chunk, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *stream = jv_text(jv_get(chunk, "stream"));
	int r;

	if (l->client->json) {
		struct jw w = jw_begin(&b);

		jw_value(&w, chunk);
		r = jw_end(&w);
		return r < 0 ? r : client_print(&b);
	}
	r = client_bytes(jv_get(chunk, "data"), &b, err);
	return r < 0 ? r : write_to(stream && strcmp(stream, "stderr") == 0 ? 2 : 1, &b);
}

/* One page from *at on, which is moved; 1 when there is nothing more now. */
static int write_page(const struct logs *l, uint64_t *at, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	uint64_t omitted = 0, next = *at;
	int r = client_path(&target, "sandboxes/%/executions/%/output", l->sandbox, l->execution);

	if (r == 0)
		r = buf_printf(&target, "?encoding=%s&from=%" PRIu64,
			       l->client->json ? "text" : "base64", *at);
	if (r == 0)
		r = client_json(l->client, "GET", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	(void)jv_u64(jv_get(jv_root(d.doc), "omitted"), &omitted);
	(void)jv_u64(jv_get(jv_root(d.doc), "next"), &next);
	r = tell_gap(l->client->json, omitted);
	JV_FOREACH (jv_get(jv_root(d.doc), "chunks"), it) {
		if (r == 0)
			r = write_chunk(l, it.value, err);
	}
	if (r == 0 && next <= *at)
		return 1;
	*at = next;
	return r;
}

static int show(const struct logs *l, struct err *err)
{
	uint64_t at = 0;
	int r = 0;

	while (r == 0)
		r = write_page(l, &at, err);
	return r < 0 ? r : 0;
}

/* --- and what is to come ------------------------------------------------------------------- */

static int on_output(void *user, int stream, const void *data, size_t n)
{
	(void)user;
	return write_to(stream, &(struct buf){ .data = (char *)data, .len = n });
}

static int on_gap(void *user, uint64_t omitted)
{
	const struct logs *l = user;

	return tell_gap(l->client->json, omitted);
}

static int on_raw(void *user, const struct sse_event *e)
{
	(void)user;
	if (strcmp(e->event, "output") != 0)
		return 0;
	return printf("%s\n", e->data) < 0 || fflush(stdout) != 0 ? -EPIPE : 0;
}

static int follow(struct logs *l, struct err *err)
{
	static const struct follow_ops as_bytes = { .output = on_output, .gap = on_gap },
				       as_json = { .raw = on_raw, .gap = on_gap };
	struct follow f = { .client = l->client,
			    .ops = l->client->json ? &as_json : &as_bytes,
			    .user = l,
			    .sandbox = l->sandbox,
			    .text = l->client->json };
	int r = follow_attach(&f, l->execution, err);

	while (r == 0 && !f.over)
		r = follow_turn(&f, NULL, 0, -1, err);
	follow_done(&f);
	return r;
}

static int find_newest(const struct logs *l, struct buf *ret, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	const char *id;
	int r = client_path(&target, "sandboxes/%/executions?limit=1", l->sandbox);

	if (r == 0)
		r = client_json(l->client, "GET", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	id = jv_text(jv_get(jv_at(jv_get(jv_root(d.doc), "items"), 0), "executionId"));
	if (!id)
		return err_set(err, ENOENT, "nothing was run in '%.60s' yet", l->sandbox);
	return buf_puts(ret, id);
}

static int run(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf newest = { 0 };
	const struct logs_args *a = args;
	struct logs l = { .client = c, .sandbox = operands[0], .execution = operands[1] };
	int r = 0;

	if (n < 2) {
		r = find_newest(&l, &newest, err);
		l.execution = buf_str(&newest);
	}
	if (r < 0)
		return r;
	return a->follow ? follow(&l, err) : show(&l, err);
}

int cmd_logs(const struct command *cmd, int argc, char **argv)
{
	struct logs_args args = { 0 };
	struct client_task task = { &args, &args.client, 1, 2, run };

	return client_run(cmd, argc, argv, &task);
}
