/* The headers of a trace. The first line is a traceparent: what is taken is written as a header of
 * our version that reads the same. The others are tracestates: what is passed on is a list that is
 * taken again, as it is. */
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "telemetry/traceparent.h"

static void check_parent(struct str value)
{
	struct trace_context t, again;
	char text[TRACEPARENT_SIZE];

	if (traceparent_parse(value, &t) < 0)
		return;
	MUST(trace_is_set(&t));
	traceparent_format(&t, text);
	MUST(strlen(text) == TRACEPARENT_LEN);
	MUST(traceparent_parse(str_of(text), &again) == 0);
	MUST(memcmp(&t, &again, sizeof(t)) == 0);
	MUST(memcmp(text + 3, value.data + 3, 50) == 0);
}

static void check_state(struct tracestate *s)
{
	const char *text = tracestate_text(s);
	struct tracestate again = { 0 };

	MUST(strlen(text) <= TRACESTATE_MAX);
	tracestate_add(&again, str_of(text));
	MUST(!again.is_bad && !again.is_cut);
	MUST(strcmp(tracestate_text(&again), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = { (const char *)data, size }, line;
	struct tracestate s = { 0 };

	if (!str_split(&rest, '\n', &line))
		return 0;
	check_parent(line);
	while (str_split(&rest, '\n', &line))
		tracestate_add(&s, line);
	check_state(&s);
	return 0;
}
