/* Tar archives as bytes: a writer of ustar with pax records where ustar is too small, and a reader
 * of that, of GNU's long names and of the old format. Neither knows files or sockets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

#define TAR_BLOCK 512
#define TAR_PATH 4096           /* longest path or link target, with its NUL */
#define TAR_META_MAX (1u << 20) /* longest extended header */

#define TAR_ID_NONE UINT32_MAX

enum tar_type { TAR_FILE, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK };

struct tar_member {
	enum tar_type type;
	uint32_t mode;     /* permission bits */
	uint32_t uid, gid; /* TAR_ID_NONE: what the archive says is no id */
	uint64_t size;     /* 0 but for a file */
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	const char *path; /* borrowed */
	const char *link; /* borrowed; target of a link, else "" */
};

/* The writer appends to b: the headers of a member (its size bytes follow, from the caller, then
 * the padding), and the archive's end. 0 or buf's error; -EINVAL for a path that no reader would
 * take. */
int tar_write_member(struct buf *b, const struct tar_member *m);
size_t tar_padding(uint64_t size); /* zero bytes to add behind so many */
int tar_write_end(struct buf *b);

enum tar_event {
	TAR_NEED,   /* all input is used up: come again with more */
	TAR_MEMBER, /* a member begins: reader->member */
	TAR_DATA,   /* bytes of it: reader->data, reader->data_len (borrowed from the input) */
	TAR_DONE,   /* it is whole */
	TAR_END,    /* the archive's end mark was read; whatever follows is ignored */
};

enum tar_state { TAR_IN_HEADER, TAR_IN_META, TAR_IN_DATA, TAR_IN_PADDING, TAR_AT_END };

/* What extended headers said about the member to come. */
struct tar_extra {
	bool has_path, has_link, has_size, has_mtime, has_uid, has_gid;
	uint32_t uid, gid;
	uint64_t size;
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	char path[TAR_PATH], link[TAR_PATH];
};

struct tar_reader {
	struct tar_member member; /* strings are good until TAR_DONE */
	bool skips_special;       /* set by the caller: devices and FIFOs are passed over, */
	uint64_t skipped;         /* and counted */
	const uint8_t *data;
	size_t data_len;

	enum tar_state state;
	uint8_t block[TAR_BLOCK];
	size_t block_len;
	uint64_t left;    /* bytes of the member or extended header to come */
	uint64_t padding; /* zero bytes behind them */
	char meta_type;
	struct buf meta;
	struct tar_extra extra;
	char path[TAR_PATH], link[TAR_PATH];
};

void tar_reader_init(struct tar_reader *t);
void tar_reader_done(struct tar_reader *t);
/* Takes from *data and *n. An event, or -EBADMSG for what is no archive, -ENAMETOOLONG, -E2BIG,
 * -EPERM for a device or FIFO, -ENOTSUP for other kinds of members; the reader is of no use
 * afterwards. */
int tar_read(struct tar_reader *t, const uint8_t **data, size_t *n, struct err *err);
/* After TAR_MEMBER, of a caller who can seek: the bytes from here to the next header, which are
 * then not to be given to tar_read(); TAR_DONE does not come. */
uint64_t tar_skip(struct tar_reader *t);
/* Says -EBADMSG when the input ended before the archive did. */
int tar_read_finish(const struct tar_reader *t, struct err *err);

/* The header block; every field is text. */
struct tar_header {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[8]; /* "ustar\0" "00", or GNU's "ustar  " */
	char uname[32], gname[32];
	char major[8], minor[8];
	char prefix[155];
	char pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");
