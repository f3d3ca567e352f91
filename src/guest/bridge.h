/* A Unix socket in the box whose connections end outside (G_LISTEN with ADDRESS_UNIX), one in a
 * box. No connection to it ever comes to holt-init or to the client: over such a one programs could
 * send descriptors, and to drop those can take as long as their sender likes. Each has a process of
 * its own instead, which accepts it and carries its bytes to and from one end of a TCP connection
 * over the box's loopback; the other end goes out as G_SOCKET. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "guest/deadline.h"
#include "guest/loop.h"

struct guest;
struct guest_connect;

#define BRIDGE_MAX 32 /* connections at a time; who comes later waits in the socket's line */

struct bridge {
	uint32_t id;              /* of the request; 0: nobody listens */
	struct source listener;   /* stays when the client goes; the next one finds it again */
	struct source coming;     /* of a new process: tells the end that goes out */
	int out;                  /* owned: waits for room in the control socket; -1: none */
	struct deadline again;    /* when it is listened again */
	pid_t pids[BRIDGE_MAX];   /* who carries; 0: none */
	struct sockaddr_un where; /* of the listener */
};

void bridge_init(struct guest *g);
/* Answers, by G_ERROR at the least. */
void bridge_listen(struct guest *g, uint32_t id, const struct guest_connect *c);
bool bridge_has(const struct guest *g, uint32_t id);
void bridge_cancel(struct guest *g);
void bridge_resume(struct guest *g);
void bridge_lose_client(struct guest *g);
bool bridge_reaped(struct guest *g, pid_t pid);
void bridge_done(struct guest *g);

/* carry.c: one connection, in a process of its own. pair: where holt-init hears of it. */
struct user;
_Noreturn void carry_one(int listener, int pair, const struct user *u);
