/* Executions with EXEC_KEEP that have ended: how, and what of their output was not credited. They
 * wait for the client's G_ACK, whoever the client is by then.
 *
 * At most GUEST_KEPT_MAX wait before new ones are refused: an end that was promised is never lost.
 * Output may be: all of them together keep GUEST_KEPT_BYTES, and beyond that the oldest loses its
 * own, which its exit then says (EXIT_TRUNCATED). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "guest/out.h"
#include "spec/guest.h"

struct guest;

#define GUEST_KEPT_MAX 256
#define GUEST_KEPT_BYTES (4u << 20)

struct kept {
	struct list node;
	uint32_t id, pid;
	uint8_t flags; /* enum guest_live_flag */
	char tag[GUEST_TAG_MAX + 1];
	uint64_t started_ns, stdin_taken;
	struct out out;
	struct guest_exit exit;
	bool is_told; /* G_EXIT has been said to this client */
};

/* Made when the execution starts, so that its end needs no memory. */
struct kept *kept_create(uint32_t id, const char *tag, uint8_t flags);
struct kept *kept_free(struct kept *k); /* of one that was not added */
/* Takes k, whose execution has ended, and says what can be said. */
void kept_add(struct guest *g, struct kept *k);
struct kept *kept_find(struct guest *g, uint32_t id);
int kept_credit(struct kept *k, uint64_t n);
/* Forgets it; the client that has not been told its end is told that. */
void kept_ack(struct guest *g, struct kept *k);
/* Says G_LIVE of each. */
void kept_tell_all(struct guest *g);
/* The client is gone: for the next one, nothing has been said. */
void kept_rewind_all(struct guest *g);
/* The control socket has room: goes on. */
void kept_resume_all(struct guest *g);
void kept_free_all(struct guest *g);
/* One G_LIVE: what k says, and the rest as given. */
void kept_tell(struct guest *g, const struct kept *k, const struct out *out,
	       const struct guest_live *rest);
