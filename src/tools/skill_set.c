#include "tools/skill_set.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/walk.h"
#include "tools/media_type.h"

/* Beside the files' bytes: names, sums and heads of the most that there can be. */
#define ARENA_MAX (SKILLS_BYTES_MAX + (128u << 20))
#define WATCHED                                                                             \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ATTRIB | \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct owned_set {
	struct skill_set set; /* first: what others hold */
	struct arena *arena;  /* owned: all that the set names */
	unsigned refs;
};

struct reader {
	struct arena *arena; /* borrowed */
	int watch_fd;
	bool is_watched;
	struct skill *skills;
	size_t n_skills;
	struct skill_problem *problems;
	size_t n_problems;
	uint64_t bytes;
};

/* ---- opening ---- */

/* Never through a link, never out of the directory, never waiting for a FIFO's other end. */
static int open_below(int dir_fd, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned)flags | O_RDONLY | O_NONBLOCK | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void watch(struct reader *r, int dir_fd)
{
	char path[64];

	if (r->watch_fd < 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	if (inotify_add_watch(r->watch_fd, path, WATCHED) < 0)
		r->is_watched = false;
}

static void watch_entry(struct reader *r, const struct walk_entry *e)
{
	_close_ int fd = r->watch_fd < 0 ? -1 : open_below(e->dir_fd, e->name, O_DIRECTORY);

	if (fd >= 0)
		watch(r, fd);
}

/* ---- what is in a skill ---- */

static int check_mode(const struct stat *st, const char *path, struct err *err)
{
	if (S_ISLNK(st->st_mode))
		return err_set(err, EINVAL, "'%.150s' is a link, and links are not followed", path);
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return err_set(err, EINVAL, "'%.150s' is neither a file nor a directory", path);
	if (st->st_mode & S_IWOTH)
		return err_set(err, EINVAL, "'%.150s' can be written by anybody", path);
	return 0;
}

/* Names go into addresses and terminals. */
static int check_path(const char *path, struct err *err)
{
	size_t n = strlen(path), levels = 1;

	if (n > SKILL_PATH_MAX)
		return err_set(err, EINVAL, "'%.60s...' is %zu bytes long, limit %u", path, n,
			       SKILL_PATH_MAX);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)path[i] < 0x20 || path[i] == 0x7f || path[i] == '\\')
			return err_set(err, EINVAL, "the name of a file has odd characters");
		levels += path[i] == '/';
	}
	if (levels > SKILL_LEVELS_MAX)
		return err_set(err, EINVAL, "is nested more than %u deep", SKILL_LEVELS_MAX);
	return utf8_is_valid(path, n) ? 0 : err_set(err, EINVAL, "the name of a file is not UTF-8");
}

static int add_file(struct reader *r, struct skill *s, const struct walk_entry *e, struct err *err)
{
	struct skill_file *f = &s->files[s->n_files];

	if (s->n_files == SKILL_FILES_MAX)
		return err_set(err, E2BIG, "has more than %u files", SKILL_FILES_MAX);
	if ((uint64_t)e->st.st_size > SKILL_BYTES_MAX - s->bytes)
		return err_set(err, E2BIG, "has more than %u MiB", SKILL_BYTES_MAX >> 20);
	*f = (struct skill_file){ .path = arena_strndup(r->arena, e->path, strlen(e->path)),
				  .size = (size_t)e->st.st_size };
	if (!f->path)
		return -ENOMEM;
	s->bytes += f->size;
	s->n_files++;
	return 0;
}

/* All names first: a skill that is too big is not read at all. */
static int find_files(struct reader *r, int dir_fd, struct skill *s, struct err *err)
{
	_cleanup_(walk_free_p) struct walk *w = NULL;
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	struct walk_entry e;
	int n = fd < 0 ? err_sys(err, errno, "read")
		       : walk_create(fd, SKILL_LEVELS_MAX + 1, &w, err);

	while (n >= 0) {
		e = (struct walk_entry){ 0 };
		n = walk_next(w, &e, err);
		if (n <= 0)
			return n;
		if (e.name[0] == '.') {
			if (S_ISDIR(e.st.st_mode))
				walk_prune(w);
			continue;
		}
		if (e.failed)
			return err_sys(err, e.failed, "'%.150s'", e.path);
		n = check_mode(&e.st, e.path, err);
		if (n == 0)
			n = check_path(e.path, err);
		if (n == 0 && S_ISDIR(e.st.st_mode))
			watch_entry(r, &e);
		else if (n == 0)
			n = add_file(r, s, &e, err);
	}
	return n;
}

