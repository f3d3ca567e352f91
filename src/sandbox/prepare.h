/* What a template starts in each new box, until it is ready: before anybody else can use the box,
 * and before the store knows of it. Whoever waits for the sandbox waits for this. */
#pragma once

struct err;
struct sandbox;

/* then() comes once, from inside the call when there is nothing to start; never when the registry
 * goes. err: why it did not become ready, with the end of what the command said. */
void prepare_begin(struct sandbox *sb, void (*then)(struct sandbox *sb, const struct err *err));
/* It is not wanted any more: then() comes in the next turn, with this. Does nothing when none is
 * under way. */
void prepare_cancel(struct sandbox *sb, const struct err *why);
/* The store knows the sandbox: what was started is written down. */
void prepare_record(struct sandbox *sb);
void prepare_drop(struct sandbox *sb); /* without a word */
