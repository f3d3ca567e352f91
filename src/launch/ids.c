#include "launch/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "launch/box.h"

#define LOCK_DIR "/run/holt"
#define LOCK_FILE LOCK_DIR "/ids"

static bool bit(const uint8_t *map, uint32_t i)
{
	return map[i / 8] >> (i % 8) & 1;
}

int ids_init(struct ids *ids, struct err *err)
{
	memset(ids, 0, sizeof(*ids));
	(void)mkdir(LOCK_DIR, 0700);
	ids->lock_fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return ids->lock_fd < 0 ? err_sys(err, errno, LOCK_FILE) : 0;
}

void ids_done(struct ids *ids)
{
	ids->lock_fd = fd_close(ids->lock_fd);
}

static bool lock_chunk(struct ids *ids, uint32_t chunk)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = chunk, .l_len = 1 };

	if (bit(ids->held, chunk))
		return true;
	if (fcntl(ids->lock_fd, F_OFD_SETLK, &lock) < 0)
		return false;
	ids->held[chunk / 8] |= (uint8_t)(1u << chunk % 8);
	return true;
}

int ids_take(struct ids *ids, uint32_t *ret_base, struct err *err)
{
	for (uint32_t i = 0; i < IDS_CHUNKS * IDS_CHUNK; i++) {
		if (i % IDS_CHUNK == 0 && !lock_chunk(ids, i / IDS_CHUNK)) {
			i += IDS_CHUNK - 1; /* another launcher's */
			continue;
		}
		if (bit(ids->used, i))
			continue;
		ids->used[i / 8] |= (uint8_t)(1u << i % 8);
		*ret_base = IDS_FIRST + i * BOX_ID_COUNT;
		return 0;
	}
	return err_set(err, EAGAIN, "all %u id ranges are in use", IDS_CHUNKS * IDS_CHUNK);
}

void ids_give(struct ids *ids, uint32_t base)
{
	uint32_t i = (base - IDS_FIRST) / BOX_ID_COUNT;

	ids->used[i / 8] &= (uint8_t) ~(1u << i % 8);
}
