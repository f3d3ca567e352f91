#include "telemetry/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/list.h"
#include "base/str.h"
#include "base/utf8.h"
#include "crypto/random.h"
#include "telemetry/metrics.h"
#include "json/jw.h"

#define NAME_SIZE 128
#define CLOCK_STEP_NS 100000000 /* the wall clock was set, and did not only drift */

enum attr_type { ATTR_STR, ATTR_INT, ATTR_BOOL };

struct attr {
	const char *key; /* borrowed: a literal */
	enum attr_type type;
	union {
		size_t text; /* where it begins in span.text */
		int64_t i;
	};
};

struct span {
	struct list node;      /* in tracer.open or tracer.over */
	struct tracer *tracer; /* borrowed */
	struct trace_context self;
	uint8_t parent[TRACE_SPAN_LEN];
	enum span_kind kind;
	uint64_t start_ns, end_ns; /* monotonic */
	char name[NAME_SIZE];
	struct attr attrs[SPAN_ATTRS_MAX];
	size_t n_attrs, n_lost;
	char text[SPAN_TEXT_MAX]; /* each with its NUL */
	size_t text_len;
	bool has_failed;
	size_t why; /* where the message begins in text; has_failed only */
};

struct tracer {
	struct tracer_options o;
	char *service, *version; /* owned */
	uint64_t threshold;      /* a trace whose id is below is sampled */
	int64_t wall_ns;         /* what the monotonic clock lacks to be the wall's */
	struct list open, over;  /* owned */
	size_t n_open, n_over;
	bool is_told;
	struct random_pool {
		uint8_t bytes[512];
		size_t left;
	} pool;
};

static int64_t wall_offset(void)
{
	return clock_wall_ns() - (int64_t)clock_now_ns();
}

struct tracer *tracer_create(const struct tracer_options *o)
{
	struct tracer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	list_init(&t->open);
	list_init(&t->over);
	t->o = *o;
	t->service = str_dup(str_of(o->service));
	t->version = str_dup(str_of(o->version));
	t->wall_ns = wall_offset();
	/* 2^64 is not a number of 64 bits: all is a case of its own, see is_chosen(). */
	t->threshold = o->sample <= 0   ? 0
		       : o->sample >= 1 ? UINT64_MAX
					: (uint64_t)(o->sample * 0x1p64);
	return t->service && t->version ? t : tracer_free(t);
}

static void free_spans(struct list *spans)
{
	LIST_FOREACH (spans, s, struct span, node)
		free(s);
	list_init(spans);
}

struct tracer *tracer_free(struct tracer *t)
{
	if (!t)
		return NULL;
	free_spans(&t->open);
	free_spans(&t->over);
	free(t->service);
	free(t->version);
	free(t);
	return NULL;
}

void tracer_count(struct tracer *t, enum trace_fate fate, size_t n)
{
	static const char *const names[] = { "sent", "dropped", "refused", "unsent" };

	if (n > 0)
		metrics_add(t->o.metrics, METRIC_TRACE_SPANS, LABELS(names[fate]), (double)n);
}

/* ---- identity ---- */

static void make_span_id(struct tracer *t, uint8_t dst[TRACE_SPAN_LEN])
{
	struct random_pool *p = &t->pool;

	do {
		if (p->left < TRACE_SPAN_LEN) {
			random_bytes(p->bytes, sizeof(p->bytes));
			p->left = sizeof(p->bytes);
		}
		p->left -= TRACE_SPAN_LEN;
		memcpy(dst, p->bytes + p->left, TRACE_SPAN_LEN);
	} while (memcmp(dst, (uint8_t[TRACE_SPAN_LEN]){ 0 }, TRACE_SPAN_LEN) == 0);
}

/* By the id alone, so that all who ask about a trace with the same share say the same. */
static bool is_chosen(const struct tracer *t, const uint8_t id[TRACE_ID_LEN])
{
	uint64_t n = 0;

	for (size_t i = TRACE_ID_LEN / 2; i < TRACE_ID_LEN; i++)
		n = n << 8 | id[i];
	return t->threshold == UINT64_MAX || n < t->threshold;
}

void trace_begin(struct tracer *t, struct trace_context *ret)
{
	memset(ret, 0, sizeof(*ret));
	make_span_id(t, ret->trace_id);
	make_span_id(t, ret->trace_id + TRACE_SPAN_LEN);
	ret->flags = TRACE_RANDOM | (is_chosen(t, ret->trace_id) ? TRACE_SAMPLED : 0);
}

void trace_below(struct tracer *t, const struct trace_context *parent, struct trace_context *ret)
{
	*ret = *parent;
	make_span_id(t, ret->span_id);
}

