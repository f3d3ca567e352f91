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

/* The request's body as an archive of build_files.h; kept() answers, errors are answered here. */
typedef void (*build_file_kept_fn)(struct api_call *c, const struct object *o);
void build_file_receive(struct api_call *c, const char *owner, const char *name,
			build_file_kept_fn kept);
