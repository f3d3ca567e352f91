#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/bench.h"

static const char *const verdicts[] = { [VERDICT_NONE] = "",
					[VERDICT_MET] = "met",
					[VERDICT_MISSED] = "MISSED",
					[VERDICT_ABSENT] = "absent",
					[VERDICT_FAILED] = "not measured" };

#define CELL 32

/* Three digits that count: 0.123, 1.23, 12.3, 1234. */
static void number(double v, char dst[CELL])
{
	if (v < 0)
		(void)snprintf(dst, CELL, "-");
	else
		(void)snprintf(dst, CELL,
			       v >= 100  ? "%.0f"
			       : v >= 10 ? "%.1f"
			       : v >= 1  ? "%.2f"
					 : "%.3f",
			       v);
}

/* The cells of one row, in the order of the head. */
enum {
	COL_WHAT,
	COL_P50,
	COL_P99,
	COL_UNIT,
	COL_N,
	COL_REF,
	COL_REF_P50,
	COL_RATIO,
	COL_DEMAND,
	COL_VERDICT,
	COL_COUNT
};
static const char *const heads[COL_COUNT] = {
	"what", "p50", "p99", "unit", "N", "reference", "its p50", "ratio", "demand", "verdict"
};

struct cells {
	char text[COL_COUNT][80];
};

static void fill(const struct bench_row *row, struct cells *c)
{
	bool measured = row->verdict != VERDICT_ABSENT && row->verdict != VERDICT_FAILED;
	char v[CELL];

	memset(c, 0, sizeof(*c));
	(void)snprintf(c->text[COL_WHAT], 80, "%s", row->what);
	(void)snprintf(c->text[COL_VERDICT], 80, "%s", verdicts[row->verdict]);
	if (!measured)
		return;
	number(row->p50, v);
	(void)snprintf(c->text[COL_P50], 80, "%s", v);
	number(row->p99, v);
	(void)snprintf(c->text[COL_P99], 80, "%s", v);
	(void)snprintf(c->text[COL_UNIT], 80, "%s", row->unit);
	(void)snprintf(c->text[COL_N], 80, "%zu", row->n);
	(void)snprintf(c->text[COL_REF], 80, "%s", row->reference);
	number(row->ratio, v);
	if (row->reference[0]) {
		(void)snprintf(c->text[COL_RATIO], 80, "%s x", v);
		number(row->ref_p50, v);
		(void)snprintf(c->text[COL_REF_P50], 80, "%s", v);
	}
	if (row->demand > 0)
		(void)snprintf(c->text[COL_DEMAND], 80, "%s %g%s",
			       row->at_least ? ">=" : "<=", row->demand,
			       row->reference[0] ? " x" : "");
}

static void widths(const struct bench *b, size_t w[COL_COUNT])
{
	struct cells c;

	for (size_t i = 0; i < COL_COUNT; i++)
		w[i] = strlen(heads[i]);
	for (size_t r = 0; r < b->len; r++) {
		fill(&b->rows[r], &c);
		for (size_t i = 0; i < COL_COUNT; i++)
			w[i] = strlen(c.text[i]) > w[i] ? strlen(c.text[i]) : w[i];
	}
}

static bool is_text(size_t col)
{
	return col == COL_WHAT || col == COL_REF || col == COL_UNIT || col == COL_VERDICT;
}

static void put_line(struct buf *to, const size_t w[COL_COUNT], const char *const cells[COL_COUNT],
		     const char *before, const char *between)
{
	(void)buf_puts(to, before);
	for (size_t i = 0; i < COL_COUNT; i++)
		(void)buf_printf(to, is_text(i) ? "%s%-*s" : "%s%*s", i ? between : "", (int)w[i],
				 cells[i]);
	(void)buf_puts(to, before[0] ? " |\n" : "\n");
}

static void put_row(struct buf *to, const size_t w[COL_COUNT], const struct bench_row *row,
		    const char *before, const char *between)
{
	const char *cells[COL_COUNT];
	struct cells c;

	fill(row, &c);
	for (size_t i = 0; i < COL_COUNT; i++)
		cells[i] = c.text[i];
	put_line(to, w, cells, before, between);
}

static void put_notes(const struct bench *b, struct buf *to, const char *bullet)
{
	for (size_t i = 0; i < b->len; i++)
		if (b->rows[i].note[0])
			(void)buf_printf(to, "%s%s: %s\n", bullet, b->rows[i].what,
					 b->rows[i].note);
}

static void put_load(const struct bench *b, struct buf *to)
{
	(void)buf_printf(to, "load before: %s; after: %s; waited %.1f s for a quiet machine%s\n",
			 b->load_before, b->load_after, (double)b->waited_ms / 1000,
			 b->raised ? "; all of it with nice -19" : "");
}

void bench_print_text(const struct bench *b, struct buf *to)
{
	size_t w[COL_COUNT];

	widths(b, w);
	put_line(to, w, heads, "", "  ");
	for (size_t i = 0; i < b->len; i++)
		put_row(to, w, &b->rows[i], "", "  ");
	(void)buf_putc(to, '\n');
	put_notes(b, to, "");
	put_load(b, to);
}

void bench_print_markdown(const struct bench *b, struct buf *to)
{
	size_t w[COL_COUNT];

	widths(b, w);
	put_line(to, w, heads, "| ", " | ");
	for (size_t i = 0; i < COL_COUNT; i++) {
		(void)buf_puts(to, "|-");
		for (size_t k = 0; k < w[i]; k++)
			(void)buf_putc(to, '-');
		(void)buf_putc(to, is_text(i) ? '-' : ':');
	}
	(void)buf_puts(to, "|\n");
	for (size_t i = 0; i < b->len; i++)
		put_row(to, w, &b->rows[i], "| ", " | ");
	(void)buf_putc(to, '\n');
	put_notes(b, to, "- ");
	(void)buf_putc(to, '\n');
	put_load(b, to);
}

static void put_text(struct buf *to, const char *name, const char *text)
{
	(void)buf_printf(to, "\"%s\":\"", name);
	(void)utf8_json_escape(to, text, strlen(text));
	(void)buf_puts(to, "\",");
}

static void put_number(struct buf *to, const char *name, double v)
{
	if (v < 0 || !isfinite(v))
		(void)buf_printf(to, "\"%s\":null,", name);
	else
		(void)buf_printf(to, "\"%s\":%.6g,", name, v);
}

void bench_print_json(const struct bench *b, struct buf *to)
{
	(void)buf_putc(to, '{');
	put_text(to, "loadBefore", b->load_before);
	put_text(to, "loadAfter", b->load_after);
	put_number(to, "waitedMs", (double)b->waited_ms);
	(void)buf_puts(to, "\"rows\":[");
	for (size_t i = 0; i < b->len; i++) {
		const struct bench_row *row = &b->rows[i];

		(void)buf_puts(to, i ? ",\n{" : "\n{");
		put_text(to, "group", row->group);
		put_text(to, "what", row->what);
		put_text(to, "unit", row->unit);
		put_number(to, "p50", row->p50);
		put_number(to, "p99", row->p99);
		put_text(to, "reference", row->reference);
		put_number(to, "referenceP50", row->ref_p50);
		put_number(to, "referenceP99", row->ref_p99);
		put_number(to, "ratio", row->ratio);
		put_number(to, "demand", row->demand);
		put_text(to, "note", row->note);
		put_text(to, "verdict", verdicts[row->verdict]);
		(void)buf_printf(to, "\"n\":%zu}", row->n);
	}
	(void)buf_puts(to, "]}\n");
}