/* ---- spans ---- */

struct span *span_begin(struct tracer *t, const struct trace_context *parent, enum span_kind kind,
			const char *name)
{
	struct span *s;

	if (!t || !parent || !(parent->flags & TRACE_SAMPLED) || !trace_is_set(parent))
		return NULL;
	s = t->n_open < TRACE_SPANS_MAX ? calloc(1, sizeof(*s)) : NULL;
	if (!s) {
		tracer_count(t, TRACE_DROPPED, 1);
		return NULL;
	}
	s->tracer = t;
	trace_below(t, parent, &s->self);
	memcpy(s->parent, parent->span_id, sizeof(s->parent));
	s->kind = kind;
	s->start_ns = clock_now_ns();
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	list_push_back(&t->open, &s->node);
	t->n_open++;
	return s;
}

const struct trace_context *span_context(const struct span *s)
{
	return s ? &s->self : NULL;
}

void span_set_context(struct span *s, const struct trace_context *self)
{
	if (s)
		s->self = *self;
}

void span_set_start(struct span *s, uint64_t start_ns)
{
	if (s)
		s->start_ns = start_ns;
}

static struct attr *add(struct span *s, const char *key, enum attr_type type)
{
	struct attr *a;

	if (!s)
		return NULL;
	if (s->n_attrs == SPAN_ATTRS_MAX) {
		s->n_lost++;
		return NULL;
	}
	a = &s->attrs[s->n_attrs++];
	a->key = key;
	a->type = type;
	return a;
}

/* Cut between characters where it does not fit. */
static size_t add_text(struct span *s, const char *text)
{
	size_t at = s->text_len, room = SPAN_TEXT_MAX - at, n = strlen(text);

	if (room == 0)
		return SPAN_TEXT_MAX - 1; /* the last NUL */
	if (n >= room)
		n = utf8_prefix(text, room - 1, NULL);
	memcpy(s->text + at, text, n);
	s->text[at + n] = '\0';
	s->text_len += n + 1;
	return at;
}

void span_str(struct span *s, const char *key, const char *value)
{
	struct attr *a = value && value[0] != '\0' ? add(s, key, ATTR_STR) : NULL;

	if (a)
		a->text = add_text(s, value);
}

void span_int(struct span *s, const char *key, int64_t value)
{
	struct attr *a = add(s, key, ATTR_INT);

	if (a)
		a->i = value;
}

void span_bool(struct span *s, const char *key, bool value)
{
	struct attr *a = add(s, key, ATTR_BOOL);

	if (a)
		a->i = value;
}

void span_fail(struct span *s, const char *why)
{
	if (!s)
		return;
	s->has_failed = true;
	s->why = add_text(s, why ? why : "");
}

static void take_out(struct span *s)
{
	list_remove(&s->node);
	s->tracer->n_open--;
}

static void drop_oldest(struct tracer *t)
{
	struct span *s = LIST_ENTRY(t->over.next, struct span, node);

	list_remove(&s->node);
	t->n_over--;
	free(s);
	tracer_count(t, TRACE_DROPPED, 1);
}

void span_end_at(struct span *s, uint64_t end_ns)
{
	struct tracer *t;

	if (!s)
		return;
	t = s->tracer;
	take_out(s);
	s->end_ns = end_ns;
	if (t->n_over >= TRACE_SPANS_MAX)
		drop_oldest(t);
	list_push_back(&t->over, &s->node);
	t->n_over++;
	if (t->o.full && t->n_over >= t->o.batch && !t->is_told) {
		t->is_told = true;
		t->o.full(t->o.user);
	}
}

void span_end(struct span *s)
{
	if (s)
		span_end_at(s, clock_now_ns());
}

void span_drop(struct span *s)
{
	if (!s)
		return;
	take_out(s);
	free(s);
}

/* ---- OTLP's JSON ---- */

static void put_hex(struct jw *w, const char *key, const uint8_t *bytes, size_t n)
{
	char text[2 * TRACE_ID_LEN + 1];

	encode_hex(bytes, n, text);
	jw_str_field(w, key, text);
}

/* 64 bits are text: JSON's numbers do not hold them. */
static void put_u64(struct jw *w, const char *key, uint64_t v)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, v);
	jw_str_field(w, key, text);
}

static void put_time(struct jw *w, const char *key, const struct tracer *t, uint64_t ns)
{
	put_u64(w, key, (uint64_t)((int64_t)ns + t->wall_ns));
}

static void put_str_attr(struct jw *w, const char *key, const char *value)
{
	jw_object_begin(w);
	jw_str_field(w, "key", key);
	jw_key(w, "value");
	jw_object_begin(w);
	jw_str_field(w, "stringValue", value);
	jw_object_end(w);
	jw_object_end(w);
}

