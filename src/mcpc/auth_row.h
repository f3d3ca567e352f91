/* The "auth" of a configured server:
 *
 *	{"type": "bearer", "token": "${TOKEN}"}                 or "token_file"
 *	{"type": "client_credentials", "client_id": "...", "issuer": "https://...",
 *	 "client_secret": "${SECRET}"}                          or "client_secret_file",
 *	                                                        "client_key_file" (PEM, P-256)
 *	{"type": "workload", "issuer": "https://...",           whoever runs us vouches for us, with
 *	 "token_file": "/var/run/secrets/..."}                  a JWT that changes (RFC 7523)
 *	{"type": "login"}                                       somebody logs in, in a browser
 *
 * A secret is a file's or the environment's (${NAME}); it is shown to the issuer that stands
 * beside it and to nobody else. */
#pragma once

#include "base/err.h"

struct mcpc_auth;
struct mcpc_servers_deps;
struct server_row;

#define AUTH_ROW_FILE_MAX (16u << 10) /* bytes of a file with a secret */

extern const char *const auth_row_files[]; /* fields that name a file; ended by NULL */

/* row->auth must be there. Files are read here and now: at the start, small, and the operator's.
 * -EINVAL: "auth.issuer: why". What was kept of it is taken up again. */
int mcpc_auth_from_row(const struct server_row *row, const struct mcpc_servers_deps *deps,
		       struct mcpc_auth **ret, struct err *err);
