#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config/config.h"
#include "config/value.h"
#include "json/jw.h"

static const char *const origins[] = {
	[ORIGIN_DEFAULT] = "default", [ORIGIN_FILE] = "file", [ORIGIN_DOTENV] = "dotenv",
	[ORIGIN_ENV] = "environment", [ORIGIN_FLAG] = "flag",
};

static int print_json(const struct config *c, struct buf *b)
{
	size_t n;
	const struct setting *table = settings_table(&n);
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	for (size_t i = 0; i < n; i++) {
		jw_key(&w, table[i].name);
		jw_object_begin(&w);
		jw_key(&w, "value");
		value_json(c, &table[i], &w);
		jw_str_field(&w, "origin", origins[c->sources[i].origin]);
		jw_str_field(&w, "where", c->sources[i].where);
		jw_object_end(&w);
	}
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : buf_putc(b, '\n');
}

static int print_row(const struct config *c, const struct setting *s,
		     const struct config_source *source, struct buf *b)
{
	struct buf value = { 0 };
	int r = value_show(c, s, &value);

	if (r == 0)
		r = buf_printf(b, "%-22s %-36s %s\n", s->name, value.len ? value.data : "-",
			       source->where ? source->where : origins[source->origin]);
	buf_done(&value);
	return r;
}

static int print_table(const struct config *c, struct buf *b)
{
	size_t n;
	const struct setting *table = settings_table(&n);
	int r = buf_printf(b, "%-22s %-36s %s\n", "NAME", "VALUE", "ORIGIN");

	for (size_t i = 0; i < n && r == 0; i++)
		r = print_row(c, &table[i], &c->sources[i], b);
	return r;
}

int config_print(const struct config *c, bool json, FILE *out)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = json ? print_json(c, &b) : print_table(c, &b);

	if (r < 0)
		return r;
	return fwrite(b.data, 1, b.len, out) == b.len && fflush(out) == 0 ? 0 : -EIO;
}