/* The file may be another one by now: what was checked is checked of what was opened. */
static int read_file(struct reader *r, int dir_fd, struct skill_file *f, struct err *err)
{
	_close_ int fd = open_below(dir_fd, f->path, 0);
	uint8_t sum[HASH_LEN];
	struct stat st;
	char *data;
	ssize_t n;

	if (fd < 0)
		return err_sys(err, fd, "'%.150s'", f->path);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%.150s'", f->path);
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size != f->size)
		return err_set(err, ESTALE, "'%.150s' was changed while it was read", f->path);
	data = arena_alloc(r->arena, f->size + 1);
	if (!data)
		return -ENOMEM;
	n = fd_read_all(fd, data, f->size);
	if (n < 0)
		return err_sys(err, (int)n, "'%.150s'", f->path);
	if ((size_t)n != f->size)
		return err_set(err, ESTALE, "'%.150s' was changed while it was read", f->path);
	if (hash_sha256(data, f->size, sum) < 0)
		return -ENOMEM;
	encode_hex(sum, sizeof(sum), f->digest);
	f->data = data;
	f->type = media_type(f->path);
	f->is_text = !memchr(data, '\0', f->size) && utf8_is_valid(data, f->size);
	f->is_program = st.st_mode & S_IXUSR;
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct skill_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int by_name(const void *a, const void *b)
{
	const struct skill *x = a, *y = b;

	return strcmp(x->front.name, y->front.name);
}

static int read_manifest(struct reader *r, int dir_fd, const char *name, struct skill *s,
			 struct err *err)
{
	struct skill_file *f = NULL;
	int n;

	for (size_t i = 0; i < s->n_files && !f; i++)
		f = strcmp(s->files[i].path, SKILL_MANIFEST) == 0 ? &s->files[i] : NULL;
	if (!f)
		return err_set(err, EINVAL, "has no " SKILL_MANIFEST);
	n = read_file(r, dir_fd, f, err);
	return n < 0 ? n : skill_front_read(f->data, f->size, name, r->arena, &s->front, err);
}

static int read_skill(struct reader *r, int dir_fd, const char *name, struct skill *s,
		      struct err *err)
{
	struct skill_file *files = s->files;
	int n;

	if (!skill_name_is_valid(name))
		return err_set(err, EINVAL,
			       "the folder's name: want [a-z0-9] and single hyphens inside, up to "
			       "%u",
			       SKILL_NAME_MAX);
	watch(r, dir_fd);
	n = find_files(r, dir_fd, s, err);
	if (n == 0 && r->bytes + s->bytes > SKILLS_BYTES_MAX)
		n = err_set(err, E2BIG, "all skills together have more than %u MiB",
			    SKILLS_BYTES_MAX >> 20);
	if (n == 0)
		n = read_manifest(r, dir_fd, name, s, err);
	for (size_t i = 0; n == 0 && i < s->n_files; i++) {
		if (!files[i].data)
			n = read_file(r, dir_fd, &files[i], err);
	}
	if (n < 0)
		return n;
	qsort(files, s->n_files, sizeof(*files), by_path);
	s->files = arena_array(r->arena, s->n_files, sizeof(*files));
	if (!s->files)
		return -ENOMEM;
	memcpy(s->files, files, s->n_files * sizeof(*files));
	return 0;
}

/* ---- the directory ---- */

static int add_problem(struct reader *r, const char *name, const struct err *why)
{
	struct skill_problem p = { arena_strndup(r->arena, name, strlen(name)),
				   arena_strndup(r->arena, why->text, strlen(why->text)) };

	if (!p.name || !p.why)
		return -ENOMEM;
	if (r->n_problems < SKILLS_MAX)
		r->problems[r->n_problems++] = p;
	return 0;
}

/* 0 also when it is left out. */
static int add_skill(struct reader *r, int dir_fd, const char *name)
{
	static const size_t room = SKILL_FILES_MAX * sizeof(struct skill_file);
	_free_ struct skill_file *files = calloc(1, room);
	struct skill s = { .files = files };
	struct err err = { 0 };
	int n;

	if (!files)
		return -ENOMEM;
	if (r->n_skills == SKILLS_MAX)
		n = err_set(&err, E2BIG, "there are more than %u skills", SKILLS_MAX);
	else
		n = read_skill(r, dir_fd, name, &s, &err);
	if (n == -ENOMEM)
		return n;
	if (n < 0)
		return add_problem(r, name, &err);
	r->bytes += s.bytes;
	r->skills[r->n_skills++] = s;
	return 0;
}

