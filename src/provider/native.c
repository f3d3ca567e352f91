#include "provider/launcher.h"
#include "provider/provider.h"

static int native_claim(void *self, const struct launch_spec *spec, provider_cb cb, void *user,
			struct err *err)
{
	return launcher_claim(self, spec, cb, user, err);
}

static int native_attach(void *self, const char *box_id, provider_cb cb, void *user,
			 struct err *err)
{
	return launcher_attach(self, box_id, cb, user, err);
}

static int native_list(void *self, provider_cb cb, void *user, struct err *err)
{
	return launcher_list(self, cb, user, err);
}

static int native_destroy(void *self, const char *box_id, provider_cb cb, void *user,
			  struct err *err)
{
	return launcher_destroy(self, box_id, cb, user, err);
}

static int native_freeze(void *self, const char *box_id, bool on, provider_cb cb, void *user,
			 struct err *err)
{
	return launcher_freeze(self, box_id, on, cb, user, err);
}

static int native_usage(void *self, const char *box_id, provider_cb cb, void *user, struct err *err)
{
	return launcher_usage(self, box_id, cb, user, err);
}

static int native_limits(void *self, const char *box_id, const struct limits *limits,
			 provider_cb cb, void *user, struct err *err)
{
	return launcher_limits(self, box_id, limits, cb, user, err);
}

static int native_pool_state(void *self, uint32_t template_id, provider_cb cb, void *user,
			     struct err *err)
{
	return launcher_pool_state(self, template_id, cb, user, err);
}

static void native_on_death(void *self, provider_death_cb cb, void *user)
{
	launcher_on_death(self, cb, user);
}

static const struct provider_ops native_ops = {
	.name = "native",
	.claim = native_claim,
	.attach = native_attach,
	.list = native_list,
	.destroy = native_destroy,
	.freeze = native_freeze,
	.usage = native_usage,
	.limits = native_limits,
	.pool_state = native_pool_state,
	.on_death = native_on_death,
};

struct provider provider_native(struct launcher *l)
{
	return (struct provider){ &native_ops, l };
}
