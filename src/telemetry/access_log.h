/* One record a request, once it is over. Never the query (it may hold a token), never a header. */
#pragma once

#include <stdint.h>

struct access_entry {
	const char *request_id;
	const char *client_id; /* what the client called the request; NULL */
	const char *peer;
	const char *method;
	const char *path;     /* what follows a '?' is left out */
	const char *key_id;   /* NULL: nobody in particular */
	const char *trace_id; /* as hex; NULL: it is part of no trace */
	const char *tool;     /* of MCP: which was called; NULL: none */
	int status;           /* 0: the client went before the answer */
	uint64_t bytes_out;
	uint64_t took_us;
};

/* At info, module "http"; at debug for a path that is asked all the time (/healthz, /readyz,
 * /metrics), unless it failed. */
void access_log_write(const struct access_entry *e);
