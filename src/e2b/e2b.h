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

/* What a browser's SDK sends and reads beyond what others do. Metadata of files is not in it: a
 * header's name would have to be known. */
#define E2B_CORS_HEADERS                                                                     \
	"E2b-Sandbox-Id, E2b-Sandbox-Port, E2b-Traffic-Access-Token, X-Access-Token, "       \
	"Connect-Protocol-Version, Connect-Timeout-Ms, Keepalive-Ping-Interval, "            \
	"Connect-Content-Encoding, "                                                         \
	"Content-Encoding, Range, browser, lang, lang_version, package_version, publisher, " \
	"sdk_runtime, system"
#define E2B_CORS_EXPOSE "X-Next-Token, Content-Disposition, Content-Range, ETag, Retry-After"

/* Of sandboxes, in the order they are asked, ended by NULL. */
extern const struct api_door *const e2b_doors[];
/* Of everything else: by its paths alone, so it is asked last. */
extern const struct api_door e2b_control_door;
