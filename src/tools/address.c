/* upload_url, download_url: an address of one file that needs no key, for what moves bytes past the
 * model. */
#include <string.h>

#include "auth/signed_file.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "config/config.h"
#include "httpc/url.h"
#include "tools/impl.h"
#include "json/jw.h"

#define SECONDS_DEFAULT 3600

struct address_args {
	const char *path;
	uint64_t seconds;
};
static const struct address_args defaults = { .seconds = SECONDS_DEFAULT };

/* What clients would fold away (".", "..", "//") is not what was signed. */
static bool is_plain(const char *path)
{
	struct str rest = str_of(path + 1), name;

	while (str_split(&rest, '/', &name))
		if (name.len == 0 || str_is(name, ".") || str_is(name, ".."))
			return false;
	return path[1] != '\0' && path[strlen(path) - 1] != '/';
}

/* NULL: nobody could use it. */
static const char *base_of(const struct tool_call *t)
{
	const char *set = t->all->deps.config->public_url;

	if (t->base && t->base[0] != '\0')
		return t->base;
	return set && set[0] != '\0' ? set : NULL;
}

static int write_url(const struct tool_call *t, const struct signed_file *s, struct buf *url)
{
	char signature[SIGNED_FILE_SIZE];
	int r = signed_file_make(t->all->deps.secret, s, signature);

	if (r < 0)
		return r;
	(void)buf_printf(url, "%s/api/v1/sandboxes/%s/files", base_of(t), s->sandbox_id);
	(void)url_escape_path(url, s->path);
	if (s->key_id[0] != '\0')
		(void)buf_printf(url, "?by=%s&expires=%lld", s->key_id, (long long)s->expires);
	else
		(void)buf_printf(url, "?expires=%lld", (long long)s->expires);
	return buf_printf(url, "&signature=%s", signature);
}

static void give(struct tool_call *t, bool is_write)
{
	_cleanup_(buf_done) struct buf url = { 0 };
	const struct address_args *a = t->args;
	const char *path = tool_path(t, a->path);
	struct signed_file s = {
		.sandbox_id = t->box_id, .key_id = t->who.key_id, .path = path, .is_write = is_write
	};
	struct jw w = jw_begin(&t->structured);

	if (!path)
		return;
	if (!is_plain(path))
		return tool_fail(t, "path: want a file's, without '.', '..' or '//' in it");
	if (!base_of(t))
		return tool_fail(t, "nobody has said under which address this server is reached: "
				    "its operator can, with the setting public_url");
	s.expires = clock_wall_ms() / 1000 + (int64_t)a->seconds;
	/* A token has no name that it could end with, but a time. */
	if (t->who.key_id[0] == '\0' && t->who.expires_ms != 0 &&
	    s.expires > t->who.expires_ms / 1000)
		s.expires = t->who.expires_ms / 1000;
	if (write_url(t, &s, &url) < 0)
		return tool_fail(t, "this server gives out no addresses");
	jw_object_begin(&w);
	jw_str_field(&w, "url", buf_str(&url));
	jw_str_field(&w, "method", is_write ? "PUT" : "GET");
	jw_str_field(&w, "path", path);
	jw_iso_field(&w, "expires_at", s.expires * 1000);
	jw_str_field(&w, "sandbox_id", t->box_id);
	jw_object_end(&w);
	tool_end(t, &w);
}

static void run_download(struct tool_call *t)
{
	give(t, false);
}

static void run_upload(struct tool_call *t)
{
	give(t, true);
}

static const struct jv_field in[] = {
	JV_FIELD("path", STRING, struct address_args, path, .flags = JV_REQUIRED, .min = 1,
		 .max = TOOL_PATH_MAX - 1, .help = "the file; relative ones begin in /workspace"),
	JV_FIELD("expires_in", U64, struct address_args, seconds, .min = 1,
		 .max = SIGNED_FILE_MAX_S,
		 .help = "seconds that it is good for: 3600 unless given"),
};
static const struct jv_field out[] = {
	{ .name = "url", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "method", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "path", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "expires_at", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
	{ .name = "sandbox_id", .type = JV_TYPE_STRING, .flags = JV_REQUIRED },
};

static const struct tool rows[] = {
	{ .name = "upload_url",
	  .title = "Address to send a file to",
	  .about =
		  "An address to which a program outside can PUT one file of the sandbox without a "
		  "key (curl -T FILE URL). Missing directories are made. Good for one path and a "
		  "time.",
	  TOOL_IN(in, address_args),
	  .defaults = &defaults,
	  TOOL_OUT(out),
	  .hints = TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_WRITE,
	  .run = run_upload },
	{ .name = "download_url",
	  .title = "Address to fetch a file from",
	  .about = "An address from which a program outside can GET one file of the sandbox "
		   "without a key (curl URL). Good for one path and a time; the file may change or "
		   "come meanwhile.",
	  TOOL_IN(in, address_args),
	  .defaults = &defaults,
	  TOOL_OUT(out),
	  .hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	  .flags = TOOL_IN_BOX,
	  .scopes = SCOPE_FILE_READ,
	  .run = run_download },
};
const struct tool_table tools_address_table = { rows, TOOL_ARRAY_LEN(rows) };
