/* The environment of contexts, in the store as long as they live: as a sandbox's own is, and no
 * longer, because its values are often secrets. An execution's row, which stays, has the names
 * only. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "sandbox/context_impl.h"
#include "sandbox/pairs.h"
#include "json/jw.h"

#define KIND "context" /* of the store's objects */
#define OBJECT_ID_SIZE (2 * ID_LEN + 2)

static void object_id(const struct context *c, char ret[OBJECT_ID_SIZE])
{
	(void)str_format(ret, OBJECT_ID_SIZE, "%s-%s", c->sb->id, c->id);
}

int context_env_keep(struct context *c)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct jw w = jw_begin(&text);
	char id[OBJECT_ID_SIZE];
	struct object_row row = { .kind = KIND,
				  .id = id,
				  .owner = c->sb->owner,
				  .name = "",
				  .created_ms = c->created_ms,
				  .updated_ms = c->created_ms };
	int r;

	if (c->env.len == 0)
		return 0;
	object_id(c, id);
	pairs_write(c->env.items, c->env.len, &w);
	r = jw_end(&w);
	row.text = buf_str(&text);
	/* Its execution's row is written behind it: who finds that finds this, too. */
	if (r == 0)
		r = store_put_object(c->sb->all->store, &row, NULL, NULL);
	c->is_env_kept = r == 0;
	return r;
}

int context_env_write(const struct sandbox_pair *env, size_t n, struct buf *b)
{
	for (size_t i = 0; i < n; i++) {
		(void)buf_puts(b, env[i].name);
		(void)buf_putc(b, '=');
		for (const char *p = env[i].value; *p; p++) {
			if (*p == '\\' || *p == '\n')
				(void)buf_putc(b, '\\');
			(void)buf_putc(b, *p == '\n' ? 'n' : *p);
		}
		(void)buf_putc(b, '\n');
	}
	return b->failed ? -ENOMEM : 0;
}

static void forget(struct sandboxes *all, const char *id)
{
	int r = store_delete_object(all->store, KIND, id, NULL, NULL);

	if (r < 0) /* the next start finds it */
		log_warn("sandbox", "the environment of context %s is not forgotten: %s", id,
			 strerror(-r));
}

void context_env_forget(struct context *c)
{
	char id[OBJECT_ID_SIZE];

	if (!c->is_env_kept)
		return;
	c->is_env_kept = false;
	object_id(c, id);
	forget(c->sb->all, id);
}

void contexts_forget(struct sandbox *sb)
{
	LIST_FOREACH (&sb->contexts, c, struct context, node)
		context_env_forget(c);
}

static struct context *find(struct sandboxes *all, const char *object)
{
	struct str rest = str_of(object), name = { 0 };
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)str_split(&rest, '-', &name);
	if (name.len != ID_LEN || rest.len != ID_LEN)
		return NULL;
	memcpy(id, name.data, ID_LEN);
	id[ID_LEN] = '\0';
	sb = sandboxes_find(all, id, NULL);
	return sb ? context_find(sb, rest.data) : NULL;
}

static void load(void *user, const struct object_row *row)
{
	struct sandboxes *all = user;
	struct context *c = find(all, row->id);

	if (!c || !c->is_env_lost || pairs_parse(row->text, &c->env) < 0) {
		forget(all, row->id);
		return;
	}
	c->is_env_lost = false;
	c->is_env_kept = true;
}

int contexts_load_env(struct sandboxes *all, struct err *err)
{
	return store_load_objects(all->store, KIND, load, all, err);
}
