#include "telemetry/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/utf8.h"

#define KEY_ROOM (METRIC_LABELS_MAX * (METRIC_VALUE_MAX + 1))
#define OTHER "other"

/* One combination of label values. */
struct series {
	struct list node;
	char key[KEY_ROOM]; /* the values, each with its NUL */
	size_t key_len;
	double value;       /* a histogram's sum */
	uint64_t count;     /* of a histogram */
	uint64_t buckets[]; /* of a histogram; not cumulated */
};

struct family {
	struct map *by_key; /* owned; NULL until the first series */
	struct list series; /* owned, in order of appearance */
};

struct metrics {
	struct family families[METRIC_COUNT];
	double lost; /* samples, for METRIC_METRICS_LOST: it needs no memory */
};

struct metrics *metrics_create(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	for (size_t i = 0; m && i < METRIC_COUNT; i++)
		list_init(&m->families[i].series);
	return m;
}

static void family_clear(struct family *f)
{
	LIST_FOREACH (&f->series, s, struct series, node)
		free(s);
	list_init(&f->series);
	f->by_key = map_free(f->by_key);
}

struct metrics *metrics_free(struct metrics *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < METRIC_COUNT; i++)
		family_clear(&m->families[i]);
	free(m);
	return NULL;
}

static size_t label_count(const struct metric_def *def)
{
	size_t n = 0;

	while (n < METRIC_LABELS_MAX && def->labels[n])
		n++;
	return n;
}

/* The values behind each other; a long one is cut between characters. */
static size_t key_of(const struct metric_def *def, const struct metric_labels *l,
		     char key[KEY_ROOM])
{
	size_t len = 0, labels = label_count(def);

	for (size_t i = 0; i < labels; i++) {
		const char *v = l->values[i] ? l->values[i] : "";
		size_t n = strnlen(v, METRIC_VALUE_MAX + 1);

		if (n > METRIC_VALUE_MAX)
			n = utf8_prefix(v, METRIC_VALUE_MAX, NULL);
		memcpy(key + len, v, n);
		key[len + n] = '\0';
		len += n + 1;
	}
	return len;
}

static struct series *series_create(struct family *f, const struct metric_def *def, const char *key,
				    size_t n)
{
	struct series *s = calloc(1, sizeof(*s) + def->bucket_count * sizeof(s->buckets[0]));

	if (!s)
		return NULL;
	memcpy(s->key, key, n);
	s->key_len = n;
	if (map_put(f->by_key, key, n, s, NULL) < 0) {
		free(s);
		return NULL;
	}
	list_push_back(&f->series, &s->node);
	return s;
}

/* The series of these labels, made when it is not there; NULL without memory. Beyond the limit they
 * all share the one of "other", for which there is always a place left. */
static struct series *series_get(struct metrics *m, enum metric id, const struct metric_labels *l)
{
	static const struct metric_labels others = { { OTHER, OTHER, OTHER } };
	const struct metric_def *def = metric_def(id);
	struct family *f = &m->families[id];
	char key[KEY_ROOM];
	size_t n = key_of(def, l, key);
	struct series *s = NULL;

	if (!f->by_key)
		f->by_key = map_create(METRIC_SERIES_MAX + 1);
	if (!f->by_key)
		return NULL;
	s = map_get(f->by_key, key, n);
	if (s)
		return s;
	if (map_len(f->by_key) >= METRIC_SERIES_MAX) {
		n = key_of(def, &others, key);
		s = map_get(f->by_key, key, n);
	}
	return s ? s : series_create(f, def, key, n);
}

static struct series *sample(struct metrics *m, enum metric id, const struct metric_labels *l)
{
	struct series *s = m ? series_get(m, id, l) : NULL;

	assert(id != METRIC_METRICS_LOST); /* that one counts itself */
	if (m && !s)
		m->lost++;
	return s;
}

void metrics_add(struct metrics *m, enum metric id, struct metric_labels l, double n)
{
	struct series *s = sample(m, id, &l);

	assert(metric_def(id)->type == METRIC_GAUGE ||
	       (metric_def(id)->type == METRIC_COUNTER && n >= 0));
	if (s)
		s->value += n;
}

void metrics_inc(struct metrics *m, enum metric id, struct metric_labels l)
{
	metrics_add(m, id, l, 1);
}

/* Counters too, for those that are counted elsewhere: the kernel's, the launcher's. */
void metrics_set(struct metrics *m, enum metric id, struct metric_labels l, double v)
{
	struct series *s = sample(m, id, &l);

	assert(metric_def(id)->type != METRIC_HISTOGRAM);
	if (s)
		s->value = v;
}

