#include "config/yaml_event.h"

#include <string.h>

void yaml_event_done(yaml_event_t *e)
{
	yaml_event_delete(e);
}

const char *yaml_event_problem(const yaml_event_t *e)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (e->type) {
	case YAML_ALIAS_EVENT:
		return "aliases are not taken";
	case YAML_SCALAR_EVENT:
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
		if (strlen((const char *)e->data.scalar.value) != e->data.scalar.length)
			return "has a NUL byte";
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor)
		return "anchors are not taken";
	return tag ? "tags are not taken" : NULL;
}

bool yaml_event_is_null(const yaml_event_t *e)
{
	const char *v = (const char *)e->data.scalar.value;

	return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (*v == '\0' || strcmp(v, "~") == 0 || strcmp(v, "null") == 0);
}
