/* Identifiers: 20 characters [a-z0-9] from the kernel's random source (103 bits). */
#pragma once

#include <stdbool.h>

#define ID_LEN 20
void id_make(char dst[ID_LEN + 1]);
bool id_is_valid(const char *s); /* exactly ID_LEN of [a-z0-9] */
