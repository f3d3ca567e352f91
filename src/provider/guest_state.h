/* The client's inside, shared by guest_client.c (the connection and what is asked) and
 * guest_frames.c (what the guest says). */
#pragma once

#include "base/list.h"
#include "provider/guest_client.h"

enum op_kind { OP_EXEC, OP_FILE, OP_WATCH, OP_PING, OP_CONNECT, OP_LISTEN };

/* One live execution or file operation. */
struct op {
	struct list node;
	uint32_t id;
	enum op_kind kind;
	struct guest_callbacks cb;
	void *user;
	size_t owed;      /* bytes received and not yet credited */
	size_t safe;      /* of these, what may be credited: all of them unless is_manual */
	size_t in_flight; /* bytes sent that the guest has not taken */
	bool held;
	bool is_manual;  /* guest_credit() says what is safe */
	bool has_socket; /* of OP_CONNECT: the one that there may be has come */
};

struct queued {
	struct list node;
	size_t len;
	uint8_t frame[];
};

struct guest_client {
	int fd; /* owned */
	uint32_t last_id;
	struct list ops;   /* owned struct op, newest first */
	struct list queue; /* owned struct queued, oldest first */
	size_t ops_len, queue_bytes;
	struct guest_hooks hooks;
	void *hooks_user;   /* borrowed */
	uint32_t live_left; /* G_LIVE frames that are still to come */
	bool is_ready;      /* G_READY has come */
	int broken;         /* negative errno once the box is gone or lied */
	bool is_foreign;    /* it speaks another version */
};

#define CLIENT_OPS_MAX 4096u /* live ids of one box */
#define CLIENT_SMALL_FRAME 64

struct op *client_find_op(const struct guest_client *g, uint32_t id);
/* A new one with this id. -EAGAIN above CLIENT_OPS_MAX, -ENOMEM. */
int client_add_op(struct guest_client *g, uint32_t id, enum op_kind kind, struct op **ret);
void client_end_op(struct guest_client *g, struct op *op);
/* Sends now, or queues behind what is waiting; n as an encoder gave it. -EAGAIN when the queue is
 * full. */
int client_send(struct guest_client *g, const void *frame, long n);
int client_send_empty(struct guest_client *g, uint16_t type, uint32_t id);
/* Credits what is safe, when it is worth a frame. As client_send(); what failed is tried again with
 * the next. */
int client_credit(struct guest_client *g, struct op *op);
/* Handles one frame of the guest; a negative result ends the connection. *fd came with it, -1: none
 * did; it is set to -1 when it is taken. */
int client_take_frame(struct guest_client *g, const void *frame, size_t n, int *fd);
