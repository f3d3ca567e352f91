#include "telemetry/access_log.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"

#define PATH_ROOM 256

/* Asked for every few seconds by those who watch over us. */
static bool is_routine(const char *path)
{
	static const char *const paths[] = { "/health", "/healthz", "/livez", "/readyz",
					     "/metrics" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (strcmp(path, paths[i]) == 0)
			return true;
	return false;
}

void access_log_write(const struct access_entry *e)
{
	char path[PATH_ROOM];
	bool failed = e->status == 0 || e->status >= 400;
	enum log_level level = LOG_INFO;

	/* A longer path is cut: a record is for finding, not for replaying. */
	(void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(e->path, "?"), e->path);
	if (is_routine(path) && !failed)
		level = LOG_DEBUG;
	log_record(level, "http", "request", LOG_STR("request", e->request_id),
		   LOG_STR("client_request", e->client_id), LOG_STR("peer", e->peer),
		   LOG_STR("key", e->key_id), LOG_STR("method", e->method), LOG_STR("path", path),
		   LOG_STR("tool", e->tool), LOG_INT("status", e->status),
		   LOG_UINT("bytes", e->bytes_out), LOG_MS("ms", e->took_us),
		   LOG_STR("trace_id", e->trace_id));
}
