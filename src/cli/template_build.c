/* `holt template build`: a template by the steps of a file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/build_pack.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/show.h"
#include "cli/template_file.h"
#include "httpc/sse_reader.h"
#include "json/jw.h"

#define EVENT_MAX (1u << 20)
#define FILE_NAME "holt-template.yaml"
#define STEP_TEXT_MAX 100 /* characters of a step in its line */

struct build_args {
	struct client_args client;
	const char *context, *name;
	bool quiet, no_cache;
};

#define AT(field) offsetof(struct build_args, field)
const struct opt template_build_opts[] = {
	{ .name = "context",
	  .type = OPT_TEXT,
	  .arg = "DIR",
	  .help = "where COPY finds its sources (the file's directory)",
	  .offset = AT(context) },
	{ .name = "name",
	  .type = OPT_TEXT,
	  .arg = "NAME",
	  .help = "of the template, instead of the file's",
	  .offset = AT(name) },
	{ .name = "no-cache",
	  .type = OPT_FLAG,
	  .help = "do every step anew",
	  .offset = AT(no_cache) },
	{ .name = "quiet",
	  .letter = 'q',
	  .type = OPT_FLAG,
	  .help = "only what came of it, and the output of a step that fails",
	  .offset = AT(quiet) },
	CLIENT_OPTS(struct build_args, client),
	{ 0 },
};

/* ---- the file ---- */

/* "RUN: make" is one key in capitals, and maybe others beside it. */
static const char *short_type(struct jv step, struct jv *ret_value)
{
	static const char *const types[] = {
		"RUN", "COPY", "ENV", "WORKDIR", "USER", "PIP", "NPM"
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		*ret_value = jv_get(step, types[i]);
		if (jv_kind(*ret_value) != JV_ABSENT)
			return types[i];
	}
	return NULL;
}

/* ---- what is copied ---- */

struct source {
	int fd;
	struct progress progress;
	struct err *err;
};

