/* The template interpreter of all boxes of a template ("zygote"): forks each box's first process.
 */
#pragma once

struct err;
struct python;

#define SERVE_FD 3 /* the launcher's socket; of an in-box template: holt-init's */

/* Serves the launcher until it is gone; the exit code of the process. */
int serve_boxes(struct python *py);
/* Tells whoever is on SERVE_FD that there will be no interpreter, and why. */
int serve_failed(const struct err *err);
