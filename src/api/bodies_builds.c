/* The body of a build: a template's, with steps. */
#include <stddef.h>

#include "api/bodies.h"
#include "api/package_plan.h"
#include "sandbox/build.h"
#include "sandbox/root_import.h"
#include "sandbox/sandbox.h"
#include "sandbox/template_own.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PACKAGES(name_, help_)                                                             \
	JV_FIELD(#name_, STRINGS, struct body_build_packages, name_, .flags = JV_NULLABLE, \
		 .max = PACKAGES_MAX, .text_max = PACKAGE_TEXT_MAX, .help = help_)
static const struct jv_field packages[] = {
	PACKAGES(pip, "of Python"),
	PACKAGES(npm, "of Node.js"),
};

static const char *const root_kinds[] = { "dir", "tar", "oci", NULL }; /* enum root_source */
static const struct jv_field root_fields[] = {
	JV_FIELD("kind", CHOICE, struct body_root, kind, .flags = JV_REQUIRED,
		 .choices = root_kinds,
		 .help = "a directory; a tar, plain or gzip; what docker save or skopeo wrote"),
	JV_FIELD("path", STRING, struct body_root, path, .flags = JV_REQUIRED, .min = 1,
		 .max = ROOT_PATH_MAX, .help = "below the daemon's images_dir"),
};

static const struct jv_field build_fields[] = {
	JV_FIELD("name", STRING, struct body_build, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SANDBOX_NAME_MAX),
	JV_FIELD("from", STRING, struct body_build, from, .flags = JV_NULLABLE, .min = 1,
		 .max = 128, .help = "a template, built in or one's own; python unless given"),
	JV_FIELD("snapshot", STRING, struct body_build, snapshot, .flags = JV_NULLABLE, .min = 1,
		 .max = SANDBOX_NAME_MAX, .help = "instead of from: its files"),
	JV_FIELD("root", OBJECT, struct body_build, root, .flags = JV_NULLABLE, .sub = root_fields,
		 .sub_count = ARRAY_LEN(root_fields),
		 .help = "instead of from: an image, which becomes the whole root"),
	BODY_TRAITS_ROWS(struct body_build, traits),
	JV_FIELD("steps", OBJECTS, struct body_build, steps, .max = BUILD_STEPS_MAX,
		 .size = sizeof(struct build_step), .sub = build_step_fields,
		 .sub_count = BUILD_STEP_FIELDS),
	JV_FIELD("packages", OBJECT, struct body_build, packages, .flags = JV_NULLABLE,
		 .sub = packages, .sub_count = ARRAY_LEN(packages),
		 .help = "what is installed before the steps"),
};
const struct route_body body_build = {
	.name = "BuildRequest",
	.fields = build_fields,
	.count = ARRAY_LEN(build_fields),
	.size = sizeof(struct body_build),
};
