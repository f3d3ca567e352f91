/* Takes a Python over at its start. This object is preloaded into the template's own python3;
 * libc's start routine, which every program calls, is found here first and given another main(). */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "launch/zygote.h"
#include "warm/memory.h"
#include "warm/python.h"
#include "warm/serve.h"
#include "warm/worker.h"

#define HOW "HOLT_WARM" /* "zygote:modules" or "template:modules" */

typedef int main_fn(int, char **, char **);
typedef int start_fn(main_fn *, int, char **, void (*)(void), void (*)(void), void (*)(void),
		     void *);

/* Forgets a variable and wipes its text, which /proc/self/environ would show for ever. */
static void forget(const char *name)
{
	char *value = getenv(name);
	size_t before = strlen(name) + 1;

	(void)unsetenv(name);
	if (value)
		explicit_bzero(value - before, before + strlen(value));
}

/* NOTE: the interpreter's memory and this struct live until the process ends. */
static int warm_main(int argc, char **argv, char **envp)
{
	static struct python py;
	struct memory *memory = memory_prepare();
	const char *how = getenv(HOW);
	struct err err = { 0 };
	char *modules;
	bool is_template;

	(void)argc;
	(void)argv;
	(void)envp;
	if (!how || !strchr(how, ':'))
		return 2;
	is_template = strncmp(how, "template:", 9) == 0;
	modules = strdup(strchr(how, ':') + 1);
	forget(HOW);
	forget("LD_PRELOAD");
	(void)close(ZYGOTE_LIB_FD);
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (!modules || python_start(&py, modules, &err) < 0)
		return serve_failed(&err);
	memory_collapse(memory);
	if (is_template)
		worker_serve(&py, SERVE_FD);
	return serve_boxes(&py);
}

__attribute__((visibility("default"))) start_fn __libc_start_main;

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end)
{
	start_fn *next;
	void *found = dlsym(RTLD_NEXT, "__libc_start_main");

	if (!found)
		_exit(127);
	memcpy(&next, &found, sizeof(next));
	return next(getenv(HOW) ? warm_main : main, argc, argv, init, fini, rtld_fini, stack_end);
}
