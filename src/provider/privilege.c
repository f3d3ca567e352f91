#include "provider/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#define ENTRY_MAX (16u << 10) /* bytes of one entry of the user database */

static int look_up(const char *name, struct account *ret, struct err *err)
{
	struct account a = { 0 };
	struct passwd entry, *found = NULL;
	char text[ENTRY_MAX];
	int e = getpwnam_r(name, &entry, text, sizeof(text), &found);

	if (e)
		return err_sys(err, e, "look up user '%.60s'", name);
	if (!found)
		return err_set(err, ENOENT, "there is no user '%.60s'", name);
	if (entry.pw_uid == 0 || entry.pw_gid == 0)
		return err_set(err, EINVAL, "user '%.60s' is root, or of its group", name);
	if (str_copy(a.name, sizeof(a.name), name) < 0)
		return err_set(err, EINVAL, "the user's name is too long");
	a.uid = entry.pw_uid;
	a.gid = entry.pw_gid;
	*ret = a;
	return 0;
}

int privilege_find_account(const char *name, struct account *ret, struct err *err)
{
	int r;

	if (name && name[0] != '\0')
		return look_up(name, ret, err);
	r = look_up("holt", ret, NULL);
	return r == -ENOENT ? look_up("nobody", ret, err) : r < 0 ? look_up("holt", ret, err) : 0;
}

/* NOTE: a library does not log, but this one must not return either. */
static _Noreturn void die(const char *what)
{
	log_error("privilege", "%s: %s", what, strerror(errno));
	_exit(1);
}

/* Without CAP_SETPCAP it cannot be done; no-new-privs makes it a second line then. */
static void empty_bounding_set(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static long set_no_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capset, &head, none);
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint32_t any = 0;

	if (syscall(SYS_capget, &head, data) < 0)
		return true;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		any |= data[i].effective | data[i].permitted | data[i].inheritable;
	return any != 0;
}

/* Says no when any way back is left: the attempts must fail. */
static bool is_dropped(const struct account *a)
{
	uid_t uid[3];
	gid_t gid[3];

	if (getresuid(&uid[0], &uid[1], &uid[2]) < 0 || getresgid(&gid[0], &gid[1], &gid[2]) < 0)
		return false;
	for (size_t i = 0; i < 3; i++)
		if (uid[i] != a->uid || gid[i] != a->gid)
			return false;
	if (getgroups(0, NULL) != 0 || has_capabilities())
		return false;
	if (setresuid((uid_t)-1, 0, (uid_t)-1) == 0 || setresgid((gid_t)-1, 0, (gid_t)-1) == 0)
		return false;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
	       prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
}

int privilege_seal(struct err *err)
{
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	empty_bounding_set();
	if (set_no_capabilities() < 0 || has_capabilities())
		return err_sys(err, errno, "give up the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "no new privileges");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "not dumpable");
	return 0;
}

int privilege_drop(const struct account *a, struct err *err)
{
	if (geteuid() != 0)
		return err_set(err, EPERM, "only root can become user '%s'", a->name);
	if (a->uid == 0 || a->gid == 0)
		return err_set(err, EINVAL, "user '%s' is root, or of its group", a->name);
	empty_bounding_set(); /* while we may */
	if (setgroups(0, NULL) < 0)
		die("give up the groups");
	if (setresgid(a->gid, a->gid, a->gid) < 0)
		die("give up root's group");
	if (setresuid(a->uid, a->uid, a->uid) < 0)
		die("give up root");
	if (privilege_seal(NULL) < 0)
		die("give up the rest");
	if (!is_dropped(a)) {
		errno = EPERM;
		die("privilege is left");
	}
	return 0;
}
