/* Schemas of template builds. */
#include "api/schemas_impl.h"

static const struct schema_field file[] = {
	FIELD("hash", STRING, .help = "SHA-256 of its bytes"),
	FIELD("present", BOOL),
	FIELD("bytes", INT, .help = "0: it is not there"),
};

static const struct schema list[] = {
	SCHEMA("TemplateFile", "An archive that builds can copy from", file),
};

const struct schema_group schemas_builds = { list, ARRAY_LEN(list) };
