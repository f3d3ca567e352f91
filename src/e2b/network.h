/* What a sandbox may reach of the internet, as its note says it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/network.h"

struct arena;
struct sandbox;
struct sandbox_pair;

/* -ENOMEM. A note that cannot be read lets nothing out. */
int e2b_network_terms(const char *note, struct arena *a, struct network_terms *ret);
/* network_open() with these. */
void e2b_network_open(struct api_call *c, struct sandbox *sb,
		      void (*ready)(void *user, uint16_t port), void *user);
/* Its note is another one. */
void e2b_network_changed(struct api_call *c, struct sandbox *sb);
