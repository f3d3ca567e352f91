/* The door to what is in volumes: its own token, its own rows. */
#pragma once

#include <stdbool.h>

#include "api/queries.h"
#include "api/routes.h"

struct api_call;
struct err;
struct principal;

bool e2b_claims_volume(struct api_call *c);
int e2b_authenticate_volume(struct api_call *c, void (*again)(struct api_call *c),
			    struct principal *ret, struct err *err);

extern const struct route_body e2b_body_volume_path;
extern const struct route_query e2b_query_volume_path[], e2b_query_volume_dir[],
	e2b_query_volume_make[];
