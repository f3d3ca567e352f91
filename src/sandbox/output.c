/* Bytes lie at position modulo capacity. Which stream they belong to is told by runs: where one
 * begins, and whose it is. Both are bounded; when either is full the oldest give way. */
#include "sandbox/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"

#define MAGIC 0x74756f746c6f6801ull
#define CAP_FIRST (4u << 10)
#define BYTES_PER_RUN 64u /* one run for so many bytes of capacity */

/* A run is its first position, shifted, with the stream (0 or 1) in the lowest bit. */
typedef uint64_t run_t;
#define RUN(seq, stream) ((seq) << 1 | (uint64_t)((stream)-1))
#define RUN_SEQ(run) ((run) >> 1)
#define RUN_STREAM(run) ((int)((run)&1) + 1)

/* Two of them, one in force: a process that is killed while it writes leaves the other whole. */
struct mark {
	uint64_t begin, end;
	uint64_t first_end; /* bytes of stream 1 */
	uint64_t run_head, run_count;
};

struct head {
	uint64_t magic, cap, run_cap;
	_Atomic uint32_t active;
	uint32_t reserved;
	struct mark marks[2];
};

struct output_budget {
	unsigned refs;
	uint64_t used, max;
};

struct output {
	struct head *head; /* owned: the block that holds head, runs and bytes */
	size_t size;       /* bytes of that block; 0: none */
	bool is_mapped;    /* it is a file's; else from the heap */
	size_t keep;
	struct output_budget *budget; /* owned reference; NULL: none */
};

static size_t run_cap_for(size_t cap)
{
	return cap / BYTES_PER_RUN;
}

static size_t block_size(size_t cap)
{
	return sizeof(struct head) + run_cap_for(cap) * sizeof(run_t) + cap;
}

static run_t *runs(const struct head *h)
{
	return (run_t *)(void *)(h + 1);
}

static char *bytes(const struct head *h)
{
	return (char *)(runs(h) + h->run_cap);
}

static const struct mark *mark(const struct head *h)
{
	return &h->marks[atomic_load_explicit(&h->active, memory_order_relaxed) & 1];
}

static void set_mark(struct head *h, const struct mark *m)
{
	uint32_t next = !(atomic_load_explicit(&h->active, memory_order_relaxed) & 1);

	h->marks[next] = *m;
	atomic_store_explicit(&h->active, next, memory_order_release);
}

static void head_init(struct head *h, size_t cap)
{
	*h = (struct head){ .magic = MAGIC, .cap = cap, .run_cap = run_cap_for(cap) };
}

static run_t run_at(const struct head *h, const struct mark *m, uint64_t i)
{
	return runs(h)[(m->run_head + i) % h->run_cap];
}

struct output *output_create(size_t keep)
{
	struct output *o;

	if (keep < OUTPUT_KEEP_MIN)
		keep = OUTPUT_KEEP_MIN;
	if (keep > OUTPUT_KEEP_MAX)
		keep = OUTPUT_KEEP_MAX;
	o = calloc(1, sizeof(*o));
	if (o)
		o->keep = keep;
	return o;
}

struct output_budget *output_budget_create(uint64_t max)
{
	struct output_budget *b = malloc(sizeof(*b));

	if (b)
		*b = (struct output_budget){ .refs = 1, .max = max };
	return b;
}

struct output_budget *output_budget_unref(struct output_budget *b)
{
	if (b && --b->refs == 0)
		free(b);
	return NULL;
}

uint64_t output_budget_used(const struct output_budget *b)
{
	return b->used;
}

void output_limit(struct output *o, struct output_budget *b)
{
	assert(!o->budget);
	b->refs++;
	b->used += o->size;
	o->budget = b;
}

/* The most of this that all together leave it; never less than what it has, or its first. */
static size_t allowed_cap(const struct output *o, size_t cap)
{
	const struct output_budget *b = o->budget;
	size_t least = o->head ? o->head->cap : CAP_FIRST;

	while (b && cap > least && b->used - o->size + block_size(cap) > b->max)
		cap /= 2;
	return cap > least ? cap : least;
}

/* Takes the block (NULL: none) in place of the former one. */
static void set_block(struct output *o, struct head *h, size_t size, bool is_mapped)
{
	if (o->is_mapped)
		(void)munmap(o->head, o->size);
	else
		free(o->head);
	if (o->budget)
		o->budget->used += size - o->size;
	o->head = h;
	o->size = size;
	o->is_mapped = is_mapped;
}

