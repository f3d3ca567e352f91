/* The client at the control socket: the one that the launcher left us, and after G_PERSIST whoever
 * connects to the listening socket. There is one at a time, and the newest is right: a client that
 * comes back does not have to wait until the death of its predecessor is noticed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct guest;

void client_init(struct guest *g, int sock); /* takes sock */
void client_done(struct guest *g);
/* Says G_READY, and to one that is not the first what lives. */
void client_begin(struct guest *g, bool is_resumed);
/* From now on the box outlives its clients. Takes listener when the result is 0; -EPROTO when it is
 * no listening SOCK_SEQPACKET socket. */
int client_persist(struct guest *g, int listener);
/* After each turn of the loop: a connection that broke is lost, and with it, without G_PERSIST, the
 * box. */
void client_check(struct guest *g);
/* A full socket is felt at once, not only by those who met it. */
void client_update(struct guest *g, bool was_blocked);

/* request.c: one frame of the client. *fd came with it and is set to -1 when it is taken. A
 * negative result: the client broke the rules. */
int request_handle(struct guest *g, const void *frame, size_t n, int *fd);
