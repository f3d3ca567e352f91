/* What the calls of envd that are about files share. */
#pragma once

#include "e2b/connect.h"

struct api_call;
struct err;

/* What an error of a file operation is to Connect. */
enum connect_code filesystem_code(int code);
/* Ends the request with it; 502 when the sandbox is gone. */
void filesystem_fail(struct api_call *c, const struct err *err);
