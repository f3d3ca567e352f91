/* What a build begins with when that is an image: its files become the root, and what it says about
 * its programs is where the steps begin. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "image/config.h"
#include "sandbox/build_impl.h"
#include "sandbox/check.h"
#include "sandbox/root_import.h"

/* NAME=value; what no box would take is left out. */
static void take_env(struct build_job *j, const struct image_config *c)
{
	for (size_t i = 0; i < c->env.len; i++) {
		const char *equals = strchr(c->env.items[i], '=');
		struct sandbox_pair one;
		struct pairs merged = { 0 };

		if (!equals)
			continue;
		one.name = arena_strndup(j->arena, c->env.items[i],
					 (size_t)(equals - c->env.items[i]));
		one.value = equals + 1;
		if (!one.name || check_env(&one, 1, NULL) < 0)
			continue;
		/* What was asked for goes before what the image says. */
		if (pairs_merge(&one, 1, j->model.env.items, j->model.env.len, &merged) < 0)
			return;
		pairs_done(&j->model.env);
		j->model.env = merged;
	}
}

/* Where nothing else was said. A group behind the user is the box's own business. */
static void take_words(struct build_job *j, const struct image_config *c)
{
	size_t n = strcspn(c->user, ":");

	if (j->workdir[0] == '\0' && c->workdir[0] == '/' && !strstr(c->workdir, "..") &&
	    str_copy(j->workdir, sizeof(j->workdir), c->workdir) == 0)
		j->model.make.workdir = arena_strndup(j->arena, j->workdir, strlen(j->workdir));
	if (j->user[0] == '\0' && n > 0 &&
	    str_format(j->user, sizeof(j->user), "%.*s", (int)n, c->user) == 0)
		j->model.make.user = arena_strndup(j->arena, j->user, strlen(j->user));
}

static void on_done(void *user, const struct layers *chain, const struct image_config *config,
		    const struct err *err)
{
	struct build_job *j = user;
	uint64_t bytes = root_import_bytes(j->import);

	j->import = NULL;
	if (!err && layers_hold(j->all, chain) < 0)
		(void)err_sys(&j->err, ENOMEM, "layers");
	else if (err)
		j->err = *err;
	if (j->err.code) {
		build_end(j);
		return;
	}
	build_take_layers(j, chain, bytes);
	j->model.make.root = ROOT_LAYERS;
	(void)str_format(j->model.source, sizeof(j->model.source), "%.*s", TEMPLATE_SOURCE_MAX,
			 j->root_path);
	if (config) {
		take_env(j, config);
		take_words(j, config);
	}
	build_go(j);
}

void build_root_begin(struct build_job *j)
{
	static const struct root_events events = { .done = on_done };
	struct root_wish wish = {
		.owner = j->owner, .key_id = j->key_id, .kind = j->root_kind, .path = j->root_path
	};

	if (root_import(j->all, &wish, &events, j, &j->import, &j->err) < 0)
		build_end(j);
}

bool build_root_stop(struct build_job *j)
{
	struct root_import *i = j->import;

	j->import = NULL;
	root_import_cancel(i);
	return i != NULL;
}
