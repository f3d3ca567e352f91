/* Settings that are "auto": what they are on this machine. Inside of config/. */
#pragma once

struct config;

/* Replaces every "auto" by a number, and lowers maxima to what the machine has: the launcher takes
 * nothing beyond. state_dir is set. */
void derive_from_machine(struct config *c);
