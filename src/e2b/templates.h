/* Templates as E2B's clients see them: one has a name, its versions are builds, and tags are names
 * of versions. Shared by the files about them. */
#pragma once

#include <stdbool.h>

#include "api/queries.h"
#include "e2b/build_id.h"
#include "sandbox/objects.h"
#include "json/jv_decode.h"

struct api_call;
struct jw;
struct route_body;
struct template_own;

struct template_ref { /* "team/name:tag", taken apart */
	char name[OBJECT_NAME_MAX + 1];
	char tag[OBJECT_NAME_MAX + 1]; /* "": the newest, which is what "default" means, too */
};
/* False: it is longer than one can be, or a part of it is missing. */
bool template_ref_parse(const char *text, struct template_ref *ret);
bool template_tag_is_default(const char *tag);
/* The owner's version that it names; NULL. Borrowed for this turn of the loop. */
struct object *template_ref_find(struct api_call *c, const struct template_ref *ref);
/* Of the build that has made it, or its own. */
void template_build_id(struct api_call *c, const struct object *version, char ret[BUILD_UUID_SIZE]);
void template_write_build(struct jw *w, struct api_call *c, const struct object *version);
/* The build that the path names; NULL. */
struct object *template_build_find(struct api_call *c);

/* What a template begins with, as a build's wish says it; false after an answer. */
struct build_wish;
bool template_base_find(struct api_call *c, const char *template, const char *image,
			struct build_wish *wish);

struct body_step {
	const char *type;
	struct jv_strings args;
	const char *files;
	bool force;
};
struct build_step;
bool template_step_is_ours(const struct build_step *s); /* no client has said it */
/* template_steps.c: the service's steps of theirs, in the arena; false after an answer. */
bool template_steps(struct api_call *c, const struct jv_objects *from, bool is_forced,
		    struct build_wish *wish);

extern const struct route_body e2b_body_build_request, e2b_body_build_start, e2b_body_tags_put,
	e2b_body_tags_delete, e2b_body_template_patch;
extern const struct route_query e2b_query_build_status[], e2b_query_upload[];
