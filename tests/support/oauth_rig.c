#include "oauth_rig.h"

#include <string.h>

#include "base/str.h"
#include "check.h"

struct oauth *oauth_rig_make(const struct oauth_options *more)
{
	struct oauth_options o = *more;
	struct oauth *ret = NULL;
	struct err err = { 0 };

	if (!o.server)
		o.server = SERVER;
	assert_int_equal(oauth_create(&o, &ret, &err), 0);
	return ret;
}

struct oauth_todo oauth_rig_todo(const struct oauth *o)
{
	struct oauth_todo t;

	oauth_todo(o, &t);
	return t;
}

void oauth_rig_begin(struct oauth *o, int status, const char *challenge)
{
	assert_int_equal(oauth_begin(o, status, challenge, NULL), 0);
}

void oauth_rig_serve(struct oauth *o, const char *url, int status, const char *body)
{
	struct oauth_todo t = oauth_rig_todo(o);

	assert_int_equal(t.step, OAUTH_FETCH);
	assert_string_equal(t.url, url);
	oauth_answer(o, status, body, strlen(body), NOW, NULL);
}

void oauth_rig_serve_metadata(struct oauth *o, const char *resource, const char *metadata)
{
	oauth_rig_serve(o, "https://mcp.example/.well-known/oauth-protected-resource/mcp", 200,
			resource);
	oauth_rig_serve(o, AS "/.well-known/oauth-authorization-server", 200, metadata);
}

void expect_text(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in '%s'", part, text);
}

void expect_no_text(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in '%s'", part, text);
}

void oauth_rig_fails(const struct oauth *o, const char *why)
{
	struct oauth_todo t = oauth_rig_todo(o);

	assert_int_equal(t.step, OAUTH_FAILED);
	expect_text(t.err->text, why);
}

void oauth_rig_come_back(struct oauth *o, const char *more)
{
	struct oauth_todo t = oauth_rig_todo(o);
	char query[512];
	const char *state;

	assert_int_equal(t.step, OAUTH_OPEN);
	state = strstr(t.url, "&state=");
	assert_non_null(state);
	assert_int_equal(str_format(query, sizeof(query), "state=%.43s%s", state + 7, more), 0);
	assert_int_equal(oauth_redirected(o, query, NULL), 0);
}

void oauth_rig_login(struct oauth *o, const char *metadata)
{
	oauth_rig_begin(o, 401, NULL);
	oauth_rig_serve_metadata(o, RESOURCE(), metadata);
	oauth_rig_serve(o, AS "/register", 201, CLIENT);
	oauth_rig_come_back(o, "&code=abc");
	oauth_rig_serve(o, AS "/token", 200, TOKEN);
	assert_int_equal(oauth_rig_todo(o).step, OAUTH_READY);
}
