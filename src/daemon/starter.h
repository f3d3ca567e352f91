/* Starts the tool servers that the operator has configured as processes of this machine, for a
 * daemon that may start nothing: a process of its own, forked from the daemon before that is
 * confined, and of the same account. It has read the same configuration, and all that it can be
 * asked for is a server of that by its name: so many at a time, and so often. */
#pragma once

#include <stddef.h>

#include "mcpc/stdio_spawn.h"

struct account;
struct buf;
struct err;

#define STARTER_LIVES_MAX 4u /* of one server at a time: one, and former ones that are ending */
#define STARTER_RATE 30u     /* starts of one server at once, and then in each minute */

struct starter {
	int sock; /* owned; -1: there is none */
};

/* Forks, unless there are no servers (json is empty). as: whom it becomes first, when we are root;
 * NULL: nobody else. Before any thread is started. */
int starter_start(const struct buf *json, const struct account *as, struct starter *ret,
		  struct err *err);
struct stdio_spawner starter_spawner(struct starter *s);
void starter_done(struct starter *s); /* it ends; so does what it has started, when its user does */

/* What ${NAME} stands for in the configuration: of our environment. */
const char *starter_variable(void *user, const char *name);
