#include "daemon/skills_open.h"

#include <errno.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "tools/skills.h"

int skills_open(struct loop *loop, const struct config *c, struct skills **ret, struct err *err)
{
	char own[4096];
	int r;

	if (str_format(own, sizeof(own), "%s/" SKILLS_FOLDER, c->state_dir) < 0)
		return err_set(err, ENAMETOOLONG, "state_dir: is too long");
	r = skills_create(loop, c->skills_dir ? c->skills_dir : own, ret, err);
	if (r == 0)
		skills_log(*ret);
	return r;
}

void skills_log(const struct skills *s)
{
	const struct skill_set *set = skills_now(s);

	for (size_t i = 0; i < set->n_problems; i++)
		log_warn("skills", "%s: left out: %s",
			 set->problems[i].name[0] ? set->problems[i].name : "all of them",
			 set->problems[i].why);
	if (set->n_skills > 0)
		log_info("skills", "%zu skills of '%s'", set->n_skills, skills_dir(s));
}
