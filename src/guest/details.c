#include "guest/details.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"
#include "guest/ops.h"

#define USER_SPACE "user." /* the attributes that belong to users */
#define USER_SPACE_LEN (sizeof(USER_SPACE) - 1)

void details_done(struct details *d)
{
	buf_done(&d->passwd);
	buf_done(&d->group);
}

const char *details_path(struct details *d, const struct fileop *op, const char *below)
{
	const char *top = strcmp(op->f->path, "/") == 0 && below[0] ? "" : op->f->path;
	const char *slash = below[0] ? "/" : "";

	if (str_format(d->path, sizeof(d->path), "%s%s%s", top, slash, below) < 0)
		return op->f->path; /* longer than any operation takes */
	return d->path;
}

/* ---- names ---- */

static void name_or_number(bool is_found, char name[USER_NAME_MAX], uint32_t id)
{
	if (!is_found)
		(void)str_format(name, USER_NAME_MAX, "%u", id);
}

static void find_names(struct details *d, const struct stat *st)
{
	bool is_first = !d->is_loaded;

	if (is_first) {
		d->is_loaded = true;
		d->passwd.max = d->group.max = USER_FILE_MAX;
		(void)user_read_files(&d->passwd, &d->group);
	}
	if (is_first || d->uid != st->st_uid)
		name_or_number(user_name((struct str){ buf_str(&d->passwd), d->passwd.len },
					 st->st_uid, d->owner),
			       d->owner, st->st_uid);
	if (is_first || d->gid != st->st_gid)
		name_or_number(user_group_name((struct str){ buf_str(&d->group), d->group.len },
					       st->st_gid, d->owners_group),
			       d->owners_group, st->st_gid);
	d->uid = st->st_uid;
	d->gid = st->st_gid;
}

/* ---- links ---- */

static int path_of(int fd, char ret[PATH_BYTES])
{
	char proc[32];
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, ret, PATH_BYTES - 1);
	if (n <= 0)
		return -ENOENT;
	ret[n] = '\0';
	return 0;
}

static void find_target(struct details *d, const struct fileop *op, struct guest_entry *e)
{
	_close_ int fd = path_open(op->root_fd, e->path, O_PATH, NULL);
	char root[PATH_BYTES];
	struct stat st;
	size_t n;

	e->real_type = ENTRY_OTHER;
	e->real_mode = 0;
	e->target = "";
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	e->real_type = files_entry(&st, "", "").type;
	e->real_mode = st.st_mode;
	if (path_of(fd, d->target) < 0 || path_of(op->root_fd, root) < 0)
		return;
	n = strcmp(root, "/") == 0 ? 0 : strlen(root);
	if (strncmp(d->target, root, n) == 0)
		e->target = d->target[n] ? d->target + n : "/";
}

/* ---- attributes ---- */

/* One pair; what is no text, or does not fit, is not told. */
static size_t add_attr(struct details *d, size_t at, const char *proc, const char *name)
{
	size_t n = strlen(name + USER_SPACE_LEN) + 1, room = sizeof(d->attrs) - at;
	ssize_t len;

	if (n == 1 || n + 1 > room)
		return at;
	len = getxattr(proc, name, d->attrs + at + n, room - n - 1);
	if (len > 0 && d->attrs[at + n + (size_t)len - 1] == '\0')
		len--; /* see value_size() */
	if (len < 0 || memchr(d->attrs + at + n, '\0', (size_t)len) ||
	    !utf8_is_valid(d->attrs + at + n, (size_t)len))
		return at;
	memcpy(d->attrs + at, name + USER_SPACE_LEN, n);
	at += n + (size_t)len;
	d->attrs[at] = '\0';
	return at + 1;
}

/* An O_PATH descriptor has attributes by its own name in /proc alone. */
static void find_attrs(struct details *d, int fd, struct guest_entry *e)
{
	char proc[32];
	ssize_t n;

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = listxattr(proc, d->names, sizeof(d->names));
	for (const char *p = d->names; n > 0 && p < d->names + n; p += strlen(p) + 1)
		if (strncmp(p, USER_SPACE, USER_SPACE_LEN) == 0)
			e->attrs_len = add_attr(d, e->attrs_len, proc, p);
}

/* Not one that the filter takes for an access control list. */
static size_t value_size(const char *value)
{
	size_t n = strlen(value);

	return n > GUEST_ACL_BYTES && n % 8 == 4 ? n + 1 : n;
}

int details_set_attrs(int fd, const char *attrs, size_t len)
{
	char name[USER_SPACE_LEN + GUEST_ATTR_NAME_MAX + 1];
	const char *key, *value;
	size_t at = 0;

	while (guest_attr_next(attrs, len, &at, &key, &value)) {
		if (str_format(name, sizeof(name), "%s%s", USER_SPACE, key) < 0)
			return -ENAMETOOLONG;
		if (fsetxattr(fd, name, value, value_size(value), 0) < 0)
			return -errno;
	}
	return 0;
}

void details_fill(struct details *d, const struct fileop *op, int fd, const struct stat *st,
		  struct guest_entry *e)
{
	find_names(d, st);
	e->owner = d->owner;
	e->group = d->owners_group;
	e->mode = st->st_mode;
	e->attrs = d->attrs;
	e->attrs_len = 0;
	e->real_type = e->type;
	e->real_mode = e->mode;
	if (e->type == ENTRY_SYMLINK)
		return find_target(d, op, e);
	if (e->type != ENTRY_OTHER && fd >= 0)
		find_attrs(d, fd, e);
}
