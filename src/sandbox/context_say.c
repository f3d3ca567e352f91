#include "sandbox/context_say.h"

#include "base/str.h"
#include "json/jv.h"

struct member {
	const char *name;
	enum jv_kind kind; /* JV_ABSENT: any */
};

/* "png", "jpeg" and "pdf" are base64; chart's own members are as matplotlib's user made them. */
static const struct member value_members[] = {
	{ "text", JV_STRING },  { "html", JV_STRING },  { "markdown", JV_STRING },
	{ "svg", JV_STRING },   { "png", JV_STRING },   { "jpeg", JV_STRING },
	{ "pdf", JV_STRING },   { "latex", JV_STRING }, { "javascript", JV_STRING },
	{ "json", JV_ABSENT },  { "data", JV_ABSENT },  { "chart", JV_OBJECT },
	{ "extra", JV_OBJECT },
};
static const struct member error_members[] = {
	{ "name", JV_STRING },
	{ "value", JV_STRING },
	{ "traceback", JV_STRING },
};

static bool is_member(const struct member *table, size_t n, struct str key, struct jv value)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(key, table[i].name))
			return table[i].kind == JV_ABSENT || jv_kind(value) == table[i].kind;
	return false;
}

static bool has_members(struct jv object, const struct member *table, size_t n)
{
	JV_FOREACH (object, it)
		if (!is_member(table, n, it.key, it.value))
			return false;
	return true;
}

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

bool context_say_is_sound(enum frame_kind kind, const char *data, size_t n)
{
	struct jv_doc *doc = NULL;
	struct jv root;
	bool is;

	if (jv_parse(data, n, CONTEXT_RESULTS_MAX, &doc, NULL) < 0)
		return false;
	root = jv_root(doc);
	is = jv_kind(root) == JV_OBJECT && jv_len(root) > 0;
	if (is && kind == FRAME_ERROR)
		is = jv_len(root) == LEN(error_members) &&
		     has_members(root, error_members, LEN(error_members));
	else if (is)
		is = has_members(root, value_members, LEN(value_members));
	(void)jv_free(doc);
	return is;
}

void context_say_read_end(const char *data, size_t n, struct context_end *ret, char *cwd,
			  size_t cwd_size)
{
	struct jv_doc *doc = NULL;
	const char *text;
	int64_t code;

	if (n == 0 || jv_parse(data, n, FRAME_BODY_MAX * 4, &doc, NULL) < 0)
		return;
	(void)jv_u64(jv_get(jv_root(doc), "count"), &ret->count);
	if (jv_i64(jv_get(jv_root(doc), "exitCode"), &code) == 0 && code >= 0 && code <= 255)
		ret->exit_code = code;
	text = jv_text(jv_get(jv_root(doc), "cwd"));
	if (text)
		(void)str_copy(cwd, cwd_size, text);
	(void)jv_free(doc);
}
