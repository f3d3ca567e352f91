/* One setting's value: from text into its field of struct config, and back for people. */
#pragma once

#include <stdbool.h>

struct buf;
struct config;
struct err;
struct jw;
struct setting;

/* -EINVAL or -E2BIG, saying what is wanted; -ENOMEM. home (may be NULL) is what "~/" stands for. */
int value_set(struct config *c, const struct setting *s, const char *text, const char *home,
	      struct err *err);
/* As it could be written in a file; secrets as ***; nothing when unset. */
int value_show(const struct config *c, const struct setting *s, struct buf *b);
/* As a JSON value: numbers in bytes, milliseconds and cores. */
void value_json(const struct config *c, const struct setting *s, struct jw *w);
bool value_is_secret_set(const struct config *c, const struct setting *s);
/* Frees what the arena does not own. */
void value_done(struct config *c, const struct setting *s);
