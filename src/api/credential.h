/* Which texts are credentials of ours: what must not reach a program behind a port. */
#pragma once

#include <stdbool.h>

struct config;

/* Whether a key, a token of a sandbox, a session or a port stands anywhere in the text, or the text
 * is
 * ("Bearer " or not) an access token that the identity provider has made for this server. Only the
 * form is looked at: what was a credential once is none of a program's business either. */
bool credential_is_in(const struct config *config, const char *text);
