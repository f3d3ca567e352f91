/* The state of every template's pool, asked for at once. */
#pragma once

#include <stddef.h>

#include "spec/launch.h"

struct api_call;
struct jw;

struct pool_row {
	const char *template;
	struct pool_state state;
};

/* Templates whose pool cannot be asked are left out. Without memory, the call is answered. */
void pool_ask(struct api_call *c,
	      void (*got)(struct api_call *c, const struct pool_row *rows, size_t n));
/* How the building of its boxes goes: the last fields of an object. */
void pool_put_builds(struct jw *w, const struct pool_state *s);
