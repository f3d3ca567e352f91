/* What is kept of a build: its object's text, and the struct that is made of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/build_impl.h"
#include "sandbox/output.h"
#include "sandbox/registry.h"
#include "json/jw.h"

#define BUILDS_MAX 5000u
#define BUILDS_OWNER_MAX 200u
#define TAIL_FAILED (16u << 10) /* bytes of output that a record has of a step that failed, */
#define TAIL_OTHER 1024u        /* and of others */

const char *const build_status_names[BUILD_STATUS_COUNT + 1] = {
	[BUILD_WAITING] = "waiting", [BUILD_BUILDING] = "building", [BUILD_READY] = "ready",
	[BUILD_FAILED] = "failed",   [BUILD_CANCELED] = "canceled",
};
const char *const build_step_names[BUILD_STEP_TYPE_COUNT + 1] = {
	[BUILD_RUN] = "RUN",         [BUILD_COPY] = "COPY", [BUILD_ENV] = "ENV",
	[BUILD_WORKDIR] = "WORKDIR", [BUILD_USER] = "USER", [BUILD_PIP] = "PIP",
	[BUILD_NPM] = "NPM",
};
const char *const build_step_states[BUILD_STEP_STATE_COUNT + 1] = {
	[BUILD_STEP_WAITING] = "waiting",
	[BUILD_STEP_RUNNING] = "running",
	[BUILD_STEP_DONE] = "done",
	[BUILD_STEP_FAILED] = "failed",
};

bool build_is_over(enum build_status s)
{
	return s != BUILD_WAITING && s != BUILD_BUILDING;
}

#define SAID(struct_)                                                                              \
	JV_FIELD("type", CHOICE, struct_, type, .flags = JV_REQUIRED, .choices = build_step_names, \
		 .help = "what it does"),                                                          \
		JV_FIELD("args", STRINGS, struct_, args, .flags = JV_REQUIRED, .min = 1,           \
			 .max = BUILD_ARGS_MAX, .text_max = BUILD_ARG_MAX,                         \
			 .help = "RUN: a command of a shell, or a program and its arguments; "     \
				 "COPY: what, and the directory; ENV: name, value, ...; "          \
				 "PIP, NPM: packages"),                                            \
		JV_FIELD("user", STRING, struct_, user, .flags = JV_NULLABLE, .min = 1,            \
			 .max = BUILD_USER_MAX, .help = "of this step alone"),                     \
		JV_FIELD("filesHash", STRING, struct_, files, .flags = JV_NULLABLE,                \
			 .min = BUILD_HASH_LEN, .max = BUILD_FILE_NAME_MAX,                        \
			 .help = "COPY: the archive that is unpacked in the directory; "           \
				 "RUN: what the command has as its standard input"),               \
		JV_FIELD("force", BOOL, struct_, force,                                            \
			 .help = "this step and those behind it are not taken from the cache"),    \
		JV_FIELD("timeout", DURATION, struct_, timeout_ms, .min = 1000, .max = 86400000,   \
			 .help = "for this step")

const struct jv_field build_step_fields[BUILD_STEP_FIELDS] = { SAID(struct build_step) };

static const struct jv_field kept_steps[] = {
	SAID(struct build_step),
	JV_FIELD("state", CHOICE, struct build_step, state, .choices = build_step_states),
	JV_FIELD("cached", BOOL, struct build_step, is_cached),
	JV_FIELD("ms", U64, struct build_step, ms),
	JV_FIELD("omitted", U64, struct build_step, omitted),
	JV_FIELD("lines", U64, struct build_step, lines),
	JV_FIELD("online", BOOL, struct build_step, is_online),
	JV_FIELD("output", STRING, struct build_step, tail, .max = TAIL_FAILED * 4),
};

