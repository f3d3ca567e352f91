/* What a warm pool is described by, for requests and for the store. */
#include <stddef.h>

#include "sandbox/pool.h"
#include "sandbox/sandbox.h"

#define MODULE_MAX 128 /* bytes of a name */

static const char *const levels[] = { "standard", "high", "custom", NULL };

const struct jv_field pool_scaling_fields[POOL_SCALING_FIELDS] = {
	JV_FIELD("enabled", BOOL, struct pool_scaling, enabled),
	JV_FIELD("targetUtilization", U32, struct pool_scaling, utilization, .min = 1, .max = 100),
	JV_FIELD("scaleDownDelay", DURATION, struct pool_scaling, quiet_ms, .min = 0,
		 .max = 24 * 3600 * 1000),
};

#define PRELOAD(struct_)                                                                \
	JV_FIELD("preloadPackages", STRINGS, struct_, preload, .max = POOL_PRELOAD_MAX, \
		 .text_max = MODULE_MAX)

const struct jv_field pool_fields[POOL_FIELDS] = {
	JV_FIELD("name", STRING, struct pool_wish, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SANDBOX_NAME_MAX),
	JV_FIELD("runtime", STRING, struct pool_wish, runtime, .flags = JV_REQUIRED, .min = 1,
		 .max = OBJECT_NAME_MAX),
	JV_FIELD("owner", STRING, struct pool_wish, owner, .flags = JV_NULLABLE,
		 .max = OBJECT_OWNER_MAX, .help = "of a template that is not built in; oneself"),
	JV_FIELD("minSize", U32, struct pool_wish, min, .max = POOL_SIZE_MAX),
	JV_FIELD("maxSize", U32, struct pool_wish, max, .max = POOL_SIZE_MAX),
	JV_FIELD("securityLevel", CHOICE, struct pool_wish, level, .choices = levels),
	PRELOAD(struct pool_wish),
	JV_FIELD("autoScaling", OBJECT, struct pool_wish, scaling, .sub = pool_scaling_fields,
		 .sub_count = POOL_SCALING_FIELDS),
};

#define SCALING_DEFAULTS                                              \
	{                                                             \
		true, POOL_UTILIZATION_DEFAULT, POOL_QUIET_DEFAULT_MS \
	}
const struct pool_wish pool_defaults = { .min = 1,
					 .max = UINT32_MAX, /* as many as min, or the usual */
					 .scaling = SCALING_DEFAULTS };

const struct jv_field pool_patch_fields[POOL_PATCH_FIELDS] = {
	JV_FIELD("minSize", U32, struct pool_patch, min, .max = POOL_SIZE_MAX),
	JV_FIELD("maxSize", U32, struct pool_patch, max, .max = POOL_SIZE_MAX),
	PRELOAD(struct pool_patch),
	JV_FIELD("autoScaling", VALUE, struct pool_patch, scaling),
};
const struct pool_patch pool_patch_defaults = { .min = UINT32_MAX,
						.max = UINT32_MAX,
						.preload.len = SIZE_MAX };
