/* The process around the command line: nothing but its doors. */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/command.h"

/* A descriptor opened later must never take the place of a missing standard one. */
static int fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR); /* NOTE: not close-on-exec; it stands for 0, 1, 2 */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	(void)close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	int code;

	if (fill_standard_fds() < 0)
		return CLI_ERROR;
	(void)signal(SIGPIPE, SIG_IGN); /* a reader that left is an error of write() */
	code = cli_main(argc, argv);
	if (fflush(stdout) != 0)
		return CLI_ERROR;
	return code;
}
