#include "cli/template_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "config/yaml_json.h"
#include "json/jv.h"

static int read_file(const char *path, struct buf *ret, struct err *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	_close_ int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	char piece[4096];
	ssize_t n = 1;

	if (fd < 0)
		return err_sys(err, errno, "'%.150s'", path);
	while (n > 0) {
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "'%.150s'", path);
		if (n > 0 && buf_append(ret, piece, (size_t)n) < 0)
			return err_set(err, E2BIG, "'%.150s' is too long", path);
		n = n < 0 ? 1 : n;
	}
	return 0;
}

int template_file(const char *path, struct jv_doc **ret, struct err *err)
{
	_cleanup_(buf_done) struct buf yaml = { .max = YAML_JSON_MAX + 1 }, json = { 0 };
	int r = read_file(path, &yaml, err);

	if (r == 0)
		r = yaml_json(path, buf_str(&yaml), yaml.len, &json, err);
	return r < 0 ? r : jv_parse(buf_str(&json), json.len, json.len, ret, err);
}
