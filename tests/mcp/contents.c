/* Fixture tools: each kind of content, progress, logging, changes of lists, schemas. */
#include <string.h>

#include "fixtures.h"
#include "mcp/server_impl.h"

#define STEP_MS 50     /* between two messages of a tool */
#define AWAY_MS 500    /* a client that was let go of stays away so long */
#define RETURN_MS 1500 /* the answer comes after that */

static void simple_text(struct tool_call *t)
{
	fixture_say(t, "This is a simple text response for testing.");
}

static void image(struct tool_call *t)
{
	tool_image(t, "image/png", FIXTURE_PNG, strlen(FIXTURE_PNG));
	tool_done(t);
}

static void audio(struct tool_call *t)
{
	tool_block(t,
		   "{\"type\":\"audio\",\"data\":\"" FIXTURE_WAV "\",\"mimeType\":\"audio/wav\"}");
	tool_done(t);
}

static void embedded(struct tool_call *t)
{
	tool_block(t, "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
		      "\"mimeType\":\"text/plain\","
		      "\"text\":\"This is an embedded resource content.\"}}");
	tool_done(t);
}

static void mixed(struct tool_call *t)
{
	const char *text = "Multiple content types test:";

	tool_text(t, text, strlen(text));
	tool_image(t, "image/png", FIXTURE_PNG, strlen(FIXTURE_PNG));
	tool_block(t, "{\"type\":\"resource\",\"resource\":{"
		      "\"uri\":\"test://mixed-content-resource\","
		      "\"mimeType\":\"application/json\","
		      "\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}");
	tool_done(t);
}

static void error(struct tool_call *t)
{
	tool_fail(t, "This tool intentionally returns an error for testing");
}

static void logging_end(struct tool_call *t)
{
	tool_log(t, "info", "\"Tool execution completed\"");
	fixture_say(t, "Three messages were logged.");
}

static void logging_middle(struct tool_call *t)
{
	tool_log(t, "info", "\"Tool processing data\"");
	fixture_wait(t, STEP_MS, logging_end);
}

static void logging(struct tool_call *t)
{
	tool_log(t, "info", "\"Tool execution started\"");
	fixture_wait(t, STEP_MS, logging_middle);
}

static void progress_end(struct tool_call *t)
{
	tool_progress(t, 100, 100, NULL);
	fixture_say(t, "All of it is done.");
}

static void progress_middle(struct tool_call *t)
{
	tool_progress(t, 50, 100, NULL);
	fixture_wait(t, STEP_MS, progress_end);
}

static void progress(struct tool_call *t)
{
	tool_progress(t, 0, 100, NULL);
	fixture_wait(t, STEP_MS, progress_middle);
}

/* ---- what reaches around the tool: the request behind it ---- */

static void reconnected(struct tool_call *t)
{
	fixture_say(t, "The answer is for who came back.");
}

static void part(struct tool_call *t)
{
	struct mcp_request *q = t->user;

	if (q->stream && q->session)
		mcp_stream_part(q->stream, AWAY_MS);
	fixture_wait(t, RETURN_MS, reconnected);
}

static void reconnection(struct tool_call *t)
{
	fixture_wait(t, STEP_MS, part);
}

static void change_tools(struct tool_call *t)
{
	struct mcp_request *q = t->user;

	mcp_server_changed(q->server, MCP_CHANGE_TOOLS);
	fixture_say(t, "The list of tools has changed.");
}

static void change_prompts(struct tool_call *t)
{
	struct mcp_request *q = t->user;

	mcp_server_changed(q->server, MCP_CHANGE_PROMPTS);
	fixture_say(t, "The list of prompts has changed.");
}

/* ---- schemas ---- */

#define SCHEMA_2020                                                                               \
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","      \
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{" \
	"\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"                     \
	"\"properties\":{\"name\":{\"type\":\"string\"},"                                         \
	"\"address\":{\"$ref\":\"#/$defs/address\"},"                                             \
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                 \
	"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                       \
	"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"        \
	"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                       \
	"\"required\":[\"contactMethod\"]},"                                                      \
	"\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"                \
	"\"additionalProperties\":false}"

#define SCHEMA_HEADER                                                           \
	"{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\"," \
	"\"x-mcp-header\":\"Region\"}},\"required\":[\"region\"]}"

static void say_arguments(struct tool_call *t)
{
	fixture_say_value(t, "Arguments: ", t->raw);
}

static const struct tool rows[] = {
	FIXTURE("test_simple_text", "Says a sentence.", 0, simple_text),
	FIXTURE("test_image_content", "Shows a picture.", 0, image),
	FIXTURE("test_audio_content", "Plays a sound.", 0, audio),
	FIXTURE("test_embedded_resource", "Brings a resource.", 0, embedded),
	FIXTURE("test_multiple_content_types", "Says, shows and brings.", 0, mixed),
	FIXTURE("test_error_handling", "Fails.", 0, error),
	FIXTURE("test_tool_with_logging", "Logs three messages.", 0, logging),
	FIXTURE("test_logging_tool", "Logs three messages, too.", 0, logging),
	FIXTURE("test_tool_with_progress", "Tells how far it is.", 0, progress),
	FIXTURE("test_reconnection", "Lets go of its client before it answers.", 0, reconnection),
	FIXTURE("test_trigger_tool_change", "Tells that tools have changed.", 0, change_tools),
	FIXTURE("test_trigger_prompt_change", "Tells that prompts have changed.", 0,
		change_prompts),
	{ .name = "json_schema_2020_12_tool",
	  .title = "All of JSON Schema",
	  .about = "Has a schema with more than types.",
	  .in_json = SCHEMA_2020,
	  .flags = TOOL_RAW,
	  .run = say_arguments },
	{ .name = "test_param_header",
	  .title = "An argument in the head",
	  .about = "Takes an argument that the request's head has, too.",
	  .in_json = SCHEMA_HEADER,
	  .flags = TOOL_RAW,
	  .run = say_arguments },
};

const struct tool_table fixture_contents = { rows, sizeof(rows) / sizeof(rows[0]) };
