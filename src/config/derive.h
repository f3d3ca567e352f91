/* Settings that are "auto": what they are on this machine. Inside of config/. */
#pragma once

#include <stdint.h>

struct config;
struct machine;

/* Replaces every "auto" by a number, and lowers maxima to what the machine has: the launcher takes
 * nothing beyond. state_dir is set. */
void derive_from_machine(struct config *c, const struct machine *m);
/* The memory of a sandbox that asks for nothing: a small machine holds a few of them. */
uint64_t derive_memory(const struct config *c, const struct machine *m);
