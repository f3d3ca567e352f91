/* Packages: what may be asked for, and the command that gets it. Names and versions are held to
 * each manager's grammar, so that none is an option, a path or an address. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct arena;
struct sandbox_pair;

enum package_manager { PACKAGE_PIP, PACKAGE_NPM, PACKAGE_CARGO, PACKAGE_GO, PACKAGE_MANAGERS };

#define PACKAGES_MAX 64
#define PACKAGE_TEXT_MAX 214

/* "name==1.2", "@scope/name@^1", "name@1.2", "host.example/path@v1". */
bool package_is_good(enum package_manager m, const char *text);

struct package_plan { /* all of it in the arena */
	const char *const *argv;
	size_t argc;
	const struct sandbox_pair *env;
	size_t n_env;
	const char *cwd;
};
/* registry: the manager's address of it; proxy: "http://127.0.0.1:port". -ENOMEM. */
int package_plan(enum package_manager m, const char *const *packages, size_t n,
		 const char *registry, const char *proxy, struct arena *a,
		 struct package_plan *ret);
/* All that a file of the box names: requirements.txt, package.json, Cargo.toml, go.mod or one like
 * it, by its absolute path. What else it says is confined by the way out, which leads to the
 * registries alone. */
int package_plan_file(enum package_manager m, const char *file, const char *registry,
		      const char *proxy, struct arena *a, struct package_plan *ret);
