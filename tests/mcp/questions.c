/* Fixture tools that ask the client before they answer: the same code for both eras. */
#include <stdio.h>
#include <string.h>

#include "fixtures.h"
#include "json/jw.h"

#define FORM(message, properties, required)                                                        \
	"{\"mode\":\"form\",\"message\":\"" message "\",\"requestedSchema\":{\"type\":\"object\"," \
	"\"properties\":{" properties "},\"required\":[" required "]}}"
#define MESSAGE(text, tokens)                                                               \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text \
	"\"}}],\"maxTokens\":" tokens "}"

#define ELICIT "elicitation/create"
#define SAMPLE "sampling/createMessage"
#define ROOTS "roots/list"

/* Ends the call where the client has not said that it can answer. */
static bool can_ask(struct tool_call *t, unsigned input)
{
	if (t->inputs & input)
		return true;
	t->outcome = TOOL_NO_INPUT;
	t->missing = input;
	tool_done(t);
	return false;
}

/* An answer that is none is asked for again. */
static struct jv good_answer(const struct tool_call *t, const char *key)
{
	struct jv v = tool_answer(t, key);

	return jv_kind(v) == JV_OBJECT ? v : (struct jv){ 0 };
}

/* ---- one question, and what came is told ---- */

struct question {
	const char *tool, *key, *method, *params;
	unsigned input;
	const char *says;
};

#define USERNAME                                                                  \
	"\"username\":{\"type\":\"string\",\"description\":\"User's response\"}," \
	"\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}"
#define DEFAULTS                                                                          \
	"\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"                        \
	"\"age\":{\"type\":\"integer\",\"default\":30},"                                  \
	"\"score\":{\"type\":\"number\",\"default\":95.5},"                               \
	"\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"]," \
	"\"default\":\"active\"},"                                                        \
	"\"verified\":{\"type\":\"boolean\",\"default\":true}"
#define TITLED(a, b, c)                                \
	"[{\"const\":\"value1\",\"title\":\"" a "\"}," \
	"{\"const\":\"value2\",\"title\":\"" b "\"},"  \
	"{\"const\":\"value3\",\"title\":\"" c "\"}]"
#define OPTIONS "[\"option1\",\"option2\",\"option3\"]"
#define ENUMS                                                                                      \
	"\"untitledSingle\":{\"type\":\"string\",\"enum\":" OPTIONS "},"                           \
	"\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED(                                 \
		"First Option", "Second Option",                                                   \
		"Third Option") "},"                                                               \
				"\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\"," \
				"\"opt3\"],"                                                       \
				"\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]}," \
				"\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":"       \
				"\"string\",\"enum\":" OPTIONS "}},"                               \
				"\"titledMulti\":{\"type\":\"array\",\"items\":{"                  \
				"\"anyOf\":" TITLED("First Choice", "Second Choice",               \
						    "Third Choice") "}}"
#define NAME "\"name\":{\"type\":\"string\"}"

static const struct question questions[] = {
	{ "test_elicitation_sep1034_defaults", "profile", ELICIT,
	  FORM("Please check your profile", DEFAULTS, ""), TOOL_INPUT_FORM,
	  "Elicitation completed: " },
	{ "test_elicitation_sep1330_enums", "choices", ELICIT, FORM("Please choose", ENUMS, ""),
	  TOOL_INPUT_FORM, "Elicitation completed: " },
	{ "test_streaming_elicitation", "user_name", ELICIT,
	  FORM("What is your name?", NAME, "\"name\""), TOOL_INPUT_FORM, "User response: " },
	{ "test_missing_capability", "reply", SAMPLE, MESSAGE("Say something", "50"),
	  TOOL_INPUT_SAMPLING, "LLM response: " },
	{ "test_input_required_result_elicitation", "user_name", ELICIT,
	  FORM("What is your name?", NAME, "\"name\""), TOOL_INPUT_FORM, "Hello: " },
	{ "test_input_required_result_sampling", "capital_question", SAMPLE,
	  MESSAGE("What is the capital of France?", "100"), TOOL_INPUT_SAMPLING, "LLM response: " },
	{ "test_input_required_result_list_roots", "client_roots", ROOTS, "{}", TOOL_INPUT_ROOTS,
	  "Roots: " },
};

static void ask_one(struct tool_call *t)
{
	const struct question *q = questions;
	struct jv answer;

	while (strcmp(q->tool, t->tool->name) != 0)
		q++;
	answer = good_answer(t, q->key);
	if (answer.val)
		return fixture_say_value(t, q->says, answer);
	if (!can_ask(t, q->input))
		return;
	tool_ask(t, q->key, q->method, q->params);
	tool_asks_end(t, "");
}

/* ---- questions with words of the caller ---- */

static void sampling(struct tool_call *t)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jv answer = good_answer(t, "reply");
	const char *prompt = jv_text(jv_get(t->raw, "prompt"));
	struct jw w;

	if (answer.val)
		return fixture_say_value(t, "LLM response: ", answer);
	if (!prompt)
		return tool_fail(t, "prompt: want a string");
	if (!can_ask(t, TOOL_INPUT_SAMPLING))
		return;
	w = jw_begin(&b);
	jw_object_begin(&w);
	jw_key(&w, "messages"), jw_array_begin(&w), jw_object_begin(&w);
	jw_str_field(&w, "role", "user");
	jw_key(&w, "content"), jw_object_begin(&w);
	jw_str_field(&w, "type", "text");
	jw_str_field(&w, "text", prompt);
	jw_object_end(&w), jw_object_end(&w), jw_array_end(&w);
	jw_int_field(&w, "maxTokens", 100);
	jw_object_end(&w);
	(void)jw_end(&w);
	tool_ask(t, "reply", SAMPLE, buf_str(&b));
	tool_asks_end(t, "");
}