struct kept {
	int status;
	const char *owner, *name, *from, *reason, *template;
	uint64_t started_ms, ended_ms;
	struct jv_objects steps;
	bool is_reserved;
	struct jv_strings tags;
	struct limits limits;
};
static const struct jv_field kept_fields[] = {
	JV_FIELD("status", CHOICE, struct kept, status, .choices = build_status_names),
	JV_FIELD("owner", STRING, struct kept, owner, .flags = JV_REQUIRED),
	JV_FIELD("name", STRING, struct kept, name, .flags = JV_REQUIRED),
	JV_FIELD("from", STRING, struct kept, from, .flags = JV_REQUIRED),
	JV_FIELD("reason", STRING, struct kept, reason),
	JV_FIELD("template", STRING, struct kept, template),
	JV_FIELD("startedMs", U64, struct kept, started_ms),
	JV_FIELD("endedMs", U64, struct kept, ended_ms),
	JV_FIELD("steps", OBJECTS, struct kept, steps, .max = BUILD_STEPS_MAX,
		 .size = sizeof(struct build_step), .sub = kept_steps,
		 .sub_count = sizeof(kept_steps) / sizeof(kept_steps[0])),
	JV_FIELD("reserved", BOOL, struct kept, is_reserved),
	JV_FIELD("tags", STRINGS, struct kept, tags, .max = BUILD_TAGS_MAX),
	JV_FIELD("cpuMilli", U32, struct kept, limits.cpu_milli),
	JV_FIELD("memoryBytes", U64, struct kept, limits.memory_bytes),
	JV_FIELD("diskBytes", U64, struct kept, limits.disk_bytes),
};

static void build_free(void *data)
{
	struct build *b = data;

	for (size_t i = 0; i < b->n_steps; i++)
		(void)output_free(b->steps[i].output);
	(void)arena_free(b->arena);
	free(b);
}

int build_step_say(struct build_step *s, int stream, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->lines += ((const char *)data)[i] == '\n';
	if (!s->output)
		s->output = output_create(BUILD_OUTPUT_KEEP);
	return s->output ? output_append(s->output, stream, data, n) : -ENOMEM;
}

static int read_build(struct jv o, struct build *b)
{
	struct kept k = { .reason = "", .template = "" };
	int r = jv_decode_known(o, kept_fields, sizeof(kept_fields) / sizeof(kept_fields[0]),
				b->arena, &k, NULL);

	if (r < 0)
		return r;
	b->status = k.status;
	b->owner = k.owner;
	b->name = k.name;
	b->from = k.from;
	b->started_ms = k.started_ms;
	b->ended_ms = k.ended_ms;
	b->steps = k.steps.items;
	b->n_steps = b->at = k.steps.len;
	(void)str_format(b->reason, sizeof(b->reason), "%.239s", k.reason);
	if (str_copy(b->template, sizeof(b->template), k.template) < 0)
		return -EINVAL;
	b->is_reserved = k.is_reserved;
	b->tags = k.tags;
	b->limits = k.limits;
	for (size_t i = 0; i < b->n_steps && r == 0; i++) {
		struct build_step *s = &b->steps[i];
		uint64_t lines = s->lines;

		if (s->tail && s->tail[0])
			r = build_step_say(s, 1, s->tail, strlen(s->tail));
		s->lines = lines;
	}
	return r;
}

