/* What a client calls a template: one of E2B's own, one of the owner's, one of Holt's, or a
 * snapshot. */
#pragma once

#include <stdbool.h>

struct api_call;
struct object;
struct sandbox_request;

/* Holt's name of one of E2B's own templates; NULL: it is none. */
const char *template_names_own(const char *name);
/* Fills in the request's template or snapshot; false after 404, which names it. The text is
 * borrowed for the call. */
bool template_names_find(struct api_call *c, const char *name, struct sandbox_request *req);
/* A snapshot of the caller's by id or name, as clients write it: "team/name:tag"; NULL. */
struct object *template_names_snapshot(struct api_call *c, const char *name);
