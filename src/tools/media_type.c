#include "tools/media_type.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *end, *type;
} types[] = {
	{ "bash", "application/x-sh" },  { "c", "text/x-c" },
	{ "cfg", "text/plain" },         { "conf", "text/plain" },
	{ "css", "text/css" },           { "csv", "text/csv" },
	{ "gif", "image/gif" },          { "go", "text/x-go" },
	{ "gz", "application/gzip" },    { "h", "text/x-c" },
	{ "htm", "text/html" },          { "html", "text/html" },
	{ "java", "text/x-java" },       { "jpeg", "image/jpeg" },
	{ "jpg", "image/jpeg" },         { "js", "text/javascript" },
	{ "json", "application/json" },  { "log", "text/plain" },
	{ "markdown", "text/markdown" }, { "md", "text/markdown" },
	{ "mjs", "text/javascript" },    { "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },          { "pdf", "application/pdf" },
	{ "png", "image/png" },          { "py", "text/x-python" },
	{ "rs", "text/x-rust" },         { "sh", "application/x-sh" },
	{ "svg", "image/svg+xml" },      { "tar", "application/x-tar" },
	{ "toml", "application/toml" },  { "ts", "text/typescript" },
	{ "txt", "text/plain" },         { "wav", "audio/wav" },
	{ "webp", "image/webp" },        { "xml", "application/xml" },
	{ "yaml", "application/yaml" },  { "yml", "application/yaml" },
	{ "zip", "application/zip" },
};

const char *media_type(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *last = slash ? slash + 1 : name;
	const char *dot = strrchr(last, '.');

	for (size_t i = 0; dot && dot > last && i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(dot + 1, types[i].end) == 0)
			return types[i].type;
	}
	return "application/octet-stream";
}
