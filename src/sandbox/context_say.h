/* What an interpreter says about values, errors and ends: JSON from inside a box, read strictly. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/context.h"
#include "sandbox/context_frames.h"

/* Whether it is an object with the members that its kind has, each of its type, and no others. */
bool context_say_is_sound(enum frame_kind kind, const char *data, size_t n);
/* Fills count, exit_code and cwd as far as they are there; what cannot be read is left as it is. */
void context_say_read_end(const char *data, size_t n, struct context_end *ret, char *cwd,
			  size_t cwd_size);
