/* What holt-init and the Pythons that wait in its box say to each other, over SOCK_SEQPACKET
 * sockets that were made before any foreign code ran.
 *
 * The in-box template parks one Python by itself and another for each WARM_FORK; of each it tells
 * by a struct warm_parked with the new one's socket and the page on which it says how it ends. A
 * parked one takes one message: a struct warm_run, a G_EXEC frame behind it, and its three standard
 * streams. It answers an int, 0 or a negative errno (it could not begin, and ends), only when the
 * frame has a cwd. */
#pragma once

#include <stdint.h>

#include "spec/guest.h"

#define WARM_FORK 'f'
#define WARM_STREAMS 3
#define WARM_GROUPS_MAX 64
#define WARM_PRELOAD_MS 30000 /* for an interpreter to import its modules */
#define WARM_HOME_MAX 256

/* In place of its first word, by an interpreter that never will be ready: a positive errno, ENOPKG
 * when a module cannot be imported. */
struct warm_failed {
	int32_t code;
	char text[236]; /* ends with a NUL */
};

struct warm_parked {
	int32_t pid; /* in the box */
};
enum warm_parked_fd { WARM_PARKED_SOCK, WARM_PARKED_END, WARM_PARKED_FDS };

/* How a Python ends, said before it closes its streams and exits: taking its memory down takes the
 * kernel longer than a short program runs, and nobody has to wait for that. A file of one page for
 * each, sealed in its size and shared with holt-init, which kills whoever has said it: it can be no
 * lie. */
#define WARM_END_SIZE 4096
struct warm_end {
	uint32_t is_said;
	int32_t pid; /* of the one who says it */
	uint32_t code;
	uint64_t user_us, sys_us, max_rss_kb; /* its own and its children's */
};

struct warm_run {
	uint64_t mark; /* GUEST_MARK_SUM; 0: none */
	uint32_t uid, gid;
	uint32_t ngroups;
	uint32_t groups[WARM_GROUPS_MAX];
	char home[WARM_HOME_MAX]; /* the working directory when the frame has none */
};

/* Versions 3.MIN to 3.MAX are known to behave after a fork; any other starts cold. */
#define WARM_PYTHON_MIN 8
#define WARM_PYTHON_MAX 13

/* What the template interpreter is started with. A request for another start (other PYTHON*
 * settings, locale, home or search path) cannot be served by a copy of it. */
#define WARM_PATH GUEST_PATH
#define WARM_HOME "/home/user"
#define WARM_LANG "C.UTF-8"
