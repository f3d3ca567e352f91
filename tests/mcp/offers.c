/* Fixture prompts and resources. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "fixtures.h"

#define ASK_CONTEXT                                                                       \
	"{\"mode\":\"form\",\"message\":\"What context should the prompt use?\","         \
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"context\":{\"type\":" \
	"\"string\"}},\"required\":[\"context\"]}}"

/* ---- prompts ---- */

static const char *argument(const struct mcp_request *q, const char *name)
{
	const char *text = jv_text(jv_get(jv_get(q->params, "arguments"), name));

	return text ? text : "";
}

static struct jw *messages_begin(struct mcp_request *q)
{
	struct jw *w = mcp_result_begin(q);

	jw_key(w, "messages");
	jw_array_begin(w);
	return w;
}

static void messages_end(struct mcp_request *q, struct jw *w)
{
	jw_array_end(w);
	mcp_result_end(q);
}

static void message_begin(struct jw *w, const char *type)
{
	jw_object_begin(w);
	jw_str_field(w, "role", "user");
	jw_key(w, "content");
	jw_object_begin(w);
	jw_str_field(w, "type", type);
}

static void message_end(struct jw *w)
{
	jw_object_end(w);
	jw_object_end(w);
}

static void message(struct jw *w, const char *text)
{
	message_begin(w, "text");
	jw_str_field(w, "text", text);
	message_end(w);
}

static void get_simple(struct mcp_request *q, const struct mcp_prompt *p)
{
	struct jw *w = messages_begin(q);

	(void)p;
	message(w, "This is a simple prompt for testing.");
	messages_end(q, w);
}

static void get_arguments(struct mcp_request *q, const struct mcp_prompt *p)
{
	struct jw *w = messages_begin(q);
	char text[256];

	(void)p;
	(void)snprintf(text, sizeof(text), "Prompt with arguments: arg1='%.64s', arg2='%.64s'",
		       argument(q, "arg1"), argument(q, "arg2"));
	message(w, text);
	messages_end(q, w);
}

static void get_embedded(struct mcp_request *q, const struct mcp_prompt *p)
{
	struct jw *w = messages_begin(q);

	(void)p;
	message_begin(w, "resource");
	jw_key(w, "resource");
	jw_object_begin(w);
	jw_str_field(w, "uri", argument(q, "resourceUri"));
	jw_str_field(w, "mimeType", "text/plain");
	jw_str_field(w, "text", "Embedded resource content for testing.");
	jw_object_end(w);
	message_end(w);
	message(w, "Please process the embedded resource above.");
	messages_end(q, w);
}

static void get_image(struct mcp_request *q, const struct mcp_prompt *p)
{
	struct jw *w = messages_begin(q);

	(void)p;
	message_begin(w, "image");
	jw_str_field(w, "data", FIXTURE_PNG);
	jw_str_field(w, "mimeType", "image/png");
	message_end(w);
	message(w, "Please analyze the image above.");
	messages_end(q, w);
}

static void get_asking(struct mcp_request *q, const struct mcp_prompt *p)
{
	const char *context =
		jv_text(jv_get(jv_get(jv_get(q->answers, "user_context"), "content"), "context"));
	struct tool_ask *ask;
	struct jw *w;

	(void)p;
	if (context) {
		w = messages_begin(q);
		message(w, context);
		messages_end(q, w);
		return;
	}
	ask = arena_alloc(q->arena, sizeof(*ask));
	if (!ask)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	*ask = (struct tool_ask){ .key = "user_context",
				  .method = "elicitation/create",
				  .params = ASK_CONTEXT };
	list_push_back(&q->asks, &ask->node);
	mcp_asks(q, "");
}

static const struct mcp_prompt_arg two[] = { { "arg1", "First test argument", true },
					     { "arg2", "Second test argument", true },
					     { 0 } };
static const struct mcp_prompt_arg uri[] = { { "resourceUri", "The resource to embed", true },
					     { 0 } };

static const struct mcp_prompt prompts[] = {
	{ "test_simple_prompt", "Simple", "Says a sentence.", NULL, get_simple },
	{ "test_prompt_with_arguments", "With arguments", "Repeats them.", two, get_arguments },
	{ "test_prompt_with_embedded_resource", "With a resource", "Brings one.", uri,
	  get_embedded },
	{ "test_prompt_with_image", "With a picture", "Shows one.", NULL, get_image },
	{ "test_input_required_result_prompt", "With a question", "Asks first.", NULL, get_asking },
};

/* ---- resources ---- */

static const struct fixed {
	const char *uri, *name, *about, *type, *key, *content;
} fixed[] = {
	{ "test://static-text", "static-text", "A text.", "text/plain", "text",
	  "This is the content of the static text resource." },
	{ "test://static-binary", "static-binary", "A picture.", "image/png", "blob", FIXTURE_PNG },
	{ "test://watched-resource", "watched-resource", "A text that may change.", "text/plain",
	  "text", "Watched resource content." },
};
#define N_FIXED (sizeof(fixed) / sizeof(fixed[0]))

static void list(struct mcp_request *q, struct mcp_listing *l)
{
	(void)q;
	for (size_t i = 0; i < N_FIXED; i++)
		mcp_listing_add(l, &(struct mcp_resource){ .uri = fixed[i].uri,
							   .name = fixed[i].name,
							   .about = fixed[i].about,
							   .type = fixed[i].type,
							   .size = -1 });
}

static void templates(struct mcp_request *q, struct jw *w)
{
	(void)q;
	jw_object_begin(w);
	jw_str_field(w, "uriTemplate", "test://template/{id}/data");
	jw_str_field(w, "name", "template");
	jw_str_field(w, "description", "Data of an id.");
	jw_str_field(w, "mimeType", "application/json");
	jw_object_end(w);
}

static void answer(struct mcp_request *q, const char *at, const char *type, const char *key,
		   const char *content)
{
	struct jw *w = mcp_result_begin(q);

	jw_key(w, "contents");
	jw_array_begin(w);
	jw_object_begin(w);
	jw_str_field(w, "uri", at);
	jw_str_field(w, "mimeType", type);
	jw_str_field(w, key, content);
	jw_object_end(w);
	jw_array_end(w);
	mcp_result_end(q);
}

static void read_resource(struct mcp_request *q, const char *at)
{
	char id[32], text[160];
	const char *data;
	int n = 0;

	for (size_t i = 0; i < N_FIXED; i++)
		if (strcmp(fixed[i].uri, at) == 0)
			return answer(q, at, fixed[i].type, fixed[i].key, fixed[i].content);
	if (sscanf(at, "test://template/%31[a-z0-9]/data%n", id, &n) == 1 && n > 0 && !at[n]) {
		(void)snprintf(text, sizeof(text),
			       "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}",
			       id, id);
		return answer(q, at, "application/json", "text", text);
	}
	data = arena_printf(q->arena, "{\"uri\":\"%s\"}", at);
	mcp_fail_data(q, q->era == MCP_MODERN ? (long)RPC_PARAMS : (long)MCP_NOT_FOUND,
		      "Resource not found", data);
}

static const struct mcp_resources resources[] = {
	{ .scheme = "test://", .list = list, .templates = templates, .read = read_resource },
};

const struct mcp_fixtures fixture_offers = {
	.prompts = prompts,
	.n_prompts = sizeof(prompts) / sizeof(prompts[0]),
	.resources = resources,
	.n_resources = sizeof(resources) / sizeof(resources[0]),
};
