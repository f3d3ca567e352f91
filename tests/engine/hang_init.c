/* Stands in for holt-init where a box is to hang while it is built: it says nothing until the file
 * /go is there, and then becomes the real one, which lies in the template's root. */
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	(void)argc;
	while (access("/go", F_OK) < 0)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	(void)execv("/bin/real-init", argv);
	return 1;
}
