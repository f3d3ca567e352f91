/* Ports of a sandbox: which of them others may reach, and connections to them. A port is closed
 * until it is exposed. The connection is made inside the box by its own holt-init, and only its
 * descriptor comes out: the box's network has no other way in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

#define PORT_EXPOSED_MAX 64u /* of one sandbox */
#define PORT_USES_MAX 256u   /* connections to one sandbox at once */
#define PORT_HASH_LEN 32

struct port_info {
	uint16_t port;
	bool is_public; /* without any credential */
	bool wakes;     /* a paused sandbox is resumed for it */
	uint8_t token_hash[PORT_HASH_LEN];
	int64_t created_ms;
};

/* err NULL: done, and in the store. */
typedef void (*port_cb)(void *user, const struct port_info *port, const struct err *err);

/* A port that is exposed already is as this says from now on. created_ms is filled in. EDQUOT,
 * EBUSY (the sandbox is ending), and the store's. */
void port_expose(struct sandbox *sb, const struct port_info *port, port_cb cb, void *user);
/* Connections to it end. ENOENT. */
void port_close(struct sandbox *sb, uint16_t port, port_cb cb, void *user);
const struct port_info *port_find(const struct sandbox *sb, uint16_t port); /* NULL */
/* In the order of their numbers; how many there are, which may be more than cap. */
size_t port_list(const struct sandbox *sb, const struct port_info **ret, size_t cap);

struct port_use; /* opaque: one connection, from its beginning to its end */
struct port_use_ops {
	void (*connected)(void *user, int fd); /* fd is the callee's: see guest_client.h */
	/* Instead of connected(): ECONNREFUSED (nothing listens), ETIMEDOUT, EPIPE (the box is
	 * gone). The use is gone, too. */
	void (*failed)(void *user, const struct err *err);
	/* After connected(): the box is gone, or the port was closed. The use is gone, too. */
	void (*ended)(void *user);
	void (*listening)(void *user, uint16_t port); /* of port_listen() only */
};
/* Listens inside on any port of 127.0.0.1: listening() with it, then connected() for each
 * connection that a program makes to it, until port_use_end(). */
int port_listen(struct sandbox *sb, const struct port_use_ops *ops, void *user,
		struct port_use **ret, struct err *err);
/* The same on a Unix socket of the box's user at this path, of which a box has one. */
int port_listen_at(struct sandbox *sb, const char *path, const struct port_use_ops *ops, void *user,
		   struct port_use **ret, struct err *err);
/* To 127.0.0.1, or ::1 if nothing listens there. Whether the port is exposed is not asked. -EBUSY:
 * the sandbox is paused or ending; -EAGAIN. */
int port_dial(struct sandbox *sb, uint16_t port, const struct port_use_ops *ops, void *user,
	      struct port_use **ret, struct err *err);
/* The same of a sandbox that is not there for others yet: see prepare.h. */
int port_dial_early(struct sandbox *sb, uint16_t port, const struct port_use_ops *ops, void *user,
		    struct port_use **ret, struct err *err);

/* While it is busy the sandbox is not idle; a new one is. */
void port_use_set_busy(struct port_use *u, bool on);
void port_use_touch(struct port_use *u); /* something goes over it: the sandbox was used just now */
/* So many bytes went over it until now, both ways: they are its sandbox's usage. */
void port_use_count(struct port_use *u, uint64_t total);
bool port_use_is_of(const struct port_use *u, const struct sandbox *sb, uint16_t port);
bool port_use_is_same(const struct port_use *a, const struct port_use *b); /* the same port */
/* Whether a connection that is there can be used now: EBUSY, EPIPE. */
int port_check(const struct sandbox *sb, struct err *err);
void port_use_end(struct port_use *u); /* no callback comes any more; takes NULL */
