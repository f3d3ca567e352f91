/* The api behind a real HTTP server, in front of a service that the test plays (service_fake.h),
 * with a store in memory. One thread: whatever waits here turns the loop meanwhile. */
#pragma once

#include "api/api.h"
#include "auth/api_key.h"
#include "auth/users.h"
#include "base/buf.h"
#include "config/config.h"
#include "service_fake.h"
#include "store/memory.h"

struct api_rig {
	struct loop *loop;
	struct http_server *server;
	struct api *api;
	struct sandboxes service;
	struct store store;
	struct store_faults faults;
	struct auth_keys *keys;
	struct users *users;
	struct metrics *metrics;
	struct config config; /* what the api looks at */
	struct loop_io *store_io;
	struct loop_timer *timer;
	bool is_late; /* the timer has fired */
	char path[64];
	/* Keys; admin, user and viewer are of the owners "root", "ann" and "ann"; other's is "bob".
	 */
	char admin[API_KEY_SIZE], user[API_KEY_SIZE], viewer[API_KEY_SIZE], other[API_KEY_SIZE];
};

void rig_open(struct api_rig *rig);
void rig_close(struct api_rig *rig);
int rig_setup(void **state); /* for cmocka */
int rig_teardown(void **state);
/* Adds a key; text gets it. */
void rig_add_key(struct api_rig *rig, enum role role, const char *owner, char text[API_KEY_SIZE]);
void rig_settle(struct api_rig *rig); /* until nothing more happens by itself */

struct rig_conn {
	struct api_rig *rig;
	int fd;
	struct loop_io *io;
	struct buf in; /* everything that came */
	bool is_closed;
	bool is_slow; /* the test's client does not read */
};
void rig_connect(struct api_rig *rig, struct rig_conn *c);
void rig_disconnect(struct rig_conn *c);
void rig_send(struct rig_conn *c, const void *data, size_t n);
/* The head of a request; headers are whole lines ("A: b\r\n") or "". length -1: no body. */
void rig_request(struct rig_conn *c, const char *key, const char *what, const char *headers,
		 long length);
void rig_slow(struct rig_conn *c, bool on);
/* Turns the loop until the text is in what came (again); fails the test after 10 s. */
void rig_until(struct rig_conn *c, const char *text);
void rig_until_closed(struct rig_conn *c);
bool rig_has(const struct rig_conn *c, const char *text);

struct rig_answer {
	int status;
	char *head; /* owned */
	struct buf body;
};
/* One request on a connection of its own. what: "GET /path"; body may be NULL. */
void rig_ask(struct api_rig *rig, const char *key, const char *what, const char *headers,
	     const char *body, struct rig_answer *ret);
void rig_answer_done(struct rig_answer *a);
/* The value of a header of the answer, or NULL; good until the next call. */
const char *rig_header(const struct rig_answer *a, const char *name);
/* One request, and what must be: the status and a piece of the body (may be NULL). */
void rig_expect(struct api_rig *rig, const char *key, const char *what, const char *body,
		int status, const char *piece);

/* WebSocket: a client just good enough. */
void rig_ws_open(struct api_rig *rig, struct rig_conn *c, const char *key, const char *path);
void rig_ws_send(struct rig_conn *c, bool text, const void *data, size_t n);
