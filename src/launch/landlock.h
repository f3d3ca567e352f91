/* Landlock: a second wall behind the mounts. Writing is possible only where the box may write, no
 * mount call works, and signals and abstract sockets stay inside the box. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Confines the calling process and all it starts; abi: landlock_abi(). Needs no-new-privs. The root
 * must be the box's. `writable_root`: the whole tree may be written to, or, unless that is "", only
 * `paths` of it, as in struct template_spec. */
int landlock_apply(uint32_t abi, bool writable_root, const char *paths, struct err *err);
