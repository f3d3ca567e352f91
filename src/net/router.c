#include "net/router.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/percent.h"

#define TREE_MAX ((size_t)4 << 20)
#define METHODS_MAX 16u

struct row {
	struct row *next;
	const struct route *route; /* borrowed */
	unsigned count;
	const char *names[ROUTER_PARAMS_MAX];
};

/* What may follow a prefix of segments. */
struct node {
	struct str text;    /* of a fixed segment */
	struct node *next;  /* among the fixed ones of its parent */
	struct node *fixed; /* the first */
	struct node *param; /* ":name" */
	struct row *here;   /* rows that end here, one a method */
	struct row *rest;   /* rows that end here with "*name" */
};

struct router {
	struct arena *arena; /* owned; all nodes and rows */
	struct node root;
};

/* The segment at *p; *p moves behind its slash, or becomes NULL after the last one. */
static struct str next_segment(const char **p)
{
	size_t n = strcspn(*p, "/");
	struct str segment = { *p, n };

	*p = (*p)[n] == '/' ? *p + n + 1 : NULL;
	return segment;
}

/* Building. */

static struct node *add_node(struct router *t, struct str text)
{
	struct node *n = arena_alloc(t->arena, sizeof(*n));

	if (n)
		n->text = text;
	return n;
}

static struct node *find_fixed(const struct node *n, struct str text)
{
	for (struct node *child = n->fixed; child; child = child->next)
		if (str_eq(child->text, text))
			return child;
	return NULL;
}

/* The node below n for one segment of a pattern; made when it is not there. */
static struct node *descend(struct router *t, struct node *n, struct str segment)
{
	struct node *child;

	if (segment.len > 0 && segment.data[0] == ':') {
		if (!n->param)
			n->param = add_node(t, segment);
		return n->param;
	}
	child = find_fixed(n, segment);
	if (!child) {
		child = add_node(t, segment);
		if (!child)
			return NULL;
		child->next = n->fixed;
		n->fixed = child;
	}
	return child;
}

static int add_name(struct router *t, struct row *row, struct str segment)
{
	if (segment.len < 2 || row->count == ROUTER_PARAMS_MAX)
		return -EINVAL;
	row->names[row->count] = arena_strndup(t->arena, segment.data + 1, segment.len - 1);
	return row->names[row->count++] ? 0 : -ENOMEM;
}

static int put_row(struct row **list, struct row *row)
{
	for (const struct row *other = *list; other; other = other->next)
		if (strcmp(other->route->method, row->route->method) == 0)
			return -EEXIST;
	row->next = *list;
	*list = row;
	return 0;
}

static int add_route(struct router *t, const struct route *route)
{
	struct row *row = arena_alloc(t->arena, sizeof(*row));
	struct node *n = &t->root;
	const char *p = route->pattern + 1;
	struct str segment;
	int r = 0;

	if (!row)
		return -ENOMEM;
	row->route = route;
	if (route->pattern[0] != '/' || *route->method == '\0')
		return -EINVAL;
	while (p) {
		segment = next_segment(&p);
		if (str_starts(segment, "*")) {
			r = p ? -EINVAL : add_name(t, row, segment);
			return r < 0 ? r : put_row(&n->rest, row);
		}
		if (str_starts(segment, ":"))
			r = add_name(t, row, segment);
		if (r < 0)
			return r;
		n = descend(t, n, segment);
		if (!n)
			return -ENOMEM;
	}
	return put_row(&n->here, row);
}

int router_create(const struct route *rows, size_t count, size_t stride, struct router **ret,
		  struct err *err)
{
	struct router *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (t)
		t->arena = arena_create(TREE_MAX);
	if (!t || !t->arena) {
		(void)router_free(t);
		return err_sys(err, ENOMEM, "routes");
	}
	for (size_t i = 0; i < count; i++) {
		const struct route *route = (const void *)((const char *)rows + i * stride);

		r = add_route(t, route);
		if (r < 0) {
			(void)router_free(t);
			return err_sys(err, r, "route %s %s", route->method, route->pattern);
		}
	}
	*ret = t;
	return 0;
}

struct router *router_free(struct router *t)
{
	if (!t)
		return NULL;
	(void)arena_free(t->arena);
	free(t);
	return NULL;
}

/* Finding. */

