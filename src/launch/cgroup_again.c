/* Groups that outlive their launcher: how the next one finds them and goes on counting. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/cgroup_impl.h"

#define PROC_TEXT_MAX (1u << 20)

/* Where each kind keeps what is read back. */
static const struct {
	enum hierarchy freezer;
	const char *memory_limit, *freeze, *thawed;
} kinds[] = {
	[CGROUP_V1] = { HIER_FREEZER, "memory.limit_in_bytes", "freezer.state", "THAWED" },
	[CGROUP_V2] = { HIER_UNIFIED, "memory.max", "cgroup.freeze", "0" },
};

bool cgroup_name_is_valid(const char *name)
{
	size_t n = strspn(name, "0123456789abcdef");

	return n > 0 && n <= 8 && name[n] == '\0';
}

void cgroup_mark(const struct cgroup *cg, struct cgroup_mark *ret)
{
	*ret = (struct cgroup_mark){ .kind = (uint8_t)cg->all->ops->kind,
				     .reused = cg->peak_fd >= 0,
				     .memory_base = cg->memory_base,
				     .cpu_base_us = cg->cpu_base_us,
				     .oom_base = cg->oom_base };
	(void)str_copy(ret->name, sizeof(ret->name), cg->name);
}

void cgroup_forget(struct cgroup *cg)
{
	if (!cg)
		return;
	(void)fd_close(cg->peak_fd);
	free(cg);
}

CLEANUP_FUNC(struct cgroup *, cgroup_forget)

/* Where it has directories. Of the hierarchies that hold every box, all; of the others, some, and
 * those may be empty: the launcher died on the way to a pause, and the next one goes the rest. */
static int find_dirs(struct cgroup *cg, pid_t pid)
{
	for (int h = 0; h < HIER_COUNT; h++) {
		const struct cgroup_place *p = &cg->all->place[h];
		int r;

		if (p->own < 0)
			continue;
		if (faccessat(p->dir, cg->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
			if (h < HIER_EAGER || errno != ENOENT)
				return -errno;
			continue;
		}
		cg->joined |= 1u << h;
		r = h < HIER_EAGER ? cgroup_lists(p->dir, cg->name, pid) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The limit that is in force decides which file is to be written first for another. */
static int read_back(struct cgroup *cg, const struct cgroup_mark *m)
{
	uint64_t bytes;
	int r;

	if (m->kind == CGROUP_NONE || cg->all->missing & CONTROLLER_MEMORY)
		return 0;
	r = cgroup_read_u64(cg->all->place[HIER_MEMORY].dir, cg->name, kinds[m->kind].memory_limit,
			    &bytes);
	if (r < 0)
		return r;
	cg->set.memory_bytes = bytes;
	/* The maximum since the claim was counted through a descriptor that is gone: it begins
	 * here, because what the file shows may be an earlier box's. */
	if (m->kind == CGROUP_V2 && m->reused)
		(void)cgroup_v2_reset_peak(cg);
	return 0;
}

static int refuse_kind(const struct cgroup_mark *m, const struct cgroups *all, struct err *err)
{
	if (m->kind > CGROUP_V2)
		return err_set(err, ESTALE, "control group of no known kind");
	return err_set(
		err, ENOTSUP,
		"it runs in a control group of %s, which cannot be used from here%s%s: start "
		"this where it was started before, as with systemd-run --user --scope -p "
		"Delegate=yes",
		m->kind == CGROUP_V1 ? "v1" : "v2", all->why.code ? ", because " : "",
		all->why.text);
}

int cgroup_open(struct cgroups *all, const struct cgroup_mark *m, pid_t pid, struct cgroup **ret,
		struct err *err)
{
	_cleanup_(cgroup_forget_p) struct cgroup *cg = NULL;
	int r;

	if (!cgroup_name_is_valid(m->name))
		return err_set(err, ESTALE, "control group of no valid name");
	if (m->kind == CGROUP_NONE && all->ops->kind != CGROUP_NONE)
		all = cgroups_without(all);
	else if (m->kind != all->ops->kind)
		return refuse_kind(m, all, err);
	cg = all ? calloc(1, sizeof(*cg)) : NULL;
	if (!cg)
		return err_sys(err, ENOMEM, "control group");
	cg->all = all;
	cg->peak_fd = -1;
	cg->memory_base = m->memory_base;
	cg->cpu_base_us = m->cpu_base_us;
	cg->oom_base = m->oom_base;
	(void)str_copy(cg->name, sizeof(cg->name), m->name);
	r = find_dirs(cg, pid);
	if (r == 0)
		r = read_back(cg, m);
	if (r == -ENOENT || r == -ENODEV || r == -ESRCH)
		return err_set(err, ESTALE, "control group %s does not hold process %d", m->name,
			       (int)pid);
	if (r < 0)
		return err_sys(err, r, "control group %s", m->name);
	*ret = TAKE(cg);
	return 0;
}

bool cgroup_is_frozen(const struct cgroup *cg)
{
	enum launch_cgroup kind = cg->all->ops->kind;
	char text[32];

	if (kind == CGROUP_NONE || cg->all->missing & CONTROLLER_FREEZER)
		return false;
	return cgroup_read(cg->all->place[kinds[kind].freezer].dir, cg->name, kinds[kind].freeze,
			   text, sizeof(text)) > 0 &&
	       strcmp(text, kinds[kind].thawed) != 0;
}

void cgroups_prune(struct cgroups *all, bool (*keep)(const char *name, void *arg), void *arg)
{
	for (int h = HIER_COUNT - 1; h >= 0; h--) { /* the freezer thaws before the others wait */
		const struct cgroup_place *p = &all->place[h];
		uint32_t next = p->own >= 0 ? cgroup_place_prune(p, keep, arg) : 0;

		if (next > all->made)
			all->made = next;
	}
}

/* "/a/holtd.ID/3" is "/a" for the launcher; where the box was in no group of its own, it was where
 * the launcher was. True when there was something to cut. */
static bool cut_line(struct str *line, const char *dir)
{
	size_t n = strlen(dir);

	for (size_t i = 0; i + n <= line->len; i++)
		if (memcmp(line->data + i, dir, n) == 0) {
			line->len = i;
			return true;
		}
	return false;
}

int cgroups_find(const char *instance, const char *box, char **ret)
{
	_cleanup_(buf_done) struct buf text = { .max = PROC_TEXT_MAX };
	struct str rest = str_of(box), line;
	char dir[sizeof(CGROUP_KEEP_PREFIX) + ID_LEN + 2];
	bool found = false;
	int r = 0;

	(void)snprintf(dir, sizeof(dir), "/" CGROUP_KEEP_PREFIX "%s/", instance);
	while (r == 0 && str_split(&rest, '\n', &line)) {
		found |= cut_line(&line, dir);
		r = buf_printf(&text, "%.*s\n", (int)line.len, line.data);
	}
	if (r < 0)
		return r;
	if (!found)
		return -ENOENT;
	*ret = str_dup((struct str){ text.data, text.len });
	return *ret ? 0 : -ENOMEM;
}
