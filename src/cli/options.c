#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"

#define WORD_MAX 32 /* longest word that suggestions are made for */

static int set_flag(const struct opt *o, const char *text, void *field)
{
	(void)o;
	(void)text;
	*(bool *)field = true;
	return 0;
}

static int set_text(const struct opt *o, const char *text, void *field)
{
	(void)o;
	*(const char **)field = text;
	return 0;
}

static int set_list(const struct opt *o, const char *text, void *field)
{
	struct opt_list *list = field;

	(void)o;
	if (list->len == OPT_LIST_MAX)
		return -E2BIG;
	list->items[list->len++] = text;
	return 0;
}

static int set_count(const struct opt *o, const char *text, void *field)
{
	return parse_u32(text, (uint32_t)o->min, (uint32_t)o->max, field);
}

static int set_size(const struct opt *o, const char *text, void *field)
{
	return parse_size(text, o->min, o->max, field);
}

static int set_duration(const struct opt *o, const char *text, void *field)
{
	return parse_duration(text, o->min, o->max, field);
}

static int set_cpu(const struct opt *o, const char *text, void *field)
{
	return parse_cpu(text, (uint32_t)o->min, (uint32_t)o->max, field);
}

/* "3" or "2-5" into bits of *mask. */
static int add_cpus(struct str part, uint64_t *mask)
{
	char text[16];
	uint32_t first, last;
	struct str head;

	if (!str_split(&part, '-', &head))
		return -EINVAL;
	if (str_format(text, sizeof(text), "%.*s", (int)head.len, head.data) < 0 ||
	    parse_u32(text, 0, 63, &first) < 0)
		return -EINVAL;
	last = first;
	if (part.len > 0 && (str_format(text, sizeof(text), "%.*s", (int)part.len, part.data) < 0 ||
			     parse_u32(text, first, 63, &last) < 0))
		return -EINVAL;
	for (uint32_t cpu = first; cpu <= last; cpu++)
		*mask |= 1ull << cpu;
	return 0;
}

static int set_cpus(const struct opt *o, const char *text, void *field)
{
	struct str rest = str_of(text), part;
	uint64_t mask = 0;

	(void)o;
	while (str_split(&rest, ',', &part))
		if (add_cpus(part, &mask) < 0)
			return -EINVAL;
	if (mask == 0)
		return -EINVAL;
	*(uint64_t *)field = mask;
	return 0;
}

static int set_choice(const struct opt *o, const char *text, void *field)
{
	for (int i = 0; o->choices[i]; i++)
		if (strcmp(o->choices[i], text) == 0) {
			*(int *)field = i;
			return 0;
		}
	return -EINVAL;
}

/* What it accepts is the configuration's to say. The name is the flag without its two dashes. */
static int set_setting(const struct opt *o, const char *text, void *field)
{
	struct opt_settings *s = field;

	if (s->len == OPT_SETTINGS_MAX)
		return -E2BIG;
	s->flags[s->len++] = (struct config_flag){ o->name - 2, text };
	return 0;
}

/* One row a type: how a value is read, and what a person is told when it cannot be. */
static const struct {
	int (*set)(const struct opt *o, const char *text, void *field);
	const char *accepts;
} types[OPT_TYPE_COUNT] = {
	[OPT_FLAG] = { set_flag, "no value" },
	[OPT_TEXT] = { set_text, "a text" },
	[OPT_LIST] = { set_list, "at most 256 uses" },
	[OPT_COUNT] = { set_count, "a whole number" },
	[OPT_SIZE] = { set_size, "a size such as 64M, 1.5G or 268435456" },
	[OPT_DURATION] = { set_duration, "a time such as 250ms, 30s, 5m, 2h or 7d" },
	[OPT_CPU] = { set_cpu, "a number of cores such as 0.5, 2 or 250m" },
	[OPT_CPUS] = { set_cpus, "CPU numbers such as 0, 0,2 or 1-3 (at most 63)" },
	[OPT_CHOICE] = { set_choice, NULL },
	[OPT_SETTING] = { set_setting, "at most 64 uses" },
};

static void say_choices(const struct opt *o, struct buf *b)
{
	for (size_t i = 0; o->choices[i]; i++)
		(void)buf_printf(b, "%s%s", i ? ", " : "one of ", o->choices[i]);
}

