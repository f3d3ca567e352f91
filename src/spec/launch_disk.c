/* Layers and volumes in the launch spec: what is a valid one, and how it is written. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "spec/launch.h"

#define SNAPSHOT_FLAGS (SNAPSHOT_ROOT | SNAPSHOT_AS_ROOT | SNAPSHOT_WHOLE | SNAPSHOT_VOLATILE)

int spec_check_layers(const struct layer_list *l, struct err *err)
{
	if (l->count > LAYERS_MAX)
		return err_set(err, EINVAL, "%" PRIu32 " layers, at most %d are possible", l->count,
			       LAYERS_MAX);
	for (uint32_t i = 0; i < l->count; i++) {
		if (!l->ids[i] || !id_is_valid(l->ids[i]))
			return err_set(err, EINVAL, "'%.60s' is not the id of a layer",
				       l->ids[i] ? l->ids[i] : "");
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(l->ids[i], l->ids[j]) == 0)
				return err_set(err, EINVAL, "layer %s is named twice", l->ids[i]);
	}
	return 0;
}

static const char *after(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

/* The length of the name that s begins with; 0: it begins with none. */
static size_t name_len(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
		return 0;
	return n;
}

/* Names of [A-Za-z0-9._-], and not those that lead elsewhere. */
static bool is_plain_name(struct str name)
{
	if (name.len == 0 || str_is(name, ".") || str_is(name, ".."))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    name.data[i]))
			return false;
	return true;
}

static bool path_is_writable(struct str path)
{
	static const char *const kernels[] = { "proc", "sys", "dev" };
	struct str name = { 0 };

	if (path.len < 2 || path.data[0] != '/' || path.data[path.len - 1] == '/')
		return false;
	path = (struct str){ path.data + 1, path.len - 1 };
	for (bool is_first = true; str_split(&path, '/', &name); is_first = false) {
		if (!is_plain_name(name))
			return false;
		for (size_t i = 0; is_first && i < sizeof(kernels) / sizeof(kernels[0]); i++)
			if (str_is(name, kernels[i]))
				return false;
	}
	return true;
}

bool spec_writable_is_valid(const char *paths)
{
	struct str rest = str_of(paths), one = { 0 };

	if (rest.len > TEMPLATE_WRITABLE_MAX || (rest.len > 0 && paths[rest.len - 1] == ':'))
		return false;
	while (str_split(&rest, ':', &one))
		if (!path_is_writable(one))
			return false;
	return true;
}

bool spec_volume_path_is_valid(const char *path)
{
	const char *rest = after(path, "/workspace/"), *mnt = after(path, "/mnt/");
	size_t n;

	if (strnlen(path, VOLUME_PATH_MAX + 1) > VOLUME_PATH_MAX || (!rest && !mnt))
		return false;
	if (mnt)
		return name_len(mnt) > 0 && mnt[name_len(mnt)] == '\0';
	for (;; rest += n + 1) {
		n = name_len(rest);
		if (n == 0)
			return false;
		if (rest[n] != '/')
			return rest[n] == '\0';
	}
}

/* One inside the other would hide what it was mounted on. */
static bool overlap(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), less = n < m ? n : m;

	return strncmp(a, b, less) == 0 && (n == m || (n < m ? b[less] : a[less]) == '/');
}

static int check_volumes(const struct launch_volume *v, uint32_t count, struct err *err)
{
	if (count > VOLUMES_MAX)
		return err_set(err, EINVAL, "%" PRIu32 " volumes, at most %d are possible", count,
			       VOLUMES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (!v[i].id || !id_is_valid(v[i].id))
			return err_set(err, EINVAL, "'%.60s' is not the id of a volume",
				       v[i].id ? v[i].id : "");
		if (!v[i].path || !spec_volume_path_is_valid(v[i].path))
			return err_set(err, EINVAL,
				       "volume path '%.130s': want /mnt/NAME or a directory below "
				       "/workspace",
				       v[i].path ? v[i].path : "");
		if (v[i].read_only > 1)
			return err_set(err, EINVAL, "a volume is read-only or it is not");
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(v[i].id, v[j].id) == 0 || overlap(v[i].path, v[j].path))
				return err_set(err, EINVAL, "two volumes are one, or at one path");
	}
	return 0;
}

int spec_check_launch(const struct launch_spec *s, struct err *err)
{
	int r = spec_check_layers(&s->layers, err);

	if (r == 0 && s->tag && !spec_tag_is_valid(s->tag))
		r = err_set(err, EINVAL, "tag: at most %d of [a-z0-9-]", TAG_MAX);
	return r < 0 ? r : check_volumes(s->volumes, s->n_volumes, err);
}

int spec_check_snapshot(const struct snapshot_spec *s, struct err *err)
{
	bool as_root = s->flags & SNAPSHOT_AS_ROOT;

	if (!id_is_valid(s->box_id) || !id_is_valid(s->layer_id))
		return err_set(err, EINVAL, "a snapshot needs the id of a box and of its layer");
	if ((s->flags & ~(uint32_t)SNAPSHOT_FLAGS) != 0 || (as_root && s->flags & SNAPSHOT_ROOT))
		return err_set(err, EINVAL, "snapshot flags 0x%" PRIx32 " are not possible",
			       s->flags);
	return 0;
}

