/* What becomes of a sandbox by itself: at its timeout, and when somebody wants something of one
 * that stands still. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "json/jv.h"

struct jw;

/* What its end of time means, also by idleness. A paused or stopped one begins its time anew. */
enum lapse { LAPSE_DELETE, LAPSE_PAUSE, LAPSE_STOP, LAPSE_COUNT };
extern const char *const lapse_names[LAPSE_COUNT + 1]; /* ended by NULL: "delete", ... */

#define SANDBOX_NOTE_MAX (16u << 10)
#define LAPSE_AGAIN_MS 10000u /* between two tries to pause or stop one whose time is over */

struct lifecycle {
	uint8_t on_timeout; /* enum lapse */
	bool auto_resume;   /* what is wanted of it wakes it: see sandbox_wake() */
};

/* ---- inside ---- */

/* Its fields in the row's text, and back: what is absent is not changed. */
void lifecycle_write(const struct lifecycle *l, struct jw *w);
void lifecycle_read(struct jv object, struct lifecycle *ret);
