/* Feeds files, or every file of a directory, to a fuzz target: the kept corpus as a test that any
 * compiler can build. A target that misbehaves ends the program, as under the fuzzer. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_fd(int fd)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = fd_slurp(fd, &b);

	if (r < 0)
		return r;
	/* An input of its own size: one byte read too far is then seen by the sanitizer. */
	_free_ uint8_t *exact = malloc(b.len ? b.len : 1);
	if (!exact)
		return -ENOMEM;
	if (b.len)
		memcpy(exact, b.data, b.len);
	(void)LLVMFuzzerTestOneInput(exact, b.len);
	return 0;
}

static int replay_dir(int fd, size_t *count)
{
	DIR *dir = fdopendir(fd);
	int r = dir ? 0 : -errno;

	for (struct dirent *e; r == 0 && (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		_close_ int file = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC);
		r = file < 0 ? -errno : replay_fd(file);
		*count += r == 0;
	}
	if (dir)
		(void)closedir(dir);
	return r;
}

static int replay(const char *path, size_t *count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return replay_dir(fd, count); /* closes fd */
	r = replay_fd(fd);
	(void)close(fd);
	*count += r == 0;
	return r;
}

int main(int argc, char **argv)
{
	size_t count = 0;

	for (int i = 1; i < argc; i++) {
		int r = replay(argv[i], &count);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return 1;
		}
	}
	if (count == 0) {
		fprintf(stderr, "nothing to replay\n");
		return 1;
	}
	printf("%zu inputs replayed\n", count);
	return 0;
}
