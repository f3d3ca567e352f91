/* The archive of a step, read piece by piece and checked against its sum at the end. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/str.h"
#include "sandbox/build_impl.h"

static int check_sum(struct build_box *box, const char *want)
{
	uint8_t sum[HASH_LEN];
	char hex[2 * HASH_LEN + 1];
	int r = hash_final(box->sum, sum);

	if (r < 0)
		return r;
	encode_hex(sum, HASH_LEN, hex);
	return strcmp(hex, want) == 0 ? 0 : -EBADMSG;
}

int build_archive_read(struct build_job *j)
{
	struct build_box *box = &j->box;
	ssize_t n;
	int r;

	if (box->sent < box->len)
		return 1;
	do
		n = read(box->fd, box->chunk, sizeof(box->chunk));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return check_sum(box, box->file_sum);
	r = hash_update(box->sum, box->chunk, (size_t)n);
	box->len = (size_t)n;
	box->sent = 0;
	return r < 0 ? r : 1;
}

int build_archive_open(struct build_job *j, const struct build_step *s, struct err *err)
{
	const struct object *o = build_file_find(j->all, j->owner, s->files);

	if (!o)
		return err_set(err, ENOENT, "there is no archive %.12s... any more: send it again",
			       s->files);
	(void)str_copy(j->box.file_id, sizeof(j->box.file_id), o->id);
	(void)str_copy(j->box.file_sum, sizeof(j->box.file_sum), build_file_sum(o));
	j->box.fd = build_file_open(j->all, o, err);
	if (j->box.fd == -ENOENT) { /* its record outlived a power cut, it did not */
		build_file_drop(j->all, j->box.file_id);
		return err_set(err, EIO, "the archive is lost: send it again");
	}
	if (j->box.fd < 0)
		return j->box.fd;
	j->box.sum = hash_create();
	j->box.len = j->box.sent = 0;
	j->box.is_sent = false;
	return j->box.sum ? 0 : err_sys(err, ENOMEM, "archive");
}
