/* Makes a forked interpreter what a fresh one would be for one request: environment, arguments,
 * streams. Nearly all of it is done through the C API and with objects made ahead: a run then
 * touches little memory that is not at hand. */
#pragma once

#include <stdbool.h>

struct err;
struct guest_exec;
struct python;

/* In the template, after its imports. */
int begin_prepare(struct python *py, struct err *err);
/* In a child, while it is parked: makes the streams that most runs want. Uses descriptors 0 to 2 on
 * the way; they are /dev/null before and after. */
int begin_make_streams(struct python *py, struct err *err);
/* 0, or -ESTALE when only a new interpreter can serve it. The strings of `e` must live as long as
 * the process. */
int begin_run(struct python *py, const struct guest_exec *e);
