/* What every decoder of a frame must survive: each way to cut it, and each byte changed to each
 * other value. The copies have the frame's exact size, so that reading one byte too far is seen. */
#pragma once

#include <stddef.h>

#include "spec/wire.h"

/* Decodes a payload, touches every string of it; 0 or a negative errno. On failure it must have
 * left its result as it was. */
typedef int frame_decode(struct rd *r);

/* frame must be a good one. */
void frame_torture(const void *frame, size_t n, frame_decode *decode);
/* Decodes the payload of a frame from an exact copy. */
int frame_try(const void *frame, size_t n, frame_decode *decode);
