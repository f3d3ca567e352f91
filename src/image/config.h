/* What an image says about the programs in it. Nothing of it is believed to be sensible: who uses a
 * field checks it as if a stranger had asked for it, which is the case. */
#pragma once

#include "json/jv_decode.h"

/* Texts have no NUL byte and are bounded in length and number (config.c); in the reader's arena. */
struct image_config {
	const char *user;      /* "" or "name", "1000", "name:group", "1000:1000" */
	const char *workdir;   /* "": none */
	struct jv_strings env; /* "NAME=value" */
	struct jv_strings entrypoint, cmd;
};
