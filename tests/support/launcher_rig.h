/* The test plays holt-launch: one end of a socket is the launcher's client, the other the test's.
 * The greeting is request 1, and ids count from there. */
#pragma once

#include <stdint.h>

#include "provider/launcher.h"

#define BOX_ID "abcdefghij0123456789"

struct rig {
	struct launcher *launcher;
	int far; /* holt-launch's end */
};

/* For cmocka: *state is a greeted struct rig. */
int rig_setup(void **state);
int rig_teardown(void **state);
/* The client's end; the other is in the rig. */
int rig_open_pair(struct rig *rig);
int rig_open_fds(void);

/* What holt-launch says: */
void rig_say(int far, const void *frame, long n, const int *fds, size_t nfds);
void rig_say_info(int far);
void rig_say_type(int far, uint16_t type, uint32_t id);
void rig_say_failed(int far, uint32_t id, int code, const char *text);
void rig_say_died(int far, const char *id, int status);
void rig_say_box(int far, uint32_t id, const int *fds, size_t nfds);
void rig_say_box_is(int far, uint32_t id, const char *box_id, const char *tag);
void rig_say_usage(int far, uint32_t id, uint64_t cpu_us);

/* What a callback was given, and how often. */
struct heard {
	unsigned calls;
	int code;
	char text[64];
	struct box_usage usage;
	struct pool_state pool;
	struct launcher_box box; /* only its socket is taken */
	size_t n_boxes;
	char last_id[ID_LEN + 1], last_tag[TAG_MAX + 1];
};

/* A provider_cb: user is a struct heard. */
void rig_hear(void *user, const struct provider_reply *r);
