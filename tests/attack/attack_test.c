/* Runs every attack as a cmocka test and ends with one line that counts them.
 *
 * usage: attack_test [--list] [PATTERN], with `*` and `?` in the pattern as in a shell */
#include <fnmatch.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ATTACKS_MAX 400u
#define HANG_SECONDS 240u

static const struct attack_table *const tables[] = {
	&attacks_resource, &attacks_bulk,    &attacks_memory, &attacks_life, &attacks_output,
	&attacks_kernel,   &attacks_proc,    &attacks_file,   &attacks_api,  &attacks_tar,
	&attacks_net,      &attacks_control, &attacks_time,   &attacks_leak, &attacks_cross,
	&attacks_crash,    &attacks_image,   &attacks_level,  &attacks_sudo,
};

/* What cmocka hands to each test: its row and the common world. */
struct stage {
	struct world *world;
	const struct attack *attack;
};

static void play(void **state)
{
	struct stage *s = *state;

	(void)alarm(HANG_SECONDS); /* a hang ends the program with a signal that nobody overlooks */
	world_attack(s->world, s->attack);
}

static int clean_up(void **state)
{
	struct stage *s = *state;

	box_drop(s->world, &s->world->box);
	box_drop(s->world, &s->world->other);
	(void)alarm(0);
	return 0;
}

static size_t select_attacks(struct world *w, const char *pattern, struct stage *stages,
			     struct CMUnitTest *tests)
{
	size_t n = 0;

	for (size_t t = 0; t < COUNT(tables); t++)
		for (size_t i = 0; i < tables[t]->count && n < ATTACKS_MAX; i++) {
			const struct attack *a = &tables[t]->rows[i];

			if (pattern && fnmatch(pattern, a->name, 0) != 0)
				continue;
			/* A rootless box has no root to attack with; sources are the same for all.
			 */
			if (a->flags & (AS_ROOT | READS_SOURCES) && w->rootless)
				continue;
			stages[n] = (struct stage){ w, a };
			tests[n] = (struct CMUnitTest){ a->name, play, NULL, clean_up, &stages[n] };
			n++;
		}
	return n;
}

/* build/tests/attack/attack_test: the build directory is two above ours. */
static int find_build(char *dst, size_t size)
{
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		return -1;
	path[n] = '\0';
	return str_copy(dst, size, dirname(dirname(dirname(path))));
}

static int run_all(const char *pattern)
{
	static struct CMUnitTest tests[ATTACKS_MAX];
	static struct stage stages[ATTACKS_MAX];
	static struct world world;
	const char *data = getenv("HOLT_ATTACK_DATA");
	char build[512];
	size_t n;
	int failed;

	if (find_build(build, sizeof(build)) < 0 ||
	    world_open(&world, build, data ? data : "tests/attack") < 0)
		return 1;
	n = select_attacks(&world, pattern, stages, tests);
	failed = _cmocka_run_group_tests("attacks", tests, n, NULL, NULL);
	world_close(&world);
	printf("%zu passed, %d failed, %u skipped\n", n - (size_t)failed - world.skipped, failed,
	       world.skipped);
	return failed != 0 || n == 0;
}

int main(int argc, char **argv)
{
	const char *pattern = argc > 1 ? argv[1] : NULL;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (!pattern || strcmp(pattern, "--list") != 0)
		return run_all(pattern);
	for (size_t t = 0; t < COUNT(tables); t++)
		for (size_t i = 0; i < tables[t]->count; i++)
			puts(tables[t]->rows[i].name);
	return 0;
}
