/* What is said of files. */
#include <errno.h>
#include <string.h>

#include "spec/guest.h"

#define FILE_FLAGS                                                                              \
	(FILE_RECURSIVE | FILE_PARENTS | FILE_NOFOLLOW | FILE_APPEND | FILE_EXCL | FILE_REGEX | \
	 FILE_ICASE | FILE_NAMES | FILE_DRY_RUN | FILE_OWNERS | FILE_LAYERS | FILE_AT_HOME |    \
	 FILE_DETAILS | FILE_ATTRS | FILE_AS_ROOT | FILE_BELOW)

#define FILE_MODE_MAX 07777u
#define ENTRY_MODE_MAX 0177777u /* the bits of the file's type may be in it */

bool guest_is_search(uint8_t op)
{
	return op == FILE_FIND || op == FILE_GREP || op == FILE_REPLACE;
}

static void put_search(struct wr *w, const struct guest_search *s)
{
	wr_u32(w, s->limit);
	wr_u32(w, s->context);
	wr_u32(w, s->line_bytes);
	wr_u32(w, s->cpu_ms);
	wr_u8(w, s->types);
	wr_u64(w, s->size_min);
	wr_u64(w, s->size_max);
	wr_u64(w, s->after_ns);
	wr_u64(w, s->before_ns);
	wr_str(w, s->name);
	wr_str(w, s->exclude);
	wr_str(w, s->pattern);
	wr_str(w, s->replacement);
}

static void get_search(struct rd *r, struct guest_search *ret)
{
	ret->limit = rd_u32(r);
	ret->context = rd_u32(r);
	ret->line_bytes = rd_u32(r);
	ret->cpu_ms = rd_u32(r);
	ret->types = rd_u8(r);
	ret->size_min = rd_u64(r);
	ret->size_max = rd_u64(r);
	ret->after_ns = rd_u64(r);
	ret->before_ns = rd_u64(r);
	ret->name = rd_str(r);
	ret->exclude = rd_str(r);
	ret->pattern = rd_str(r);
	ret->replacement = rd_str(r);
}

static int check_search(uint8_t op, const struct guest_search *s)
{
	if (s->limit == 0 || s->context > GUEST_CONTEXT_MAX || s->line_bytes > GUEST_LINE_MAX)
		return -EINVAL;
	if (s->types >= 1u << (ENTRY_OTHER + 1))
		return -EINVAL;
	return op != FILE_FIND && s->pattern[0] == '\0' ? -EINVAL : 0;
}

long guest_put_file(void *data, size_t cap, uint32_t id, const struct guest_file *f)
{
	struct wr w;

	wire_begin(&w, data, cap, G_FILE, id);
	wr_u8(&w, f->op);
	wr_u32(&w, f->flags);
	wr_u32(&w, f->mode);
	wr_u32(&w, f->depth);
	wr_u64(&w, f->offset);
	wr_u64(&w, f->length);
	wr_str(&w, f->user);
	wr_str(&w, f->path);
	wr_str(&w, f->target);
	if (guest_is_search(f->op))
		put_search(&w, &f->search);
	if (f->flags & FILE_ATTRS)
		wr_bytes(&w, f->attrs, f->attrs_len);
	if (f->op == FILE_COMPOSE)
		wr_bytes(&w, f->sources, f->sources_len);
	return wire_finish(&w);
}

bool guest_attr_next(const char *attrs, size_t len, size_t *at, const char **ret_name,
		     const char **ret_value)
{
	size_t name = *at, value;

	if (name >= len)
		return false;
	value = name + strnlen(attrs + name, len - name) + 1;
	if (value >= len)
		return false; /* not reached: check_attrs() */
	*ret_name = attrs + name;
	*ret_value = attrs + value;
	*at = value + strnlen(attrs + value, len - value) + 1;
	return true;
}

/* Whole pairs, each name one that the kernel takes. */
static int check_attrs(const char *attrs, size_t len)
{
	const char *name = "", *value;
	size_t at = 0;

	if (len == 0)
		return 0;
	if (len > GUEST_ATTRS_BYTES || attrs[len - 1] != '\0')
		return -EINVAL;
	while (guest_attr_next(attrs, len, &at, &name, &value))
		if (name[0] == '\0' || strlen(name) > GUEST_ATTR_NAME_MAX)
			return -EINVAL;
	return at == len ? 0 : -EINVAL;
}

/* Where target may name a root; a write is then of any version. */
static bool takes_root(uint8_t op)
{
	return op == FILE_STAT || op == FILE_LIST || op == FILE_READ || op == FILE_WRITE ||
	       op == FILE_MKDIR || op == FILE_REMOVE || op == FILE_CHMOD;
}

static bool is_root_good(const struct guest_file *f)
{
	return !(f->flags & FILE_BELOW) || (takes_root(f->op) && f->target[0] == '/');
}

