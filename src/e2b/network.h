/* What a sandbox may reach of the internet, as its note says it. */
#pragma once

#include <stdint.h>

#include "api/network.h"

struct arena;
struct sandbox;

/* -ENOMEM. A note that cannot be read lets nothing out. */
int e2b_network_terms(const char *note, struct arena *a, struct network_terms *ret);
/* network_open() with these. */
void e2b_network_open(struct api_call *c, struct sandbox *sb,
		      void (*ready)(struct api_call *c, uint16_t port));
/* Its note is another one. */
void e2b_network_changed(struct api_call *c, struct sandbox *sb);

/* Variables that lead programs to the proxy at that port: their names, ended by NULL, and the value
 * of one; in the arena, or NULL. */
extern const char *const e2b_network_variables[];
const char *e2b_network_value(const char *name, uint16_t port, struct arena *a);