struct output *output_free(struct output *o)
{
	if (o) {
		set_block(o, NULL, 0, false);
		(void)output_budget_unref(o->budget);
	}
	free(o);
	return NULL;
}

bool output_is_persistent(const struct output *o)
{
	return o->is_mapped;
}

uint64_t output_begin(const struct output *o)
{
	return o->head ? mark(o->head)->begin : 0;
}

uint64_t output_end(const struct output *o)
{
	return o->head ? mark(o->head)->end : 0;
}

uint64_t output_stream_end(const struct output *o, int stream)
{
	const struct mark *m = o->head ? mark(o->head) : NULL;

	if (!m)
		return 0;
	return stream == 1 ? m->first_end : m->end - m->first_end;
}

/* The most that may be given up is what lies before the result, once n bytes more are there in a
 * block for `cap`. */
static uint64_t begin_after(const struct head *h, const struct mark *m, size_t n, size_t cap)
{
	uint64_t end = m->end + n, begin = m->begin;
	size_t run_cap = run_cap_for(cap);

	if (end > cap && end - cap > begin)
		begin = end - cap;
	if (m->run_count == run_cap && run_cap > 1 && RUN_SEQ(run_at(h, m, 1)) > begin)
		begin = RUN_SEQ(run_at(h, m, 1));
	return begin;
}

/* What the block must hold for n bytes more without giving anything up, at most `keep`. */
static size_t wanted_cap(const struct output *o, size_t n)
{
	const struct mark none = { 0 }, *m = o->head ? mark(o->head) : &none;
	size_t cap = o->head ? o->head->cap : CAP_FIRST;
	uint64_t bytes = m->end - m->begin + n;

	while (cap < o->keep && (bytes > cap || m->run_count >= run_cap_for(cap)))
		cap *= 2;
	return allowed_cap(o, cap < o->keep ? cap : o->keep);
}

bool output_has_room(const struct output *o, size_t n, uint64_t from)
{
	size_t cap = wanted_cap(o, n); /* it would grow first */

	if (!o->head)
		return n <= cap;
	return begin_after(o->head, mark(o->head), n, cap) <= from;
}

/* Forgets what lies before `begin`. */
static void give_way(struct head *h, uint64_t begin)
{
	struct mark m = *mark(h);

	if (begin <= m.begin)
		return;
	m.begin = begin;
	while (m.run_count > 1 && RUN_SEQ(run_at(h, &m, 1)) <= begin) {
		m.run_head = (m.run_head + 1) % h->run_cap;
		m.run_count--;
	}
	/* Before the bytes themselves are written over. */
	set_mark(h, &m);
}

static void copy_in(struct head *h, uint64_t at, const char *data, size_t n)
{
	size_t i = (size_t)(at % h->cap);
	size_t first = n < h->cap - i ? n : h->cap - i;

	memcpy(bytes(h) + i, data, first);
	memcpy(bytes(h), data + first, n - first);
}

/* n is at most the capacity. */
static void put(struct head *h, int stream, const char *data, size_t n)
{
	struct mark m;

	give_way(h, begin_after(h, mark(h), n, h->cap));
	m = *mark(h);
	copy_in(h, m.end, data, n);
	if (m.run_count == 0 || RUN_STREAM(run_at(h, &m, m.run_count - 1)) != stream) {
		assert(m.run_count < h->run_cap);
		runs(h)[(m.run_head + m.run_count) % h->run_cap] = RUN(m.end, stream);
		m.run_count++;
	}
	m.end += n;
	m.first_end += stream == 1 ? n : 0;
	set_mark(h, &m);
}

/* All of one into another that is larger. */
static void move_into(struct head *to, const struct head *from)
{
	const struct mark *m = mark(from);
	struct mark copy = *m;

	for (uint64_t i = 0; i < m->run_count; i++)
		runs(to)[i] = run_at(from, m, i);
	copy.run_head = 0;
	for (uint64_t at = m->begin; at < m->end;) {
		size_t i = (size_t)(at % from->cap);
		size_t n = from->cap - i;

		if (n > m->end - at)
			n = (size_t)(m->end - at);
		copy_in(to, at, bytes(from) + i, n);
		at += n;
	}
	set_mark(to, &copy);
}

