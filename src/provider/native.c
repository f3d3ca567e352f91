#include "provider/provider.h"

static int native_claim(void *self, const struct launch_spec *spec, struct launcher_box *ret,
			struct err *err)
{
	return launcher_claim_sync(self, spec, ret, err);
}

static int native_destroy(void *self, const char *box_id, struct box_usage *ret_usage,
			  struct err *err)
{
	return launcher_destroy_sync(self, box_id, ret_usage, err);
}

static int native_freeze(void *self, const char *box_id, bool on, struct err *err)
{
	return launcher_freeze_sync(self, box_id, on, err);
}

static int native_usage(void *self, const char *box_id, struct box_usage *ret, struct err *err)
{
	return launcher_usage_sync(self, box_id, ret, err);
}

static int native_limits(void *self, const char *box_id, const struct limits *limits,
			 struct err *err)
{
	return launcher_limits_sync(self, box_id, limits, err);
}

static const struct provider_ops native_ops = {
	.name = "native",
	.claim = native_claim,
	.destroy = native_destroy,
	.freeze = native_freeze,
	.usage = native_usage,
	.limits = native_limits,
};

struct provider provider_native(struct launcher *l)
{
	return (struct provider){ &native_ops, l };
}
