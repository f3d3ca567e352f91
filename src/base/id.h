/* Identifiers: 20 characters [a-z0-9] from the kernel's random source (103 bits). */
#pragma once

#include <stdbool.h>

#define ID_LEN 20
void id_make(char dst[ID_LEN + 1]);
/* The same for many ids: asks the kernel once for dozens. Zero-initialised is valid. */
struct id_source {
	unsigned char bytes[1024];
	unsigned left;
};
void id_next(struct id_source *s, char dst[ID_LEN + 1]);
bool id_is_valid(const char *s); /* exactly ID_LEN of [a-z0-9] */
