#include "cli/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/outcome.h"
#include "cli/show.h"
#include "cli/table.h"
#include "cli/when.h"
#include "json/jw.h"

void top_look_done(struct top_look *l)
{
	free(l->rows);
	buf_done(&l->pool);
	*l = (struct top_look){ 0 };
}

static void take_text(struct jv v, char *dst, size_t size)
{
	const char *text = jv_text(v);

	if (!text || str_copy(dst, size, text) < 0)
		dst[0] = '\0';
}

static uint64_t take_number(struct jv v)
{
	uint64_t n = 0;

	(void)jv_u64(v, &n);
	return n;
}

static int grow(struct top_look *l)
{
	size_t room = l->room ? 2 * l->room : 64;
	struct top_row *rows;

	if (l->n < l->room)
		return 0;
	if (l->n >= TOP_ROWS_MAX)
		return -E2BIG;
	rows = realloc(l->rows, room * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	l->rows = rows;
	l->room = room;
	return 0;
}

int top_look_add(struct top_look *l, struct jv item)
{
	struct jv usage = jv_get(item, "usage"), limits = jv_get(item, "resources");
	struct top_row *row;
	int r = grow(l);

	if (r < 0)
		return r;
	row = &l->rows[l->n++];
	*row = (struct top_row){ .percent = -1, .has_usage = jv_kind(usage) == JV_OBJECT };
	take_text(jv_get(item, "id"), row->id, sizeof(row->id));
	take_text(jv_get(item, "name"), row->name, sizeof(row->name));
	take_text(jv_get(item, "status"), row->status, sizeof(row->status));
	take_text(jv_get(item, "template"), row->template, sizeof(row->template));
	take_text(jv_get(item, "createdAt"), row->start, sizeof(row->start));
	(void)jv_double(jv_get(usage, "cpuSeconds"), &row->cpu_s);
	row->memory = take_number(jv_get(usage, "memory"));
	row->pids = take_number(jv_get(usage, "processes"));
	row->memory_max = take_number(jv_get(limits, "memory"));
	row->disk_max = take_number(jv_get(limits, "disk"));
	row->executions = take_number(jv_get(item, "runningExecutions"));
	return 0;
}

int top_look_pool(struct top_look *l, struct jv item)
{
	const char *name = jv_text(jv_get(item, "template"));

	return buf_printf(&l->pool, "%s%s %" PRIu64 " of %" PRIu64 " ready",
			  l->pool.len ? ", " : "", name ? name : "-",
			  take_number(jv_get(item, "ready")), take_number(jv_get(item, "target")));
}

/* ---- orders ---- */

static int by_id(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return strcmp(x->id, y->id);
}

static int by_name(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int r;

	if (!x->name[0] != !y->name[0])
		return x->name[0] ? -1 : 1; /* those without a name last */
	r = strcmp(x->name, y->name);
	return r ? r : by_id(a, b);
}

static int by_cpu(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->percent < y->percent || x->percent > y->percent)
		return x->percent < y->percent ? 1 : -1;
	return by_name(a, b);
}

static int by_memory(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->memory != y->memory)
		return x->memory < y->memory ? 1 : -1;
	return by_name(a, b);
}

static void sort(struct top_look *l, int (*by)(const void *a, const void *b))
{
	if (l->n > 0)
		qsort(l->rows, l->n, sizeof(l->rows[0]), by);
}

void top_look_sort(struct top_look *l, enum top_order order)
{
	static int (*const orders[TOP_ORDER_COUNT])(const void *a, const void *b) = {
		[TOP_BY_CPU] = by_cpu,
		[TOP_BY_MEMORY] = by_memory,
		[TOP_BY_NAME] = by_name,
	};

	sort(l, orders[order]);
}

/* Its rows are sorted by it: they are looked for by their ids. */
void top_look_compare(struct top_look *l, struct top_look *before)
{
	double seconds = (double)(l->at_ns - before->at_ns) / 1e9;

	if (before->n == 0 || seconds <= 0)
		return;
	sort(before, by_id);
	for (size_t i = 0; i < l->n; i++) {
		struct top_row *row = &l->rows[i];
		const struct top_row *old =
			bsearch(row, before->rows, before->n, sizeof(before->rows[0]), by_id);

		if (old && old->has_usage && row->has_usage && row->cpu_s >= old->cpu_s)
			row->percent = (row->cpu_s - old->cpu_s) * 100 / seconds;
	}
}

/* ---- text ---- */

struct totals {
	size_t running;
	double percent;
	uint64_t memory, memory_max, pids, executions;
};

static struct totals sum(const struct top_look *l)
{
	struct totals t = { 0 };

	for (size_t i = 0; i < l->n; i++) {
		const struct top_row *row = &l->rows[i];

		t.running += strcmp(row->status, "running") == 0;
		t.percent += row->percent > 0 ? row->percent : 0;
		t.memory += row->memory;
		t.memory_max += row->memory_max;
		t.pids += row->pids;
		t.executions += row->executions;
	}
	return t;
}

