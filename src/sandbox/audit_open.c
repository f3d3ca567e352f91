#include "sandbox/audit_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define MAGIC 0x6874306175646974ull /* of this layout; another one's places are not read */
#define OWNER_MAX 63
#define KIND_MAX 31

enum slot_state { SLOT_FREE, SLOT_BEGUN, SLOT_ENDED };

/* The state is written last: half of a record is none. */
struct slot {
	uint64_t magic;
	_Atomic uint32_t state;
	uint64_t seq;
	char owner[OWNER_MAX + 1];
	char kind[KIND_MAX + 1];
	char begun[AUDIT_OPEN_TEXT_MAX + 1];
	char ended[AUDIT_OPEN_TEXT_MAX + 1];
};
_Static_assert(sizeof(struct slot) <= 8192, "4 MiB in all");

struct audit_open {
	struct slot *slots; /* mapped */
	int unused[AUDIT_OPEN_SLOTS];
	size_t n_unused;
	/* Those that have ended wait for their lines, in the order of these. */
	int waiting[AUDIT_OPEN_SLOTS];
	size_t first, n_waiting;
};

#define FILE_SIZE (AUDIT_OPEN_SLOTS * sizeof(struct slot))

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* The file is our own, and was written by this program; but it may be damaged. */
static bool is_sound(const struct slot *s)
{
	return s->magic == MAGIC && (s->state == SLOT_BEGUN || s->state == SLOT_ENDED) &&
	       is_text(s->owner, sizeof(s->owner)) && is_text(s->kind, sizeof(s->kind)) &&
	       is_text(s->begun, sizeof(s->begun)) && is_text(s->ended, sizeof(s->ended));
}

/* With all of its room: a disk that is full later must not end us in the middle of a copy. */
static int map(int dir_fd, struct slot **ret)
{
	_close_ int fd =
		openat(dir_fd, AUDIT_OPEN_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	void *at;
	int r = fd < 0 ? -errno : -posix_fallocate(fd, 0, (off_t)FILE_SIZE);

	if (r < 0)
		return r;
	at = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	*ret = at;
	return 0;
}

int audit_open_create(int dir_fd, struct audit_open **ret, struct err *err)
{
	struct audit_open *o = calloc(1, sizeof(*o));
	int r = o ? map(dir_fd, &o->slots) : -ENOMEM;

	if (r < 0) {
		free(o);
		return err_sys(err, r, "audit: '%s'", AUDIT_OPEN_FILE);
	}
	for (int i = AUDIT_OPEN_SLOTS - 1; i >= 0; i--) {
		if (is_sound(&o->slots[i]))
			continue;
		o->slots[i].state = SLOT_FREE;
		o->unused[o->n_unused++] = i;
	}
	*ret = o;
	return 0;
}

struct audit_open *audit_open_free(struct audit_open *o)
{
	if (!o)
		return NULL;
	(void)munmap(o->slots, FILE_SIZE);
	free(o);
	return NULL;
}

bool audit_open_has_room(const struct audit_open *o)
{
	return o->n_unused > 0;
}

int audit_open_take(struct audit_open *o, const char *owner, const char *text)
{
	struct slot *s;
	int place;

	if (o->n_unused == 0)
		return -1;
	place = o->unused[o->n_unused - 1];
	s = &o->slots[place];
	if (str_copy(s->begun, sizeof(s->begun), text) < 0)
		return -1;
	(void)str_copy(s->owner, sizeof(s->owner), owner);
	s->kind[0] = s->ended[0] = '\0';
	s->seq = 0;
	s->magic = MAGIC;
	atomic_store_explicit(&s->state, SLOT_BEGUN, memory_order_release);
	o->n_unused--;
	return place;
}

void audit_open_settle(struct audit_open *o, int place, uint64_t seq, const char *kind,
		       const char *text)
{
	struct slot *s = &o->slots[place];

	/* What does not fit is told as what it was when it began. */
	if (str_copy(s->ended, sizeof(s->ended), text) == 0 &&
	    str_copy(s->kind, sizeof(s->kind), kind) == 0) {
		s->seq = seq;
		atomic_store_explicit(&s->state, SLOT_ENDED, memory_order_release);
	} else {
		s->seq = seq;
	}
	o->waiting[(o->first + o->n_waiting++) % AUDIT_OPEN_SLOTS] = place;
}

void audit_open_committed(struct audit_open *o, uint64_t seq)
{
	while (o->n_waiting > 0 && o->slots[o->waiting[o->first]].seq <= seq) {
		int place = o->waiting[o->first];

		atomic_store_explicit(&o->slots[place].state, SLOT_FREE, memory_order_release);
		o->unused[o->n_unused++] = place;
		o->first = (o->first + 1) % AUDIT_OPEN_SLOTS;
		o->n_waiting--;
	}
}

static int by_seq(const void *a, const void *b)
{
	const struct audit_left *x = a, *y = b;
	uint64_t p = x->seq ? x->seq : UINT64_MAX, q = y->seq ? y->seq : UINT64_MAX;

	return p < q ? -1 : p > q;
}

size_t audit_open_left(struct audit_open *o, struct audit_left ret[AUDIT_OPEN_SLOTS])
{
	size_t n = 0;

	for (int i = 0; i < AUDIT_OPEN_SLOTS; i++) {
		const struct slot *s = &o->slots[i];
		bool is_ended = s->state == SLOT_ENDED;

		if (s->state != SLOT_FREE)
			ret[n++] =
				(struct audit_left){ i, s->seq, s->owner, is_ended ? s->kind : "",
						     is_ended ? s->ended : s->begun };
	}
	qsort(ret, n, sizeof(*ret), by_seq);
	return n;
}
