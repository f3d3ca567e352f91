/* Steps of a build as E2B's clients write them, and what they become. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/package_plan.h"
#include "api/problem.h"
#include "auth/principal.h"
#include "auth/scope.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/template_names.h"
#include "e2b/templates.h"
#include "net/http.h"
#include "sandbox/build.h"
#include "sandbox/build_files.h"
#include "sandbox/root_find.h"
#include "sandbox/sandbox.h"

#define SHELL "/bin/bash"

/* What COPY does: its archive, packed in whatever way, is standard input; the arguments are what is
 * wanted of it, where it goes, whose it is then and with which mode. One file goes to that very
 * path; of a directory, what is in it; several go into it. */
static const char copy_script[] =
	"set -e\n"
	"tmp=$(mktemp -d); trap 'rm -rf \"$tmp\"' EXIT\n"
	"cat >\"$tmp/archive\"; mkdir \"$tmp/in\"; tar -xf \"$tmp/archive\" -C \"$tmp/in\"\n"
	"case $2 in /*) to=$2 ;; *) to=$PWD/$2 ;; esac\n"
	"owner=$3; [ -n \"$owner\" ] || owner=$(id -nu 1000 2>/dev/null || echo root)\n"
	"[ \"$(id -u)\" = 0 ] || owner=$(id -nu)\n" /* there is nobody else */
	"cd \"$tmp/in\"; chown -R -h -- \"$owner:\" .\n"
	"if [ -n \"$4\" ]; then find . -type f -exec chmod -- \"$4\" {} +\n"
	"case $4 in *[1357][0-7][0-7]) find . -mindepth 1 -type d -exec chmod -- \"$4\" {} + ;; "
	"esac; fi\n"
	"mk() { [ -d \"$1\" ] || { mkdir -p -- \"$1\"; chown -- \"$owner:\" \"$1\"; }; }\n"
	"shopt -s nullglob dotglob; IFS=\n"
	"found=(\"$1\"); [ -e \"$1\" ] || [ -L \"$1\" ] || found=($1)\n"
	"if [ ! -e \"${found[0]}\" ] && [ ! -L \"${found[0]}\" ]; then echo \"COPY: there is no "
	"'$1'\" >&2; exit 1; fi\n"
	"for one in \"${found[@]}\"; do\n"
	"if [ -d \"$one\" ] && [ ! -L \"$one\" ]; then\n"
	"  mk \"$to\"; all=(\"$one\"/*); [ ${#all[@]} -eq 0 ] || cp -a -- \"${all[@]}\" \"$to\"\n"
	"else\n"
	"  case $to in */) dir=1 ;; *) dir= ;; esac\n"
	"  if [ ${#found[@]} -gt 1 ] || [ -d \"$to\" ]; then dir=1; fi\n"
	"  if [ -n \"$dir\" ]; then mk \"$to\"; else mk \"$(dirname -- \"$to\")\"; fi\n"
	"  cp -a -- \"$one\" \"$to\"\n"
	"fi\n"
	"done\n";

/* A new working directory is the user's, wherever it is: a step of ours in front of WORKDIR. */
static const char workdir_script[] =
	"[ ! -d \"$1\" ] || exit 0\n"
	"mkdir -p -- \"$1\" || exit\n"
	"[ \"$(id -u)\" = 0 ] || exit 0\n" /* there is nobody else */
	"chown -- \"${2:-$(id -nu 1000 2>/dev/null || echo root)}:\" \"$1\"\n";

/* Who runs what names nobody is "user": an image does not know that one. Its line goes first, as
 * the name of a number that the image may have given to another. */
static const char user_script[] =
	"put() { { echo \"$2\"; cat \"$1\" 2>/dev/null; } >\"$1.new\" && mv \"$1.new\" \"$1\"; }\n"
	"if ! id -u user >/dev/null 2>&1; then\n"
	"put /etc/passwd user:x:1000:1000:user:/home/user:/bin/bash || exit\n"
	"put /etc/group user:x:1000: || exit\n"
	"fi\n"
	"[ ! -d /home/user ] || exit 0\n"
	"mkdir -p /home/user || exit\n"
	"[ \"$(id -u)\" != 0 ] || chown user: /home/user\n";

bool template_step_is_ours(const struct build_step *s)
{
	return s->type == BUILD_RUN && s->args.len > 3 &&
	       (strcmp(s->args.items[2], workdir_script) == 0 ||
		strcmp(s->args.items[2], user_script) == 0);
}

