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

static int native_define(void *self, const struct template_spec *t, int dir_fd, provider_cb cb,
			 void *user, struct err *err)
{
	return launcher_template(self, t, dir_fd, cb, user, err);
}

static int native_undefine(void *self, uint32_t template_id, provider_cb cb, void *user,
			   struct err *err)
{
	return launcher_template_drop(self, template_id, cb, user, err);
}

static int native_pool(void *self, const struct pool_spec *p, provider_cb cb, void *user,
		       struct err *err)
{
	return launcher_pool(self, p, cb, user, err);
}

static int native_snapshot(void *self, const struct snapshot_spec *s, provider_cb cb, void *user,
			   struct err *err)
{
	return launcher_snapshot(self, s, cb, user, err);
}

static int native_drop_layer(void *self, const char *layer_id, provider_cb cb, void *user,
			     struct err *err)
{
	return launcher_layer_drop(self, layer_id, cb, user, err);
}

static int native_layers(void *self, provider_cb cb, void *user, struct err *err)
{
	return launcher_layers(self, cb, user, err);
}

static int native_make_volume(void *self, const struct volume_spec *v, provider_cb cb, void *user,
			      struct err *err)
{
	return launcher_volume_make(self, v, cb, user, err);
}

static int native_drop_volume(void *self, const char *volume_id, provider_cb cb, void *user,
			      struct err *err)
{
	return launcher_volume_drop(self, volume_id, cb, user, err);
}

static int native_volumes(void *self, provider_cb cb, void *user, struct err *err)
{
	return launcher_volumes(self, cb, user, err);
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
	.define = native_define,
	.undefine = native_undefine,
	.pool = native_pool,
	.snapshot = native_snapshot,
	.drop_layer = native_drop_layer,
	.layers = native_layers,
	.make_volume = native_make_volume,
	.drop_volume = native_drop_volume,
	.volumes = native_volumes,
	.on_death = native_on_death,
};

struct provider provider_native(struct launcher *l)
{
	return (struct provider){ &native_ops, l, launcher_info(l)->cgroup != CGROUP_NONE };
}
