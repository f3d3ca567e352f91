/* A client whose guest is the test: it holds the other end of the socket and speaks frames. The
 * client picks ids from 1 on, so answers can be laid down before the question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/guest_client.h"

struct client_rig {
	struct guest_client *client;
	int guest; /* the box's end */
};

/* What the callbacks saw. */
struct seen {
	int started, warm, exited, failed, done, entries, events, code;
	uint64_t taken, count;
	struct guest_exit exit;
	struct buf out, err, data;
	char text[100];
};

/* cmocka's: *state is the rig, one at a time. */
int rig_setup(void **state);
int rig_teardown(void **state);

extern const struct guest_callbacks rig_callbacks; /* they fill a struct seen */
void seen_done(struct seen *s);

/* What the guest says. */
void rig_say(struct client_rig *rig, const void *frame, long n);
void rig_say_started(struct client_rig *rig, uint32_t id, bool warm);
void rig_say_output(struct client_rig *rig, uint32_t id, int stream, uint64_t offset,
		    const void *data, size_t n);
void rig_say_exit(struct client_rig *rig, uint32_t id, uint32_t code, uint32_t flags);
void rig_say_u64(struct client_rig *rig, uint16_t type, uint32_t id, uint64_t v);
void rig_say_error(struct client_rig *rig, uint32_t id, int code, const char *text);

/* The next frame that the client sent; false when there is none. */
bool rig_hear(struct client_rig *rig, struct wire_head *head, struct rd *body);
/* Everything so far, also what was queued. */
void rig_hear_all(struct client_rig *rig);
void rig_expect(struct client_rig *rig, uint16_t type, uint32_t id);
void rig_expect_silence(struct client_rig *rig);
/* An execution with open standard input that the guest has heard of; its id. */
uint32_t rig_start(struct client_rig *rig, struct seen *s);
