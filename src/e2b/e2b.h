/* E2B's protocol in front of Holt's services: published SDKs, command line and code interpreter
 * work unmodified. Three planes share one address: the control plane  /sandboxes, /v2/sandboxes,
 * /templates ... by the API's key envd               files and processes of one sandbox, by its own
 * token (port tag 49983) code interpreter   contexts and code in one sandbox, by its own token
 * (port tag 49999) and every other port of a sandbox is what listens there. See docs/e2b.md. */
#pragma once

struct api_door;

#define E2B_PORT_ENVD 49983u
#define E2B_PORT_CODE 49999u
#define E2B_ENVD_VERSION "0.6.13" /* what clients may expect of envd */
#define E2B_CLIENT_ID "holt"

/* In the order they are asked, ended by NULL: for struct api_deps. */
extern const struct api_door *const e2b_doors[];
