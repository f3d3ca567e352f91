#include "api/schemas.h"

#include <string.h>

#include "api/schemas_impl.h"

static const struct schema_group *const groups[] = {
	&schemas_daemon,   &schemas_sandboxes, &schemas_runs,   &schemas_files,
	&schemas_makings,  &schemas_builds,    &schemas_people, &schemas_logs,
	&schemas_webhooks, &schemas_sessions,  &schemas_tools
};

const struct schema *schema_at(size_t i)
{
	for (size_t g = 0; g < ARRAY_LEN(groups); i -= groups[g++]->count)
		if (i < groups[g]->count)
			return &groups[g]->list[i];
	return NULL;
}

const struct schema *schema_find(const char *name)
{
	const struct schema *s;

	for (size_t i = 0; (s = schema_at(i)); i++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}
