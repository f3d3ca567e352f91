/* get_skill, install_skill: instructions for a model, and the files that they speak of. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "auth/scope.h"
#include "base/arena.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/tar.h"
#include "sandbox/files.h"
#include "tools/file_work.h"
#include "tools/impl.h"
#include "tools/skill_uri.h"
#include "tools/skills.h"
#include "json/jw.h"

#define INSTALL_DIR TOOL_HOME "/.skills"
#define ABOUT_MAX (16u << 10) /* of all descriptions; behind that only names */
#define FILE_MAX (256u << 10) /* of a file that is given to a model at once */

static const struct skill_set *skills_of(const struct tools *all)
{
	static const struct skill_set none;

	return all->deps.skills ? skills_now(all->deps.skills) : &none;
}

static const struct skill *find(struct tool_call *t, const char *name)
{
	const struct skill *s = skill_set_find(skills_of(t->all), name);

	if (!s)
		tool_fail(t,
			  "there is no skill '%.64s': those that there are stand in the "
			  "description of get_skill",
			  name);
	return s;
}

/* ---- get_skill ---- */

struct get_args {
	const char *name, *file;
};

static const struct jv_field get_fields[] = {
	JV_FIELD("name", STRING, struct get_args, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SKILL_NAME_MAX, .help = "of the skill"),
	JV_FIELD("file", STRING, struct get_args, file, .min = 1, .max = SKILL_PATH_MAX,
		 .help = "a file of the skill; " SKILL_MANIFEST " unless given"),
};

static void describe(struct tools *all, struct buf *ret)
{
	const struct skill_set *set = skills_of(all);
	size_t start;

	(void)buf_puts(ret, "Reads a skill: instructions for a kind of task, written by people "
			    "who know it. Read the one that fits before you begin.");
	if (set->n_skills == 0) {
		(void)buf_puts(ret, " There are none now.");
		return;
	}
	(void)buf_puts(ret, " Skills:\n");
	start = ret->len;
	for (size_t i = 0; i < set->n_skills; i++) {
		const struct skill_front *f = &set->skills[i].front;

		if (ret->len - start + strlen(f->about) < ABOUT_MAX)
			(void)buf_printf(ret, "- %s: %s\n", f->name, f->about);
		else
			(void)buf_printf(ret, "- %s\n", f->name);
	}
}

/* What else there is: scripts and references that the instructions speak of. */
static void tell_others(struct tool_call *t, const struct skill *s)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (s->n_files < 2)
		return;
	(void)buf_puts(&b, "Further files of this skill (get_skill with file reads one, "
			   "install_skill puts all of them into your sandbox):\n");
	for (size_t i = 0; i < s->n_files; i++) {
		if (strcmp(s->files[i].path, SKILL_MANIFEST) != 0)
			(void)buf_printf(&b, "- %s (%zu bytes)\n", s->files[i].path,
					 s->files[i].size);
	}
	tool_text(t, buf_str(&b), b.len);
}

static void tell_bytes(struct tool_call *t, const struct skill *s, const struct skill_file *f)
{
	_cleanup_(buf_done) struct buf block = { 0 }, uri = { 0 };
	char *text = arena_alloc(t->arena, BASE64_SIZE(f->size));
	struct jw w = jw_begin(&block);

	if (!text || skill_uri(&uri, s->front.name, f->path) < 0)
		return tool_fail(t, "out of memory");
	jw_object_begin(&w);
	jw_str_field(&w, "type", "resource");
	jw_key(&w, "resource");
	jw_object_begin(&w);
	jw_str_field(&w, "uri", buf_str(&uri));
	jw_str_field(&w, "mimeType", f->type);
	jw_key(&w, "blob");
	jw_string_n(&w, text, encode_base64(f->data, f->size, text));
	jw_object_end(&w);
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return tool_fail(t, "out of memory");
	tool_block(t, buf_str(&block));
	tool_done(t);
}

static void get_run(struct tool_call *t)
{
	const struct get_args *a = t->args;
	const char *path = a->file ? a->file : SKILL_MANIFEST;
	const struct skill *s = find(t, a->name);
	const struct skill_file *f;

	if (!s)
		return;
	f = skill_find_file(s, path);
	if (!f)
		return tool_fail(t, "the skill '%s' has no file '%.200s'", s->front.name, path);
	if (f->size > FILE_MAX)
		return tool_fail(t,
				 "'%.200s' has %zu bytes, more than the %u that can be given here: "
				 "put the skill into a sandbox with install_skill",
				 path, f->size, FILE_MAX);
	if (!f->is_text)
		return tell_bytes(t, s, f);
	tool_text(t, f->data, f->size);
	if (!a->file)
		tell_others(t, s);
	tool_done(t);
}

/* ---- install_skill ---- */

struct install_args {
	const char *name;
};

struct installed { /* only what is told */
	const char *name, *path;
	uint64_t files, bytes;
};

static const struct jv_field install_fields[] = {
	JV_FIELD("name", STRING, struct install_args, name, .flags = JV_REQUIRED, .min = 1,
		 .max = SKILL_NAME_MAX, .help = "of the skill"),
};

