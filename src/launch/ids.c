#include "launch/ids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/box.h"

#define LOCK_DIR "/run/holt"
#define CHUNK_IDS (IDS_CHUNK * BOX_ID_COUNT)
#define RETAKE_MS 2000
#define MARKS_AT 4096 /* in the file, behind the bytes that are locked */

/* Of a chunk whose boxes outlive their launcher; all zero: none. */
struct mark {
	char instance[ID_LEN];
	uint32_t pid_ns;
	uint64_t boot;
};
_Static_assert(sizeof(struct mark) == 32, "marks lie side by side in a file");

static bool bit(const uint8_t *map, uint32_t i)
{
	return map[i / 8] >> (i % 8) & 1;
}

static void set_bit(uint8_t *map, uint32_t i, bool on)
{
	if (on)
		map[i / 8] |= (uint8_t)(1u << i % 8);
	else
		map[i / 8] &= (uint8_t) ~(1u << i % 8);
}

/* The first 8 bytes of the boot's random id. */
static int read_boot(int proc_fd, uint64_t *ret)
{
	char text[64], hex[16];
	size_t n = 0;
	int r = fd_read_file_at(proc_fd, "sys/kernel/random/boot_id", text, sizeof(text));

	if (r < 0)
		return r;
	for (const char *p = text; *p && n < sizeof(hex); p++)
		if (*p != '-')
			hex[n++] = *p;
	return n == sizeof(hex) && decode_hex(hex, n, ret, sizeof(*ret)) == sizeof(*ret) ? 0
											 : -EINVAL;
}

