/* Files. */
#include "api/schemas_impl.h"

static const char *const file_types[] = { "file", "directory", "symlink", "other", NULL };

static const struct schema_field file[] = {
	FIELD("path", STRING),
	FIELD("type", STRING, .choices = file_types),
	FIELD("size", INT),
	FIELD("mode", STRING, .help = "octal"),
	FIELD("uid", INT),
	FIELD("gid", INT),
	FIELD("mtime", TIME | NIL),
	FIELD("target", STRING | NIL, .help = "where a symbolic link points"),
};

static const struct schema_field file_list[] = {
	FIELD("path", STRING),
	FIELD("items", LIST, .ref = "File"),
	FIELD("truncated", BOOL, .help = "there are more"),
};

static const struct schema_field unpacked[] = {
	FIELD("path", STRING),
	FIELD("count", INT, .help = "entries"),
};

static const struct schema_field found_line[] = {
	FIELD("path", STRING),
	FIELD("line", INT | NIL, .help = "from 1; null with filesOnly"),
	FIELD("column", INT | NIL, .help = "bytes, from 1; null for a line around a match"),
	FIELD("text", STRING | NIL),
	FIELD("isMatch", BOOL, .help = "false: a line around one"),
	FIELD("isCut", BOOL, .help = "the text is not the whole line"),
};

static const struct schema_field grep_result[] = {
	FIELD("path", STRING),
	FIELD("items", LIST, .ref = "GrepLine"),
	FIELD("truncated", BOOL, .help = "there are more"),
	FIELD("matches", INT, .help = "lines, or files with filesOnly"),
	FIELD("skipped", INT, .help = "files that are no text or cannot be read"),
};

static const struct schema_field replaced_file[] = {
	FIELD("path", STRING),
	FIELD("replacements", INT),
};

static const struct schema_field skipped_file[] = {
	FIELD("path", STRING),
	FIELD("reason", STRING),
};

static const struct schema_field replace_result[] = {
	FIELD("path", STRING),
	FIELD("items", LIST, .ref = "ReplacedFile"),
	FIELD("truncated", BOOL, .help = "more files match"),
	FIELD("files", INT),
	FIELD("replacements", INT, .help = "in all files"),
	FIELD("dryRun", BOOL, .help = "nothing was changed"),
	FIELD("skipped", LIST, .ref = "SkippedFile", .help = "the first hundred"),
};

static const struct schema_field bundle_file[] = {
	FIELD("path", STRING, .help = "as it was asked for"),
	FIELD("size", INT | NIL),
	FIELD("content", STRING | NIL),
	FIELD("encoding", STRING | NIL, .help = "text, or base64 for what is none"),
	FIELD("error", OBJECT | NIL, .ref = "Problem", .help = "why there is no content"),
};

static const struct schema_field bundle[] = {
	FIELD("files", LIST, .ref = "BundleFile", .help = "in the order of the request"),
};

static const struct schema list[] = {
	SCHEMA("File", "An entry of a directory", file),
	SCHEMA("FileList", "Entries, sorted by path", file_list),
	SCHEMA("Unpacked", "What an archive brought", unpacked),
	SCHEMA("GrepLine", "A line that matches, or one around it", found_line),
	SCHEMA("GrepResult", "Lines that match, file by file", grep_result),
	SCHEMA("ReplacedFile", "A file that was changed", replaced_file),
	SCHEMA("SkippedFile", "A file that was left alone", skipped_file),
	SCHEMA("ReplaceResult", "What a replace has changed", replace_result),
	SCHEMA("BundleFile", "A file of several, or why it is not there", bundle_file),
	SCHEMA("Bundle", "Several files", bundle),
};

const struct schema_group schemas_files = { list, ARRAY_LEN(list) };