static const struct jv_field installed_fields[] = {
	JV_FIELD("name", STRING, struct installed, name, .flags = JV_REQUIRED,
		 .help = "of the skill"),
	JV_FIELD("path", STRING, struct installed, path, .flags = JV_REQUIRED,
		 .help = "the folder in the sandbox"),
	JV_FIELD("files", U64, struct installed, files, .flags = JV_REQUIRED, .help = "how many"),
	JV_FIELD("bytes", U64, struct installed, bytes, .flags = JV_REQUIRED,
		 .help = "of all files"),
};

struct install {               /* arena */
	struct file_work work; /* first; its data is the archive */
	struct installed told;
};

static int add_member(struct buf *b, const struct tar_member *m, const char *data)
{
	static const char zeros[TAR_BLOCK];

	(void)tar_write_member(b, m);
	(void)buf_append(b, data, (size_t)m->size);
	return buf_append(b, zeros, tar_padding(m->size));
}

/* Directories of a file that the one before it, in the order of names, did not have. */
static void add_dirs(struct tool_call *t, struct buf *b, const char *path, const char *before)
{
	for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
		size_t n = (size_t)(at - path);
		struct tar_member m = { .type = TAR_DIR, .mode = 0755, .link = "" };

		if (strncmp(path, before, n + 1) == 0)
			continue;
		m.path = arena_strndup(t->arena, path, n);
		if (!m.path)
			b->failed = true;
		else
			(void)add_member(b, &m, "");
	}
}

static int pack(struct tool_call *t, const struct skill *s, struct buf *b)
{
	const char *before = "";

	for (size_t i = 0; i < s->n_files; i++) {
		const struct skill_file *f = &s->files[i];
		struct tar_member m = { .type = TAR_FILE,
					.mode = f->is_program ? 0755 : 0644,
					.size = f->size,
					.path = f->path,
					.link = "" };

		add_dirs(t, b, f->path, before);
		(void)add_member(b, &m, f->data);
		before = f->path;
	}
	return tar_write_end(b);
}

static void unpacked(void *user, uint64_t count)
{
	struct install *in = user;
	struct tool_call *t = in->work.call;
	struct jw w = jw_begin(&t->structured);

	(void)count;
	in->work.op = NULL;
	file_work_end(&in->work);
	jw_object_begin(&w);
	jw_str_field(&w, "name", in->told.name);
	jw_str_field(&w, "path", in->told.path);
	jw_uint_field(&w, "files", in->told.files);
	jw_uint_field(&w, "bytes", in->told.bytes);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void put(struct install *in)
{
	static const struct file_ops ops = { .room = file_work_room,
					     .done = unpacked,
					     .failed = file_work_failed };
	struct guest_file f = { .op = FILE_TAR_PUT, .flags = FILE_PARENTS };

	if (file_work_start(&in->work, &f, &ops))
		file_work_room(in);
}

static void removed(void *user, uint64_t count)
{
	struct install *in = user;

	(void)count;
	in->work.op = NULL;
	put(in);
}

static void not_removed(void *user, const struct err *err)
{
	struct install *in = user;

	if (err->code != ENOENT)
		return file_work_failed(user, err);
	in->work.op = NULL;
	put(in);
}

/* Files of an earlier version are not to stay: the folder is gone first. */
static void install_run(struct tool_call *t)
{
	static const struct file_ops ops = { .done = removed, .failed = not_removed };
	struct guest_file f = { .op = FILE_REMOVE, .flags = FILE_RECURSIVE };
	const struct install_args *a = t->args;
	const struct skill *s = find(t, a->name);
	struct install *in;
	const char *path;

	if (!s)
		return;
	path = arena_printf(t->arena, INSTALL_DIR "/%s", s->front.name);
	if (!path)
		return tool_fail(t, "out of memory");
	in = file_work_create(t, sizeof(*in), path);
	if (!in)
		return;
	in->told = (struct installed){ a->name, path, s->n_files, s->bytes };
	if (pack(t, s, &in->work.data) < 0) {
		file_work_end(&in->work);
		return tool_fail(t, "out of memory");
	}
	(void)file_work_start(&in->work, &f, &ops);
}

static bool has_skills(const struct tools *all)
{
	return skills_of(all)->n_skills > 0;
}

static const struct tool rows[] = {
	{
		.name = "get_skill",
		.title = "Read a skill",
		.in = get_fields,
		.n_in = TOOL_ARRAY_LEN(get_fields),
		.size = sizeof(struct get_args),
		.hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
		.scopes = SCOPE_FILE_READ,
		.describe = describe,
		.run = get_run,
	},
	{
		.name = "install_skill",
		.title = "Put a skill into the sandbox",
		.about = "Puts all files of a skill into the sandbox, below " INSTALL_DIR
			 ", so that its scripts can be run there. An earlier copy is replaced.",
		.in = install_fields,
		.n_in = TOOL_ARRAY_LEN(install_fields),
		.size = sizeof(struct install_args),
		.out = installed_fields,
		.n_out = TOOL_ARRAY_LEN(installed_fields),
		.hints = TOOL_IDEMPOTENT | TOOL_DESTRUCTIVE,
		.flags = TOOL_IN_BOX | TOOL_HIDDEN,
		.scopes = SCOPE_FILE_WRITE,
		.is_there = has_skills,
		.run = install_run,
	},
};

const struct tool_table tools_skill_table = { rows, TOOL_ARRAY_LEN(rows) };
