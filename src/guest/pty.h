/* Terminals of the box's own devpts. */
#pragma once

#include <stdint.h>

struct err;
struct user;

/* Opens a pair that belongs to the user: master non-blocking, both close-on-exec. 0 rows or columns
 * mean 24 x 80. */
int pty_open(const struct user *user, uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave,
	     struct err *err);
int pty_resize(int master, uint16_t rows, uint16_t cols);
/* The character that ends the input of a program that reads lines. */
char pty_eof_char(int master);
