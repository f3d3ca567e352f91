/* A server and raw clients of it on one loop, in one thread: what is sent and what comes back, byte
 * by byte. Every wait ends after ten seconds at the latest, and then the test fails. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "net/http.h"

struct net_rig {
	struct loop *loop;
	struct http_server *server;
	int port;
	struct loop_timer *timer;
	bool late;
	struct loop_task turn;
	unsigned turns;
};

struct net_client {
	struct net_rig *g;
	int fd;
	struct loop_io *io;
	struct buf got;
	bool closed;      /* the server has closed its side, or all of it */
	bool reset;       /* and by a reset */
	bool not_read;    /* what the server sends stays in the socket */
	const char *want; /* stops the loop when it has come */
	size_t want_n;    /* the same by length */
};

/* On 127.0.0.1, any port. */
void net_rig_open(struct net_rig *g, const struct http_server_options *o);
void net_rig_close(struct net_rig *g);
void net_rig_run_ms(struct net_rig *g, unsigned ms);
/* Runs the loop until the flag is set; how a callback of the test says that it came. */
void net_rig_until(struct net_rig *g, const bool *flag);

void net_client_open(struct net_client *c, struct net_rig *g);
void net_client_adopt(struct net_client *c, struct net_rig *g, int fd); /* takes fd */
void net_client_close(struct net_client *c);
void net_client_send(struct net_client *c, const void *data, size_t n);
/* What the socket takes at once. */
size_t net_client_send_some(struct net_client *c, const void *data, size_t n);
void net_client_puts(struct net_client *c, const char *text);
void net_client_until(struct net_client *c, const char *text); /* it has come; fails if it cannot */
void net_client_until_len(struct net_client *c, size_t n);
void net_client_until_closed(struct net_client *c);
void net_client_read(struct net_client *c, bool on);
/* Sends, waits for a whole answer with Content-Length, and gives it; good until the next call. */
const char *net_client_ask(struct net_client *c, const char *text);
void net_client_forget(struct net_client *c); /* what has come so far */
bool net_client_has(const struct net_client *c, const char *text);
unsigned net_client_count(const struct net_client *c, const char *text);
