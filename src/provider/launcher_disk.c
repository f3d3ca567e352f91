/* Requests about layers, volumes and templates that go. */
#include "base/err.h"
#include "provider/launcher_impl.h"

#define FRAME_MAX 256

int launcher_template_drop(struct launcher *l, uint32_t template_id, provider_cb cb, void *user,
			   struct err *err)
{
	return launcher_ask_template(l, L_TEMPLATE_DROP, template_id, cb, user, err);
}

int launcher_snapshot(struct launcher *l, const struct snapshot_spec *s, provider_cb cb, void *user,
		      struct err *err)
{
	struct ask a = { .type = L_SNAPSHOT, .fd = -1, .cb = cb, .user = user };
	uint8_t frame[FRAME_MAX];
	int r = spec_check_snapshot(s, err);

	if (r < 0)
		return r;
	a.id = launcher_next_id(l);
	a.frame = frame;
	a.size = launch_put_snapshot(frame, sizeof(frame), a.id, s);
	return launcher_ask(l, &a, err);
}

int launcher_layer_drop(struct launcher *l, const char *layer_id, provider_cb cb, void *user,
			struct err *err)
{
	struct ask a = { .type = L_LAYER_DROP, .cb = cb, .user = user };

	return launcher_ask_id(l, &a, layer_id, err);
}

int launcher_layers(struct launcher *l, provider_cb cb, void *user, struct err *err)
{
	struct ask a = { .type = L_LAYERS, .cb = cb, .user = user };

	return launcher_ask_plain(l, &a, err);
}

int launcher_volume_make(struct launcher *l, const struct volume_spec *v, provider_cb cb,
			 void *user, struct err *err)
{
	struct ask a = { .type = L_VOLUME_MAKE, .fd = -1, .cb = cb, .user = user };
	uint8_t frame[FRAME_MAX];
	int r = spec_check_volume(v, err);

	if (r < 0)
		return r;
	a.id = launcher_next_id(l);
	a.frame = frame;
	a.size = launch_put_volume(frame, sizeof(frame), a.id, v);
	return launcher_ask(l, &a, err);
}

int launcher_volume_drop(struct launcher *l, const char *volume_id, provider_cb cb, void *user,
			 struct err *err)
{
	struct ask a = { .type = L_VOLUME_DROP, .cb = cb, .user = user };

	return launcher_ask_id(l, &a, volume_id, err);
}

int launcher_volumes(struct launcher *l, provider_cb cb, void *user, struct err *err)
{
	struct ask a = { .type = L_VOLUMES, .cb = cb, .user = user };

	return launcher_ask_plain(l, &a, err);
}
