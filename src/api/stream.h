/* Executions over a WebSocket. */
#pragma once

struct api;

/* Gives up executions whose start nobody waits for any more: for api_free(). */
void stream_forget(struct api *api);
