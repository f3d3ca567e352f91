/* What the conformance suite's scenarios expect a server to have: tools, prompts and resources with
 * names and contents of theirs. Only in the test server; it is the daemon's code else. */
#pragma once

#include <stdbool.h>

#include "mcp/server.h"
#include "tools/tool.h"

/* A 1x1 PNG and a WAV without a sound, as base64. */
#define FIXTURE_PNG                                                                            \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJ" \
	"RU5ErkJggg=="
#define FIXTURE_WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

extern const struct tool_table fixture_contents;  /* contents.c: what a tool can say */
extern const struct tool_table fixture_questions; /* questions.c: what it can ask */
extern const struct tool_table fixture_jobs;      /* jobs.c: what takes long */
extern const struct mcp_fixtures fixture_offers;  /* offers.c: prompts, resources */

#define FIXTURE_OBJECT "{\"type\":\"object\",\"properties\":{}}"

/* A row of a tool that takes whatever comes. */
#define FIXTURE(name_, about_, flags_, run_)                                               \
	{                                                                                  \
		.name = name_, .title = name_, .about = about_, .in_json = FIXTURE_OBJECT, \
		.flags = TOOL_RAW | (flags_), .run = run_                                  \
	}

/* wait.c: goes on with `next` after a while, unless the call is cancelled. */
void fixture_wait(struct tool_call *t, unsigned ms, void (*next)(struct tool_call *t));
void fixture_say(struct tool_call *t, const char *text); /* and is done */
/* The text, a value as JSON behind it, and done. */
void fixture_say_value(struct tool_call *t, const char *text, struct jv v);
