/* One connection of ours as one to a port inside a sandbox. */
#pragma once

#include <stdint.h>

struct client;
struct err;

/* Moves the bytes both ways until both sides have ended. fd is borrowed. 0, or -errno: the
 * connection inside could not be made, or broke. */
int forward_carry(struct client *c, const char *sandbox, uint16_t port, int fd, struct err *err);
