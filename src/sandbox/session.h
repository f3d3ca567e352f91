/* Sessions of agents: each may have one sandbox of its own, which is made when it is first wanted,
 * and goes with the session. A session is an object (objects.h) whose name is what people call its
 * id; the sandbox has a name that is made of the object's own id, so nothing but the session has to
 * be written down, and a new session of an old id never meets what the old one has left. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/objects.h"
#include "sandbox/sandbox.h"
#include "json/jv_decode.h"

struct arena;
struct buf;
struct jw;

#define SESSION_ID_MAX 63
#define SESSION_TEXT_MAX 256
#define SESSION_PAIRS_MAX 32
#define SESSION_PAIR_MAX 1024
#define SESSION_WAIT_MS (5 * 60 * 1000u) /* for a sandbox, unless said */
#define SESSION_WAIT_MAX_MS (10 * 60 * 1000u)
#define SESSION_METADATA "session" /* what its sandbox has of it: the session's id */

enum session_state { SESSION_OPEN, SESSION_ENDING };

/* As clients write it, and as it is kept. */
struct session_wish {
	const char *id; /* NULL: one is made up */
	const char *name, *agent, *user;
	struct session_workspace {
		bool enabled;
		const char *template; /* NULL: the default */
		struct limits limits; /* 0: the template's */
		uint64_t timeout_ms, idle_ms;
		int on_timeout; /* enum lapse */
		struct jv_pairs env, metadata;
	} workspace;
	struct jv_pairs metadata;
};
#define SESSION_FIELDS 6
extern const struct jv_field session_fields[SESSION_FIELDS];
extern const struct session_wish session_defaults;

struct session {             /* the data of its object */
	struct arena *arena; /* owned: its texts */
	struct session_wish wish;
};
extern const struct object_kind session_kind;

/* Its members but for the id, as they came; values of the environment only with_env. */
void session_write(const struct session_wish *s, struct jw *w, bool with_env);

/* EINVAL ("field: why"), EEXIST (the id), EDQUOT. */
void session_add(struct sandboxes *all, const char *owner, const struct session_wish *wish,
		 object_cb cb, void *user);
/* By its id; NULL, also of one that ends. */
struct object *session_find(struct sandboxes *all, const char *owner, const char *id);
/* The one of this object's id, anybody's. */
struct object *session_find_any(struct sandboxes *all, const char *uid);
/* Its live sandbox; NULL: it has none now. */
struct sandbox *session_sandbox(struct sandboxes *all, const struct object *session);

/* Whether this is the sandbox of a session that has not said how long it lives: then it does so as
 * long as it is used (sandbox_prolong()). */
bool session_is_kept(struct sandboxes *all, const struct sandbox_info *info);

/* Gives the sandbox of a session with a workspace, running: the one that it has, woken where it
 * stands still, or a new one (sandbox_info.is_existing). Any number may ask at once: there is one.
 * ETIMEDOUT: it goes on, ask again. ENOENT: the session was ended meanwhile. And what
 * sandbox_create() says. */
void session_provision(struct sandboxes *all, const struct object *session, const char *key_id,
		       uint64_t wait_ms, sandbox_cb cb, void *user);
/* Ends the session and its sandbox, also one that is being made. From the moment that the store
 * knows, nothing stops it: what fails, or a restart interrupts, is taken up again. */
void session_end(struct sandboxes *all, const struct object *session, object_cb cb, void *user);
void sessions_end_owner(struct sandboxes *all, const char *owner); /* its sandboxes end anyway */

/* ---- inside ---- */

int session_text(const struct session_wish *s, struct buf *b); /* as the store keeps it */
void sessions_settle(struct sandboxes *all); /* takes up ends that were interrupted */
#define SESSION_BOX_PREFIX "session-"
#define SESSION_BOX_NAME_SIZE (sizeof(SESSION_BOX_PREFIX) + ID_LEN)
void session_box_name(const char *uid, char ret[SESSION_BOX_NAME_SIZE]);
