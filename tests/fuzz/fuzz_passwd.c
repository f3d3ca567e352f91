/* A hostile passwd and group file, split at the first NUL, and somebody to look for: the first
 * line. Whoever is found has ids that are ids and strings that end. */
#include <string.h>

#include "fuzz.h"
#include "guest/user.h"

static void check(const struct user *u)
{
	MUST(u->uid != UINT32_MAX && u->gid != UINT32_MAX);
	MUST(u->ngroups <= USER_GROUPS_MAX);
	MUST(memchr(u->name, '\0', sizeof(u->name)));
	MUST(memchr(u->home, '\0', sizeof(u->home)) && u->home[0]);
	MUST(memchr(u->shell, '\0', sizeof(u->shell)) && u->shell[0]);
	MUST(!strpbrk(u->name, ":\n") && !strpbrk(u->home, ":\n"));
	for (size_t i = 0; i < u->ngroups; i++)
		MUST(u->groups[i] != u->gid && u->groups[i] != UINT32_MAX);
}

static void find(struct str passwd, struct str group, const char *who)
{
	struct user u;

	if (user_find(passwd, group, who, &u, NULL) == 0)
		check(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data;
	const char *end = n ? memchr(text, '\0', n) : NULL;
	struct str passwd = { text, end ? (size_t)(end - text) : n };
	struct str group = { end ? end + 1 : text, end ? n - passwd.len - 1 : 0 };
	struct str rest = passwd, line = { "", 0 };
	char who[128];

	(void)str_split(&rest, '\n', &line);
	if (line.len >= sizeof(who))
		line.len = sizeof(who) - 1;
	memcpy(who, line.data, line.len);
	who[line.len] = '\0';
	find(rest, group, who);
	find(rest, group, "");
	find(rest, group, "0");
	return 0;
}
