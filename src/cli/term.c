#include "cli/term.h"

#include <sys/ioctl.h>
#include <unistd.h>

void term_raw(struct term *t)
{
	struct termios raw;

	t->raw = false;
	if (tcgetattr(STDIN_FILENO, &t->saved) < 0)
		return;
	raw = t->saved;
	cfmakeraw(&raw);
	t->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void term_restore(struct term *t)
{
	if (t->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->saved);
	t->raw = false;
}

bool term_size(uint16_t *ret_rows, uint16_t *ret_cols)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		struct winsize size;

		if (ioctl(fd, TIOCGWINSZ, &size) < 0)
			continue;
		*ret_rows = size.ws_row;
		*ret_cols = size.ws_col;
		return true;
	}
	return false;
}
