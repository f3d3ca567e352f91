/* OAuth with both servers played by the test: what is asked is checked, and answered. */
#pragma once

#include "mcpc/oauth.h"

#define SERVER "https://mcp.example/mcp"
#define AS "https://as.example"
#define BACK "http://127.0.0.1:7777/callback"
#define NOW 1000000

#define RESOURCE(more) \
	"{\"resource\":\"" SERVER "\",\"authorization_servers\":[\"" AS "\"]" more "}"
#define METADATA(more)                                                                       \
	"{\"issuer\":\"" AS "\",\"authorization_endpoint\":\"" AS "/authorize\","            \
	"\"token_endpoint\":\"" AS "/token\",\"registration_endpoint\":\"" AS "/register\"," \
	"\"code_challenge_methods_supported\":[\"S256\"]" more "}"
#define CLIENT "{\"client_id\":\"c1\",\"client_secret\":\"s/1\"}"
#define TOKEN "{\"access_token\":\"tok-1\",\"token_type\":\"bearer\",\"expires_in\":3600}"

struct oauth *
oauth_rig_make(const struct oauth_options *more); /* the server is SERVER unless it is said */
struct oauth_todo oauth_rig_todo(const struct oauth *o);
void oauth_rig_begin(struct oauth *o, int status, const char *challenge);
/* What is asked must be this; it is answered. */
void oauth_rig_serve(struct oauth *o, const char *url, int status, const char *body);
void oauth_rig_serve_metadata(struct oauth *o, const char *resource, const char *metadata);
void expect_text(const char *text, const char *part);
void expect_no_text(const char *text, const char *part);
void oauth_rig_fails(const struct oauth *o, const char *why);
/* The browser comes back with the state that it was given, and this. */
void oauth_rig_come_back(struct oauth *o, const char *more);
void oauth_rig_login(struct oauth *o, const char *metadata); /* all of it, to the token */
