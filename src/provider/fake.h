/* A provider without machinery, for tests: boxes are entries of a table, any call can be made to
 * fail, and the test holds the box's end of each control socket. A call is queued; it takes effect
 * and is answered when the test says so. */
#pragma once

#include "base/list.h"
#include "provider/provider.h"

#define FAKE_BOXES_MAX 64
#define FAKE_QUEUE_MAX 256
#define FAKE_LAYERS_MAX 64
#define FAKE_VOLUMES_MAX 16

struct fake_box {
	char id[ID_LEN + 1]; /* "" when the slot is free */
	char tag[TAG_MAX + 1];
	uint32_t template_id;
	int guest; /* owned: where the box's holt-init would listen */
	bool frozen;
	struct limits limits;
	uint32_t n_layers, n_volumes;
	char layers[LAYERS_MAX][ID_LEN + 1]; /* of the claim, bottom first */
	char volumes[VOLUMES_MAX][ID_LEN + 1];
};

struct fake_layer {
	char id[ID_LEN + 1]; /* "" when the slot is free */
	char box_id[ID_LEN + 1];
	bool whole;
};

struct fake_volume {
	char id[ID_LEN + 1]; /* "" when the slot is free */
	uint64_t bytes;
};

struct fake_template {
	bool defined;
	struct pool_spec pool;
	uint32_t n_layers;
	char layers[LAYERS_MAX][ID_LEN + 1];
};

struct fake {
	unsigned fail_in;  /* this many calls from now one fails: 1 is the next, 0 none */
	int fail_with;     /* positive errno of that failure; 0: EIO */
	bool fail_at_once; /* it is refused by the call itself and gets no callback */
	bool gone;         /* calls are refused with -EPIPE; the test may set it back */
	unsigned calls;
	size_t live, queued;
	struct box_usage usage; /* what every box reports */
	struct pool_state pool; /* what every pool reports */
	provider_death_cb on_death;
	void *on_death_user;
	struct list queue; /* owned: calls and deaths not yet told, oldest first */
	struct fake_box boxes[FAKE_BOXES_MAX];
	uint64_t layer_bytes; /* what every layer reports */
	struct fake_layer layers[FAKE_LAYERS_MAX];
	struct fake_volume volumes[FAKE_VOLUMES_MAX];
	struct fake_template templates[TEMPLATE_MAX + 1]; /* by id; claims do not look at them */
};

/* A zeroed struct fake is valid until it is queued to: this makes it ready. */
struct provider provider_fake(struct fake *f);
struct fake_box *fake_find(struct fake *f, const char *box_id); /* NULL when it is not there */
struct fake_layer *fake_find_layer(struct fake *f, const char *layer_id);
struct fake_volume *fake_find_volume(struct fake *f, const char *volume_id);
/* Answers the oldest call, or tells the oldest death; false when nothing is queued. */
bool fake_step(struct fake *f);
/* Answers until nothing is queued, what callbacks queue included. Returns how many. */
size_t fake_run(struct fake *f);
/* The box ends by itself: its socket hangs up now, its death is queued. */
void fake_kill(struct fake *f, const char *box_id, int status);
/* The provider is gone: every queued call fails with -EPIPE, from here; untold deaths are lost.
 * The boxes stay, as those of a launcher do. */
void fake_go_away(struct fake *f);
/* Frees all; queued calls are not answered. */
void fake_done(struct fake *f);
