#include "e2b/entry.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "json/jw.h"

void entry_permissions(uint32_t mode, char ret[ENTRY_PERMISSIONS_SIZE])
{
	static const struct {
		uint32_t mask, value;
		const char *letters;
	} kinds[] = {
		{ S_IFMT, S_IFDIR, "d" },  { S_IFMT, S_IFLNK, "L" },  { S_IFMT, S_IFBLK, "D" },
		{ S_IFMT, S_IFCHR, "D" },  { S_IFMT, S_IFIFO, "p" },  { S_IFMT, S_IFSOCK, "S" },
		{ S_ISUID, S_ISUID, "u" }, { S_ISGID, S_ISGID, "g" }, { S_IFMT, S_IFCHR, "c" },
		{ S_ISVTX, S_ISVTX, "t" },
	};
	static const char bits[] = "rwxrwxrwx";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((mode & kinds[i].mask) == kinds[i].value)
			ret[n++] = kinds[i].letters[0];
	if (n == 0)
		ret[n++] = '-';
	for (unsigned i = 0; i < 9; i++)
		ret[n++] = mode & (0400u >> i) ? bits[i] : '-';
	ret[n] = '\0';
}

void entry_time(uint64_t mtime_ns, char ret[ENTRY_TIME_SIZE])
{
	time_t sec = (time_t)(mtime_ns / 1000000000u);
	struct tm tm = { 0 };
	char day[24];

	(void)gmtime_r(&sec, &tm);
	(void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)str_format(ret, ENTRY_TIME_SIZE, "%s.%09uZ", day, (unsigned)(mtime_ns % 1000000000u));
}

const char *entry_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void entry_metadata_json(struct jw *w, const struct guest_entry *e)
{
	const size_t skip = sizeof(ENTRY_METADATA) - 1;
	const char *name, *value;
	bool is_begun = false;
	size_t at = 0;

	while (e->attrs && guest_attr_next(e->attrs, e->attrs_len, &at, &name, &value)) {
		if (strncmp(name, ENTRY_METADATA, skip) != 0 || !name[skip])
			continue;
		if (!is_begun) {
			jw_key(w, "metadata");
			jw_object_begin(w);
		}
		is_begun = true;
		jw_str_field(w, name + skip, value);
	}
	if (is_begun)
		jw_object_end(w);
}

/* A link has the type and the mode of what it leads to, and all else is its own. */
static const char *type_name(const struct guest_entry *e)
{
	switch (e->real_type) {
	case ENTRY_FILE:
		return "FILE_TYPE_FILE";
	case ENTRY_DIR:
		return "FILE_TYPE_DIRECTORY";
	case ENTRY_SYMLINK:
		return "FILE_TYPE_SYMLINK";
	default:
		return "FILE_TYPE_UNSPECIFIED";
	}
}

void entry_json(struct jw *w, const struct guest_entry *e)
{
	char text[ENTRY_TIME_SIZE], permissions[ENTRY_PERMISSIONS_SIZE];

	jw_str_field(w, "name", entry_name(e->path));
	jw_str_field(w, "type", type_name(e));
	jw_str_field(w, "path", e->path);
	(void)str_format(text, sizeof(text), "%" PRIu64, e->size);
	jw_str_field(w, "size", text); /* 64 bits are text in their JSON */
	jw_uint_field(w, "mode", e->real_mode & 0777u);
	entry_permissions(e->mode, permissions);
	jw_str_field(w, "permissions", permissions);
	jw_str_field(w, "owner", e->owner);
	jw_str_field(w, "group", e->group);
	entry_time(e->mtime_ns, text);
	jw_str_field(w, "modifiedTime", text);
	if (e->type == ENTRY_SYMLINK)
		jw_str_field(w, "symlinkTarget", e->target[0] ? e->target : e->path);
	entry_metadata_json(w, e);
}

void entry_event_json(struct jw *w, enum guest_event event, const char *path,
		      const struct guest_entry *entry)
{
	static const char *const types[] = {
		[EVENT_CREATE] = "EVENT_TYPE_CREATE", [EVENT_WRITE] = "EVENT_TYPE_WRITE",
		[EVENT_REMOVE] = "EVENT_TYPE_REMOVE", [EVENT_RENAME] = "EVENT_TYPE_RENAME",
		[EVENT_CHMOD] = "EVENT_TYPE_CHMOD",   [EVENT_OVERFLOW] = "EVENT_TYPE_UNSPECIFIED",
	};

	jw_object_begin(w);
	jw_str_field(w, "name", path[0] ? path : ".");
	jw_str_field(w, "type", types[event]);
	if (entry) {
		jw_key(w, "entry");
		jw_object_begin(w);
		entry_json(w, entry);
		jw_object_end(w);
	}
	jw_object_end(w);
}