/* A larger block before anything would be given up; without memory the smaller one goes on. */
static int make_room(struct output *o, size_t n)
{
	size_t cap = wanted_cap(o, n);
	struct head *h;

	if (o->head && o->head->cap >= cap)
		return 0;
	h = malloc(block_size(cap));
	if (!h)
		return o->head ? 0 : -ENOMEM;
	head_init(h, cap);
	if (o->head)
		move_into(h, o->head);
	set_block(o, h, block_size(cap), false);
	return 0;
}

int output_append(struct output *o, int stream, const void *data, size_t n)
{
	const char *p = data;
	int r;

	assert(stream == 1 || stream == 2);
	if (n == 0)
		return 0;
	r = make_room(o, n);
	if (r < 0)
		return r;
	while (n > 0) {
		size_t part = n < o->head->cap ? n : o->head->cap;

		put(o->head, stream, p, part);
		p += part;
		n -= part;
	}
	return 0;
}

/* The last run that begins at or before `at`. */
static uint64_t find_run(const struct head *h, const struct mark *m, uint64_t at)
{
	uint64_t low = 0, high = m->run_count;

	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (RUN_SEQ(run_at(h, m, mid)) <= at)
			low = mid;
		else
			high = mid;
	}
	return low;
}

bool output_read(const struct output *o, uint64_t from, struct output_chunk *ret,
		 uint64_t *ret_omitted)
{
	const struct head *h = o->head;
	const struct mark *m = h ? mark(h) : NULL;
	uint64_t at, run, end;
	size_t i;

	if (!m || from >= m->end)
		return false;
	at = from > m->begin ? from : m->begin;
	run = find_run(h, m, at);
	end = run + 1 < m->run_count ? RUN_SEQ(run_at(h, m, run + 1)) : m->end;
	i = (size_t)(at % h->cap);
	if (end - at > h->cap - i)
		end = at + (h->cap - i);
	*ret = (struct output_chunk){ .seq = at,
				      .stream = RUN_STREAM(run_at(h, m, run)),
				      .data = bytes(h) + i,
				      .len = (size_t)(end - at) };
	*ret_omitted = at - from;
	return true;
}

int output_collect(const struct output *o, int stream, struct buf *ret)
{
	struct output_chunk c;
	uint64_t at = output_begin(o), omitted;
	int r = 0;

	for (; r == 0 && output_read(o, at, &c, &omitted); at = c.seq + c.len)
		if (c.stream == stream)
			r = buf_append(ret, c.data, c.len);
	return r;
}

/* ---- in a file ---- */

/* NULL and errno. */
static struct head *map_file(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

int output_persist(struct output *o, int dir_fd, const char *name)
{
	_close_ int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t cap = allowed_cap(o, o->keep), size = block_size(cap);
	struct head *h = NULL;
	int r;

	if (fd < 0)
		return -errno;
	/* Every block of it now: a write into a hole of a full disk would be the end of us. */
	r = -posix_fallocate(fd, 0, (off_t)size);
	if (r == 0) {
		h = map_file(fd, size);
		r = h ? 0 : -errno;
	}
	if (!h) {
		(void)unlinkat(dir_fd, name, 0);
		return r;
	}
	head_init(h, cap);
	if (o->head)
		move_into(h, o->head);
	set_block(o, h, size, true);
	o->keep = cap;
	return 0;
}

static bool has_sound_head(const struct head *h, size_t size)
{
	return h->magic == MAGIC && h->cap >= OUTPUT_KEEP_MIN && h->cap <= OUTPUT_KEEP_MAX &&
	       h->run_cap == run_cap_for(h->cap) && size == block_size(h->cap);
}

static bool has_sound_mark(const struct head *h, const struct mark *m)
{
	return m->begin <= m->end && m->end - m->begin <= h->cap && m->first_end <= m->end &&
	       m->run_count <= h->run_cap && m->run_head < h->run_cap &&
	       (m->run_count > 0 || m->begin == m->end);
}

/* The first run holds the oldest byte, each other begins behind the one before it. */
static bool has_sound_runs(const struct head *h, const struct mark *m)
{
	uint64_t least = 0;

	for (uint64_t i = 0; i < m->run_count; i++) {
		uint64_t seq = RUN_SEQ(run_at(h, m, i));

		if (seq < least || seq >= m->end || (i == 0 && seq > m->begin))
			return false;
		least = seq + 1 > m->begin ? seq + 1 : m->begin;
	}
	return true;
}

/* Our own file; but a bug or a broken disk must not become reads out of bounds. */
static bool is_sound(const struct head *h, size_t size)
{
	return has_sound_head(h, size) && has_sound_mark(h, mark(h)) && has_sound_runs(h, mark(h));
}

int output_open(int dir_fd, const char *name, struct output **ret, struct err *err)
{
	_close_ int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(output_free_p) struct output *o = NULL;
	struct head *h;
	struct stat st;

	if (fd < 0)
		return err_sys(err, errno, "output '%s'", name);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "output '%s'", name);
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size < block_size(OUTPUT_KEEP_MIN) ||
	    (size_t)st.st_size > block_size(OUTPUT_KEEP_MAX))
		return err_set(err, EBADMSG, "output '%s' is no such file", name);
	o = output_create(OUTPUT_KEEP_MIN);
	if (!o)
		return err_sys(err, ENOMEM, "output '%s'", name);
	h = map_file(fd, (size_t)st.st_size);
	if (!h)
		return err_sys(err, errno, "output '%s'", name);
	set_block(o, h, (size_t)st.st_size, true);
	if (!is_sound(h, o->size))
		return err_set(err, EBADMSG, "output '%s' is damaged", name);
	o->keep = o->head->cap;
	*ret = TAKE(o);
	return 0;
}

