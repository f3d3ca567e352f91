/* Bodies of /templates. What can be said of a template stands here once, for builds too. */
#include <stddef.h>

#include "api/bodies.h"
#include "sandbox/sandbox.h"
#include "sandbox/template_own.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static const struct jv_field template_fields[] = {
	JV_FIELD("name", STRING, struct body_template, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SANDBOX_NAME_MAX),
	JV_FIELD("from", STRING, struct body_template, from, .flags = JV_NULLABLE, .min = 1,
		 .max = 128, .help = "a template, built in or one's own; python unless given"),
	JV_FIELD("snapshot", STRING, struct body_template, snapshot, .flags = JV_NULLABLE, .min = 1,
		 .max = SANDBOX_NAME_MAX, .help = "instead of from: its files"),
	BODY_TRAITS_ROWS(struct body_template, traits),
};
const struct route_body body_template = {
	.name = "TemplateRequest",
	.fields = template_fields,
	.count = ARRAY_LEN(template_fields),
	.size = sizeof(struct body_template),
};

static const struct jv_field alias_fields[] = {
	JV_FIELD("version", U32, struct body_alias, version, .flags = JV_REQUIRED, .min = 1,
		 .max = 1000000, .help = "what it stands for from now on"),
};
const struct route_body body_alias = {
	.name = "AliasRequest",
	.fields = alias_fields,
	.count = ARRAY_LEN(alias_fields),
	.size = sizeof(struct body_alias),
};
