#include "sandbox/lifecycle.h"

#include <string.h>

#include "json/jw.h"

const char *const lapse_names[LAPSE_COUNT + 1] = {
	[LAPSE_DELETE] = "delete",
	[LAPSE_PAUSE] = "pause",
	[LAPSE_STOP] = "stop",
};

void lifecycle_write(const struct lifecycle *l, struct jw *w)
{
	jw_str_field(w, "onTimeout", lapse_names[l->on_timeout]);
	jw_bool_field(w, "autoResume", l->auto_resume);
}

void lifecycle_read(struct jv object, struct lifecycle *ret)
{
	const char *name = jv_text(jv_get(object, "onTimeout"));

	for (uint8_t i = 0; name && i < LAPSE_COUNT; i++)
		if (strcmp(name, lapse_names[i]) == 0)
			ret->on_timeout = i;
	(void)jv_bool(jv_get(object, "autoResume"), &ret->auto_resume);
}