static void elicitation(struct tool_call *t)
{
	static const char schema[] = "{\"type\":\"object\",\"properties\":{" USERNAME
				     "},\"required\":[\"username\",\"email\"]}";
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jv answer = good_answer(t, "user");
	const char *message = jv_text(jv_get(t->raw, "message"));
	struct jw w;

	if (answer.val)
		return fixture_say_value(t, "User response: ", answer);
	if (!message)
		return tool_fail(t, "message: want a string");
	if (!can_ask(t, TOOL_INPUT_FORM))
		return;
	w = jw_begin(&b);
	jw_object_begin(&w);
	jw_str_field(&w, "mode", "form");
	jw_str_field(&w, "message", message);
	jw_raw_field(&w, "requestedSchema", schema, sizeof(schema) - 1);
	jw_object_end(&w);
	(void)jw_end(&w);
	tool_ask(t, "user", ELICIT, buf_str(&b));
	tool_asks_end(t, "");
}

/* ---- what is remembered between questions ---- */

#define CONFIRM FORM("Please confirm", "\"ok\":{\"type\":\"boolean\"}", "\"ok\"")

static void request_state(struct tool_call *t)
{
	if (good_answer(t, "confirm").val)
		return strcmp(t->state, "asked") == 0 ? fixture_say(t, "state-ok")
						      : tool_fail(t, "the state is gone");
	if (!can_ask(t, TOOL_INPUT_FORM))
		return;
	tool_ask(t, "confirm", ELICIT, CONFIRM);
	tool_asks_end(t, "asked");
}

static void multiple_inputs(struct tool_call *t)
{
	if (good_answer(t, "user_name").val && good_answer(t, "greeting").val &&
	    good_answer(t, "client_roots").val)
		return fixture_say_value(t, "All answers: ", t->answers);
	if (!can_ask(t, TOOL_INPUT_FORM) || !can_ask(t, TOOL_INPUT_SAMPLING) ||
	    !can_ask(t, TOOL_INPUT_ROOTS))
		return;
	tool_ask(t, "user_name", ELICIT, FORM("What is your name?", NAME, "\"name\""));
	tool_ask(t, "greeting", SAMPLE, MESSAGE("Generate a greeting", "50"));
	tool_ask(t, "client_roots", ROOTS, "{}");
	tool_asks_end(t, "three");
}

static void multi_round(struct tool_call *t)
{
	if (strcmp(t->state, "two") == 0 && good_answer(t, "step2").val)
		return fixture_say_value(t, "Two rounds: ", t->answers);
	if (!can_ask(t, TOOL_INPUT_FORM))
		return;
	if (strcmp(t->state, "one") == 0 && good_answer(t, "step1").val) {
		tool_ask(t, "step2", ELICIT,
			 FORM("Step 2: What is your favorite color?",
			      "\"color\":{\"type\":\"string\"}", "\"color\""));
		return tool_asks_end(t, "two");
	}
	tool_ask(t, "step1", ELICIT, FORM("Step 1: What is your name?", NAME, "\"name\""));
	tool_asks_end(t, "one");
}

/* Asks for whatever the client can answer. */
static void capabilities(struct tool_call *t)
{
	if (jv_kind(t->answers) == JV_OBJECT)
		return fixture_say_value(t, "Answers: ", t->answers);
	if (t->inputs & TOOL_INPUT_FORM)
		tool_ask(t, "form", ELICIT, CONFIRM);
	if (t->inputs & TOOL_INPUT_SAMPLING)
		tool_ask(t, "message", SAMPLE, MESSAGE("Say something", "50"));
	if (t->inputs & TOOL_INPUT_ROOTS)
		tool_ask(t, "roots", ROOTS, "{}");
	if (list_is_empty(&t->asks))
		return fixture_say(t, "There is nothing to ask for.");
	tool_asks_end(t, "");
}

static const struct tool rows[] = {
	FIXTURE("test_sampling", "Asks the client's model.", 0, sampling),
	FIXTURE("test_elicitation", "Asks the user.", 0, elicitation),
	FIXTURE("test_elicitation_sep1034_defaults", "Asks with defaults.", 0, ask_one),
	FIXTURE("test_elicitation_sep1330_enums", "Asks with choices.", 0, ask_one),
	FIXTURE("test_streaming_elicitation", "Asks the user, too.", 0, ask_one),
	FIXTURE("test_missing_capability", "Needs the client's model.", 0, ask_one),
	FIXTURE("test_input_required_result_elicitation", "Asks for a name.", 0, ask_one),
	FIXTURE("test_input_required_result_sampling", "Asks for a capital.", 0, ask_one),
	FIXTURE("test_input_required_result_list_roots", "Asks for roots.", 0, ask_one),
	FIXTURE("test_input_required_result_request_state", "Remembers.", 0, request_state),
	FIXTURE("test_input_required_result_tampered_state", "Remembers, too.", 0, request_state),
	FIXTURE("test_input_required_result_multiple_inputs", "Asks thrice.", 0, multiple_inputs),
	FIXTURE("test_input_required_result_multi_round", "Asks again.", 0, multi_round),
	FIXTURE("test_input_required_result_capabilities", "Asks what it may.", 0, capabilities),
};

const struct tool_table fixture_questions = { rows, sizeof(rows) / sizeof(rows[0]) };