static int build_parse(const char *text, void **ret)
{
	struct build *b = calloc(1, sizeof(*b));
	struct jv_doc *doc = NULL;
	int r = b && (b->arena = arena_create(2 * OBJECT_TEXT_MAX))
			? jv_parse(text, strlen(text), OBJECT_TEXT_MAX, &doc, NULL)
			: -ENOMEM;

	if (r == 0)
		r = read_build(jv_root(doc), b);
	(void)jv_free(doc);
	if (r == 0)
		*ret = b;
	else if (b)
		build_free(b);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

const struct object_kind build_kind = {
	.name = "build",
	.noun = "build",
	.max = BUILDS_MAX,
	.owner_max = BUILDS_OWNER_MAX,
	.parse = build_parse,
	.free = build_free,
};

/* ---- writing ---- */

bool build_step_read(const struct build_step *s, uint64_t from, struct output_chunk *ret,
		     uint64_t *ret_omitted)
{
	uint64_t at = from > s->omitted ? from - s->omitted : 0, gap = 0;

	if (!s->output || !output_read(s->output, at, ret, &gap))
		return false;
	ret->seq += s->omitted;
	*ret_omitted = ret->seq > from ? ret->seq - from : 0;
	return true;
}

/* The end of what is kept, as one text that JSON and C can both hold. */
static int collect_tail(const struct build_step *s, size_t most, struct buf *b, uint64_t *omitted)
{
	struct output_chunk chunk;
	uint64_t end = s->output ? s->omitted + output_end(s->output) : 0, gap;
	uint64_t from = end > most ? end - most : 0;

	*omitted = s->omitted;
	for (uint64_t at = from; build_step_read(s, at, &chunk, &gap); at = chunk.seq + chunk.len) {
		if (at == from)
			*omitted = chunk.seq;
		if (buf_append(b, chunk.data, chunk.len) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < b->len; i++)
		if (b->data[i] == '\0')
			b->data[i] = ' ';
	return 0;
}

static void write_text(struct jw *w, const char *name, const char *text)
{
	if (text && text[0] != '\0')
		jw_str_field(w, name, text);
}

static void write_output(const struct build_step *s, size_t most, struct jw *w)
{
	_cleanup_(buf_done) struct buf tail = { 0 };
	uint64_t omitted = 0;

	if (most == 0 || !s->output || collect_tail(s, most, &tail, &omitted) < 0)
		return;
	jw_uint_field(w, "omitted", omitted);
	jw_key(w, "output");
	jw_string_n(w, tail.data, tail.len);
}

static void write_step(const struct build_step *s, size_t most, struct jw *w)
{
	jw_object_begin(w);
	jw_str_field(w, "type", build_step_names[s->type]);
	jw_key(w, "args");
	jw_array_begin(w);
	for (size_t i = 0; i < s->args.len; i++)
		jw_string(w, s->args.items[i]);
	jw_array_end(w);
	write_text(w, "user", s->user);
	write_text(w, "filesHash", s->files);
	jw_bool_field(w, "force", s->force);
	if (s->timeout_ms > 0)
		jw_double_field(w, "timeout", (double)s->timeout_ms / 1e3);
	jw_str_field(w, "state", build_step_states[s->state]);
	jw_bool_field(w, "cached", s->is_cached);
	jw_uint_field(w, "ms", s->ms);
	jw_uint_field(w, "lines", s->lines);
	if (s->is_online)
		jw_bool_field(w, "online", true);
	write_output(s, most, w);
	jw_object_end(w);
}

static int write_build(const struct build *b, bool with_output, struct buf *buf)
{
	struct jw w = jw_begin(buf);

	jw_object_begin(&w);
	jw_str_field(&w, "status", build_status_names[b->status]);
	jw_str_field(&w, "owner", b->owner);
	jw_str_field(&w, "name", b->name);
	jw_str_field(&w, "from", b->from);
	write_text(&w, "reason", b->reason);
	write_text(&w, "template", b->template);
	jw_uint_field(&w, "startedMs", b->started_ms);
	jw_uint_field(&w, "endedMs", b->ended_ms);
	jw_bool_field(&w, "reserved", b->is_reserved);
	jw_key(&w, "tags");
	jw_array_begin(&w);
	for (size_t i = 0; i < b->tags.len; i++)
		jw_string(&w, b->tags.items[i]);
	jw_array_end(&w);
	jw_uint_field(&w, "cpuMilli", b->limits.cpu_milli);
	jw_uint_field(&w, "memoryBytes", b->limits.memory_bytes);
	jw_uint_field(&w, "diskBytes", b->limits.disk_bytes);
	jw_key(&w, "steps");
	jw_array_begin(&w);
	for (size_t i = 0; i < b->n_steps; i++) {
		bool failed = b->steps[i].state == BUILD_STEP_FAILED;
		/* Whoever follows a build by asking now and then gets the end of it, too. */
		bool is_last = i + 1 == b->n_steps;

		write_step(&b->steps[i],
			   failed || (is_last && with_output) ? TAIL_FAILED
			   : with_output                      ? TAIL_OTHER
							      : 0,
			   &w);
	}
	jw_array_end(&w);
	jw_object_end(&w);
	return jw_end(&w);
}

int build_write(const struct build *b, struct buf *ret)
{
	int r = write_build(b, true, ret);

	if (r == 0 && ret->len < OBJECT_TEXT_MAX)
		return 0;
	buf_drop(ret, ret->len);
	r = write_build(b, false, ret);
	return r < 0 ? r : ret->len < OBJECT_TEXT_MAX ? 0 : -E2BIG;
}
