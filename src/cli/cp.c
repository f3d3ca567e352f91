#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/copy.h"
#include "httpc/url.h"

#define ID_MAX 256

int place_target(const struct place *p, const char *what, struct buf *b)
{
	int r = client_path(b, "sandboxes/%/%", p->sandbox, what);

	if (r < 0)
		return r;
	if (strcmp(what, "archive") == 0)
		return url_add_query(b, "path", p->path);
	return url_escape_path(b, p->path);
}

int place_name(const char *path, const char **ret, struct err *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (strcmp(name, "..") == 0)
		return err_set(err, EINVAL, "'%.150s': a path that ends with .. names nothing",
			       path);
	*ret = name[0] && strcmp(name, ".") != 0 ? name : NULL;
	return 0;
}

static enum place_kind kind_of(struct jv entry)
{
	const char *type = jv_text(jv_get(entry, "type"));

	if (type && strcmp(type, "file") == 0)
		return PLACE_FILE;
	return type && strcmp(type, "directory") == 0 ? PLACE_DIR : PLACE_OTHER;
}

/* Where a link leads: what can be read is a file, and what is said to be a directory is one. */
static int look_behind(struct client *c, const char *target, enum place_kind *ret, struct err *err)
{
	struct httpc_request req = { .method = "HEAD", .target = target };
	int r = client_call(c, &req, "looking", NULL, err);

	if (r < 0 && r != -EBUSY)
		return r;
	*ret = r == 0 ? PLACE_FILE : PLACE_DIR;
	err_clear(err);
	return 0;
}

static uint32_t mode_of(struct jv entry)
{
	const char *text = jv_text(jv_get(entry, "mode"));
	uint32_t mode = 0;

	for (; text && *text >= '0' && *text <= '7'; text++)
		mode = mode << 3 | (uint32_t)(*text - '0');
	return mode & 0777;
}

int place_look(struct client *c, const struct place *p, enum place_kind *ret, uint32_t *ret_mode,
	       struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 }, plain = { 0 };
	const char *type;
	int r = place_target(p, "files", &target);

	(void)buf_puts(&plain, buf_str(&target));
	if (r == 0)
		r = url_add_query(&target, "stat", "1");
	if (r == 0)
		r = client_json(c, "GET", target.data, NULL, &d, err);
	if (r == -ENOENT && c->status == 404) {
		*ret = PLACE_NONE;
		return 0;
	}
	if (r < 0)
		return r;
	if (ret_mode)
		*ret_mode = mode_of(jv_root(d.doc));
	*ret = kind_of(jv_root(d.doc));
	type = jv_text(jv_get(jv_root(d.doc), "type"));
	if (!type || strcmp(type, "symlink") != 0)
		return 0;
	if (ret_mode)
		*ret_mode = 0644;
	return look_behind(c, buf_str(&plain), ret, err);
}

/* "ID:/path": a colon before any slash. Otherwise false, and it is a path of this machine. */
static bool parse_place(const char *text, char id[ID_MAX], struct place *ret)
{
	size_t n = strcspn(text, ":/");

	if (n == 0 || text[n] != ':' || n >= ID_MAX)
		return false;
	memcpy(id, text, n);
	id[n] = '\0';
	*ret = (struct place){ id, text + n + 1 };
	return true;
}

static int run(struct client *c, void *args, int n, char **operands, struct err *err)
{
	char ids[2][ID_MAX];
	struct place from, to;
	bool out = parse_place(operands[0], ids[0], &from);
	bool in = parse_place(operands[1], ids[1], &to);

	(void)args;
	(void)n;
	if (in == out)
		return err_set(err, EINVAL,
			       "%s: one side is ID:/path, the other a path of this machine or -",
			       in ? "both sides are sandboxes" : "no side is a sandbox");
	if ((in ? to.path : from.path)[0] != '/')
		return err_set(err, EINVAL, "'%.150s': the path in a sandbox begins with /",
			       in ? operands[1] : operands[0]);
	return in ? copy_in(c, operands[0], &to, err) : copy_out(c, &from, operands[1], err);
}

int cmd_cp(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 2, 2, run };

	return client_run(cmd, argc, argv, &task);
}
