/* Skills as a directory holds them, one folder with a SKILL.md each (agentskills.io), read whole: a
 * set never changes, so what was listed, summed and read always fits together, and nothing is
 * opened when a client asks.
 *
 * The folder is an operator's and yet not trusted to be tidy: no link is followed anywhere below
 * it, nothing but directories and regular files is taken, what anybody may write to is not, and
 * names that begin with a dot are passed over. A skill that breaks a rule is left out, and why is
 * kept beside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "crypto/hash.h"
#include "tools/skill_front.h"

struct err;

#define SKILLS_MAX 256u
#define SKILL_FILES_MAX 512u
#define SKILL_BYTES_MAX (16u << 20)
#define SKILLS_BYTES_MAX (64u << 20) /* of all together: they stay in memory */
#define SKILL_LEVELS_MAX 16u
#define SKILL_PATH_MAX 512u /* bytes of a file's path in its skill */

struct skill_file {
	const char *path; /* in the skill: "scripts/run.py" */
	const char *type; /* media_type() */
	const char *data; /* with a NUL behind it */
	size_t size;
	char digest[2 * HASH_LEN + 1]; /* SHA-256, hex */
	bool is_text;                  /* UTF-8 without NUL bytes */
	bool is_program;               /* its owner may run it */
};

struct skill {
	struct skill_front front;
	struct skill_file *files; /* by path; SKILL.md is among them */
	size_t n_files;
	uint64_t bytes;
};

struct skill_problem {
	const char *name; /* of the folder; "": all of it */
	const char *why;
};

struct skill_set {
	const struct skill *skills; /* by name */
	size_t n_skills;
	const struct skill_problem *problems;
	size_t n_problems;
	uint8_t digest[HASH_LEN]; /* of all of it, problems included: equal sets are the same */
};

/* Reads dir; blocks. A directory that is not there has no skills. watch_fd: an inotify descriptor
 * to which all directories are added, each before it is read, so that no change is missed; -1:
 * none. *ret_watched (may be NULL) says whether that was possible. -ENOMEM; other failures are
 * problems of the set. */
int skill_set_read(const char *dir, int watch_fd, struct skill_set **ret, bool *ret_watched,
		   struct err *err);
/* One folder by itself, as if it were in such a directory; its name is the last part of the path.
 */
int skill_set_read_one(const char *path, struct skill_set **ret, struct err *err);
struct skill_set *skill_set_ref(struct skill_set *set);
struct skill_set *skill_set_unref(struct skill_set *set); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct skill_set *, skill_set_unref)

const struct skill *skill_set_find(const struct skill_set *set, const char *name);     /* NULL */
const struct skill_file *skill_find_file(const struct skill *skill, const char *path); /* NULL */
const struct skill_file *skill_manifest(const struct skill *skill);
