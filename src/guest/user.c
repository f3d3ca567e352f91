#include "guest/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"

/* The largest id that is one: 2^32 - 1 means "leave it" to the kernel. */
#define ID_LAST (UINT32_MAX - 1)

#define PASSWD_FIELDS 7 /* name:password:uid:gid:comment:home:shell */
#define GROUP_FIELDS 4  /* name:password:gid:member,member */

static int parse_id(struct str s, uint32_t *ret)
{
	uint64_t v = 0;

	if (s.len == 0 || s.len > 10)
		return -EINVAL;
	for (size_t i = 0; i < s.len; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return -EINVAL;
		v = v * 10 + (uint64_t)(s.data[i] - '0');
	}
	if (v > ID_LAST)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

/* Exactly n fields, or the line does not count. */
static bool split_fields(struct str line, struct str *ret, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++) {
		const char *colon = line.len ? memchr(line.data, ':', line.len) : NULL;
		size_t at;

		if (!colon)
			return false;
		at = (size_t)(colon - line.data);
		ret[i] = (struct str){ line.data, at };
		line = (struct str){ colon + 1, line.len - at - 1 };
	}
	ret[n - 1] = line;
	return line.len == 0 || !memchr(line.data, ':', line.len);
}

/* A field that fits and holds no NUL, with a stand-in where it is empty. */
static bool copy_field(char *dst, size_t size, struct str s, const char *if_empty)
{
	if (s.len == 0)
		return str_copy(dst, size, if_empty) == 0;
	if (s.len >= size || memchr(s.data, '\0', s.len))
		return false;
	memcpy(dst, s.data, s.len);
	dst[s.len] = '\0';
	return true;
}

static bool parse_passwd(struct str line, struct user *ret)
{
	struct str f[PASSWD_FIELDS];
	struct user u = { 0 };

	if (!split_fields(line, f, PASSWD_FIELDS) || f[0].len == 0)
		return false;
	if (parse_id(f[2], &u.uid) < 0 || parse_id(f[3], &u.gid) < 0)
		return false;
	if (!copy_field(u.name, sizeof(u.name), f[0], "") ||
	    !copy_field(u.home, sizeof(u.home), f[5], "/") ||
	    !copy_field(u.shell, sizeof(u.shell), f[6], "/bin/sh"))
		return false;
	*ret = u;
	return true;
}

static bool find_passwd(struct str text, const char *name, uint32_t uid, struct user *ret)
{
	struct str line;
	struct user u;

	while (str_split(&text, '\n', &line)) {
		if (!parse_passwd(line, &u))
			continue;
		if (name ? strcmp(u.name, name) == 0 : u.uid == uid) {
			*ret = u;
			return true;
		}
	}
	return false;
}

static bool is_member(struct str members, const char *name)
{
	struct str member;

	while (str_split(&members, ',', &member))
		if (str_is(member, name))
			return true;
	return false;
}

/* More groups than there is room for are left out: a group can only add rights. */
static void add_group(struct user *u, uint32_t gid)
{
	if (gid == u->gid || u->ngroups == USER_GROUPS_MAX)
		return;
	for (size_t i = 0; i < u->ngroups; i++)
		if (u->groups[i] == gid)
			return;
	u->groups[u->ngroups++] = gid;
}

static void find_groups(struct str text, struct user *u)
{
	struct str f[GROUP_FIELDS];
	struct str line;
	uint32_t gid;

	while (u->name[0] && str_split(&text, '\n', &line))
		if (split_fields(line, f, GROUP_FIELDS) && parse_id(f[2], &gid) == 0 &&
		    is_member(f[3], u->name))
			add_group(u, gid);
}

bool user_name(struct str passwd, uint32_t uid, char ret[USER_NAME_MAX])
{
	struct user u;

	return find_passwd(passwd, NULL, uid, &u) && str_copy(ret, USER_NAME_MAX, u.name) == 0;
}

bool user_group_name(struct str group, uint32_t gid, char ret[USER_NAME_MAX])
{
	struct str f[GROUP_FIELDS];
	struct str line;
	uint32_t id;

	while (str_split(&group, '\n', &line))
		if (split_fields(line, f, GROUP_FIELDS) && f[0].len > 0 &&
		    parse_id(f[2], &id) == 0 && id == gid &&
		    copy_field(ret, USER_NAME_MAX, f[0], ""))
			return true;
	return false;
}

static void make_unnamed(uint32_t uid, struct user *ret)
{
	*ret = (struct user){ .uid = uid, .gid = uid, .home = "/", .shell = "/bin/sh" };
}

