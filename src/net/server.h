/* The server's inside: its connections, and what they share. Inside of net/. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "base/list.h"
#include "loop/loop.h"
#include "net/addr.h"
#include "net/http.h"

#define SERVER_READ_SIZE ((size_t)64 << 10)

struct conn;
struct map;
union addr_any;

struct peer {
	unsigned count; /* of its connections */
	size_t key_len;
	char key[ADDR_KEY_MAX];
};

struct http_server {
	struct loop *loop; /* borrowed */
	struct http_server_options o;
	struct list conns;        /* of struct conn */
	struct list todo;         /* of struct conn, by todo_node */
	struct list dead;         /* of struct conn: closed in this turn */
	struct list zombies;      /* of struct conn: closed, their requests not yet answered */
	struct list listeners;    /* of struct listener, owned */
	unsigned count;           /* of conns */
	struct map *peers;        /* owned, and so are the struct peers, by addr_key() */
	struct loop_task turn;    /* end of the turn: todo, dead */
	struct loop_timer *sweep; /* owned */
	struct id_source ids;
	struct buf head; /* of the answer being made; nobody keeps it */
	char *bytes;     /* owned: what is read from sockets, SERVER_READ_SIZE */
	char *plain;     /* owned: what TLS makes of it, SERVER_READ_SIZE */
	char date[40];   /* "Date: ...\r\n" */
	int64_t date_s;
	bool draining;
	uint64_t drain_until_ms;
	void (*drained)(void *user);
	void *drained_user;
};

void server_add(struct http_server *s, struct conn *c);
void server_bury(struct http_server *s, struct conn *c); /* it is closed; freed at the turn's end */
void server_rebury(struct http_server *s, struct conn *c); /* its request is over now, too */
/* Counts it as its peer's. Without memory it is not. */
void server_note_peer(struct http_server *s, struct conn *c, const union addr_any *from);
/* Closes a connection on which nobody waits for anything: of the peer that has the most, the one
 * that has been quiet the longest; if none is quiet, one whose answer is only to be sent. False:
 * requests are under way on all of them. Otherwise whoever opens connections and says nothing, or
 * reads slowly, would keep all others out. */
bool server_make_room(struct http_server *s);
void server_todo(struct http_server *s, struct conn *c);
const char *server_date(struct http_server *s);
void server_close_listeners(struct http_server *s); /* listen.c */
void server_listeners_tick(struct http_server *s);  /* listen.c */
