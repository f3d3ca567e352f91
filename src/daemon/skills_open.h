/* The skills of the daemon: where they are, and the log of what is wrong with them. */
#pragma once

struct config;
struct err;
struct loop;
struct skills;

/* Of skills_dir, or of the directory "skills" in state_dir. */
int skills_open(struct loop *loop, const struct config *c, struct skills **ret, struct err *err);
/* What was left out, and why. Also for whoever hears of a change. */
void skills_log(const struct skills *s);
