/* What a file says of a template: YAML, as the API takes it. */
#pragma once

struct err;
struct jv_doc;

/* "-" is standard input. The caller frees the document. -EINVAL with the line, -E2BIG, ... */
int template_file(const char *path, struct jv_doc **ret, struct err *err);
