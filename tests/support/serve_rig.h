/* A server over real sockets whose handler does what the path says, and a client: the common scene
 * of the server's tests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "net_rig.h"

#define H "Host: a\r\n"

struct serve_rig {
	struct net_rig g;
	struct net_client c;
	struct http_request *kept; /* of /keep: answered by the test */
	struct buf body;           /* of /stream */
	unsigned handled, pieces, drains;
	bool gone, ended, body_gone, pause, drained;
	/* What done() was told last. */
	int status;
	uint64_t bytes;
	unsigned reports;
	char path[64];
};

/* For cmocka: *state is a struct serve_rig. */
int serve_setup(void **state);
int serve_teardown(void **state);
#define T(name) cmocka_unit_test_setup_teardown(name, serve_setup, serve_teardown)

const char *serve_body_of(const char *answer); /* what is behind its head */

/* What a request tells the rig of; `user` is the rig. */
void serve_gone(void *user, struct http_request *r);
void serve_drain(void *user, struct http_request *r);
extern const struct http_body_ops serve_body_ops;
