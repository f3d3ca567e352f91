/* The line of one webhook: which events it is still to get, in their order, when the first of them
 * may be tried, and what became of those before. Knows no clock, no store and no network: all of
 * that is told to it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/list.h"
#include "sandbox/event_kinds.h"

struct journal_row;
struct jv;
struct jw;

#define LINE_EVENTS_MAX 16u         /* that wait in memory; others are read when these are done */
#define LINE_BYTES_MAX (256u << 10) /* and what they hold; the first always has room */
#define LINE_DELIVERIES_MAX 20u     /* that are remembered */
#define LINE_DELAY_MAX_MS 3600000u  /* between two tries */
#define LINE_TRIES_MIN 5u           /* before one is given up, however long that took */
#define LINE_ERROR_MAX 159

struct line_event {
	struct list node;
	uint64_t seq;
	int64_t at_ms;
	const char *owner, *kind, *text; /* behind it */
	size_t size;
	char bytes[];
};

enum line_state { LINE_TRYING, LINE_DELIVERED, LINE_GIVEN_UP };

struct line_delivery { /* one event, all tries of it */
	uint64_t seq;
	char kind[EVENT_KIND_MAX + 1];
	enum line_state state;
	uint32_t tries;
	int64_t first_ms, last_ms; /* wall clock */
	uint32_t took_ms;          /* the last try */
	int status;                /* of its answer; 0: there was none */
	char error[LINE_ERROR_MAX + 1];
};

struct webhook_line {
	uint64_t looked; /* the log's last line that was looked at */
	struct list queue;
	size_t n, bytes;
	uint64_t due_ms; /* monotonic: the first one is not tried before */
	/* All that lasts. */
	uint64_t delivered, failed, given_up; /* failed: tries */
	uint64_t missed;                      /* since the last that was delivered: lost for it */
	uint64_t missed_total;
	int64_t delivered_ms;                                 /* the last time; 0: never */
	struct line_delivery deliveries[LINE_DELIVERIES_MAX]; /* oldest first */
	size_t n_deliveries;
};

void line_init(struct webhook_line *l, uint64_t after);
void line_done(struct webhook_line *l);

bool line_has_room(const struct webhook_line *l);
/* The next line of the log has been looked at. Lines that were left out are missed: the log has
 * forgotten them. wanted: it goes to the end of the line. -ENOMEM: as if it had not been. */
int line_look(struct webhook_line *l, const struct journal_row *row, bool wanted);
/* The log has nothing more up to this line, and has looked() not seen it, it never will. */
void line_look_past(struct webhook_line *l, uint64_t seq);
struct line_event *line_head(const struct webhook_line *l); /* NULL: nothing waits */
/* All up to here is done with: where the next process begins. */
uint64_t line_cursor(const struct webhook_line *l);
/* What is being tried: its tries so far failed. NULL: nothing did. */
const struct line_delivery *line_trouble(const struct webhook_line *l);

struct line_rules {
	uint64_t retry_ms;   /* the first delay, doubled from try to try */
	uint64_t give_up_ms; /* after this an event is passed over */
};
struct line_try {
	bool ok;
	int status;
	uint32_t took_ms;
	const char *error; /* of one that is not ok */
	uint64_t now_ms;   /* monotonic */
	int64_t wall_ms;   /* the same moment */
	uint32_t random;   /* anything */
};
/* The first of the line was tried: what it has come to. It has left the line unless it is still
 * LINE_TRYING. */
enum line_state line_tried(struct webhook_line *l, const struct line_rules *rules,
			   const struct line_try *t);
/* Between half of it and all of it, so that those which failed together do not come back together.
 */
uint64_t line_delay_ms(const struct line_rules *rules, uint32_t failures, uint32_t random);
/* Its owner has changed something: what waits is looked at again, and may be tried at once. */
void line_rewind(struct webhook_line *l);

void line_write_delivery(struct jw *w, const struct line_delivery *d);
/* Members of an object: what lasts, and the cursor. */
void line_write(const struct webhook_line *l, struct jw *w);
/* -EINVAL: the line is as after line_init(). */
int line_read(struct webhook_line *l, struct jv object);
