/* A daemon of a command's own: `holt serve` with the standard settings, in a directory that is
 * removed with it, however the command ends. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "cli/bench_fetch.h"

struct err;

struct own_daemon {
	pid_t minder; /* the process that ends and removes it; 0: there is none */
	int lifeline; /* owned; the minder goes to work when it closes, however that comes */
	pid_t pid;    /* the process that serves: as root it is not the one we started */
	uint16_t port;
	char dir[96]; /* others may look into it */
	char key[64];
	struct fetch conn;       /* kept, with the key */
	const char *const *kept; /* borrowed */
};

/* what: in the name of its directory. kept: variables of our settings that it gets, ended by NULL;
 * or NULL. */
int own_daemon_start(struct own_daemon *d, const char *what, const char *const *kept,
		     struct err *err);
/* Deletes what lives, ends the daemon, removes the directory. A daemon of zeroes is fine. */
void own_daemon_stop(struct own_daemon *d);
