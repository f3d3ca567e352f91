/* Events of files as E2B's clients read them. */
#pragma once

#include "spec/guest.h"

struct jw;

/* An object {"name":..., "type":...[, "entry":{...}]}; entry may be NULL. */
void watch_event_json(struct jw *w, enum guest_event event, const char *path,
		      const struct guest_entry *entry);
