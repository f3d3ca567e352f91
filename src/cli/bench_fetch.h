/* One kept connection of the benchmark to a server on this machine. Blocking, and with as little
 * work of its own as can be: what a client adds to a time is not the server's. Answers have a
 * Content-Length or come in chunks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct err;

#define FETCH_LINE_MAX 1024u /* bytes of a line of a head */
#define FETCH_KEPT_MAX 160u  /* of a header's value that is kept */

/* An answer as bytes: no sockets here. Zero-initialised: none has begun. */
enum fetch_state {
	FETCH_HEAD,
	FETCH_BODY, /* of known length */
	FETCH_CHUNK_SIZE,
	FETCH_CHUNK,
	FETCH_CHUNK_END,
	FETCH_TRAILER,
	FETCH_DONE,
};

struct fetch_answer {
	enum fetch_state state;
	int status;    /* 0 until its line was read */
	uint64_t left; /* bytes of the body or chunk to come */
	bool is_chunked;
	size_t line_len;
	char line[FETCH_LINE_MAX];
	const char *keep;          /* borrowed: the header whose value is kept; NULL: none */
	char kept[FETCH_KEPT_MAX]; /* "" until there was one */
};

/* The body's bytes as they come; anything but 0 ends the reading and is passed on. */
typedef int (*fetch_data_fn)(void *user, const void *data, size_t n);

/* Bytes used (all, unless the answer ended before), -EPROTO, -E2BIG, or what fn returned. */
ssize_t fetch_feed(struct fetch_answer *a, const char *data, size_t n, fetch_data_fn fn,
		   void *user);

struct fetch {
	int fd;           /* owned; -1 */
	const char *key;  /* borrowed; NULL: none */
	const char *more; /* borrowed: lines of each head, with their ends; NULL: none */
	struct fetch_answer answer;
	struct buf out;
};

int fetch_open(struct fetch *f, uint16_t port, const char *key, struct err *err);
void fetch_close(struct fetch *f);
/* body: JSON, or NULL. The answer before this one must be over. */
int fetch_send(struct fetch *f, const char *method, const char *target, const char *body,
	       struct err *err);
/* Receives once. 1: the answer is over and f->answer.status is its status; 0: go on. */
int fetch_step(struct fetch *f, fetch_data_fn fn, void *user, struct err *err);
/* Both, to the answer's end. Its status, or -errno; ret (cleared first; may be NULL) has the body.
 */
int fetch_call(struct fetch *f, const char *method, const char *target, const char *body,
	       struct buf *ret, struct err *err);
/* The same, where one status only will do: 0, or an error with what the server said. */
int fetch_want(struct fetch *f, int status, const char *method, const char *target,
	       const char *body, struct buf *ret, struct err *err);
