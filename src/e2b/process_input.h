/* Bytes for a process: SendInput has them once, StreamInput again and again. */
#pragma once

#include <stdbool.h>

#include "base/str.h"
#include "json/jv_decode.h"

struct api_call;
struct arena;
struct execution;

struct process_bytes { /* one of them, base64 */
	const char *to_stdin, *to_pty;
};

#define PROCESS_BYTES_COUNT 2
extern const struct jv_field process_bytes_fields[PROCESS_BYTES_COUNT];

/* The bytes, in the arena; false: answered. */
bool process_take_bytes(struct api_call *c, struct arena *a, struct execution *x,
			const struct process_bytes *b, struct str *ret);
/* An error of feed_start() or of what it calls. */
void process_fail_input(struct api_call *c, int r);
