/* Builds as clients see them. */
#pragma once

#include <stdbool.h>

struct api_call;
struct build;
struct build_step;
struct jw;
struct object;

/* An object of its own; with the end of its output if asked for. */
void build_json_step(struct jw *w, const struct build_step *s, bool with_output);
/* The build that the path names; NULL after 404. */
struct object *build_of_call(struct api_call *c);
