/* The tools of a server: what of its list is kept, and how they are found. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "mcpc/servers_impl.h"
#include "json/jw.h"

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-"
#define LIST_MAX (16u << 20) /* bytes of all of a server's */
#define DEPTH_MAX (JV_DEPTH_MAX - 8)
#define WORDS_MAX 16
#define WORD_MAX 64

/* ---- what is kept ---- */

void server_drop_tools(struct server *s)
{
	free(s->tools);
	s->tools = NULL;
	s->n_tools = s->n_left_off = 0;
	memset(s->counts, 0, sizeof(s->counts));
	s->tools_doc = jv_free(s->tools_doc);
}

static bool is_good_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n > 0 && n <= MCPC_TOOL_NAME_MAX && strspn(name, NAME_CHARS) == n;
}

/* What is passed on is read by others, who have to do with some levels more around it. */
static bool is_too_deep(struct jv v, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return true;
	if (jv_kind(v) == JV_OBJECT || jv_kind(v) == JV_ARRAY)
		JV_FOREACH (v, it)
			if (is_too_deep(it.value, depth + 1))
				return true;
	return false;
}

/* Those that can be used, as one JSON array. */
static void write_kept(struct jw *w, struct jv list, size_t *ret_kept)
{
	_cleanup_(buf_done) struct buf one = { .max = MCPC_TOOL_MAX };

	*ret_kept = 0;
	jw_array_begin(w);
	JV_FOREACH (list, it) {
		struct jw tw;

		buf_clear(&one);
		tw = jw_begin(&one);
		jw_value(&tw, it.value);
		if (*ret_kept == MCPC_TOOLS_MAX || jw_end(&tw) < 0 ||
		    !is_good_name(jv_text(jv_get(it.value, "name"))) ||
		    jv_kind(jv_get(it.value, "inputSchema")) != JV_OBJECT ||
		    is_too_deep(it.value, 0))
			continue;
		jw_raw(w, buf_str(&one), one.len);
		++*ret_kept;
	}
	jw_array_end(w);
}

static const char *text_or_empty(struct jv v)
{
	const char *text = jv_text(v);

	return text ? text : "";
}

static bool is_there(const struct mcpc_tool *tools, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(tools[i].name, name) == 0)
			return true;
	return false;
}

static struct mcpc_tool *index_tools(const struct server *s, struct jv list, size_t *ret_n)
{
	struct mcpc_tool *tools = calloc(jv_len(list) + 1, sizeof(*tools));

	*ret_n = 0;
	if (!tools)
		return NULL;
	JV_FOREACH (list, it) {
		const char *name = jv_text(jv_get(it.value, "name"));

		if (!name || is_there(tools, *ret_n, name))
			continue;
		tools[(*ret_n)++] = (struct mcpc_tool){
			.server = s->row.name,
			.name = name,
			.title = text_or_empty(jv_get(it.value, "title")),
			.about = text_or_empty(jv_get(it.value, "description")),
			.input = jv_get(it.value, "inputSchema"),
			.output = jv_get(it.value, "outputSchema"),
			.annotations = jv_get(it.value, "annotations"),
			.policy = server_row_policy(&s->row, name),
		};
	}
	return tools;
}

int server_take_tools(struct server *s, struct jv result, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { .max = LIST_MAX };
	struct jv list = jv_get(result, "tools");
	struct jw w = jw_begin(&b);
	struct mcpc_tool *tools;
	struct jv_doc *doc;
	size_t kept, n;
	int r;

	if (jv_kind(list) != JV_ARRAY)
		return err_set(err, EPROTO, "the server's list of tools is none");
	write_kept(&w, list, &kept);
	r = jw_end(&w);
	if (r < 0)
		return err_set(err, E2BIG, "the server's list of tools is too large");
	r = jv_parse(buf_str(&b), b.len, LIST_MAX, &doc, err);
	if (r < 0)
		return r;
	tools = index_tools(s, jv_root(doc), &n);
	if (!tools) {
		(void)jv_free(doc);
		return err_sys(err, ENOMEM, "tools");
	}
	free(s->tools);
	(void)jv_free(s->tools_doc);
	s->tools = tools;
	s->tools_doc = doc;
	s->n_tools = n;
	s->n_left_off = jv_len(list) - n;
	return 0;
}

/* ---- looking ---- */

void mcpc_servers_tools(const struct mcpc_servers *all, const char *server, mcpc_tool_fn fn,
			void *user)
{
	for (size_t i = 0; i < all->n_servers; i++) {
		const struct server *s = &all->servers[i];

		if (server && strcmp(server, s->row.name) != 0)
			continue;
		for (size_t k = 0; k < s->n_tools; k++)
			if (s->tools[k].policy != MCPC_DENY && !fn(user, &s->tools[k]))
				return;
	}
}

