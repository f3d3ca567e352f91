/* skill://NAME/PATH: how a file of a skill is addressed, PATH escaped. */
#pragma once

struct buf;

#define SKILL_SCHEME "skill://"
#define SKILL_URI_MAX 2048u /* bytes of one: what is longer names nothing */

int skill_uri(struct buf *b, const char *name, const char *path); /* path "": the folder */
/* The way back, from any spelling: name and path in one buffer of SKILL_URI_MAX. -EINVAL: it is not
 * one. What it says need not be there. */
int skill_uri_read(const char *uri, char *text, const char **ret_name, const char **ret_path);
