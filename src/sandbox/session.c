#include "sandbox/session.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/registry.h"
#include "sandbox/template_own.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- what may be asked for ---- */

static int check_id(const char *id, struct err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = strlen(id);

	/* What is a step in a path, or begins like an option, names nothing here. */
	if (n == 0 || n > SESSION_ID_MAX || strspn(id, allowed) != n || id[0] == '-' ||
	    str_is(str_of(id), ".") || str_is(str_of(id), ".."))
		return err_set(err, EINVAL, "id: want 1 to %d of [A-Za-z0-9._-], no '-' first",
			       SESSION_ID_MAX);
	return 0;
}

/* The same rules as its sandbox will be held to. */
static int check_pairs(const struct jv_pairs *p, bool is_env, struct err *err)
{
	struct sandbox_pair items[SESSION_PAIRS_MAX];
	size_t n = p->len < LEN(items) ? p->len : LEN(items);

	for (size_t i = 0; i < n; i++)
		items[i] = (struct sandbox_pair){ p->items[i].name, p->items[i].value };
	return is_env ? check_env(items, n, err) : check_metadata(items, n, err);
}

static int check_workspace(struct sandboxes *all, const char *owner,
			   const struct session_workspace *s, struct err *err)
{
	int r = check_timeout(&all->settings, s->timeout_ms, err);

	if (r == 0)
		r = check_limits(&all->settings, &s->limits, err);
	if (r == 0)
		r = check_pairs(&s->env, true, err);
	if (r == 0)
		r = check_pairs(&s->metadata, false, err);
	if (r == 0 && s->enabled && s->template && !template_find(s->template) &&
	    !template_own_find(all, owner, s->template))
		r = err_set(err, EINVAL, "template: there is no '%.64s'", s->template);
	return r;
}

/* ---- the calls ---- */

static struct objects *table(struct sandboxes *all)
{
	return sandboxes_objects(all, OBJECTS_SESSION);
}

void session_add(struct sandboxes *all, const char *owner, const struct session_wish *wish,
		 object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct object_put put = { .owner = owner, .state = SESSION_OPEN };
	struct session_wish kept = *wish;
	struct err err = { 0 };
	char made[ID_LEN + 1];
	int r;

	id_make(made);
	put.name = wish->id ? wish->id : made;
	r = check_id(put.name, &err);
	if (r == 0)
		r = check_workspace(all, owner, &wish->workspace, &err);
	if (r == 0)
		r = check_pairs(&wish->metadata, false, &err);
	if (!kept.user)
		kept.user = owner;
	if (r == 0 && (r = session_text(&kept, &b)) < 0)
		(void)err_sys(&err, r, "session");
	if (r < 0)
		return cb(user, NULL, &err);
	put.text = buf_str(&b);
	objects_add(table(all), &put, cb, user);
}

static struct object *if_open(struct object *o)
{
	return o && o->state == SESSION_OPEN ? o : NULL;
}

struct object *session_find(struct sandboxes *all, const char *owner, const char *id)
{
	return if_open(objects_by_name(table(all), owner, id));
}

struct object *session_find_any(struct sandboxes *all, const char *uid)
{
	return if_open(objects_find(table(all), uid, NULL));
}

void session_box_name(const char *uid, char ret[SESSION_BOX_NAME_SIZE])
{
	(void)str_format(ret, SESSION_BOX_NAME_SIZE, SESSION_BOX_PREFIX "%s", uid);
}

struct sandbox *session_sandbox(struct sandboxes *all, const struct object *session)
{
	char name[SESSION_BOX_NAME_SIZE];

	session_box_name(session->id, name);
	return sandboxes_find(all, name, session->owner);
}

bool session_is_kept(struct sandboxes *all, const struct sandbox_info *info)
{
	const struct object *o = NULL;

	if (strncmp(info->name, SESSION_BOX_PREFIX, strlen(SESSION_BOX_PREFIX)) == 0)
		o = session_find_any(all, info->name + strlen(SESSION_BOX_PREFIX));
	return o && strcmp(o->owner, info->owner) == 0 &&
	       ((const struct session *)o->data)->wish.workspace.timeout_ms == 0;
}

void sessions_end_owner(struct sandboxes *all, const char *owner)
{
	objects_end_owner(table(all), owner);
}
