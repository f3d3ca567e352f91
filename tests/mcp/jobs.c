/* Fixture tools that take long: tasks for clients who know them. */
#include <stdio.h>
#include <string.h>

#include "fixtures.h"

#define LONG_MS 1200 /* longer than a call may take before it becomes a task */
#define SECONDS_MAX 600u

#define ASK_NAME                                                                      \
	"{\"mode\":\"form\",\"message\":\"What is your name?\",\"requestedSchema\":{" \
	"\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},"        \
	"\"required\":[\"name\"]}}"
#define ASK_CONFIRM                                                                \
	"{\"mode\":\"form\",\"message\":\"Really?\",\"requestedSchema\":{"         \
	"\"type\":\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}}," \
	"\"required\":[\"confirm\"]}}"

static void greet(struct tool_call *t)
{
	const char *name = jv_text(jv_get(t->raw, "name"));
	char text[128];

	(void)snprintf(text, sizeof(text), "Hello, %.64s!", name ? name : "world");
	fixture_say(t, text);
}

static void computed(struct tool_call *t)
{
	fixture_say_value(t, "Computed: ", t->raw);
}

static void slow_compute(struct tool_call *t)
{
	uint64_t seconds = 0;

	if (jv_u64(jv_get(t->raw, "seconds"), &seconds) < 0 || seconds > SECONDS_MAX)
		return tool_fail(t, "seconds: want a number up to %u", SECONDS_MAX);
	if (seconds == 0)
		return computed(t);
	fixture_wait(t, (unsigned)seconds * 1000, computed);
}

static void failed(struct tool_call *t)
{
	tool_fail(t, "The job failed.");
}

static void failing_job(struct tool_call *t)
{
	fixture_wait(t, LONG_MS, failed);
}

static void broken(struct tool_call *t)
{
	t->outcome = TOOL_BROKEN;
	fixture_say(t, "The job could not be run.");
}

static void protocol_error_job(struct tool_call *t)
{
	fixture_wait(t, LONG_MS, broken);
}

static void ask_confirm(struct tool_call *t)
{
	tool_ask(t, "confirm", "elicitation/create", ASK_CONFIRM);
	tool_asks_end(t, "");
}

static void confirm_delete(struct tool_call *t)
{
	if (tool_answer(t, "confirm").val)
		return fixture_say_value(t, "Deleted: ", t->answers);
	fixture_wait(t, LONG_MS, ask_confirm);
}

static void ask_both(struct tool_call *t)
{
	tool_ask(t, "name", "elicitation/create", ASK_NAME);
	tool_ask(t, "confirm", "elicitation/create", ASK_CONFIRM);
	tool_asks_end(t, "");
}

static void multi_input(struct tool_call *t)
{
	if (tool_answer(t, "name").val && tool_answer(t, "confirm").val)
		return fixture_say_value(t, "Answers: ", t->answers);
	fixture_wait(t, LONG_MS, ask_both);
}

static void greet_answer(struct tool_call *t)
{
	fixture_say_value(t, "Hello: ", t->answers);
}

/* Asks at once, and is long only then. */
static void with_task(struct tool_call *t)
{
	if (tool_answer(t, "user_name").val)
		return fixture_wait(t, LONG_MS, greet_answer);
	tool_ask(t, "user_name", "elicitation/create", ASK_NAME);
	tool_asks_end(t, "");
}

static const struct tool rows[] = {
	FIXTURE("greet", "Says hello.", 0, greet),
	FIXTURE("slow_compute", "Takes so many seconds.", TOOL_LONG, slow_compute),
	FIXTURE("failing_job", "Fails after a while.", TOOL_LONG | TOOL_TASK_ONLY, failing_job),
	FIXTURE("protocol_error_job", "Breaks after a while.", TOOL_LONG, protocol_error_job),
	FIXTURE("confirm_delete", "Asks after a while.", TOOL_LONG, confirm_delete),
	FIXTURE("multi_input", "Asks two things after a while.", TOOL_LONG, multi_input),
	FIXTURE("test_tool_with_task", "Asks, then takes a while.", TOOL_LONG | TOOL_TASK_ONLY,
		with_task),
};

const struct tool_table fixture_jobs = { rows, sizeof(rows) / sizeof(rows[0]) };