int spec_check_volume(const struct volume_spec *v, struct err *err)
{
	if (!id_is_valid(v->id))
		return err_set(err, EINVAL, "'%.60s' is not the id of a volume", v->id);
	if (v->bytes < VOLUME_BYTES_MIN || v->bytes > VOLUME_BYTES_MAX)
		return err_set(err, EINVAL,
			       "a volume of %" PRIu64 " bytes, allowed are %llu to %llu", v->bytes,
			       VOLUME_BYTES_MIN, VOLUME_BYTES_MAX);
	return 0;
}

void launch_wr_layers(struct wr *w, const struct layer_list *l)
{
	wr_u8(w, (uint8_t)l->count);
	for (uint32_t i = 0; i < l->count && i < LAYERS_MAX; i++)
		wr_str(w, l->ids[i]);
}

int launch_rd_layers(struct rd *r, struct layer_list *ret)
{
	struct layer_list l = { .count = rd_u8(r) };

	if (l.count > LAYERS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < l.count; i++)
		l.ids[i] = rd_str(r);
	if (spec_check_layers(&l, NULL) < 0)
		return -EINVAL;
	*ret = l;
	return 0;
}

void launch_wr_volumes(struct wr *w, const struct launch_volume *v, uint32_t count)
{
	wr_u8(w, (uint8_t)count);
	for (uint32_t i = 0; i < count && i < VOLUMES_MAX; i++) {
		wr_str(w, v[i].id);
		wr_str(w, v[i].path);
		wr_u8(w, v[i].read_only);
	}
}

int launch_rd_volumes(struct rd *r, struct launch_volume *ret, uint32_t *ret_count)
{
	struct launch_volume v[VOLUMES_MAX] = { 0 };
	uint32_t count = rd_u8(r);

	if (count > VOLUMES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		v[i].id = rd_str(r);
		v[i].path = rd_str(r);
		v[i].read_only = rd_u8(r);
	}
	if (check_volumes(v, count, NULL) < 0)
		return -EINVAL;
	memcpy(ret, v, sizeof(v));
	*ret_count = count;
	return 0;
}

long launch_put_snapshot(void *data, size_t cap, uint32_t id, const struct snapshot_spec *s)
{
	struct wr w;

	wire_begin(&w, data, cap, L_SNAPSHOT, id);
	wr_str(&w, s->box_id);
	wr_str(&w, s->layer_id);
	wr_u32(&w, s->flags);
	return wire_finish(&w);
}

int launch_get_snapshot(struct rd *r, struct snapshot_spec *ret)
{
	struct snapshot_spec s;
	int n;

	s.box_id = rd_str(r);
	s.layer_id = rd_str(r);
	s.flags = rd_u32(r);
	n = rd_end(r);
	if (n == 0)
		n = spec_check_snapshot(&s, NULL);
	if (n == 0)
		*ret = s;
	return n;
}

long launch_put_layer(void *data, size_t cap, uint32_t id, const struct layer_info *l)
{
	struct wr w;

	wire_begin(&w, data, cap, L_LAYER, id);
	wr_str(&w, l->id);
	wr_u64(&w, l->bytes);
	wr_u32(&w, l->inodes);
	wr_u32(&w, l->skipped);
	wr_u8(&w, l->whole);
	wr_u8(&w, l->used);
	return wire_finish(&w);
}

int launch_get_layer(struct rd *r, struct layer_info *ret)
{
	struct layer_info l;
	int n;

	l.id = rd_str(r);
	l.bytes = rd_u64(r);
	l.inodes = rd_u32(r);
	l.skipped = rd_u32(r);
	l.whole = rd_u8(r);
	l.used = rd_u8(r);
	n = rd_end(r);
	if (n == 0 && (!id_is_valid(l.id) || l.whole > 1 || l.used > 1))
		n = -EINVAL;
	if (n == 0)
		*ret = l;
	return n;
}

long launch_put_volume(void *data, size_t cap, uint32_t id, const struct volume_spec *v)
{
	struct wr w;

	wire_begin(&w, data, cap, L_VOLUME_MAKE, id);
	wr_str(&w, v->id);
	wr_u64(&w, v->bytes);
	return wire_finish(&w);
}

int launch_get_volume(struct rd *r, struct volume_spec *ret)
{
	struct volume_spec v;
	int n;

	v.id = rd_str(r);
	v.bytes = rd_u64(r);
	n = rd_end(r);
	if (n == 0)
		n = spec_check_volume(&v, NULL);
	if (n == 0)
		*ret = v;
	return n;
}

long launch_put_volume_info(void *data, size_t cap, uint32_t id, const struct volume_info *v)
{
	struct wr w;

	wire_begin(&w, data, cap, L_VOLUME_IS, id);
	wr_str(&w, v->id);
	wr_str(&w, v->box_id);
	wr_u64(&w, v->bytes);
	wr_u64(&w, v->used);
	return wire_finish(&w);
}

int launch_get_volume_info(struct rd *r, struct volume_info *ret)
{
	struct volume_info v;
	int n;

	v.id = rd_str(r);
	v.box_id = rd_str(r);
	v.bytes = rd_u64(r);
	v.used = rd_u64(r);
	n = rd_end(r);
	if (n == 0 && (!id_is_valid(v.id) || (v.box_id[0] && !id_is_valid(v.box_id))))
		n = -EINVAL;
	if (n == 0)
		*ret = v;
	return n;
}