static bool set_args(struct api_call *c, struct build_step *to, const char *const *args, size_t n)
{
	const char **items = arena_array(http_arena(c->http), n, sizeof(*items));

	if (!items) {
		problem_reply(c, &(struct err){ ENOMEM, "steps" });
		return false;
	}
	memcpy(items, args, n * sizeof(*items));
	to->args = (struct jv_strings){ items, n };
	return true;
}

static const char *arg(const struct body_step *s, size_t i)
{
	return i < s->args.len ? s->args.items[i] : "";
}

/* What stands behind the words of an installer, as the SDKs write it; false: it is no such list. */
static bool take_words(struct api_call *c, const char *text, struct jv_strings *ret)
{
	struct arena *a = http_arena(c->http);
	const char **items = arena_array(a, PACKAGES_MAX, sizeof(*items));
	struct str rest = str_of(text), word;
	size_t n = 0;

	while (items && str_split(&rest, ' ', &word)) {
		if (word.len == 0 || str_is(word, "--user"))
			continue;
		if (n == PACKAGES_MAX || word.data[0] == '-' || word.data[0] == '.')
			return false;
		items[n] = arena_strndup(a, word.data, word.len);
		if (!items[n++])
			return false;
	}
	*ret = (struct jv_strings){ items, n };
	return items && n > 0;
}

/* Boxes have no way out but to the registries that the operator has named: what installs packages
 * of Python, and nothing else, becomes the step that has one. */
static bool take_packages(struct api_call *c, const struct body_step *s, struct build_step *to)
{
	static const char begin[] = "pip install ";
	const struct build_network *n = &c->api->build_network;
	struct err err = { 0 };

	if (strncmp(arg(s, 0), begin, strlen(begin)) != 0 || !n->check ||
	    !take_words(c, arg(s, 0) + strlen(begin), &to->args) ||
	    n->check(n->user, BUILD_PIP, &to->args, &err) < 0)
		return false;
	to->type = BUILD_PIP;
	return true;
}

static bool take_run(struct api_call *c, const struct body_step *s, struct build_step *to)
{
	const char *args[] = { SHELL, "-l", "-c", arg(s, 0) };

	if (args[3][0] == '\0') {
		problem_field(c, "steps", "steps: RUN wants a command");
		return false;
	}
	if (take_packages(c, s, to)) /* for the template's user, whoever the step names */
		return true;
	to->type = BUILD_RUN;
	to->is_online = true;
	to->user = arg(s, 1)[0] ? arg(s, 1) : NULL;
	return set_args(c, to, args, sizeof(args) / sizeof(args[0]));
}

/* user: whose the files are unless the step says it. */
static bool take_copy(struct api_call *c, const struct body_step *s, const char *user,
		      struct build_step *to)
{
	const char *owner = arg(s, 2)[0] ? arg(s, 2) : user;
	const char *args[] = { SHELL,     "-c",      copy_script, "copy",
			       arg(s, 0), arg(s, 1), owner,       arg(s, 3) };
	char *label = arena_alloc(http_arena(c->http), BUILD_FILE_NAME_MAX + 1);

	if (!label) {
		problem_reply(c, &(struct err){ ENOMEM, "steps" });
		return false;
	}
	if (s->args.len < 2 || !s->files || !build_hash_is_valid(s->files)) {
		problem_field(c, "steps", "steps: COPY wants what, where to and its filesHash");
		return false;
	}
	(void)str_format(label, BUILD_FILE_NAME_MAX + 1, BUILD_LABEL "%s", s->files);
	to->type = BUILD_RUN;
	to->user = "root";
	to->files = label;
	return set_args(c, to, args, sizeof(args) / sizeof(args[0]));
}

static bool take_plain(struct api_call *c, const struct body_step *s, int type, size_t n,
		       struct build_step *to)
{
	if (s->args.len == 0 || (n > 0 && s->args.len != n)) {
		problem_field(c, "steps", "steps: %s has not the arguments that it wants", s->type);
		return false;
	}
	to->type = type;
	to->args = s->args;
	return true;
}

static bool take_workdir(struct api_call *c, const struct body_step *s, const char *user,
			 struct build_step *to)
{
	const char *args[] = { SHELL, "-c", workdir_script, "workdir", arg(s, 0), user };

