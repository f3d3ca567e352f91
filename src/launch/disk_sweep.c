/* What is dropped gets another name at once; a job then removes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "launch/btrfs.h"
#include "launch/copy.h"
#include "launch/job.h"
#include "launch/launch.h"

enum { LAYERS, VOLUMES, ROOMS, IMAGE_LAYERS, PLACES };

/* What the job is told. */
struct order {
	bool is_there[PLACES];
};

static void list_places(const struct launch *l, int fds[PLACES])
{
	fds[LAYERS] = l->disk.layers;
	fds[VOLUMES] = l->disk.volumes;
	fds[ROOMS] = l->rooms.rooms;
	fds[IMAGE_LAYERS] = l->rooms.layers;
}

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static int retire(void *arg, int dir, const char *name)
{
	(void)arg;
	if (has_prefix(name, DISK_NEW) && id_is_valid(name + strlen(DISK_NEW)))
		(void)disk_discard(dir, name + strlen(DISK_NEW), true);
	return 0;
}

int disk_retire(struct launch *l, struct err *err)
{
	int fds[PLACES], r = 0;

	list_places(l, fds);
	for (int i = 0; i < PLACES && r == 0; i++)
		if (fds[i] >= 0)
			r = copy_each_name(fds[i], retire, NULL, err);
	return r;
}

int disk_discard(int dir, const char *id, bool half)
{
	char from[DISK_NAME_SIZE], to[DISK_NAME_SIZE];

	disk_name(from, half ? DISK_NEW : "", id);
	disk_name(to, DISK_OLD, id);
	return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

/* What cannot be removed is tried again one day. */
static int remove_old(void *arg, int dir, const char *name)
{
	struct job_result *ret = arg;

	if (has_prefix(name, DISK_OLD) && copy_remove(dir, name, NULL) == 0)
		ret->inodes++;
	return 0;
}

static int remove_room(void *arg, int dir, const char *name)
{
	struct job_result *ret = arg;

	if (has_prefix(name, DISK_OLD) && btrfs_remove_subvolume(dir, name, NULL) == 0)
		ret->inodes++;
	return 0;
}

static int sweep(const void *arg, struct job_result *ret, int *ret_fds, size_t *ret_nfds,
		 struct err *err)
{
	const struct order *o = arg;
	int fd = JOB_FD, r = 0;

	(void)ret_fds;
	(void)ret_nfds;
	for (int i = 0; i < PLACES && r == 0; i++) {
		if (!o->is_there[i])
			continue;
		r = copy_each_name(fd, i == ROOMS ? remove_room : remove_old, ret, err);
		if (r == 0 && i == ROOMS) {
			btrfs_reclaim(fd);
			r = btrfs_remove_limits(fd, err);
		}
		fd++;
	}
	return r;
}

static int find_old(void *arg, int dir, const char *name)
{
	(void)dir;
	*(bool *)arg |= has_prefix(name, DISK_OLD);
	return 0;
}

static bool has_old(const int fds[PLACES])
{
	bool found = false;

	for (int i = 0; i < PLACES && !found; i++)
		if (fds[i] >= 0)
			(void)copy_each_name(fds[i], find_old, &found, NULL);
	return found;
}

static void swept(struct launch *l, struct job *j, const struct job_result *r, int *fds,
		  size_t nfds)
{
	(void)j;
	(void)fds;
	(void)nfds;
	l->disk.sweeping = false;
	if (r->code == 0 && r->inodes > 0) /* more may have come meanwhile */
		disk_sweep(l);
}

void disk_sweep(struct launch *l)
{
	struct job j = { .done = swept };
	struct order o = { 0 };
	int places[PLACES], fds[PLACES];
	size_t n = 0;
	struct err err = { 0 };

	list_places(l, places);
	if (l->disk.sweeping || l->closing || !has_old(places))
		return;
	for (int i = 0; i < PLACES; i++) {
		o.is_there[i] = places[i] >= 0;
		if (o.is_there[i])
			fds[n++] = places[i];
	}
	if (job_start(l, &j, sweep, &o, fds, n, &err) < 0)
		log_warn("launch", "dropped layers stay for now: %s", err.text);
	else
		l->disk.sweeping = true;
}
