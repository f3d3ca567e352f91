/* A sandbox as the store keeps it, and back. */
#pragma once

#include "base/buf.h"
#include "sandbox/registry.h"
#include "json/jv.h"

struct jw;

struct row_texts {
	struct buf spec, env, metadata; /* owned */
};
void row_texts_done(struct row_texts *t);

void row_write_limits(const struct limits *l, struct jw *w);
void row_read_limits(struct jv object, struct limits *ret); /* what is absent stays as it is */
/* The row of a sandbox as if it were in this state; texts are borrowed from sb and *ret_texts.
 * -ENOMEM. */
int row_fill(const struct sandbox *sb, enum sandbox_state state, struct sandbox_row *ret,
	     struct row_texts *ret_texts);

struct row_info {
	struct sandbox_info info; /* texts are borrowed from the row and from here */
	struct pairs env, metadata;
	struct kit kit;
	struct layers layers;
	struct volume_mounts volumes;
	char *note;  /* owned; NULL: none */
	char *grant; /* the same */
};
/* -EUCLEAN when it is damaged, -ENOMEM. */
int row_read(const struct sandbox_row *row, struct row_info *ret);
void row_info_done(struct row_info *i);
