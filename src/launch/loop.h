/* File systems in files: the programs that make and mend them, and the loop devices that carry
 * them. For volumes and for the image of layers. */
#pragma once

struct err;

#define LOOP_TOOL_PATH "/proc/self/fd/3" /* what the image is called in a tool's arguments */
#define LOOP_PATH_SIZE 32

/* Runs a program of the machine with nothing but the image and no environment: its exit code, or
 * -errno. paths: where it may be, most likely first; `package`: what to install when it is at none.
 */
int loop_run_tool(const char *const paths[2], char *const argv[], int image, const char *package,
		  struct err *err);
/* A loop device with the image, which lets go of it when nobody has the device any more: its
 * descriptor, and its path. */
int loop_attach(int image, char path[LOOP_PATH_SIZE], struct err *err);
/* The image has become larger: so does the device. */
int loop_grow(int loop, struct err *err);
/* The one that carries the image already: what is mounted from it lives on in boxes. -ENOENT: none
 * does. */
int loop_find(int image, char path[LOOP_PATH_SIZE], struct err *err);
