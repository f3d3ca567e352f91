#include "net/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#define WINDOW (15 + 16) /* the largest, with gzip's header */
#define MEMORY 8         /* zlib's own default: 256 KiB a stream */

struct gzip {
	z_stream z;
	enum gzip_way way;
	bool is_whole;
};

struct gzip *gzip_create(enum gzip_way way)
{
	struct gzip *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return NULL;
	g->way = way;
	/* The quickest: it is done between two requests of others. */
	if (way == GZIP_PACK)
		r = deflateInit2(&g->z, Z_BEST_SPEED, Z_DEFLATED, WINDOW, MEMORY,
				 Z_DEFAULT_STRATEGY);
	else
		r = inflateInit2(&g->z, WINDOW);
	if (r == Z_OK)
		return g;
	free(g);
	return NULL;
}

struct gzip *gzip_free(struct gzip *g)
{
	if (!g)
		return NULL;
	if (g->way == GZIP_PACK)
		(void)deflateEnd(&g->z);
	else
		(void)inflateEnd(&g->z);
	free(g);
	return NULL;
}

/* Several streams one behind the other are one. */
static int unpack(struct gzip *g)
{
	int r = inflate(&g->z, Z_NO_FLUSH);

	while (r == Z_STREAM_END && g->z.avail_in > 0) {
		if (inflateReset(&g->z) != Z_OK)
			return Z_DATA_ERROR;
		r = inflate(&g->z, Z_NO_FLUSH);
	}
	return r;
}

ssize_t gzip_run(struct gzip *g, const char **data, size_t *n, bool is_last, char *dst, size_t room)
{
	unsigned in = *n < UINT_MAX ? (unsigned)*n : UINT_MAX;
	unsigned out = room < INT_MAX ? (unsigned)room : INT_MAX;
	int r;

	g->z.next_in = (const Bytef *)(const void *)*data;
	g->z.avail_in = in;
	g->z.next_out = (Bytef *)(void *)dst;
	g->z.avail_out = out;
	if (g->way == GZIP_PACK)
		r = deflate(&g->z, is_last && in == *n ? Z_FINISH : Z_NO_FLUSH);
	else
		r = unpack(g);
	*data += in - g->z.avail_in;
	*n -= in - g->z.avail_in;
	if (r == Z_STREAM_END)
		g->is_whole = true;
	else if (r == Z_OK && g->way == GZIP_UNPACK)
		g->is_whole = false; /* in another one */
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
		return -EBADMSG;
	return (ssize_t)(out - g->z.avail_out);
}

bool gzip_is_whole(const struct gzip *g)
{
	return g->is_whole;
}
