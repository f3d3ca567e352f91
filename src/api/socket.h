/* JSON messages on a WebSocket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct jv_doc;
struct jv_field;
struct jw;
struct arena;
struct ws;

#define SOCKET_MESSAGE_MAX (1u << 20)
#define SOCKET_PENDING_HIGH (256u << 10) /* bytes that the client has not taken: reading stops */
#define SOCKET_PENDING_LOW (64u << 10)   /* ... and goes on */

#define SOCKET_CLOSE_REFUSED 1008 /* close code: who it is may not go on */

/* Ends the writer. What cannot be sent closes the socket: a message must not just be missing. */
void socket_send(struct ws *w, struct jw *message);
/* {"type":"error",...}; field and id may be NULL. */
void socket_send_error(struct ws *w, int status, const char *field, const char *text,
		       const char *id);
/* The same of what a service refused. */
void socket_send_refusal(struct ws *w, const struct err *err, const char *id);
void socket_send_pong(struct ws *w);

/* Decodes a text message into *dst; false: the client was told what is wrong with it. Texts are in
 * the arena; *ret_doc is the caller's, and has what JSON values there are. */
bool socket_decode(struct ws *w, const char *data, size_t n, const struct jv_field *fields,
		   size_t count, struct arena *a, void *dst, struct jv_doc **ret_doc);
