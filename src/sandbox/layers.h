/* What files of a sandbox lie in the launcher's layers: a chain of ids, bottom first. A layer is
 * kept while a sandbox, a snapshot or a template names it (or something on its way does), and
 * dropped when the last one lets it go; what a crash left behind is dropped at the next start. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "spec/launch.h"
#include "json/jv.h"

struct jw;
struct sandboxes;

struct layers {
	uint8_t n;
	char ids[LAYERS_MAX][ID_LEN + 1];
};

/* As launch specs want them; borrowed. */
struct layer_list layers_list(const struct layers *l);
bool layers_are_same(const struct layers *a, const struct layers *b);
bool layers_have(const struct layers *l, const char *id);
int layers_push(struct layers *l, const char *id); /* -E2BIG */
/* ["id",...] and back; -EINVAL. An absent value is an empty chain. */
void layers_write(const struct layers *l, struct jw *w);
int layers_read(struct jv v, struct layers *ret);

/* ---- who needs them ---- */

/* -ENOMEM: nothing is held. */
int layers_hold(struct sandboxes *all, const struct layers *l);
void layers_drop(struct sandboxes *all, const struct layers *l);
/* The launcher is there and everything that names layers has been loaded: those that nobody names
 * are dropped. */
void layers_sweep(struct sandboxes *all);
/* One that nothing names, because what was to name it has failed. */
void layers_discard(struct sandboxes *all, const char *id);
void layers_forget(struct sandboxes *all); /* the registry goes: frees the table alone */