static void print_head(const struct top_look *l, FILE *to)
{
	struct totals t = sum(l);
	char memory[32], most[32];

	outcome_size(t.memory, memory);
	outcome_size(t.memory_max, most);
	(void)fprintf(to,
		      "sandboxes %zu, running %zu; executions %" PRIu64
		      "; cpu %.1f%%; memory %s of "
		      "%s; processes %" PRIu64 "\n",
		      l->n, t.running, t.executions, t.percent, memory, most, t.pids);
	if (l->pool.len > 0)
		(void)fprintf(to, "pool %s\n", l->pool.data);
	(void)fputc('\n', to);
}

static int add_number(struct table *t, bool is_known, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	return table_add(t, is_known ? text : "-");
}

static int add_uptime(struct table *t, const struct top_row *row)
{
	char text[WHEN_SIZE] = "-";
	int64_t began;

	if (when_parse(row->start, &began) == 0)
		when_span(clock_wall_ms() - began, text);
	return table_add(t, text);
}

static int add_row(struct table *t, const struct top_row *row)
{
	char percent[32] = "-", memory[80] = "-", now[32], most[32];
	int r = table_add(t, row->id);

	outcome_size(row->memory, now);
	outcome_size(row->memory_max, most);
	if (row->has_usage)
		(void)snprintf(memory, sizeof(memory), "%s / %s", now, most);
	if (row->percent >= 0)
		(void)snprintf(percent, sizeof(percent), "%.1f", row->percent);
	outcome_size(row->disk_max, now);
	if (r == 0)
		r = table_add(t, row->name);
	if (r == 0)
		r = table_add(t, row->status);
	if (r == 0)
		r = table_add(t, row->template);
	if (r == 0)
		r = table_add(t, percent);
	if (r == 0)
		r = table_add(t, memory);
	if (r == 0)
		r = add_number(t, row->has_usage, row->pids);
	if (r == 0)
		r = table_add(t, now);
	if (r == 0)
		r = add_number(t, true, row->executions);
	return r < 0 ? r : add_uptime(t, row);
}

int top_print(const struct top_look *l, FILE *to)
{
	static const char *const heads[] = { "ID",    "NAME",   "STATUS", "TEMPLATE",
					     "CPU%",  "MEMORY", "PROCS",  "DISK MAX",
					     "EXECS", "UPTIME", NULL };
	struct table t;
	int r = 0;

	table_init(&t, heads);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = add_row(&t, &l->rows[i]);
	if (r == 0) {
		print_head(l, to);
		table_print(&t, to);
	}
	table_done(&t);
	return r;
}

static void write_row(struct jw *w, const struct top_row *row)
{
	jw_object_begin(w);
	jw_str_field(w, "id", row->id);
	jw_str_field(w, "name", row->name[0] ? row->name : NULL);
	jw_str_field(w, "status", row->status);
	jw_str_field(w, "template", row->template);
	if (row->percent >= 0)
		jw_double_field(w, "cpuPercent", row->percent);
	else
		jw_null_field(w, "cpuPercent");
	if (row->has_usage) {
		jw_uint_field(w, "memory", row->memory);
		jw_uint_field(w, "processes", row->pids);
	} else {
		jw_null_field(w, "memory");
		jw_null_field(w, "processes");
	}
	jw_uint_field(w, "memoryMax", row->memory_max);
	jw_uint_field(w, "diskMax", row->disk_max);
	jw_uint_field(w, "executions", row->executions);
	jw_str_field(w, "createdAt", row->start);
	jw_object_end(w);
}

int top_print_json(const struct top_look *l, struct buf *b)
{
	struct jw w = jw_begin(b);

	jw_array_begin(&w);
	for (size_t i = 0; i < l->n; i++)
		write_row(&w, &l->rows[i]);
	jw_array_end(&w);
	return jw_end(&w);
}

/* ---- the screen ---- */

/* Bytes of the first `cols` characters of the line. */
static size_t cut(struct str line, size_t cols)
{
	size_t n = 0, width = 0;

	while (n < line.len) {
		width += ((unsigned char)line.data[n] & 0xc0) != 0x80;
		if (width > cols)
			break;
		n++;
	}
	return n;
}

int top_draw(const char *text, const char *status, uint16_t rows, uint16_t cols, struct buf *b)
{
	struct str rest = str_of(text), line;
	unsigned n = 0;

	(void)buf_puts(b, "\x1b[H"); /* the corner; each line then ends what was there */
	while (n + 1 < rows && str_split(&rest, '\n', &line)) {
		(void)buf_append(b, line.data, cut(line, cols));
		(void)buf_puts(b, "\x1b[K\r\n");
		n++;
	}
	line = str_of(status);
	(void)buf_append(b, line.data, cut(line, cols));
	return buf_puts(b, "\x1b[J");
}