static ssize_t read_archive(void *user, void *dst, size_t n)
{
	struct source *s = user;
	ssize_t got;

	do
		got = read(s->fd, dst, n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(s->err, errno, "read");
	s->progress.done += (uint64_t)got;
	return got;
}

static int upload(struct client *c, const struct build_archive *a, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	struct source s = { .fd = a->fd, .err = err };
	struct httpc_answer answer = { 0 };
	struct httpc_request req = { .method = "PUT",
				     .accept = "application/json",
				     .type = "application/x-tar",
				     .read = read_archive,
				     .read_size = (int64_t)a->bytes,
				     .user = &s,
				     .timeout_ms = HTTPC_NO_LIMIT };
	bool is_there = false;
	int r = client_path(&target, "templates/files/%", a->hash);

	if (r < 0)
		return err_sys(err, r, "request");
	r = client_json(c, "GET", buf_str(&target), NULL, &d, err);
	if (r < 0)
		return r;
	(void)jv_bool(jv_get(jv_root(d.doc), "present"), &is_there);
	if (is_there)
		return 0;
	req.target = buf_str(&target);
	progress_begin(&s.progress, "sending");
	s.progress.total = a->bytes;
	r = client_transfer(c, &req, &s.progress, &answer, err);
	buf_done(&answer.body);
	return r;
}

/* COPY: [from, to] becomes the archive's sum and the directory that it goes to. */
static int write_copy(struct client *c, const struct build_args *a, struct jv args, struct jw *w,
		      struct err *err)
{
	const char *from = jv_text(jv_at(args, 0)), *to = jv_text(jv_at(args, 1));
	struct build_archive archive = { .fd = -1 };
	int r;

	if (!from || !to || jv_len(args) != 2)
		return err_set(err, EINVAL, "COPY wants [FROM, TO]");
	r = build_pack(a->context, from, to, &archive, err);
	if (r == 0)
		r = upload(c, &archive, err);
	if (r == 0) {
		jw_key(w, "args");
		jw_array_begin(w);
		jw_string(w, from);
		jw_string(w, buf_str(&archive.dir));
		jw_array_end(w);
		jw_str_field(w, "filesHash", archive.hash);
	}
	build_archive_done(&archive);
	return r;
}

/* ---- the request ---- */

/* A text is one argument, a list is several, a mapping is names and values. */
static void write_args(struct jv value, struct jw *w)
{
	bool is_map = jv_kind(value) == JV_OBJECT;

	jw_key(w, "args");
	jw_array_begin(w);
	if (jv_kind(value) != JV_ARRAY && !is_map)
		jw_value(w, value);
	else
		JV_FOREACH (value, it) {
			if (is_map)
				jw_string_n(w, it.key.data, it.key.len);
			jw_value(w, it.value);
		}
	jw_array_end(w);
}

static int write_step(struct client *c, const struct build_args *a, struct jv step, struct jw *w,
		      struct err *err)
{
	struct jv value;
	const char *type = short_type(step, &value);
	const char *of = type ? type : jv_text(jv_get(step, "type"));
	int r = 0;

	if (!of)
		return err_set(err, EINVAL, "want one of RUN, COPY, ENV, WORKDIR, USER, PIP, NPM");
	if (!type)
		value = jv_get(step, "args");
	jw_object_begin(w);
	jw_str_field(w, "type", of);
	if (strcmp(of, "COPY") == 0)
		r = write_copy(c, a, value, w, err);
	else
		write_args(value, w);
	JV_FOREACH (step, it) {
		if (str_is(it.key, of) || str_is(it.key, "type") || str_is(it.key, "args"))
			continue;
		jw_key_n(w, it.key.data, it.key.len);
		jw_value(w, it.value);
	}
	if (a->no_cache && jv_kind(jv_get(step, "force")) == JV_ABSENT)
		jw_bool_field(w, "force", true);
	jw_object_end(w);
	return r;
}

static int write_steps(struct client *c, const struct build_args *a, struct jv steps, struct jw *w,
		       struct err *err)
{
	jw_key(w, "steps");
	jw_array_begin(w);
	JV_FOREACH (steps, it) {
		struct err why = { 0 };
		int r = write_step(c, a, it.value, w, &why);

		if (r < 0)
			return err_set(err, why.code, "step %zu: %s", it.index + 1, why.text);
	}
	jw_array_end(w);
	return 0;
}

static int write_body(struct client *c, const struct build_args *a, struct jv file, struct buf *b,
		      struct err *err)
{
	struct jw w = jw_begin(b);
	int r = 0;

	if (jv_kind(file) != JV_OBJECT)
		return err_set(err, EINVAL, "want a mapping: name, from, steps, ...");
	jw_object_begin(&w);
	if (a->name)
		jw_str_field(&w, "name", a->name);
	JV_FOREACH (file, it) {
		if (r < 0 || (a->name && str_is(it.key, "name")))
			continue;
		if (str_is(it.key, "steps")) {
			r = write_steps(c, a, it.value, &w, err);
			continue;
		}
		jw_key_n(&w, it.key.data, it.key.len);
		jw_value(&w, it.value);
	}
	if (r < 0)
		return r;
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? err_sys(err, r, "request") : 0;
}

/* ---- what happens ---- */

struct watch {
	const struct build_args *args;
	struct sse_reader reader;
	struct buf output; /* owned: of the step under way, when nothing of it is shown at once */
	bool is_over, is_ready;
	char reason[256], template[256];
};

static void print_escaped(FILE *to, const char *text, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (const char *end; n > 0; n -= (size_t)(end - text), text = end) {
		const char *line = memchr(text, '\n', n);

		buf_clear(&b);
		end = line ? line + 1 : text + n;
		(void)escape_text(&b, text, (size_t)((line ? line : end) - text));
		(void)fprintf(to, "%s%s", buf_str(&b), line ? "\n" : "");
	}
}

/* "[2/5] RUN make (cached)" */
static void print_step(const struct watch *w, struct jv e)
{
	struct jv step = jv_get(e, "step");
	const char *status = jv_text(jv_get(step, "status"));
	_cleanup_(buf_done) struct buf line = { 0 };
	uint64_t index = 0, count = 0, ms = 0;
	bool cached = false, is_end = status && strcmp(status, "running") != 0;
	char type[32];

	(void)jv_u64(jv_get(e, "index"), &index);
	(void)jv_u64(jv_get(e, "count"), &count);
	(void)jv_u64(jv_get(step, "durationMs"), &ms);
	(void)jv_bool(jv_get(step, "cached"), &cached);
	if (w->args->quiet || (is_end && !cached && ms < 1000 && strcmp(status, "failed") != 0))
		return;
	JV_FOREACH (jv_get(step, "args"), it) {
		struct str arg = { 0 };

		(void)jv_str(it.value, &arg);
		(void)buf_putc(&line, ' ');
		(void)escape_text(&line, arg.data, arg.len);
	}
	(void)fprintf(
		stderr, "[%llu/%llu] %s%.*s", (unsigned long long)index, (unsigned long long)count,
		show_text(jv_get(step, "type"), type, sizeof(type)), STEP_TEXT_MAX, buf_str(&line));
	if (is_end)
		(void)fprintf(stderr, cached ? " (cached)" : " (%s, %.1f s)", status,
			      (double)ms / 1000);
	(void)fputc('\n', stderr);
}

static void take_output(struct watch *w, struct jv e)
{
	struct str data = { 0 };

	(void)jv_str(jv_get(e, "data"), &data);
	if (!w->args->quiet)
		print_escaped(stderr, data.data, data.len);
	else
		(void)buf_append(&w->output, data.data, data.len);
}

static void take_end(struct watch *w, struct jv e)
{
	const char *status = jv_text(jv_get(e, "status"));

	w->is_over = true;
	w->is_ready = status && strcmp(status, "ready") == 0;
	(void)show_text(jv_get(e, "reason"), w->reason, sizeof(w->reason));
	(void)show_text(jv_get(e, "template"), w->template, sizeof(w->template));
}

static int on_event(void *user, const struct sse_event *e)
{
	struct watch *w = user;
	struct jv_doc *doc = NULL;
	struct jv root;

	if (jv_parse(e->data, e->len, EVENT_MAX, &doc, NULL) < 0)
		return 0; /* nothing that we know */
	root = jv_root(doc);
	if (strcmp(e->event, "output") == 0)
		take_output(w, root);
	else if (strcmp(e->event, "end") == 0)
		take_end(w, root);
	else if (strcmp(e->event, "step") == 0) {
		const char *status = jv_text(jv_get(jv_get(root, "step"), "status"));

		if (status && strcmp(status, "running") == 0)
			buf_clear(&w->output);
		print_step(w, root);
	}
	(void)jv_free(doc);
	return 0;
}

static int on_data(void *user, const void *data, size_t n)
{
	struct watch *w = user;

	return sse_reader_feed(&w->reader, data, n, on_event, w);
}

static int follow(struct client *c, const char *id, struct watch *w, struct err *err)
{
	_cleanup_(buf_done) struct buf target = { 0 };
	struct httpc_request req = { .method = "GET",
				     .accept = "text/event-stream",
				     .data = on_data,
				     .user = w,
				     .timeout_ms = HTTPC_NO_LIMIT };
	int r = client_path(&target, "templates/builds/%/events", id);

	if (r < 0)
		return err_sys(err, r, "request");
	req.target = buf_str(&target);
	sse_reader_init(&w->reader, EVENT_MAX);
	r = httpc_request(c->http, &req, NULL, err);
	sse_reader_done(&w->reader);
	if (r == 0 && !w->is_over)
		r = err_set(err, ECONNRESET, "the connection ended; see holt build show %s", id);
	return r;
}

static int finish(struct client *c, const char *id, struct watch *w, struct err *err)
{
	int r = c->json ? client_show(c, "templates/builds/%", id, err) : 0;

	if (w->is_ready && r == 0 && !c->json)
		return printf("%s\n", w->template) < 0 ? -EIO : 0;
	if (r < 0 || w->is_ready)
		return r;
	if (w->args->quiet)
		print_escaped(stderr, buf_str(&w->output), w->output.len);
	cli_say("the build failed: %s", w->reason);
	return CLI_FAILED;
}

static int build(struct client *c, struct build_args *a, const char *path, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf body = { 0 };
	struct watch w = { .args = a };
	struct jv_doc *file = NULL;
	const char *id;
	int r = template_file(path, &file, err);

	if (r == 0)
		r = write_body(c, a, jv_root(file), &body, err);
	(void)jv_free(file);
	if (r == 0)
		r = client_json(c, "POST", "/api/v1/templates/builds", &body, &d, err);
	if (r < 0)
		return r;
	id = jv_text(jv_get(jv_root(d.doc), "id"));
	if (!id)
		return err_set(err, EPROTO, "the daemon's answer has no id");
	r = follow(c, id, &w, err);
	if (r == 0)
		r = finish(c, id, &w, err);
	buf_done(&w.output);
	return r;
}

static int run(struct client *c, void *args, int n, char **files, struct err *err)
{
	_cleanup_(buf_done) struct buf dir = { 0 };
	struct build_args *a = args;
	const char *path = n > 0 ? files[0] : FILE_NAME;
	const char *slash = strrchr(path, '/');

	if (!a->context && slash && buf_append(&dir, path, (size_t)(slash + 1 - path)) < 0)
		return err_sys(err, ENOMEM, "build");
	if (!a->context)
		a->context = slash ? buf_str(&dir) : ".";
	return build(c, a, path, err);
}

int cmd_template_build(const struct command *cmd, int argc, char **argv)
{
	struct build_args args = { 0 };
	struct client_task task = { &args, &args.client, 0, 1, run };

	return client_run(cmd, argc, argv, &task);
}
