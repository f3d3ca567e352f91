/* The opening handshake of a WebSocket. Inside of net/. */
#pragma once

#include <stdbool.h>

struct http_request;
struct ws_options;

/* Checks the request and adds the answer's headers; *ret_protocol is the chosen subprotocol (from
 * the options' list) or "". False when it was refused, and then it has been answered. */
bool ws_handshake(struct http_request *r, const struct ws_options *o, const char **ret_protocol);