static void put_attr(struct jw *w, const struct span *s, const struct attr *a)
{
	char text[24];

	if (a->type == ATTR_STR) {
		put_str_attr(w, a->key, s->text + a->text);
		return;
	}
	jw_object_begin(w);
	jw_str_field(w, "key", a->key);
	jw_key(w, "value");
	jw_object_begin(w);
	if (a->type == ATTR_BOOL) {
		jw_bool_field(w, "boolValue", a->i != 0);
	} else {
		(void)snprintf(text, sizeof(text), "%" PRId64, a->i);
		jw_str_field(w, "intValue", text);
	}
	jw_object_end(w);
	jw_object_end(w);
}

static void put_status(struct jw *w, const struct span *s)
{
	jw_key(w, "status");
	jw_object_begin(w);
	if (s->has_failed) {
		jw_int_field(w, "code", 2); /* STATUS_CODE_ERROR; the others are not ours to set */
		if (s->text[s->why] != '\0')
			jw_str_field(w, "message", s->text + s->why);
	}
	jw_object_end(w);
}

static void put_span(struct jw *w, const struct tracer *t, const struct span *s)
{
	static const uint8_t none[TRACE_SPAN_LEN];

	jw_object_begin(w);
	put_hex(w, "traceId", s->self.trace_id, sizeof(s->self.trace_id));
	put_hex(w, "spanId", s->self.span_id, sizeof(s->self.span_id));
	if (memcmp(s->parent, none, sizeof(none)) != 0)
		put_hex(w, "parentSpanId", s->parent, sizeof(s->parent));
	jw_uint_field(w, "flags", s->self.flags);
	jw_str_field(w, "name", s->name);
	jw_int_field(w, "kind", s->kind);
	put_time(w, "startTimeUnixNano", t, s->start_ns);
	put_time(w, "endTimeUnixNano", t, s->end_ns);
	jw_key(w, "attributes");
	jw_array_begin(w);
	for (size_t i = 0; i < s->n_attrs; i++)
		put_attr(w, s, &s->attrs[i]);
	jw_array_end(w);
	if (s->n_lost > 0)
		jw_uint_field(w, "droppedAttributesCount", s->n_lost);
	put_status(w, s);
	jw_object_end(w);
}

static void put_resource(struct jw *w, const struct tracer *t)
{
	jw_key(w, "resource");
	jw_object_begin(w);
	jw_key(w, "attributes");
	jw_array_begin(w);
	put_str_attr(w, "service.name", t->service);
	put_str_attr(w, "service.version", t->version);
	jw_array_end(w);
	jw_object_end(w);
}

static void put_scope(struct jw *w, const struct tracer *t)
{
	jw_key(w, "scope");
	jw_object_begin(w);
	jw_str_field(w, "name", "holt");
	jw_str_field(w, "version", t->version);
	jw_object_end(w);
}

size_t tracer_waiting(const struct tracer *t)
{
	return t->n_over;
}

/* One offset for all spans, so that they nest as they did; a new one once the clock was set. */
static void follow_clock(struct tracer *t)
{
	int64_t now = wall_offset(), by = now - t->wall_ns;

	if (by > CLOCK_STEP_NS || by < -CLOCK_STEP_NS)
		t->wall_ns = now;
}

static size_t put_spans(struct jw *w, struct tracer *t, size_t max)
{
	size_t n = 0;

	jw_key(w, "spans");
	jw_array_begin(w);
	for (; n < max && !list_is_empty(&t->over); n++) {
		struct span *s = LIST_ENTRY(t->over.next, struct span, node);

		put_span(w, t, s);
		list_remove(&s->node);
		free(s);
	}
	jw_array_end(w);
	t->n_over -= n;
	return n;
}

int tracer_take(struct tracer *t, size_t max, struct buf *b, size_t *ret_n)
{
	struct jw w = jw_begin(b);
	int r;

	follow_clock(t);
	t->is_told = false;
	jw_object_begin(&w);
	jw_key(&w, "resourceSpans");
	jw_array_begin(&w);
	jw_object_begin(&w);
	put_resource(&w, t);
	jw_key(&w, "scopeSpans");
	jw_array_begin(&w);
	jw_object_begin(&w);
	put_scope(&w, t);
	*ret_n = put_spans(&w, t, max);
	jw_object_end(&w);
	jw_array_end(&w);
	jw_object_end(&w);
	jw_array_end(&w);
	jw_object_end(&w);
	r = jw_end(&w);
	if (r < 0)
		tracer_count(t, TRACE_DROPPED, *ret_n);
	return r;
}
