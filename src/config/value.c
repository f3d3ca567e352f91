#include "config/value.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/config.h"
#include "crypto/secret.h"
#include "json/jw.h"

/* What is known while a value is set. */
struct setter {
	struct config *c;
	const struct setting *s;
	const char *home;
	struct err *err;
};

static void *field(const struct config *c, const struct setting *s)
{
	return (char *)c + s->offset;
}

/* Numbers with a unit, as people write them. Largest first; the last one takes all. */
struct unit {
	uint64_t factor;
	const char *name;
};
static const struct unit ones[] = { { 1, "" } };
static const struct unit sizes[] = { { 1ull << 40, "T" },
				     { 1ull << 30, "G" },
				     { 1ull << 20, "M" },
				     { 1ull << 10, "K" },
				     { 1, "" } };
static const struct unit times[] = { { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
static const struct unit cores[] = { { 1000, "" }, { 1, "m" } };

static int put_units(struct buf *b, uint64_t v, const struct unit *u)
{
	if (v == 0)
		return buf_putc(b, '0');
	while (u->factor > 1 && v % u->factor != 0)
		u++;
	return buf_printf(b, "%llu%s", (unsigned long long)(v / u->factor), u->name);
}

/* r is what the parser said about the text. */
static int number_result(const struct setter *to, int r, const struct unit *units, const char *what)
{
	_cleanup_(buf_done) struct buf range = { 0 };

	if (r == 0)
		return 0;
	if (r != -ERANGE)
		return err_set(to->err, EINVAL, "%s: want %s", to->s->name, what);
	(void)put_units(&range, to->s->min, units);
	(void)buf_puts(&range, " to ");
	(void)put_units(&range, to->s->max, units);
	return err_set(to->err, EINVAL, "%s: want %s, from %s", to->s->name, what, buf_str(&range));
}

static int set_u32(const struct setter *to, const char *text)
{
	int r = parse_u32(text, (uint32_t)to->s->min, (uint32_t)to->s->max, field(to->c, to->s));

	return number_result(to, r, ones, "a whole number");
}

static int set_size(const struct setter *to, const char *text)
{
	int r = parse_size(text, to->s->min, to->s->max, field(to->c, to->s));

	return number_result(to, r, sizes, "a size such as 256M");
}

static int set_duration(const struct setter *to, const char *text)
{
	int r = parse_duration(text, to->s->min, to->s->max, field(to->c, to->s));

	return number_result(to, r, times, "a time such as 30s");
}

static int set_cpu(const struct setter *to, const char *text)
{
	int r = parse_cpu(text, (uint32_t)to->s->min, (uint32_t)to->s->max, field(to->c, to->s));

	return number_result(to, r, cores, "cores such as 0.5");
}

static int set_bool(const struct setter *to, const char *text)
{
	int v;

	if (parse_bool(text, &v) < 0)
		return err_set(to->err, EINVAL, "%s: want true or false", to->s->name);
	*(bool *)field(to->c, to->s) = v != 0;
	return 0;
}

static int set_choice(const struct setter *to, const char *text)
{
	_cleanup_(buf_done) struct buf all = { 0 };

	for (int i = 0; to->s->choices[i]; i++) {
		if (strcmp(to->s->choices[i], text) == 0) {
			*(int *)field(to->c, to->s) = i;
			return 0;
		}
	}
	for (int i = 0; to->s->choices[i]; i++)
		(void)buf_printf(&all, "%s%s", i ? ", " : "", to->s->choices[i]);
	return err_set(to->err, EINVAL, "%s: want one of %s", to->s->name, buf_str(&all));
}

static int set_string(const struct setter *to, const char *text)
{
	size_t max = to->s->max ? to->s->max : SETTING_TEXT_MAX;
	const char **dst = field(to->c, to->s);
	char *copy = NULL;

	if (strlen(text) > max)
		return err_set(to->err, E2BIG, "%s: %zu bytes, limit %zu", to->s->name,
			       strlen(text), max);
	if (*text == '\0') {
		*dst = NULL;
		return 0;
	}
	copy = arena_strndup(to->c->arena, text, strlen(text));
	if (!copy)
		return err_sys(to->err, ENOMEM, "%s", to->s->name);
	*dst = copy;
	return 0;
}

static int set_path(const struct setter *to, const char *text)
{
	_cleanup_(buf_done) struct buf path = { 0 };

	if (strncmp(text, "~/", 2) != 0)
		return set_string(to, text);
	if (!to->home)
		return err_set(to->err, EINVAL, "%s: HOME is not set, so what is ~?", to->s->name);
	if (buf_printf(&path, "%s%s", to->home, text + 1) < 0)
		return err_sys(to->err, ENOMEM, "%s", to->s->name);
	return set_string(to, buf_str(&path));
}

static int set_list(const struct setter *to, const char *text)
{
	const char *items[SETTING_LIST_MAX];
	struct config_list *dst = field(to->c, to->s);
	struct str rest = str_of(text), part;
	const char **copy = NULL;
	size_t n = 0;

	while (str_split(&rest, ',', &part)) {
		part = str_trim(part);
		if (part.len == 0)
			return err_set(to->err, EINVAL, "%s: has an empty entry", to->s->name);
		if (n == SETTING_LIST_MAX)
			return err_set(to->err, E2BIG, "%s: more than %u entries", to->s->name,
				       SETTING_LIST_MAX);
		items[n] = arena_strndup(to->c->arena, part.data, part.len);
		if (!items[n++])
			return err_sys(to->err, ENOMEM, "%s", to->s->name);
	}
	copy = arena_array(to->c->arena, n + 1, sizeof(char *));
	if (!copy)
		return err_sys(to->err, ENOMEM, "%s", to->s->name);
	if (n > 0)
		memcpy(copy, items, n * sizeof(char *));
	*dst = (struct config_list){ copy, n };
	return 0;
}

static int set_secret(const struct setter *to, const char *text)
{
	struct secret **dst = field(to->c, to->s), *s = NULL;

	if (*text != '\0') {
		s = secret_create(text, strlen(text));
		if (!s)
			return err_sys(to->err, ENOMEM, "%s", to->s->name);
	}
	(void)secret_free(*dst);
	*dst = s;
	return 0;
}

static int set_rate(const struct setter *to, const char *text)
{
	int r = rate_parse(text, field(to->c, to->s));

	if (r == -ERANGE)
		return err_set(to->err, EINVAL, "%s: at most %u", to->s->name, RATE_COUNT_MAX);
	return r < 0 ? err_set(to->err, EINVAL, "%s: want a rate such as 600/m (s, m, h), or 0",
			       to->s->name)
		     : 0;
}

static int show_rate(const struct rate *rate, struct buf *b)
{
	char text[RATE_TEXT_SIZE];

	rate_format(*rate, text);
	return buf_puts(b, text);
}

static void json_rate(const struct rate *rate, struct jw *w)
{
	char text[RATE_TEXT_SIZE];

	rate_format(*rate, text);
	jw_string(w, text);
}

static int (*const setters[SETTING_TYPE_COUNT])(const struct setter *to, const char *text) = {
	[SETTING_STRING] = set_string, [SETTING_PATH] = set_path,
	[SETTING_BOOL] = set_bool,     [SETTING_U32] = set_u32,
	[SETTING_SIZE] = set_size,     [SETTING_DURATION] = set_duration,
	[SETTING_CPU] = set_cpu,       [SETTING_CHOICE] = set_choice,
	[SETTING_LIST] = set_list,     [SETTING_SECRET] = set_secret,
	[SETTING_RATE] = set_rate,
};

/* Text of a file, a variable or an argument, of whatever type. */
static int check_text(const struct setting *s, const char *text, struct err *err)
{
	size_t n = strlen(text);

	if (n > SETTING_TEXT_MAX)
		return err_set(err, E2BIG, "%s: %zu bytes, limit %u", s->name, n, SETTING_TEXT_MAX);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return err_set(err, EINVAL, "%s: has a control character", s->name);
	if (!utf8_is_valid(text, n))
		return err_set(err, EINVAL, "%s: is not valid UTF-8", s->name);
	return 0;
}

static void set_bits(const struct setter *to, bool on)
{
	if (to->s->type == SETTING_SIZE || to->s->type == SETTING_DURATION)
		*(uint64_t *)field(to->c, to->s) = on ? SETTING_AUTO_U64 : 0;
	else
		*(uint32_t *)field(to->c, to->s) = on ? SETTING_AUTO_U32 : 0;
}

/* Whether it was a word instead of a number. */
static bool set_word(const struct setter *to, const char *text)
{
	bool is_auto = to->s->flags & SETTING_AUTO && strcmp(text, "auto") == 0;
	bool is_none = to->s->flags & SETTING_NONE && strcmp(text, "none") == 0;

	if (is_auto || is_none)
		set_bits(to, is_auto);
	return is_auto || is_none;
}

int value_set(struct config *c, const struct setting *s, const char *text, const char *home,
	      struct err *err)
{
	struct setter to = { c, s, home, err };
	int r = check_text(s, text, err);

	if (r == 0 && set_word(&to, text))
		return 0;
	return r < 0 ? r : setters[s->type](&to, text);
}

static int show_list(const struct config_list *l, struct buf *b)
{
	int r = 0;

	for (size_t i = 0; i < l->len && r == 0; i++)
		r = buf_printf(b, "%s%s", i ? "," : "", l->items[i]);
	return r;
}

static bool is_none(const struct config *c, const struct setting *s)
{
	const void *v = field(c, s);

	if (!(s->flags & SETTING_NONE))
		return false;
	return s->type == SETTING_SIZE ? *(const uint64_t *)v == 0 : *(const uint32_t *)v == 0;
}

int value_show(const struct config *c, const struct setting *s, struct buf *b)
{
	const void *v = field(c, s);

	if (is_none(c, s))
		return buf_puts(b, "none");
	switch (s->type) {
	case SETTING_BOOL:
		return buf_puts(b, *(const bool *)v ? "true" : "false");
	case SETTING_U32:
		return put_units(b, *(const uint32_t *)v, ones);
	case SETTING_CPU:
		return put_units(b, *(const uint32_t *)v, cores);
	case SETTING_SIZE:
		return put_units(b, *(const uint64_t *)v, sizes);
	case SETTING_DURATION:
		return put_units(b, *(const uint64_t *)v, times);
	case SETTING_CHOICE:
		return buf_puts(b, s->choices[*(const int *)v]);
	case SETTING_LIST:
		return show_list(v, b);
	case SETTING_RATE:
		return show_rate(v, b);
	case SETTING_SECRET:
		return buf_puts(b, secret_show(*(struct secret *const *)v));
	default:
		return *(const char *const *)v ? buf_puts(b, *(const char *const *)v) : 0;
	}
}

static void json_list(const struct config_list *l, struct jw *w)
{
	jw_array_begin(w);
	for (size_t i = 0; i < l->len; i++)
		jw_string(w, l->items[i]);
	jw_array_end(w);
}

void value_json(const struct config *c, const struct setting *s, struct jw *w)
{
	const void *v = field(c, s);

	switch (s->type) {
	case SETTING_BOOL:
		jw_bool(w, *(const bool *)v);
		break;
	case SETTING_U32:
		jw_uint(w, *(const uint32_t *)v);
		break;
	case SETTING_CPU:
		jw_double(w, *(const uint32_t *)v / 1000.0);
		break;
	case SETTING_SIZE:
	case SETTING_DURATION:
		jw_uint(w, *(const uint64_t *)v);
		break;
	case SETTING_CHOICE:
		jw_string(w, s->choices[*(const int *)v]);
		break;
	case SETTING_LIST:
		json_list(v, w);
		break;
	case SETTING_RATE:
		json_rate(v, w);
		break;
	case SETTING_SECRET:
		jw_string(w, *(struct secret *const *)v ? secret_show(*(struct secret *const *)v)
							: NULL);
		break;
	default:
		jw_string(w, *(const char *const *)v);
	}
}

bool value_is_secret_set(const struct config *c, const struct setting *s)
{
	return s->type == SETTING_SECRET && *(struct secret *const *)field(c, s) != NULL;
}

void value_done(struct config *c, const struct setting *s)
{
	struct secret **secret = field(c, s);

	if (s->type == SETTING_SECRET)
		*secret = secret_free(*secret);
}