static int check_file(const struct guest_file *f)
{
	if (f->op >= FILE_OP_COUNT || (f->flags & ~(uint32_t)FILE_FLAGS) != 0)
		return -EINVAL;
	/* Offsets go to the kernel as a signed off_t. */
	if (f->mode > FILE_MODE_MAX || f->offset > INT64_MAX || f->length > INT64_MAX)
		return -EINVAL;
	if (!is_root_good(f))
		return -EINVAL;
	if (f->flags & FILE_ATTRS && (f->op != FILE_WRITE || check_attrs(f->attrs, f->attrs_len)))
		return -EINVAL;
	if (f->op == FILE_COMPOSE && (f->sources_len == 0 || f->sources_len > GUEST_SOURCES_BYTES ||
				      f->sources[f->sources_len - 1] != '\0'))
		return -EINVAL;
	return guest_is_search(f->op) ? check_search(f->op, &f->search) : 0;
}

int guest_get_file(struct rd *r, struct guest_file *ret)
{
	struct guest_file f = { 0 };
	int n;

	f.op = rd_u8(r);
	f.flags = rd_u32(r);
	f.mode = rd_u32(r);
	f.depth = rd_u32(r);
	f.offset = rd_u64(r);
	f.length = rd_u64(r);
	f.user = rd_str(r);
	f.path = rd_str(r);
	f.target = rd_str(r);
	if (guest_is_search(f.op))
		get_search(r, &f.search);
	if (f.flags & FILE_ATTRS)
		f.attrs = rd_bytes(r, &f.attrs_len);
	if (f.op == FILE_COMPOSE)
		f.sources = rd_bytes(r, &f.sources_len);
	n = rd_end(r);
	if (n == 0)
		n = check_file(&f);
	if (n == 0)
		*ret = f;
	return n;
}

static void put_details(struct wr *w, const struct guest_entry *e)
{
	wr_str(w, e->owner);
	wr_str(w, e->group);
	wr_u8(w, e->real_type);
	wr_u32(w, e->real_mode);
	wr_bytes(w, e->attrs, e->attrs_len);
}

long guest_put_entry(void *data, size_t cap, uint32_t id, const struct guest_entry *e)
{
	struct wr w;

	wire_begin(&w, data, cap, G_ENTRY, id);
	wr_u8(&w, e->type);
	wr_u32(&w, e->mode);
	wr_u32(&w, e->uid);
	wr_u32(&w, e->gid);
	wr_u64(&w, e->size);
	wr_u64(&w, e->mtime_ns);
	wr_u64(&w, e->inode);
	wr_str(&w, e->path);
	wr_str(&w, e->target);
	if (e->owner)
		put_details(&w, e);
	return wire_finish(&w);
}

/* What does not ask for details gets none, and a box that is older than they are sends none. */
static int get_details(struct rd *r, struct guest_entry *e)
{
	if (r->bad || r->p == r->end)
		return 0;
	e->owner = rd_str(r);
	e->group = rd_str(r);
	e->real_type = rd_u8(r);
	e->real_mode = rd_u32(r);
	e->attrs = rd_bytes(r, &e->attrs_len);
	if (rd_end(r) < 0)
		return -EPROTO;
	if (e->real_type > ENTRY_OTHER || e->real_mode > ENTRY_MODE_MAX)
		return -EINVAL;
	return check_attrs(e->attrs, e->attrs_len);
}

int guest_get_entry(struct rd *r, struct guest_entry *ret)
{
	struct guest_entry e = { 0 };
	int n;

	e.type = rd_u8(r);
	e.mode = rd_u32(r);
	e.uid = rd_u32(r);
	e.gid = rd_u32(r);
	e.size = rd_u64(r);
	e.mtime_ns = rd_u64(r);
	e.inode = rd_u64(r);
	e.path = rd_str(r);
	e.target = rd_str(r);
	n = get_details(r, &e);
	if (n == 0)
		n = rd_end(r);
	if (n == 0 && (e.type > ENTRY_OTHER || e.mode > ENTRY_MODE_MAX))
		n = -EINVAL;
	if (n == 0)
		*ret = e;
	return n;
}

long guest_put_found(void *data, size_t cap, uint32_t id, const struct guest_found *e)
{
	struct wr w;

	wire_begin(&w, data, cap, G_FOUND, id);
	wr_u8(&w, e->kind);
	wr_u8(&w, e->is_cut);
	wr_u32(&w, e->column);
	wr_u64(&w, e->number);
	wr_str(&w, e->path);
	wr_str(&w, e->text);
	return wire_finish(&w);
}

int guest_get_found(struct rd *r, struct guest_found *ret)
{
	struct guest_found e;
	int n;

	e.kind = rd_u8(r);
	e.is_cut = rd_u8(r);
	e.column = rd_u32(r);
	e.number = rd_u64(r);
	e.path = rd_str(r);
	e.text = rd_str(r);
	n = rd_end(r);
	if (n == 0 && (e.kind >= FOUND_KIND_COUNT || e.is_cut > 1))
		n = -EINVAL;
	if (n == 0)
		*ret = e;
	return n;
}