/* ---- for the store ---- */

struct saved {
	uint64_t magic, begin, first_end;
};
struct saved_chunk {
	uint32_t stream, len;
};

int output_save(const struct output *o, struct buf *ret)
{
	struct saved s = { MAGIC, output_begin(o), output_stream_end(o, 1) };
	uint64_t omitted;
	struct output_chunk c;
	int r = buf_append(ret, &s, sizeof(s));

	for (uint64_t at = s.begin; r == 0 && output_read(o, at, &c, &omitted);
	     at = c.seq + c.len) {
		struct saved_chunk head = { (uint32_t)c.stream, (uint32_t)c.len };

		r = buf_append(ret, &head, sizeof(head));
		if (r == 0)
			r = buf_append(ret, c.data, c.len);
	}
	return r;
}

static int load_chunks(struct output *o, const char *p, size_t n)
{
	while (n > 0) {
		struct saved_chunk c;
		int r;

		if (n < sizeof(c))
			return -EBADMSG;
		memcpy(&c, p, sizeof(c));
		p += sizeof(c);
		n -= sizeof(c);
		if ((c.stream != 1 && c.stream != 2) || c.len == 0 || c.len > n)
			return -EBADMSG;
		r = output_append(o, (int)c.stream, p, c.len);
		if (r < 0)
			return r;
		p += c.len;
		n -= c.len;
	}
	return 0;
}

/* What had been given up before it was saved stays so: positions go on from there. */
static int start_at(struct output *o, const struct saved *s)
{
	struct mark m = { .begin = s->begin, .end = s->begin };
	int r;

	if (s->begin > UINT64_MAX / 4)
		return -EBADMSG;
	r = make_room(o, 1);
	if (r == 0)
		set_mark(o->head, &m);
	return r;
}

int output_load(const void *data, size_t n, size_t keep, struct output **ret, struct err *err)
{
	_cleanup_(output_free_p) struct output *o = NULL;
	struct saved s;
	struct mark m;
	int r;

	if (n < sizeof(s))
		return err_set(err, EBADMSG, "kept output is damaged");
	memcpy(&s, data, sizeof(s));
	if (s.magic != MAGIC)
		return err_set(err, EBADMSG, "kept output is damaged");
	o = output_create(keep > n ? keep : n);
	if (!o)
		return err_sys(err, ENOMEM, "kept output");
	r = start_at(o, &s);
	if (r == 0)
		r = load_chunks(o, (const char *)data + sizeof(s), n - sizeof(s));
	if (r < 0)
		return err_sys(err, r, "kept output");
	m = *mark(o->head);
	if (s.first_end < m.first_end || s.first_end - m.first_end > s.begin)
		return err_set(err, EBADMSG, "kept output is damaged");
	m.first_end = s.first_end;
	set_mark(o->head, &m);
	*ret = TAKE(o);
	return 0;
}