int ids_init(struct ids *ids, const struct ids_options *o, struct err *err)
{
	const char *dir = o->dir ? o->dir : LOCK_DIR;
	char path[PATH_MAX];
	struct stat st;
	int r;

	memset(ids, 0, sizeof(*ids));
	ids->lock_fd = -1;
	ids->proc_fd = o->proc_fd;
	r = str_copy(ids->instance, sizeof(ids->instance), o->instance ? o->instance : "");
	if (r == 0)
		r = str_format(path, sizeof(path), "%s/ids", dir);
	if (r == 0)
		r = read_boot(o->proc_fd, &ids->boot);
	if (r == 0 && fstatat(o->proc_fd, "self/ns/pid", &st, 0) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(err, r, "id ranges");
	ids->pid_ns = (uint32_t)st.st_ino;
	(void)mkdir(dir, 0700);
	ids->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return ids->lock_fd < 0 ? err_sys(err, errno, "%s", path) : 0;
}

static int read_mark(const struct ids *ids, uint32_t chunk, struct mark *ret)
{
	ssize_t n;

	memset(ret, 0, sizeof(*ret));
	n = pread(ids->lock_fd, ret, sizeof(*ret), MARKS_AT + (off_t)(chunk * sizeof(*ret)));
	if (n < (ssize_t)sizeof(*ret)) /* the end of the file: never written */
		memset(ret, 0, sizeof(*ret));
	return n < 0 ? -errno : 0;
}

static int write_mark(const struct ids *ids, uint32_t chunk, const struct mark *m)
{
	off_t at = MARKS_AT + (off_t)(chunk * sizeof(*m));
	ssize_t n = pwrite(ids->lock_fd, m, sizeof(*m), at);

	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(*m) ? 0 : -EIO;
}

static struct mark own_mark(const struct ids *ids)
{
	struct mark m = { .pid_ns = ids->pid_ns, .boot = ids->boot };

	if (!ids->instance[0])
		return (struct mark){ 0 };
	memcpy(m.instance, ids->instance, sizeof(m.instance));
	return m;
}

/* The real user id of a process; UINT32_MAX when it has gone meanwhile. */
static uint32_t uid_of(int proc_fd, const char *pid)
{
	char path[NAME_MAX + 1 + sizeof("/status")], text[1024], number[16];
	_close_ int fd = -1;
	struct str rest, line, word;
	uint32_t uid = UINT32_MAX;
	ssize_t n;

	if (str_format(path, sizeof(path), "%s/status", pid) < 0)
		return uid;
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : fd_read_all(fd, text, sizeof(text));
	rest = (struct str){ text, n > 0 ? (size_t)n : 0 };
	while (str_split(&rest, '\n', &line)) {
		if (!str_split(&line, '\t', &word) || !str_is(word, "Uid:"))
			continue;
		if (str_split(&line, '\t', &word) &&
		    str_format(number, sizeof(number), "%.*s", (int)word.len, word.data) == 0)
			(void)parse_u32(number, 0, UINT32_MAX, &uid);
		break;
	}
	return uid;
}

/* Does any process have an id of the chunk? What cannot be told counts as yes. */
static bool is_lived_in(const struct ids *ids, uint32_t chunk)
{
	uint32_t first = IDS_FIRST + chunk * CHUNK_IDS;
	int fd = openat(ids->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;
	struct dirent *e;

	if (!d) {
		(void)fd_close(fd);
		return true;
	}
	while (!found && (e = readdir(d)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			found = uid_of(ids->proc_fd, e->d_name) - first < CHUNK_IDS;
	(void)closedir(d);
	return found;
}

/* With the chunk locked, so that no launcher that lives has it. */
static bool is_free(const struct ids *ids, uint32_t chunk, const struct mark *m)
{
	static const struct mark none;

	if (memcmp(m, &none, sizeof(none)) == 0 || m->boot != ids->boot)
		return true;
	if (ids->instance[0] && memcmp(m->instance, ids->instance, sizeof(m->instance)) == 0)
		return true;
	return m->pid_ns == ids->pid_ns && !is_lived_in(ids, chunk);
}

static int try_lock(const struct ids *ids, uint32_t chunk, short type)
{
	struct flock lock = { .l_type = type, .l_start = chunk, .l_len = 1 };

	return fcntl(ids->lock_fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static bool hold_chunk(struct ids *ids, uint32_t chunk)
{
	struct mark found, own = own_mark(ids);

	if (bit(ids->held, chunk))
		return true;
	if (bit(ids->foreign, chunk) || try_lock(ids, chunk, F_WRLCK) < 0)
		return false;
	if (read_mark(ids, chunk, &found) == 0 && is_free(ids, chunk, &found)) {
		if (memcmp(&found, &own, sizeof(own)) == 0 || write_mark(ids, chunk, &own) == 0) {
			set_bit(ids->held, chunk, true);
			return true;
		}
	} else {
		set_bit(ids->foreign, chunk, true);
	}
	(void)try_lock(ids, chunk, F_UNLCK);
	return false;
}

int ids_take(struct ids *ids, uint32_t *ret_base, struct err *err)
{
	for (uint32_t i = 0; i < IDS_CHUNKS * IDS_CHUNK; i++) {
		if (i % IDS_CHUNK == 0 && !hold_chunk(ids, i / IDS_CHUNK)) {
			i += IDS_CHUNK - 1; /* another launcher's */
			continue;
		}
		if (bit(ids->used, i))
			continue;
		set_bit(ids->used, i, true);
		*ret_base = IDS_FIRST + i * BOX_ID_COUNT;
		return 0;
	}
	memset(ids->foreign, 0, sizeof(ids->foreign)); /* looked at again next time */
	return err_set(err, EAGAIN, "all %u id ranges are in use", IDS_CHUNKS * IDS_CHUNK);
}

void ids_give(struct ids *ids, uint32_t base)
{
	set_bit(ids->used, (base - IDS_FIRST) / BOX_ID_COUNT, false);
}

bool ids_is_base(uint32_t base)
{
	return base >= IDS_FIRST && (base - IDS_FIRST) % BOX_ID_COUNT == 0 &&
	       (base - IDS_FIRST) / BOX_ID_COUNT < IDS_CHUNKS * IDS_CHUNK;
}

/* Processes of the launcher before us may still be dying, and hold its locks until then. */
static bool hold_soon(struct ids *ids, uint32_t chunk)
{
	uint64_t deadline = clock_now_ms() + RETAKE_MS;
	bool held = hold_chunk(ids, chunk);

	while (!held && !bit(ids->foreign, chunk) && clock_now_ms() < deadline) {
		(void)poll(NULL, 0, 5);
		held = hold_chunk(ids, chunk);
	}
	return held;
}

int ids_retake(struct ids *ids, uint32_t base, struct err *err)
{
	uint32_t i = (base - IDS_FIRST) / BOX_ID_COUNT;

	if (!ids_is_base(base))
		return err_set(err, EINVAL, "%u is not the first id of a range", base);
	if (!hold_soon(ids, i / IDS_CHUNK) || bit(ids->used, i))
		return err_set(err, EBUSY, "the ids from %u on are another box's", base);
	set_bit(ids->used, i, true);
	return 0;
}

static bool chunk_is_used(const struct ids *ids, uint32_t chunk)
{
	for (uint32_t i = 0; i < IDS_CHUNK / 8; i++)
		if (ids->used[chunk * IDS_CHUNK / 8 + i])
			return true;
	return false;
}

void ids_done(struct ids *ids)
{
	static const struct mark none;

	for (uint32_t chunk = 0; ids->lock_fd >= 0 && ids->instance[0] && chunk < IDS_CHUNKS;
	     chunk++)
		if (bit(ids->held, chunk) && !chunk_is_used(ids, chunk))
			(void)write_mark(ids, chunk, &none);
	ids->lock_fd = fd_close(ids->lock_fd);
}