	to->type = BUILD_RUN;
	to->user = "root";
	to->force = s->force;
	return set_args(c, to, args, sizeof(args) / sizeof(args[0]));
}

static bool take_user(struct api_call *c, struct build_step *to)
{
	static const char *const args[] = { "/bin/sh", "-c", user_script, "user" };

	to->type = BUILD_RUN;
	to->user = "root";
	return set_args(c, to, args, sizeof(args) / sizeof(args[0]));
}

static bool take_step(struct api_call *c, const struct body_step *s, const char **user,
		      struct build_step *to)
{
	to->force = s->force;
	if (strcmp(s->type, "RUN") == 0)
		return take_run(c, s, to);
	if (strcmp(s->type, "COPY") == 0)
		return take_copy(c, s, *user, to);
	if (strcmp(s->type, "ENV") == 0)
		return take_plain(c, s, BUILD_ENV, 0, to);
	if (strcmp(s->type, "WORKDIR") == 0)
		return take_plain(c, s, BUILD_WORKDIR, 1, to);
	if (strcmp(s->type, "USER") == 0) {
		*user = arg(s, 0);
		return take_plain(c, s, BUILD_USER, 1, to);
	}
	problem_field(c, "steps", "steps: '%.32s' is none: want RUN, COPY, ENV, WORKDIR or USER",
		      s->type);
	return false;
}

bool template_steps(struct api_call *c, const struct jv_objects *from, bool is_forced,
		    struct build_wish *wish)
{
	const struct body_step *steps = from->items;
	struct build_step *to = arena_array(http_arena(c->http), 2 * from->len + 2, sizeof(*to));
	const char *user = "";
	size_t n = 0;

	if (!to) {
		problem_reply(c, &(struct err){ ENOMEM, "steps" });
		return false;
	}
	if (wish->root && !take_user(c, &to[n++]))
		return false;
	for (size_t i = 0; i < from->len; i++) {
		if (strcmp(steps[i].type, "WORKDIR") == 0 &&
		    !take_workdir(c, &steps[i], user, &to[n++]))
			return false;
		if (!take_step(c, &steps[i], &user, &to[n++]))
			return false;
	}
	to[0].force |= is_forced; /* and so are all behind it */
	wish->steps = to;
	wish->n_steps = n;
	if (n <= BUILD_STEPS_MAX)
		return true;
	problem_field(c, "steps", "steps: at most %d, where WORKDIR is two", BUILD_STEPS_MAX);
	return false;
}

/* The images that E2B's own templates are made of are here what those are. */
static const char *own_image(const char *image)
{
	static const char prefix[] = "e2bdev/";
	const char *name = image + strlen(prefix);
	char bare[64];

	if (strncmp(image, prefix, strlen(prefix)) != 0 ||
	    str_format(bare, sizeof(bare), "%.*s", (int)strcspn(name, ":@"), name) < 0)
		return NULL;
	return template_names_own(bare);
}

/* Files of the machine: only for keys that may use them. */
static bool take_image(struct api_call *c, const char *image, struct build_wish *wish)
{
	struct root_found *found = arena_alloc(http_arena(c->http), sizeof(*found));
	struct err err = { 0 };

	if (!found || principal_check(c->who, SCOPE_IMAGE, &err) < 0) {
		problem_reply(c, found ? &err : &(struct err){ ENOMEM, "image" });
		return false;
	}
	if (root_find(c->api->deps.sandboxes, image, found) < 0) {
		problem_field(c, "fromImage",
			      "fromImage: this server reaches no registry, and has no image "
			      "'%.80s' of its own below images_dir: build from the base image, "
			      "from a template, or have the operator put it there",
			      image);
		return false;
	}
	wish->from = template_names_own("base");
	wish->root = found->path;
	wish->root_kind = found->kind;
	return true;
}

bool template_base_find(struct api_call *c, const char *template, const char *image,
			struct build_wish *wish)
{
	struct sandbox_request found = { 0 };

	wish->from = wish->snapshot = "";
	if (!template && !image)
		template = "base";
	if (template && !template_names_find(c, template, &found))
		return false;
	if (template) {
		wish->from = found.template;
		wish->snapshot = found.snapshot ? found.snapshot : "";
		return true;
	}
	wish->from = own_image(image);
	return wish->from || take_image(c, image, wish);
}
