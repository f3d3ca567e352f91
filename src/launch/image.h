/* A file beside our own program, copied into memory and sealed: nothing inside a box can write to
 * what others run, and no path leads to it. */
#pragma once

struct err;

/* The descriptor; -ENOENT when there is no such file. */
int image_load(const char *name, struct err *err);
