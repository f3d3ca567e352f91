/* The inside of configured servers, shared by servers*.c only. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "mcpc/servers.h"
#include "mcpc/servers_row.h"
#include "mcpc/stdio.h"

struct arena;
struct mcpc_auth;

#define SERVERS_STABLE_MS 30000u /* ready for so long: its failures are forgotten */
#define SERVERS_STOP_MS 10000u   /* that their end may take; what is left then is killed */
#define SERVERS_LIST_MS 500u     /* between two looks at a list that has changed */

enum server_list { SERVER_TOOLS, SERVER_RESOURCES, SERVER_PROMPTS, SERVER_LIST_COUNT };

struct server {
	struct mcpc_servers *all; /* borrowed */
	struct server_row row;
	enum mcpc_server_state state;
	struct err err;
	int64_t since_ms;
	struct mcpc *client;      /* owned; NULL: not connected */
	struct mcpc_auth *auth;   /* owned; NULL: none */
	struct loop_timer *timer; /* owned: of the next try, or of lists */
	uint64_t retry_at, ready_at;
	unsigned failures, restarts;
	/* What it offers: */
	unsigned lists_due, lists_asked; /* bits 1 << enum server_list */
	struct jv_doc *tools_doc;        /* owned */
	struct mcpc_tool *tools;         /* owned; names and schemas are in the document */
	size_t n_tools, n_left_off;
	size_t counts[SERVER_LIST_COUNT];
	/* Calls: */
	struct list uses; /* struct mcpc_use */
	size_t n_uses;
	uint64_t n_calls, n_failed;
	struct list asks; /* struct approval of the server itself */
};

struct mcpc_servers {
	struct mcpc_servers_deps deps;
	struct arena *arena;    /* owned: rows */
	struct jv_doc *doc;     /* owned: the configuration */
	struct server *servers; /* owned */
	size_t n_servers;
	struct stdio_yard yard;
	struct list watches;   /* struct mcpc_watch */
	struct list approvals; /* struct approval, oldest first */
	size_t n_approvals, n_uses;
	bool is_started, is_stopping;
	void (*stopped)(void *user);
	void *stopped_user;
	struct loop_task stopped_soon;
	struct loop_timer *patience; /* owned: with what does not end */
};

/* Something that waits for a yes or a no: in the struct of what waits. */
struct approval {
	struct list node; /* in mcpc_servers.approvals, or self-linked */
	struct mcpc_approval seen;
	struct server *server;
	struct loop_timer *timer; /* owned: of its end */
	void (*decided)(struct approval *a, bool is_yes, const char *content, bool is_late);
};

struct server *servers_by_name(const struct mcpc_servers *all, const char *name); /* NULL */
void servers_changed(struct server *s); /* tells those who watch */

/* servers_link.c */
void server_connect(struct server *s);
int server_need_auth(struct server *s, struct err *err); /* s->auth, where the row has one */
void server_disconnect(struct server *s);                /* and no more tries */
void server_lose(struct server *s, const struct err *err);
void server_list_due(struct server *s, unsigned lists);

/* servers_tools.c */
int server_take_tools(struct server *s, struct jv result, struct err *err);
void server_drop_tools(struct server *s);

/* servers_call.c */
void server_ready_uses(struct server *s);                       /* those that wait go on */
void server_fail_uses(struct server *s, const struct err *err); /* all of them */
void server_drop_uses(struct server *s);                        /* nobody is told */

/* servers_ask.c */
/* Of mcpc_handlers: the server asks something. */
void server_asked(void *user, struct mcpc *c, void *ask, const char *method, struct jv params);
int approval_begin(struct approval *a, struct server *s, uint64_t wait_ms, struct err *err);
void approval_end(struct approval *a); /* also one that has not begun, or is over */
void server_drop_asks(struct server *s);
void server_write_capabilities(const struct server *s, struct buf *b);
void approval_tell(const struct approval *a, const char *kind, const struct principal *by);
