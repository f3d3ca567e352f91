/* How many descriptors there are, and who may have them. */
#pragma once

#include <stdint.h>

/* As many as the hard limit allows, up to what is ever needed. */
void descriptors_raise(void);
/* How many of them connections may take, at most `wanted`: the rest is for boxes, the store and the
 * launcher, whose messages lose the descriptors that they bring when there is no room. */
uint32_t descriptors_for_clients(uint32_t wanted);