void metrics_observe(struct metrics *m, enum metric id, struct metric_labels l, double v)
{
	const struct metric_def *def = metric_def(id);
	struct series *s = sample(m, id, &l);

	assert(def->type == METRIC_HISTOGRAM);
	if (!s)
		return;
	s->value += v;
	s->count++;
	for (size_t i = 0; i < def->bucket_count; i++) {
		if (v <= def->buckets[i]) {
			s->buckets[i]++;
			return;
		}
	}
}

void metrics_clear(struct metrics *m, enum metric id)
{
	if (m)
		family_clear(&m->families[id]);
}

double metrics_value(const struct metrics *m, enum metric id, struct metric_labels l)
{
	const struct family *f = m ? &m->families[id] : NULL;
	const struct series *s = NULL;
	char key[KEY_ROOM];

	if (m && id == METRIC_METRICS_LOST)
		return m->lost;
	if (f && f->by_key)
		s = map_get(f->by_key, key, key_of(metric_def(id), &l, key));
	if (!s)
		return 0;
	return metric_def(id)->type == METRIC_HISTOGRAM ? (double)s->count : s->value;
}

/* Text on its way out; the first failure sticks. */
struct out {
	struct buf *b; /* borrowed */
	int failed;
};

static void put(struct out *o, const char *s, size_t n)
{
	if (o->failed == 0)
		o->failed = buf_append(o->b, s, n);
}

static void puts_(struct out *o, const char *s)
{
	put(o, s, strlen(s));
}

/* The shortest text that reads back the same. */
static void put_number(struct out *o, double v)
{
	char text[32];

	if (isnan(v) || isinf(v)) {
		puts_(o, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	puts_(o, text);
}

/* A label's value: backslash, quote and newline are escaped, what is no UTF-8 is repaired. */
static void put_value(struct out *o, const char *v)
{
	size_t n = strlen(v);

	for (size_t i = 0, k; i < n; i += k) {
		k = strcspn(v + i, "\\\"\n");
		if (k > 0 && o->failed == 0)
			o->failed = utf8_sanitize(o->b, v + i, k);
		if (k > 0)
			continue;
		puts_(o, v[i] == '\n' ? "\\n" : v[i] == '"' ? "\\\"" : "\\\\");
		k = 1;
	}
}

static void put_labels(struct out *o, const struct metric_def *def, const struct series *s,
		       const char *le)
{
	const char *v = s->key;
	size_t n = label_count(def);

	if (n == 0 && !le)
		return;
	puts_(o, "{");
	for (size_t i = 0; i < n; i++, v += strlen(v) + 1) {
		puts_(o, i ? "," : "");
		puts_(o, def->labels[i]);
		puts_(o, "=\"");
		put_value(o, v);
		puts_(o, "\"");
	}
	if (le) {
		puts_(o, n ? ",le=\"" : "le=\"");
		puts_(o, le);
		puts_(o, "\"");
	}
	puts_(o, "}");
}

static void put_line(struct out *o, const struct metric_def *def, const struct series *s,
		     const char *suffix, const char *le, double v)
{
	puts_(o, def->name);
	puts_(o, suffix);
	put_labels(o, def, s, le);
	puts_(o, " ");
	put_number(o, v);
	puts_(o, "\n");
}

static void put_histogram(struct out *o, const struct metric_def *def, const struct series *s)
{
	uint64_t below = 0;
	char le[32];

	for (size_t i = 0; i < def->bucket_count; i++) {
		below += s->buckets[i];
		(void)snprintf(le, sizeof(le), "%g", def->buckets[i]);
		put_line(o, def, s, "_bucket", le, (double)below);
	}
	put_line(o, def, s, "_bucket", "+Inf", (double)s->count);
	put_line(o, def, s, "_sum", NULL, s->value);
	put_line(o, def, s, "_count", NULL, (double)s->count);
}

static void put_head(struct out *o, const struct metric_def *def)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };

	if (o->failed == 0)
		o->failed = buf_printf(o->b, "# HELP %s %s\n# TYPE %s %s\n", def->name, def->help,
				       def->name, types[def->type]);
}

int metrics_render(const struct metrics *m, struct buf *b)
{
	static const struct series none = { .key_len = 0 };
	const struct metric_def *lost = metric_def(METRIC_METRICS_LOST);
	struct out o = { b, 0 };

	for (int i = 0; i < METRIC_COUNT; i++) {
		const struct metric_def *def = metric_def((enum metric)i);

		if (list_is_empty(&m->families[i].series))
			continue;
		put_head(&o, def);
		LIST_FOREACH (&m->families[i].series, s, struct series, node) {
			if (def->type == METRIC_HISTOGRAM)
				put_histogram(&o, def, s);
			else
				put_line(&o, def, s, "", NULL, s->value);
		}
	}
	put_head(&o, lost);
	put_line(&o, lost, &none, "", NULL, m->lost);
	return o.failed;
}
