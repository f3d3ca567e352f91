/* Any bytes as a SKILL.md: a head that is taken has a good name and a description, and is one JSON
 * object. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "fuzz.h"
#include "tools/skill_front.h"
#include "json/jv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(4u << 20);
	struct skill_front f = { 0 };
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	if (!a)
		return 0;
	if (skill_front_read((const char *)data, size, "a", a, &f, &err) == 0) {
		MUST(strcmp(f.name, "a") == 0 && f.about[0] != '\0');
		MUST(strlen(f.json) == f.json_len);
		MUST(jv_parse(f.json, f.json_len, f.json_len, &doc, NULL) == 0);
		MUST(jv_kind(jv_root(doc)) == JV_OBJECT);
	} else {
		MUST(err.code != 0);
	}
	(void)jv_free(doc);
	(void)arena_free(a);
	return 0;
}
