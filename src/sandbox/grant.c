#include "sandbox/grant.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "json/jv.h"

static int check_names(struct jv array, struct err *err)
{
	size_t n = jv_len(array);

	if (n == 0 || n > GRANT_SERVERS_MAX)
		return err_set(err, EINVAL, "tools: want 1 to %u names", GRANT_SERVERS_MAX);
	for (size_t i = 0; i < n; i++) {
		const char *name = jv_text(jv_at(array, i));

		if (!name || name[0] == '\0' || strlen(name) > GRANT_NAME_MAX)
			return err_set(err, EINVAL, "tools: want names of 1 to %u bytes",
				       GRANT_NAME_MAX);
	}
	return 0;
}

int grant_check(const char *json, struct err *err)
{
	struct jv_doc *doc = NULL;
	bool is_all = false;
	int r = jv_parse(json, strlen(json), GRANT_TEXT_MAX, &doc, NULL);

	if (r < 0)
		return err_set(err, EINVAL, "tools: want true or names of servers");
	if (jv_kind(jv_root(doc)) == JV_ARRAY)
		r = check_names(jv_root(doc), err);
	else if (jv_bool(jv_root(doc), &is_all) < 0 || !is_all)
		r = err_set(err, EINVAL, "tools: want true or names of servers");
	(void)jv_free(doc);
	return r;
}

bool grant_has(const char *json, const char *server)
{
	struct jv_doc *doc = NULL;
	bool has = false;

	if (json[0] == '\0' || jv_parse(json, strlen(json), GRANT_TEXT_MAX, &doc, NULL) < 0)
		return false;
	if (jv_kind(jv_root(doc)) != JV_ARRAY)
		(void)jv_bool(jv_root(doc), &has);
	for (size_t i = 0; !has && i < jv_len(jv_root(doc)); i++) {
		const char *name = jv_text(jv_at(jv_root(doc), i));

		has = name && strcmp(name, server) == 0;
	}
	(void)jv_free(doc);
	return has;
}
