/* Inside of the fake provider; for fake*.c only. */
#pragma once

#include "provider/fake.h"

struct err;
struct fake_call;
/* Takes effect and fills in the reply; its result is the reply's code. */
typedef int (*call_effect)(struct fake *f, struct fake_call *c, struct provider_reply *r,
			   struct err *err);

/* A call that waits for fake_step(), or a death that nobody was told of yet (effect is NULL). */
struct fake_call {
	struct list node;
	const char *name;
	call_effect effect;
	provider_cb cb;
	void *user;
	int fail_with; /* positive errno; 0: it is not the one that fails */
	char box_id[ID_LEN + 1], tag[TAG_MAX + 1];
	uint32_t template_id, flags;
	struct limits limits;
	struct pool_spec pool;
	uint64_t bytes;
	bool on;
	int status;
	char disk_id[ID_LEN + 1]; /* of a layer or a volume */
	uint32_t n_layers, n_volumes;
	char layer_ids[LAYERS_MAX][ID_LEN + 1], volume_ids[VOLUMES_MAX][ID_LEN + 1];
	struct launcher_box box;
	union {
		struct launch_box_info boxes[FAKE_BOXES_MAX];
		struct layer_info layers[FAKE_LAYERS_MAX];
		struct volume_info volumes[FAKE_VOLUMES_MAX];
	};
};

/* Every call comes through here: refused at once, or queued to be filled in. */
int fake_enqueue(struct fake *f, const struct fake_call *call, struct err *err);
/* The box of the call; NULL and the error when it is not there. */
struct fake_box *fake_box_of(struct fake *f, const struct fake_call *c, struct err *err);

/* fake_disk.c: a claim's layers and volumes as they are asked for, checked and used. */
void fake_note_disk(struct fake_call *c, const struct launch_spec *spec);
int fake_check_disk(struct fake *f, const struct fake_call *c, struct err *err);
void fake_use_disk(const struct fake_call *c, struct fake_box *box);

int fake_define(void *self, const struct template_spec *t, int dir_fd, provider_cb cb, void *user,
		struct err *err);
int fake_undefine(void *self, uint32_t template_id, provider_cb cb, void *user, struct err *err);
int fake_pool(void *self, const struct pool_spec *p, provider_cb cb, void *user, struct err *err);
int fake_snapshot(void *self, const struct snapshot_spec *s, provider_cb cb, void *user,
		  struct err *err);
int fake_drop_layer(void *self, const char *layer_id, provider_cb cb, void *user, struct err *err);
int fake_layers(void *self, provider_cb cb, void *user, struct err *err);
int fake_make_volume(void *self, const struct volume_spec *v, provider_cb cb, void *user,
		     struct err *err);
int fake_drop_volume(void *self, const char *volume_id, provider_cb cb, void *user,
		     struct err *err);
int fake_volumes(void *self, provider_cb cb, void *user, struct err *err);
