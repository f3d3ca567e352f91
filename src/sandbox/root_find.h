/* Images below the operator's `images_dir`, by what others call them: "ubuntu:22.04" and
 * "docker.io/library/ubuntu:22.04" are the archive "ubuntu:22.04.tar" there, or the directory
 * "ubuntu:22.04"; "ghcr.io/a/b:1" is "ghcr.io/a/b:1.tar". Without a tag it is "latest". */
#pragma once

#include "sandbox/root_import.h"

struct sandboxes;

struct root_found {
	char path[ROOT_PATH_MAX + 1]; /* of root_import() */
	enum root_source kind;
};
/* -EINVAL: no reference of an image; -ENOENT: there is none, or no images_dir. */
int root_find(struct sandboxes *all, const char *reference, struct root_found *ret);
/* The name of its file, without the end: inside, and for tests. -EINVAL. */
int root_reference_path(const char *reference, char *dst, size_t size);
