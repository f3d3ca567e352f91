/* Bytes to a document, a document through a table into a struct, and the document written: what was
 * written must read the same, and writing that gives the same bytes again. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fuzz.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define INPUT_MAX 65536u

struct inner {
	uint64_t size, time;
	uint32_t cpu;
};

struct sample {
	const char *s;
	bool b;
	uint32_t u32;
	uint64_t u64;
	int64_t i64;
	double d;
	int choice;
	struct jv_strings list;
	struct jv_pairs map;
	struct inner in;
	struct jv_objects many;
	struct jv any;
};

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
static const char *const words[] = { "one", "two", NULL };
static const struct jv_field inner[] = {
	JV_FIELD("size", SIZE, struct inner, size, .max = 1 << 30),
	JV_FIELD("time", DURATION, struct inner, time, .min = 10),
	JV_FIELD("cpu", CPU, struct inner, cpu),
};
static const struct jv_field fields[] = {
	JV_FIELD("s", STRING, struct sample, s, .flags = JV_NULLABLE, .max = 40),
	JV_FIELD("b", BOOL, struct sample, b),
	JV_FIELD("u", U32, struct sample, u32),
	JV_FIELD("U", U64, struct sample, u64),
	JV_FIELD("i", I64, struct sample, i64, .min = -100, .max = 100),
	JV_FIELD("d", DOUBLE, struct sample, d),
	JV_FIELD("c", CHOICE, struct sample, choice, .choices = words),
	JV_FIELD("l", STRINGS, struct sample, list, .max = 5, .text_max = 9),
	JV_FIELD("m", PAIRS, struct sample, map, .max = 5),
	JV_FIELD("o", OBJECT, struct sample, in, .sub = inner, .sub_count = LEN(inner)),
	JV_FIELD("a", OBJECTS, struct sample, many, .sub = inner, .sub_count = LEN(inner),
		 .size = sizeof(struct inner)),
	JV_FIELD("v", VALUE, struct sample, any),
};

static void check_sample(const struct sample *s)
{
	const struct inner *many = s->many.items;

	MUST(!s->s || strlen(s->s) <= 40);
	MUST(s->i64 >= -100 && s->i64 <= 100 && s->choice >= 0 && s->choice <= 1);
	MUST(s->list.len <= 5 && s->map.len <= 5 && s->many.len <= JV_COUNT_MAX);
	for (size_t i = 0; i < s->list.len; i++)
		MUST(strlen(s->list.items[i]) <= 9);
	for (size_t i = 0; i < s->map.len; i++)
		MUST(s->map.items[i].name[0] && strlen(s->map.items[i].value) <= JV_TEXT_MAX);
	for (size_t i = 0; i < s->many.len; i++)
		MUST(many[i].size <= 1 << 30 && (many[i].time == 0 || many[i].time >= 10));
}

static void decode(struct jv root)
{
	struct arena *a = arena_create(1 << 20);
	struct sample s = { 0 };
	struct jv_problem problem = { "", "" };
	int strict, known;

	MUST(a);
	strict = jv_decode(root, fields, LEN(fields), a, &s, &problem);
	if (strict == 0)
		check_sample(&s);
	else
		MUST(problem.text[0] && strlen(problem.field) < sizeof(problem.field));
	known = jv_decode_known(root, fields, LEN(fields), a, &s, NULL);
	MUST(strict < 0 || known == 0);
	arena_free(a);
}

static struct buf written(struct jv root)
{
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_value(&w, root);
	MUST(jw_end(&w) == 0);
	return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jv_doc *doc = NULL, *again = NULL;
	struct buf first, second;

	if (jv_parse(data, size, INPUT_MAX, &doc, NULL) < 0)
		return 0;
	decode(jv_root(doc));
	first = written(jv_root(doc));
	MUST(jv_parse(first.data, first.len, BUF_MAX, &again, NULL) == 0);
	second = written(jv_root(again));
	MUST(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	buf_done(&first);
	buf_done(&second);
	jv_free(doc);
	jv_free(again);
	return 0;
}
