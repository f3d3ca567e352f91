/* The service over a fake provider, a store in memory and a clock that the test moves; the test
 * itself is the guest of every box. Nothing happens but in rig_run(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "loop/loop.h"
#include "provider/fake.h"
#include "sandbox/exec.h"
#include "sandbox/sandbox.h"
#include "spec/guest.h"
#include "store/memory.h"
#include "telemetry/metrics.h"

struct sandbox_rig {
	struct loop *loop;
	struct store store;
	struct store_faults faults;
	struct metrics *metrics;
	struct fake fake;
	struct provider provider;
	struct sandbox_clock clock;
	uint64_t now_ms;
	int64_t wall_ms;
	struct sandbox_settings settings;
	struct sandboxes *all; /* NULL between two lives */
	int ready;             /* calls of provider_ready()'s callback */
	struct err ready_err;
	uint8_t frame[WIRE_FRAME_MAX]; /* of the last rig_recv() */
	char spool[32];                /* path of a directory of its own */
};

void rig_open(struct sandbox_rig *rig); /* with a provider that is ready */
void rig_close(struct sandbox_rig *rig);
/* A registry, not yet told of the provider; and its end as by SIGKILL: boxes and rows stay. */
void rig_birth(struct sandbox_rig *rig);
void rig_death(struct sandbox_rig *rig);
void rig_ready(struct sandbox_rig *rig); /* tells it of the provider; rig_run() does the rest */
/* The provider answers, the store calls back, the loop turns, until all is quiet. */
void rig_run(struct sandbox_rig *rig);
void rig_turn(struct sandbox_rig *rig);                   /* the loop only, once */
void rig_pass(struct sandbox_rig *rig, uint64_t ms);      /* time goes by, and timers run */
void rig_tick(struct sandbox_rig *rig, unsigned seconds); /* the same, second by second */

/* ---- callers ---- */

struct told { /* what a sandbox_cb was given */
	int calls;
	struct sandbox *sb;
	bool is_existing;
	enum sandbox_state state;
	char id[ID_LEN + 1];
	struct err err;
};
void rig_told(void *user, struct sandbox *sb, const struct err *err); /* user: struct told */
/* Creates one for owner "ann" and runs until it is there. */
struct sandbox *rig_create(struct sandbox_rig *rig, const char *name);
struct sandbox_request rig_request(const char *name);
enum sandbox_state rig_state(struct sandbox *sb);
/* The state in the store, or -errno; *ret_reason (may be NULL) is owned by the caller. */
int rig_row_state(struct sandbox_rig *rig, const char *id, char **ret_reason);

struct exec_told { /* what an exec_cb was given; it holds the execution */
	int calls, ends;
	struct execution *x; /* owned reference */
	struct err err;
};
void rig_exec_told(void *user, struct execution *x, const struct err *err);
void rig_exec_ended(void *user, struct execution *x); /* for exec_wait() */
void exec_told_done(struct exec_told *t);

/* An execution as the store has it. */
struct exec_row_look {
	int r;
	bool is_live;
	unsigned state, flags;
	int32_t exit_code;
	size_t output_len;
	uint64_t output_bytes;
	char reason[240], content[400];
};
struct exec_row_look rig_exec_row(struct sandbox_rig *rig, const char *id);

/* ---- being the guest ---- */

struct fake_box *rig_box(struct sandbox_rig *rig, const char *sandbox_id); /* NULL */
/* The next frame that the box was sent; false when there is none. */
bool rig_recv(struct sandbox_rig *rig, struct fake_box *box, struct wire_head *head,
	      struct rd *payload);
/* The next frame must be of this type. Its id. */
uint32_t rig_expect(struct sandbox_rig *rig, struct fake_box *box, uint16_t type,
		    struct rd *ret_payload);
void rig_expect_nothing(struct sandbox_rig *rig, struct fake_box *box);
void rig_say(struct fake_box *box, const void *frame, long n);
void rig_say_started(struct fake_box *box, uint32_t id, uint32_t pid);
void rig_say_output(struct fake_box *box, uint32_t id, int stream, uint64_t offset,
		    const void *data, size_t n);
void rig_say_exit(struct fake_box *box, uint32_t id, uint32_t code, uint32_t flags);
void rig_say_ready(struct fake_box *box, uint32_t live);
/* Starts a command, with the guest's G_STARTED; its id there. */
uint32_t rig_exec(struct sandbox_rig *rig, struct sandbox *sb, const struct exec_request *req,
		  struct exec_told *ret);
/* No live sandbox, and no box. */
void rig_assert_nothing_left(struct sandbox_rig *rig);
