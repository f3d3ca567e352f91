/* Who answers which method: methods.c has the table. */
#pragma once

struct mcp_request;

/* basics.c */
void mcp_initialize(struct mcp_request *q);
void mcp_set_level(struct mcp_request *q);
void mcp_discover(struct mcp_request *q);
void mcp_listen(struct mcp_request *q);
/* tools.c */
void mcp_tools_list(struct mcp_request *q);
void mcp_tools_call(struct mcp_request *q);
struct jw;
struct tool_call;
/* content, structuredContent, isError. */
void mcp_write_tool_result(struct jw *w, const struct tool_call *t, const char *version);
/* Fills in what a request says of a call. */
void mcp_tool_fill(struct mcp_request *q, struct tool_call *t);
/* Answers with what came of the call, and frees its buffers. */
void mcp_tool_answer(struct mcp_request *q, struct tool_call *t);
/* tasks.c */
void mcp_tasks_get(struct mcp_request *q);
void mcp_tasks_update(struct mcp_request *q);
void mcp_tasks_cancel(struct mcp_request *q);
/* prompts.c */
void mcp_prompts_list(struct mcp_request *q);
void mcp_prompts_get(struct mcp_request *q);
/* resources.c */
void mcp_resources_list(struct mcp_request *q);
void mcp_resource_templates(struct mcp_request *q);
void mcp_resources_read(struct mcp_request *q);
void mcp_resources_subscribe(struct mcp_request *q);
void mcp_resources_unsubscribe(struct mcp_request *q);
/* skills.c */
void mcp_directory_read(struct mcp_request *q);
void mcp_skills_list(struct mcp_request *q);
void mcp_skills_get(struct mcp_request *q);
/* completion.c */
void mcp_complete(struct mcp_request *q);