static int add_entry(struct reader *r, int top_fd, const char *name)
{
	struct err err = { 0 };
	struct stat st;
	_close_ int fd = -1;

	if (name[0] == '.')
		return 0;
	if (fstatat(top_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone: the watch tells */
	if (S_ISREG(st.st_mode))
		return 0; /* a README of people's */
	if (check_mode(&st, name, &err) < 0)
		return add_problem(r, name, &err);
	fd = open_below(top_fd, name, O_DIRECTORY);
	if (fd < 0) {
		(void)err_sys(&err, fd, "open");
		return add_problem(r, name, &err);
	}
	return add_skill(r, fd, name);
}

static int read_top(struct reader *r, const char *dir)
{
	_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents dents = { 0 };
	struct err err = { 0 };
	struct stat st;
	struct dent d;
	int n;

	if (fd < 0) {
		r->is_watched = false;
		if (errno == ENOENT)
			return 0;
		(void)err_sys(&err, errno, "'%.150s'", dir);
		return add_problem(r, "", &err);
	}
	watch(r, fd);
	if (fstat(fd, &st) < 0 || st.st_mode & S_IWOTH) {
		(void)err_set(&err, EPERM, "'%.150s' can be written by anybody", dir);
		return add_problem(r, "", &err);
	}
	while ((n = dents_next(&dents, fd, &d)) > 0) {
		n = add_entry(r, fd, d.name);
		if (n < 0)
			return n;
	}
	if (n == 0)
		return 0;
	(void)err_sys(&err, n, "'%.150s'", dir);
	return add_problem(r, "", &err);
}

/* ---- the set ---- */

static int problem_order(const void *a, const void *b)
{
	const struct skill_problem *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int sum(struct skill_set *set)
{
	struct hash *h = hash_create();
	int r = h ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < set->n_skills; i++) {
		const struct skill *s = &set->skills[i];

		r = hash_update(h, s->front.name, strlen(s->front.name) + 1);
		for (size_t k = 0; r == 0 && k < s->n_files; k++) {
			const struct skill_file *f = &s->files[k];

			r = hash_update(h, f->path, strlen(f->path) + 1);
			if (r == 0)
				r = hash_update(h, f->digest, sizeof(f->digest));
			if (r == 0)
				r = hash_update(h, &f->is_program, sizeof(f->is_program));
		}
	}
	for (size_t i = 0; r == 0 && i < set->n_problems; i++) {
		r = hash_update(h, set->problems[i].name, strlen(set->problems[i].name) + 1);
		if (r == 0)
			r = hash_update(h, set->problems[i].why, strlen(set->problems[i].why) + 1);
	}
	if (r == 0)
		r = hash_final(h, set->digest);
	(void)hash_free(h);
	return r;
}

static int finish(struct reader *r, struct owned_set *o)
{
	qsort(r->skills, r->n_skills, sizeof(*r->skills), by_name);
	qsort(r->problems, r->n_problems, sizeof(*r->problems), problem_order);
	o->set = (struct skill_set){ .skills = r->skills,
				     .n_skills = r->n_skills,
				     .problems = r->problems,
				     .n_problems = r->n_problems };
	return sum(&o->set);
}

/* dir: of skills; path: of one. */
static int read_set(struct reader *r, const char *dir, const char *path, struct skill_set **ret)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	struct owned_set *o = calloc(1, sizeof(*o));
	struct err err = { 0 };
	_close_ int fd = -1;
	int n;

	if (!o)
		return -ENOMEM;
	o->refs = 1;
	set = &o->set;
	o->arena = r->arena = arena_create(ARENA_MAX);
	if (!o->arena)
		return -ENOMEM;
	r->skills = arena_array(r->arena, SKILLS_MAX, sizeof(*r->skills));
	r->problems = arena_array(r->arena, SKILLS_MAX, sizeof(*r->problems));
	if (!r->skills || !r->problems)
		return -ENOMEM;
	if (dir) {
		n = read_top(r, dir);
	} else {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0) {
			(void)err_sys(&err, errno, "open");
			n = add_problem(r, path, &err);
		} else {
			n = add_skill(r, fd, strrchr(path, '/') + 1);
		}
	}
	if (n == 0)
		n = finish(r, o);
	if (n < 0)
		return n;
	*ret = TAKE(set);
	return 0;
}

int skill_set_read(const char *dir, int watch_fd, struct skill_set **ret, bool *ret_watched,
		   struct err *err)
{
	struct reader r = { .watch_fd = watch_fd, .is_watched = watch_fd >= 0 };
	int n = read_set(&r, dir, NULL, ret);

	if (ret_watched)
		*ret_watched = r.is_watched;
	return n < 0 ? err_sys(err, n, "read the skills of '%.150s'", dir) : 0;
}

int skill_set_read_one(const char *path, struct skill_set **ret, struct err *err)
{
	_free_ char *full = realpath(path, NULL);
	struct reader r = { .watch_fd = -1 };
	int n;

	if (!full)
		return err_sys(err, errno, "'%.150s'", path);
	n = read_set(&r, NULL, full, ret);
	return n < 0 ? err_sys(err, n, "read the skill '%.150s'", path) : 0;
}

struct skill_set *skill_set_ref(struct skill_set *set)
{
	((struct owned_set *)(void *)set)->refs++;
	return set;
}

struct skill_set *skill_set_unref(struct skill_set *set)
{
	struct owned_set *o = (struct owned_set *)(void *)set;

	if (!o || --o->refs > 0)
		return NULL;
	(void)arena_free(o->arena);
	free(o);
	return NULL;
}

const struct skill *skill_set_find(const struct skill_set *set, const char *name)
{
	for (size_t i = 0; i < set->n_skills; i++) {
		if (strcmp(set->skills[i].front.name, name) == 0)
			return &set->skills[i];
	}
	return NULL;
}

const struct skill_file *skill_find_file(const struct skill *skill, const char *path)
{
	const struct skill_file key = { .path = path };

	return bsearch(&key, skill->files, skill->n_files, sizeof(key), by_path);
}

const struct skill_file *skill_manifest(const struct skill *skill)
{
	return skill_find_file(skill, SKILL_MANIFEST);
}
