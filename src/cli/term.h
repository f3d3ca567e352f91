/* The caller's terminal, while a box has one of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct term {
	bool raw;
	struct termios saved;
};

/* Makes standard input raw when it is a terminal: every key goes into the box. */
void term_raw(struct term *t);
void term_restore(struct term *t); /* harmless when nothing was changed */
/* The window of whichever standard descriptor is a terminal; false when none is. */
bool term_size(uint16_t *ret_rows, uint16_t *ret_cols);
