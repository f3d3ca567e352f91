/* What strangers' images are read by: the JSON files, the outer archive, the filter of layers. The
 * first byte says which. What the filter lets through must be an archive with clean names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/archive.h"
#include "image/filter.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_result(int r, const struct err *err)
{
	if (r < 0 && (err->code != -r || err->text[0] == '\0'))
		abort();
}

static void check_blob(const struct manifest_blob *b)
{
	if (strlen(b->path) > MANIFEST_PATH_MAX || b->path[0] == '\0')
		abort();
}

static void read_manifest(const uint8_t *data, size_t size, bool is_oci)
{
	struct manifest *m = calloc(1, sizeof(*m));
	struct err err = { 0 };
	int r;

	if (!m)
		return;
	r = is_oci ? manifest_read_oci(data, size, m, &err)
		   : manifest_read_docker(data, size, m, &err);
	check_result(r, &err);
	if (r == 0) {
		if (m->n_layers == 0 || m->n_layers > MANIFEST_LAYERS_MAX)
			abort();
		check_blob(&m->config);
		for (size_t i = 0; i < m->n_layers; i++)
			check_blob(&m->layers[i]);
	}
	free(m);
}

static void read_index(const uint8_t *data, size_t size)
{
	struct manifest_blob b = { 0 };
	struct err err = { 0 };
	bool is_index = false;
	int r = manifest_read_index(data, size, "amd64", &b, &is_index, &err);

	check_result(r, &err);
	if (r == 0)
		check_blob(&b);
}

static void read_config(const uint8_t *data, size_t size)
{
	struct manifest_rootfs *rootfs = calloc(1, sizeof(*rootfs));
	struct arena *a = arena_create(16u << 20);
	struct image_config c = { 0 };
	struct err err = { 0 };
	int r;

	if (rootfs && a) {
		r = manifest_read_config(data, size, "amd64", a, &c, rootfs, &err);
		check_result(r, &err);
		if (r == 0 && (!c.user || !c.workdir || rootfs->n > MANIFEST_LAYERS_MAX))
			abort();
	}
	free(rootfs);
	(void)arena_free(a);
}

static void read_archive(const uint8_t *data, size_t size)
{
	struct archive *a = archive_create();
	struct archive_part part;
	struct err err = { 0 };
	int r = 0;

	while (a && r == 0 && !archive_is_whole(a) && archive_next(a) < size) {
		uint64_t at = archive_next(a);
		size_t n = size - (size_t)at;

		r = archive_take(a, data + at, n > 700 ? 700 : n, &err);
		if (r == 0 && archive_next(a) <= at)
			abort(); /* it would never end */
	}
	check_result(r, &err);
	if (a && archive_find(a, "manifest.json", &part) == 0 && part.offset > size)
		abort();
	(void)archive_free(a);
}

static bool is_clean(const char *path)
{
	return path[0] != '/' && !strstr(path, "//") && strcmp(path, "..") != 0 &&
	       strncmp(path, "../", 3) != 0 && !strstr(path, "/../") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

/* Ours, so nothing in it may be wrong. */
static void check_filtered(const struct buf *out)
{
	const uint8_t *p = (const uint8_t *)out->data;
	size_t n = out->len;
	struct tar_reader t;
	int r;

	tar_reader_init(&t);
	while (n > 0 && (r = tar_read(&t, &p, &n, NULL)) != 0) {
		if (r < 0)
			abort();
		if (r == TAR_MEMBER &&
		    (!is_clean(t.member.path) ||
		     (t.member.type == TAR_HARDLINK && !is_clean(t.member.link)) ||
		     (t.member.uid > FILTER_ID_MAX && t.member.uid != FILTER_NOBODY)))
			abort();
	}
	tar_reader_done(&t);
}

static void filter(const uint8_t *data, size_t size)
{
	const struct filter_limits limits = { 1 << 16, 100 };
	struct buf white = { 0 }, out = { 0 };

	for (int pass = 0; pass < 2; pass++) {
		struct filter_count count = { 0 };
		struct err err = { 0 };
		struct filter f;
		int r = filter_init(&f, &limits, &count, &white, pass ? &out : NULL);

		for (size_t at = 0; at < size && r == 0; at += 1000)
			r = filter_take(&f, data + at, size - at < 1000 ? size - at : 1000, &err);
		if (count.bytes > limits.bytes || count.entries > limits.entries)
			abort();
		filter_done(&f);
	}
	check_filtered(&out);
	buf_done(&white);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 65536)
		return 0;
	switch (data[0]) {
	case 'd':
	case 'o':
		read_manifest(data + 1, size - 1, data[0] == 'o');
		break;
	case 'i':
		read_index(data + 1, size - 1);
		break;
	case 'c':
		read_config(data + 1, size - 1);
		break;
	case 'a':
		read_archive(data + 1, size - 1);
		break;
	default:
		filter(data + 1, size - 1);
	}
	return 0;
}
