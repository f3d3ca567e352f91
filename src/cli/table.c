#include "cli/table.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/escape.h"

void table_init(struct table *t, const char *const *heads)
{
	*t = (struct table){ .heads = heads };
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->len; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->len = t->room = 0;
}

static int grow(struct table *t)
{
	size_t room = t->room ? 2 * t->room : 64;
	char **cells;

	if (t->len < t->room)
		return 0;
	if (t->len >= TABLE_CELLS_MAX)
		return -E2BIG;
	cells = realloc(t->cells, room * sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	t->cells = cells;
	t->room = room;
	return 0;
}

int table_add(struct table *t, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = grow(t);

	if (r < 0)
		return r;
	if (!text || !text[0])
		text = "-";
	r = escape_text(&b, text, strlen(text));
	if (r < 0)
		return r;
	t->cells[t->len++] = buf_take(&b);
	return 0;
}

static size_t columns_of(const struct table *t)
{
	size_t n = 0;

	while (n < TABLE_COLUMNS_MAX && t->heads[n])
		n++;
	return n;
}

/* Characters, not bytes: bytes that go on with a character are not counted. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_cell(const char *text, size_t width, FILE *to)
{
	(void)fprintf(to, "%s%*s", text, (int)(width + 2 - width_of(text)), "");
}

void table_print(const struct table *t, FILE *to)
{
	size_t width[TABLE_COLUMNS_MAX], columns = columns_of(t);

	for (size_t c = 0; c < columns; c++) {
		width[c] = width_of(t->heads[c]);
		for (size_t i = c; i < t->len; i += columns)
			if (width_of(t->cells[i]) > width[c])
				width[c] = width_of(t->cells[i]);
	}
	for (size_t c = 0; c + 1 < columns; c++)
		print_cell(t->heads[c], width[c], to);
	(void)fprintf(to, "%s\n", t->heads[columns - 1]);
	for (size_t i = 0; i < t->len; i++) {
		size_t c = i % columns;

		if (c + 1 < columns)
			print_cell(t->cells[i], width[c], to);
		else
			(void)fprintf(to, "%s\n", t->cells[i]);
	}
}
