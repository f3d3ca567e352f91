#include "e2b/process_input.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/feed.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/encode.h"
#include "base/err.h"
#include "e2b/rpc.h"
#include "sandbox/exec.h"

const struct jv_field process_bytes_fields[PROCESS_BYTES_COUNT] = {
	JV_FIELD("stdin", STRING, struct process_bytes, to_stdin, .max = BASE64_SIZE(FEED_MAX)),
	JV_FIELD("pty", STRING, struct process_bytes, to_pty, .max = BASE64_SIZE(FEED_MAX)),
};

bool process_take_bytes(struct api_call *c, struct arena *a, struct execution *x,
			const struct process_bytes *b, struct str *ret)
{
	const char *text = b->to_pty ? b->to_pty : b->to_stdin;
	struct exec_info info;
	size_t size;
	char *bytes;
	ssize_t n;

	exec_info(x, &info);
	if (!text || (b->to_pty && b->to_stdin)) {
		rpc_fail(c, CONNECT_UNIMPLEMENTED, "input: want stdin or pty");
		return false;
	}
	if ((info.kind == EXECUTION_PTY) != (b->to_pty != NULL)) {
		rpc_fail(c, CONNECT_INTERNAL,
			 info.kind == EXECUTION_PTY ? "the process has a terminal, not a stdin"
						    : "the process has no terminal");
		return false;
	}
	size = strlen(text) / 4 * 3 + 1;
	bytes = arena_alloc(a, size);
	if (!bytes) {
		rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
		return false;
	}
	n = decode_base64(text, strlen(text), bytes, size);
	if (n < 0) {
		rpc_fail(c, CONNECT_INVALID_ARGUMENT, "input: want base64");
		return false;
	}
	*ret = (struct str){ bytes, (size_t)n };
	return true;
}

void process_fail_input(struct api_call *c, int r)
{
	struct err err = { 0 };

	if (r == -EPIPE || r == -ESRCH)
		return rpc_fail(c, CONNECT_INTERNAL, "error writing to stdin: it is closed");
	if (r == -EAGAIN)
		return rpc_fail(c, CONNECT_RESOURCE_EXHAUSTED,
				"too much input waits for the process to read it");
	(void)err_sys(&err, r, "input");
	problem_reply(c, &err);
}