struct walk {
	const char *method;
	struct arena *arena;                  /* borrowed */
	struct str values[ROUTER_PARAMS_MAX]; /* still encoded */
	unsigned count;
	const char *methods[METHODS_MAX]; /* of rows whose path fits */
	unsigned method_count;
	bool no_memory;
};

static void note_method(struct walk *w, const char *method)
{
	for (unsigned i = 0; i < w->method_count; i++)
		if (strcmp(w->methods[i], method) == 0)
			return;
	if (w->method_count < METHODS_MAX)
		w->methods[w->method_count++] = method;
}

static const struct row *choose(struct walk *w, const struct row *rows)
{
	const struct row *get = NULL;

	for (const struct row *row = rows; row; row = row->next) {
		if (strcmp(row->route->method, w->method) == 0)
			return row;
		if (strcmp(row->route->method, "GET") == 0)
			get = row;
		note_method(w, row->route->method);
	}
	if (get)
		note_method(w, "HEAD");
	return get && strcmp(w->method, "HEAD") == 0 ? get : NULL;
}

static const char *decode(struct walk *w, struct str s)
{
	char *text = arena_alloc(w->arena, s.len + 1);

	if (!text || percent_decode(s, false, text) < 0) { /* escapes were checked before */
		w->no_memory = true;
		return NULL;
	}
	return text;
}

/* The segment's text without escapes; an empty one when there is no memory. */
static struct str plain(struct walk *w, struct str segment)
{
	if (!memchr(segment.data, '%', segment.len))
		return segment;
	return str_of(decode(w, segment));
}

static const struct row *walk(struct walk *w, const struct node *n, const char *p)
{
	const struct row *row = NULL;
	const struct node *fixed;
	const char *rest = p;
	struct str raw, text;

	if (!p) {
		row = choose(w, n->here);
		rest = "";
	} else {
		raw = next_segment(&p);
		text = plain(w, raw);
		fixed = find_fixed(n, text);
		if (fixed)
			row = walk(w, fixed, p);
		if (!row && n->param && text.len > 0 && !str_is(text, ".") && !str_is(text, "..")) {
			w->values[w->count++] = raw;
			row = walk(w, n->param, p);
			if (!row)
				w->count--;
		}
	}
	if (!row && n->rest) {
		row = choose(w, n->rest);
		if (row)
			w->values[w->count++] = str_of(rest);
	}
	return row;
}

static int fill(struct walk *w, const struct row *row, struct router_match *m)
{
	m->route = row->route;
	m->count = row->count;
	for (unsigned i = 0; i < row->count; i++) {
		m->params[i].name = row->names[i];
		m->params[i].value = decode(w, w->values[i]);
	}
	return w->no_memory ? -ENOMEM : 0;
}

static int list_methods(const struct walk *w, struct router_match *m)
{
	struct buf b = { 0 };

	for (unsigned i = 0; i < w->method_count; i++)
		(void)buf_printf(&b, "%s%s", i > 0 ? ", " : "", w->methods[i]);
	m->allow = b.failed ? NULL : arena_strndup(w->arena, buf_str(&b), b.len);
	buf_done(&b);
	return m->allow ? -ENOTSUP : -ENOMEM;
}

/* Every escape of the path is good, so that no later step fails over one. */
static bool is_well_formed(const char *path, struct arena *a, bool *no_memory)
{
	struct str s = str_of(path);
	char *text;

	if (!strchr(path, '%'))
		return true;
	text = arena_alloc(a, s.len + 1);
	*no_memory = !text;
	return text && percent_decode(s, false, text) >= 0;
}

int router_find(const struct router *t, const char *method, const char *path, struct arena *a,
		struct router_match *m)
{
	struct walk w = { .method = method, .arena = a };
	const struct row *row;

	*m = (struct router_match){ 0 };
	if (path[0] != '/')
		return -ENOENT;
	if (!is_well_formed(path, a, &w.no_memory))
		return w.no_memory ? -ENOMEM : -EINVAL;
	row = walk(&w, &t->root, path + 1);
	if (w.no_memory)
		return -ENOMEM;
	if (row)
		return fill(&w, row, m);
	return w.method_count > 0 ? list_methods(&w, m) : -ENOENT;
}

const char *router_param(const struct router_match *m, const char *name)
{
	for (unsigned i = 0; i < m->count; i++)
		if (strcmp(m->params[i].name, name) == 0)
			return m->params[i].value;
	return NULL;
}