int user_find(struct str passwd, struct str group, const char *who, struct user *ret,
	      struct err *err)
{
	bool is_number = who[0] && strspn(who, "0123456789") == strlen(who);
	uint32_t uid = USER_DEFAULT;
	struct user u;

	if (is_number && parse_id(str_of(who), &uid) < 0)
		return err_set(err, EINVAL, "user '%.40s': not an id", who);
	if (is_number || !who[0]) {
		if (!find_passwd(passwd, NULL, uid, &u))
			make_unnamed(uid, &u);
	} else if (!find_passwd(passwd, who, 0, &u)) {
		return err_set(err, ESRCH, "user '%.60s': not in the box's passwd file", who);
	}
	find_groups(group, &u);
	*ret = u;
	return 0;
}

/* Opening must neither wait (a FIFO) nor have effects (a terminal, a file of /proc). */
static int read_plain(const char *path, struct buf *b)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > USER_FILE_MAX)
		return -ENOENT;
	if (fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
		return -ENOENT;
	return fd_slurp(fd, b);
}

/* Only a lack of memory is a failure: it must not look as if the file said nothing. */
static int load(const char *path, struct buf *b)
{
	int r = read_plain(path, b);

	if (r < 0)
		buf_clear(b);
	return r == -ENOMEM ? r : 0;
}

int user_read_files(struct buf *passwd, struct buf *group)
{
	int r = load("/etc/passwd", passwd);

	return r < 0 ? r : load("/etc/group", group);
}

int user_load(const char *who, struct user *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf passwd = { .max = USER_FILE_MAX };
	_cleanup_(buf_done) struct buf group = { .max = USER_FILE_MAX };

	if (user_read_files(&passwd, &group) < 0)
		return err_sys(err, ENOMEM, "look up user '%.60s'", who);
	return user_find((struct str){ buf_str(&passwd), passwd.len },
			 (struct str){ buf_str(&group), group.len }, who, ret, err);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool is_read_only(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

int user_load_again(struct user_memory *m, const char *who, struct user *ret, struct err *err)
{
	struct stat passwd = { 0 }, group = { 0 };
	int r;

	if (who[0])
		return user_load(who, ret, err);
	if (!m->is_fixed) {
		(void)stat("/etc/passwd", &passwd);
		(void)stat("/etc/group", &group);
	}
	if (!m->is_fixed && !(m->is_known && is_same_file(&passwd, &m->passwd) &&
			      is_same_file(&group, &m->group))) {
		r = user_load("", &m->user, err);
		if (r < 0)
			return r;
		m->passwd = passwd;
		m->group = group;
		m->is_known = true;
		m->is_fixed = is_read_only("/etc");
	}
	*ret = m->user;
	return 0;
}

__attribute__((no_sanitize("address", "undefined"))) int user_take_ids(const struct user *u)
{
	bool is_same = getuid() == u->uid && getgid() == u->gid;

	/* A box of an ordinary user may not set groups; there is nobody else to become, either. */
	if (syscall(SYS_setgroups, u->ngroups, u->groups) < 0 && !(errno == EPERM && is_same))
		return -1;
	/* Not libc's: it would look after threads and their locks. */
	if (syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
	    syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
		return -1;
	return 0;
}

/* Where the box's root is one, he keeps what he has: see TEMPLATE_SUDO. */
__attribute__((no_sanitize("address", "undefined"))) static bool is_root_one(void)
{
	return !(syscall(SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0) & SECBIT_NOROOT);
}

__attribute__((no_sanitize("address", "undefined"))) int user_become(const struct user *u)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (user_take_ids(u) < 0)
		return -1;
	if (u->uid == 0 && is_root_one())
		return 0;
	return (int)syscall(SYS_capset, &head, none);
}

int user_become_with_root(const struct user *u)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 } };

	if (getuid() != 0 || !is_root_one())
		return user_become(u);
	/* They tell what was before; what is now, the next call tells. */
	(void)syscall(SYS_setfsgid, u->gid);
	(void)syscall(SYS_setfsuid, u->uid);
	if (syscall(SYS_setfsgid, -1) != (long)u->gid ||
	    syscall(SYS_setfsuid, -1) != (long)u->uid) {
		errno = EPERM;
		return -1;
	}
	/* The kernel takes the rights over files with the id; they are still ours to take back. */
	if (syscall(SYS_capget, &head, caps) < 0)
		return -1;
	caps[0].effective = caps[0].permitted;
	return (int)syscall(SYS_capset, &head, caps);
}
