/* A directory of its own for each test of the settings; nothing of this machine's is seen. */
#pragma once

#include "base/err.h"
#include "config/config.h"

struct config_rig {
	char dir[64];
	char home[80]; /* "HOME=", and dir */
	char *env[24];
	struct config_flag flags[8];
	struct config_args args;
	struct config *c; /* of the last load */
	struct err err;
};

/* For cmocka; *state is the rig. */
int config_rig_setup(void **state);
int config_rig_teardown(void **state);

void config_rig_write(struct config_rig *f, const char *name, const char *text);
void config_rig_env(struct config_rig *f, const char *pair);
void config_rig_flag(struct config_rig *f, const char *flag, const char *value);
int config_rig_try(struct config_rig *f);   /* config_load()'s result */
void config_rig_load(struct config_rig *f); /* which must be 0 */
