/* The files of a template's tree that are not the machine's: /etc, empty directories, devices. */
#pragma once

#include <stdbool.h>

struct err;

/* Fills an empty directory. `host`: with the parts of the machine's /etc that programs need and
 * that say nothing about it or its users; otherwise only what every box must have. `dir_fd`: the
 * root of a directory template (its own passwd file is kept, if everyone may read it, and our user
 * added), else -1. */
int template_fill(int root_fd, bool host, int dir_fd, bool network, struct err *err);
/* holt-init under the name `holt-call`, which is a program of a box's user. */
int template_fill_program(int root_fd, int program_fd, struct err *err);
int template_copy_program(int to, int program_fd, struct err *err);
/* Device files, as real nodes or (rootless) as empty files to bind onto. */
int template_fill_devices(int root_fd, bool real, struct err *err);
/* A /dev with nodes of its own, mounted nowhere yet: its descriptor. For boxes whose root is
 * mounted by their own user namespace, where the template's nodes do not work and would be shared.
 */
int template_make_dev(struct err *err);
/* Names in /dev, NULL-terminated. */
extern const char *const template_devices[];