const struct mcpc_tool *mcpc_servers_find(const struct mcpc_servers *all, const char *server,
					  const char *tool)
{
	const struct server *s = servers_by_name(all, server);

	for (size_t i = 0; s && i < s->n_tools; i++)
		if (strcmp(s->tools[i].name, tool) == 0)
			return &s->tools[i];
	return NULL;
}

void mcpc_tool_write(struct jw *w, const struct mcpc_tool *tool, enum mcpc_detail detail)
{
	jw_object_begin(w);
	jw_str_field(w, "server", tool->server);
	jw_str_field(w, "name", tool->name);
	if (detail >= MCPC_SUMMARY) {
		jw_str_field(w, "title", tool->title);
		jw_str_field(w, "description", tool->about);
		jw_str_field(w, "policy", mcpc_policies[tool->policy]);
	}
	if (detail >= MCPC_FULL) {
		jw_key(w, "inputSchema");
		jw_value(w, tool->input);
		if (jv_kind(tool->output) == JV_OBJECT) {
			jw_key(w, "outputSchema");
			jw_value(w, tool->output);
		}
		if (jv_kind(tool->annotations) == JV_OBJECT) {
			jw_key(w, "annotations");
			jw_value(w, tool->annotations);
		}
	}
	jw_object_end(w);
}

/* ---- searching ---- */

struct words {
	char items[WORDS_MAX][WORD_MAX + 1];
	size_t n;
};

static bool is_word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c < 0;
}

static void split_words(const char *query, struct words *ret)
{
	ret->n = 0;
	while (*query && ret->n < WORDS_MAX) {
		size_t n = 0;

		while (*query && !is_word_byte(*query))
			query++;
		while (is_word_byte(query[n]))
			n++;
		if (n > 0) {
			size_t keep = n < WORD_MAX ? n : WORD_MAX;

			memcpy(ret->items[ret->n], query, keep);
			ret->items[ret->n++][keep] = '\0';
		}
		query += n;
	}
}

static bool has(const char *text, const char *word)
{
	return strcasestr(text, word) != NULL;
}

static unsigned parameter_score(const struct mcpc_tool *t, const char *word)
{
	unsigned score = 0;

	JV_FOREACH (jv_get(t->input, "properties"), it) {
		char name[WORD_MAX + 1];

		(void)str_format(name, sizeof(name), "%.*s",
				 (int)(it.key.len < WORD_MAX ? it.key.len : WORD_MAX), it.key.data);
		if (has(name, word))
			return 3;
		if (has(text_or_empty(jv_get(it.value, "description")), word))
			score = 1;
	}
	return score;
}

/* How many of the words are there comes first, then where they are. */
static unsigned score_of(const struct mcpc_tool *t, const struct words *words)
{
	unsigned score = 0;

	for (size_t i = 0; i < words->n; i++) {
		const char *word = words->items[i];
		unsigned one = strcasecmp(t->name, word) == 0 ? 20 : has(t->name, word) ? 10 : 0;

		one += has(t->title, word) ? 6 : 0;
		one += has(t->server, word) ? 5 : 0;
		one += has(t->about, word) ? 4 : 0;
		one += parameter_score(t, word);
		score += one > 0 ? 1000 + one : 0;
	}
	return score;
}

struct hit {
	const struct mcpc_tool *tool;
	unsigned score;
	size_t order;
};

struct search {
	const struct words *words;
	struct hit *hits;
	size_t n, room;
};

static bool collect(void *user, const struct mcpc_tool *tool)
{
	struct search *s = user;
	unsigned score = score_of(tool, s->words);

	if (score > 0 || s->words->n == 0) {
		s->hits[s->n] = (struct hit){ tool, score, s->n };
		s->n++;
	}
	return s->n < s->room;
}

static int compare(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

void mcpc_servers_search(const struct mcpc_servers *all, const char *server, const char *query,
			 size_t limit, mcpc_tool_fn fn, void *user)
{
	struct words words;
	struct search s = { .words = &words };

	for (size_t i = 0; i < all->n_servers; i++)
		s.room += all->servers[i].n_tools;
	if (s.room == 0)
		return;
	s.hits = calloc(s.room, sizeof(*s.hits));
	if (!s.hits)
		return;
	split_words(query, &words);
	mcpc_servers_tools(all, server, collect, &s);
	qsort(s.hits, s.n, sizeof(*s.hits), compare);
	for (size_t i = 0; i < s.n && i < limit; i++)
		if (!fn(user, s.hits[i].tool))
			break;
	free(s.hits);
}
