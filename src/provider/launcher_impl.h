/* Inside of the launcher's client; for launcher*.c only. */
#pragma once

#include "base/list.h"
#include "provider/launcher.h"

#define LAUNCHER_PROGRAM "holt-launch"
#define LAUNCHER_PENDING_MAX 4096u      /* requests that wait for their answer */
#define LAUNCHER_QUEUE_MAX (1u << 20)   /* bytes that wait for the launcher to read */
#define LAUNCHER_LIST_MAX (64u << 10)   /* entries of one list: what one launcher has at most */
#define LAUNCHER_DEATHS_MAX (64u << 10) /* unread deaths kept; the oldest gives way */

struct arena;
struct map;

/* A request that waits for its answer. */
struct pending {
	struct list node;
	uint32_t id;
	uint16_t type;  /* of the request */
	provider_cb cb; /* NULL: it has waited too long, and nobody wants the answer any more */
	void *user;
	uint64_t asked_ms;
	/* What a list names, until L_OK says that this is all: of one kind, by the request. */
	struct arena *strings; /* owned */
	void *items;           /* owned; its strings are in the arena */
	size_t n_items, cap_items;
};

struct queued {
	struct list node;
	uint32_t id;
	int fd; /* owned; -1: none */
	size_t len;
	uint8_t frame[];
};

struct death {
	struct list node;
	char id[ID_LEN + 1];
	int status;
	struct box_usage usage;
};

struct launcher {
	int sock;  /* owned */
	pid_t pid; /* 0 when unknown, or waited for */
	uint32_t last_id;
	int over;         /* negative errno once no answer comes any more */
	unsigned waiting; /* *_sync calls under way: they may block */
	unsigned patience_ms;
	bool is_asked, has_spoken; /* as of the last launcher_ping() */
	struct launch_info info;
	struct map *by_id;   /* id to borrowed struct pending */
	struct list pending; /* owned struct pending, oldest first */
	struct list queue;   /* owned struct queued, oldest first */
	size_t queue_bytes;
	struct list deaths; /* owned struct death, oldest first */
	size_t deaths_len;
	provider_death_cb on_death;
	void *on_death_user;
	struct build_state builds;
	provider_builds_cb on_builds;
	void *on_builds_user;
};

/* An encoded request. */
struct ask {
	uint32_t id; /* from launcher_next_id(), and in the frame */
	uint16_t type;
	const void *frame;
	long size; /* as the encoders return it: may be a negative errno */
	int fd;    /* borrowed, goes along; -1: none */
	provider_cb cb;
	void *user;
};

uint32_t launcher_next_id(struct launcher *l);
/* A request without anything but its head. */
int launcher_ask_plain(struct launcher *l, struct ask *a, struct err *err);
/* A request that is one id. */
int launcher_ask_id(struct launcher *l, struct ask *a, const char *id, struct err *err);
/* Sends or queues it; the answer is the callback's. */
int launcher_ask(struct launcher *l, const struct ask *a, struct err *err);
/* A request that is about a template and says nothing else. */
int launcher_ask_template(struct launcher *l, enum launch_type type, uint32_t template_id,
			  provider_cb cb, void *user, struct err *err);
/* Handles one frame: 1; 0 when none is there; a negative errno when it is over. */
int launcher_receive(struct launcher *l);
/* What a request's list is made of: true and the frame is read into it (0, -EPROTO, -E2BIG,
 * -ENOMEM); false: this is no entry of a list. */
bool launcher_list_add(struct pending *p, uint16_t frame_type, struct rd *body, int *ret);
/* Shows the list in the reply. */
void launcher_list_show(const struct pending *p, struct provider_reply *r);
/* Sends what waits, as far as it goes. */
void launcher_flush(struct launcher *l);
/* The oldest death that is kept; false when there is none. */
bool launcher_pop_death(struct launcher *l, struct death *ret);
/* No answer comes any more: every request gets its failure, oldest first. Returns the code. */
int launcher_end(struct launcher *l, int code, const char *text);
#define LAUNCHER_BUILD_MS 30000 /* for a box to be built, unless the options say otherwise */
#define LAUNCHER_BURY_MS 30000  /* for a launcher to clear its boxes away */
/* Waits for a child that is to end; kills it when it does not. Another's is not waited for. */
void launcher_bury(pid_t pid, int patience_ms);
/* Greets: the answer is in l->info. */
int launcher_hello(struct launcher *l, provider_cb cb, void *user, struct err *err);
/* The same, blocking. After a failure the launcher has to be stopped. */
int launcher_hello_sync(struct launcher *l, int timeout_ms, struct err *err);
