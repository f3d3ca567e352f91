#include "launch/cgroup_parse.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define PERIOD_US 100000u
#define QUOTA_MIN_US 1000u

struct mount {
	struct str root, point, type, options; /* root and point still escaped */
};

static bool has_word(struct str list, const char *word)
{
	struct str one;

	while (str_split(&list, ',', &one))
		if (str_is(one, word))
			return true;
	return false;
}

/* id parent major:minor root point options [optional ...] - type source super-options */
static int split_mount(struct str line, struct mount *ret)
{
	struct mount m = { 0 };
	struct str field;

	for (int i = 0; i < 6; i++) {
		if (!str_split(&line, ' ', &field))
			return -EINVAL;
		if (i == 3)
			m.root = field;
		if (i == 4)
			m.point = field;
	}
	do {
		if (!str_split(&line, ' ', &field))
			return -EINVAL;
	} while (!str_is(field, "-"));
	if (!str_split(&line, ' ', &m.type) || !str_split(&line, ' ', &field))
		return -EINVAL;
	m.options = line;
	*ret = m;
	return 0;
}

static int octal(const char *s)
{
	int v = 0;

	for (int i = 0; i < 3; i++) {
		if (s[i] < '0' || s[i] > '7')
			return -1;
		v = v * 8 + (s[i] - '0');
	}
	return v <= 255 ? v : -1;
}

/* The kernel writes blank, tab, newline and backslash as \ooo. */
static int unescape(struct str s, char *dst, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		int c = (unsigned char)s.data[i];

		if (n + 1 >= size)
			return -E2BIG;
		if (c == '\\' && s.len - i > 3 && octal(s.data + i + 1) > 0) {
			c = octal(s.data + i + 1);
			i += 3;
		}
		dst[n++] = (char)c;
	}
	dst[n] = '\0';
	return 0;
}

/* "id:controllers:path"; v2's line is "0::path". */
static int find_group(const char *self, const char *controller, struct str *ret)
{
	struct str rest = str_of(self), line, id, list;

	while (str_split(&rest, '\n', &line)) {
		if (!str_split(&line, ':', &id) || !str_split(&line, ':', &list))
			continue;
		if (controller ? has_word(list, controller) : str_is(id, "0") && list.len == 0) {
			*ret = line; /* all that is left: a path may hold colons */
			return 0;
		}
	}
	return -ENOENT;
}

static bool is_hierarchy(const struct mount *m, const char *controller)
{
	if (!controller)
		return str_is(m->type, "cgroup2");
	return str_is(m->type, "cgroup") && has_word(m->options, controller);
}

/* A mount may show only the part of the hierarchy below its root. Groups outside the reader's
 * cgroup namespace are written with "/..": such a mount or group is not usable by path. */
static int join_path(const struct mount *m, struct str group, char *dst, size_t size)
{
	char root[PATH_MAX], point[PATH_MAX];
	struct str below = group;
	int r;

	r = unescape(m->root, root, sizeof(root));
	if (r < 0)
		return r;
	r = unescape(m->point, point, sizeof(point));
	if (r < 0)
		return r;
	if (str_starts(group, "/..") || str_starts(str_of(root), "/.."))
		return -ENOENT;
	if (strcmp(root, "/") != 0) {
		size_t n = strlen(root);

		if (!str_starts(group, root) || (group.len > n && group.data[n] != '/'))
			return -ENOENT;
		below = (struct str){ group.data + n, group.len - n };
	}
	if (str_is(below, "/"))
		below.len = 0;
	return str_format(dst, size, "%s%.*s", point, (int)below.len, below.data);
}

int cgroup_parse_dir(const char *mountinfo, const char *self, const char *controller, char *dst,
		     size_t size)
{
	struct str rest = str_of(mountinfo), line, group;
	struct mount m;
	int r, found = -ENOENT;

	r = find_group(self, controller, &group);
	if (r < 0)
		return r;
	if (!controller && str_ends(group, "/" CGROUP_LEAF))
		group.len -= strlen("/" CGROUP_LEAF);
	if (group.len == 0)
		group = STR("/");
	while (found < 0 && str_split(&rest, '\n', &line)) {
		if (split_mount(line, &m) < 0 || !is_hierarchy(&m, controller))
			continue;
		found = join_path(&m, group, dst, size);
		if (found == -E2BIG)
			return found;
	}
	return found < 0 ? found : 0;
}

void cgroup_format_cpus(uint64_t mask, char dst[CGROUP_CPUS_SIZE])
{
	size_t n = 0;

	dst[0] = '\0';
	for (unsigned cpu = 0; cpu < 64; cpu++)
		if (mask >> cpu & 1) /* at most 10 * 2 + 54 * 3 bytes */
			n += (size_t)snprintf(dst + n, CGROUP_CPUS_SIZE - n, "%s%u", n ? "," : "",
					      cpu);
}

struct cgroup_quota cgroup_quota(uint32_t cpu_milli)
{
	struct cgroup_quota q = { .period_us = PERIOD_US };

	if (cpu_milli == 0)
		cpu_milli = 1;
	q.quota_us = (uint64_t)cpu_milli * PERIOD_US / 1000;
	if (q.quota_us < QUOTA_MIN_US) {
		q.quota_us = QUOTA_MIN_US;
		q.period_us = QUOTA_MIN_US * 1000ull / cpu_milli;
	}
	return q;
}
