/* GET of /profiles: what each security profile sets. */
#include "sandbox/profile.h"

#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/buf.h"
#include "json/jw.h"

static void write_setting(struct jw *w, const struct profile *p, enum profile_key key)
{
	const struct profile_setting *s = &profile_settings[key];
	const struct profile_choice *chosen = &s->choices[p->chosen[key]];
	bool is_custom = p == &profiles[PROFILE_ID_CUSTOM];

	jw_object_begin(w);
	jw_str_field(w, "name", s->name);
	jw_str_field(w, "value", chosen->name);
	jw_str_field(w, "about", chosen->about);
	/* What a request may choose instead: of a custom profile what is at least as strict. */
	jw_key(w, "choices");
	jw_array_begin(w);
	for (unsigned i = s->floor; is_custom && s->choices[i].name; i++)
		if (key != PROFILE_ENGINE || i == 0)
			jw_string(w, s->choices[i].name);
	jw_array_end(w);
	jw_object_end(w);
}

static void write_profile(struct jw *w, enum profile_id id)
{
	const struct profile *p = &profiles[id];
	const char *reason = profile_unavailable(id);

	jw_object_begin(w);
	jw_str_field(w, "name", p->name);
	jw_str_field(w, "about", p->about);
	jw_bool_field(w, "isAvailable", !reason);
	jw_str_field(w, "reason", reason);
	jw_key(w, "settings");
	jw_array_begin(w);
	for (unsigned key = 0; key < PROFILE_KEY_COUNT; key++)
		write_setting(w, p, key);
	jw_array_end(w);
	jw_key(w, "mayLoosen");
	jw_array_begin(w);
	jw_array_end(w);
	jw_object_end(w);
}

void api_profile_list(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (unsigned id = 0; id < PROFILE_ID_COUNT; id++)
		write_profile(&w, id);
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void api_profile_get(struct api_call *c)
{
	const char *name = call_param(c, "name");
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	for (unsigned id = 0; id < PROFILE_ID_COUNT; id++) {
		if (strcmp(profiles[id].name, name) != 0)
			continue;
		write_profile(&w, id);
		return call_reply(c, 200, &w);
	}
	problem_status(c, 404, "there is no profile '%.64s'", name);
}
