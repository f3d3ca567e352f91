#include "httpc/problem.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "json/jv.h"

CLEANUP_FUNC(struct jv_doc *, jv_free)

static const struct {
	int status, code;
} codes[] = {
	{ 400, EINVAL }, { 401, EACCES }, { 403, EPERM },  { 404, ENOENT }, { 409, EBUSY },
	{ 412, EEXIST }, { 413, EFBIG },  { 429, EAGAIN }, { 503, EAGAIN },
};

static int code_of(int status)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return status >= 300 && status < 400 ? EXDEV : EREMOTEIO;
}

int httpc_problem(int status, const char *body, size_t n, struct err *err)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct err ignored;
	const char *message = NULL;

	if (n > 0 && jv_parse(body, n, n, &doc, &ignored) == 0)
		message = jv_text(jv_get(jv_get(jv_root(doc), "error"), "message"));
	if (message && message[0])
		return err_set(err, code_of(status), "%s", message);
	if (status >= 300 && status < 400)
		return err_set(err, EXDEV, "the server sends us elsewhere (status %d)", status);
	return err_set(err, code_of(status), "the server answered with status %d", status);
}