static void say_size(struct buf *b, uint64_t bytes)
{
	static const char units[] = "KMGT";
	size_t u = 0;

	while (u < 3 && bytes >= (1024ull << 10) && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	if (bytes >= 1024 && bytes % 1024 == 0)
		(void)buf_printf(b, "%llu%c", (unsigned long long)(bytes / 1024), units[u]);
	else
		(void)buf_printf(b, "%llu", (unsigned long long)bytes);
}

static void say_bounds(const struct opt *o, struct buf *b)
{
	unsigned long long min = o->min, max = o->max;

	if (o->type == OPT_SIZE) {
		(void)buf_puts(b, ", from ");
		say_size(b, o->min);
		(void)buf_puts(b, " to ");
		say_size(b, o->max);
	} else if (o->type == OPT_COUNT) {
		(void)buf_printf(b, ", from %llu to %llu", min, max);
	} else if (o->type == OPT_CPU) {
		(void)buf_printf(b, ", from %llum to %llu", min, max / 1000);
	} else if (o->type == OPT_DURATION) {
		(void)buf_printf(b, ", from %llums to %llus", min, max / 1000);
	}
}

static int refuse(const struct opt *o, const char *text, int code, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (o->type == OPT_CHOICE)
		say_choices(o, &b);
	else
		(void)buf_puts(&b, types[o->type].accepts);
	say_bounds(o, &b);
	return err_set(err, -code, "--%s %s '%.60s': wants %s", o->name,
		       code == -ERANGE ? "is out of range:" : "does not accept", text, buf_str(&b));
}

static int apply(const struct opt *o, const char *text, void *dst, struct err *err)
{
	int e = types[o->type].set(o, text, (char *)dst + o->offset);

	return e < 0 ? refuse(o, text, e, err) : 0;
}

const char *options_nearest(const char *word, const char *const *names)
{
	const char *best = NULL;
	size_t best_distance = 3; /* more than two edits is another word */

	for (; *names; names++) {
		size_t d = str_distance(word, *names);

		if (d < best_distance && d < strlen(*names)) {
			best = *names;
			best_distance = d;
		}
	}
	return best;
}

static int unknown(const struct opt_rows *all, const char *arg, struct err *err)
{
	const char *names[OPTS_MAX + 2] = { "help" }, *near;
	char word[WORD_MAX + 1] = "";
	size_t n = 1;

	if (strncmp(arg, "--", 2) != 0)
		return err_set(err, EINVAL, "unknown option '-%c'", optopt ? optopt : '?');
	for (size_t i = 0; i < all->len; i++)
		names[n++] = all->rows[i].name;
	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
	near = options_nearest(word, names);
	if (near)
		return err_set(err, EINVAL, "unknown option '--%s': did you mean --%s?", word,
			       near);
	return err_set(err, EINVAL, "unknown option '--%s'", word);
}

struct getopt_tables {
	struct option longs[OPTS_MAX + 2];
	char shorts[2 * OPTS_MAX + 8];
};

/* Rows come back from getopt as 256 + their index; 'h' is help. */
static void build_tables(const struct opt_rows *all, struct getopt_tables *t)
{
	size_t s = 0;

	*t = (struct getopt_tables){ 0 };
	if (!all->mixed)
		t->shorts[s++] = '+'; /* the first operand ends the options */
	t->shorts[s++] = ':';
	t->shorts[s++] = 'h';
	for (size_t i = 0; i < all->len; i++) {
		const struct opt *o = &all->rows[i];

		t->longs[i] = (struct option){ o->name, o->arg ? required_argument : no_argument,
					       NULL, 256 + (int)i };
		if (o->letter)
			t->shorts[s++] = o->letter;
		if (o->letter && o->arg)
			t->shorts[s++] = ':';
	}
	t->longs[all->len] = (struct option){ "help", no_argument, NULL, 'h' };
}

static const struct opt *row_of(const struct opt_rows *all, int c)
{
	if (c >= 256)
		return &all->rows[c - 256];
	for (size_t i = 0; i < all->len; i++)
		if (all->rows[i].letter == c)
			return &all->rows[i];
	return NULL;
}

void options_add(struct opt_rows *all, const struct opt *table)
{
	for (; table && table->name; table++) {
		assert(all->len < OPTS_MAX); /* a table of ours */
		all->rows[all->len++] = *table;
	}
}

void options_add_settings(struct opt_rows *all)
{
	size_t n;
	const struct setting *s = settings_table(&n);

	for (; n > 0; n--, s++) {
		assert(all->len < OPTS_MAX); /* a table of ours */
		if (s->flag)
			all->rows[all->len++] =
				(struct opt){ .name = s->flag + 2,
					      .type = OPT_SETTING,
					      .arg = s->type == SETTING_BOOL ? NULL : s->arg,
					      .help = s->help };
	}
}

/* The long option's own word, wherever its value stands; NULL for a letter. */
static const char *given_word(char **argv)
{
	const char *last = argv[optind - 1];

	if (optarg == last)
		last = argv[optind - 2];
	return strncmp(last, "--", 2) == 0 ? last : NULL;
}

/* getopt takes any beginning of a name; we do not: what is clear today means two things tomorrow.
 */
static bool is_whole(const struct opt *o, const char *word)
{
	size_t n = strlen(o->name);

	return !word ||
	       (strncmp(word + 2, o->name, n) == 0 && (word[2 + n] == '\0' || word[2 + n] == '='));
}

int options_parse(const struct opt_rows *all, int argc, char **argv, void *dst, struct err *err)
{
	struct getopt_tables t;
	int c, e;

	build_tables(all, &t);
	opterr = 0;
	optind = 0; /* glibc: start afresh, whatever was parsed before */
	while ((c = getopt_long(argc, argv, t.shorts, t.longs, NULL)) != -1) {
		const struct opt *o = row_of(all, c);

		if (c == 'h')
			return OPT_HELP_WANTED;
		if (c == ':')
			return err_set(err, EINVAL, "option '%s' wants a value", argv[optind - 1]);
		if (c == '?' || !o)
			return unknown(all, argv[optind - 1], err);
		if (c >= 256 && !is_whole(o, given_word(argv)))
			return unknown(all, given_word(argv), err);
		e = apply(o, optarg, dst, err);
		if (e < 0)
			return e;
	}
	return optind;
}
