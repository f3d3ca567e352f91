/* The first words to a person: where it listens, and the admin key when it has just been made. */
#pragma once

#include <stdbool.h>

void greet(const char *listen, int port, bool is_tls, const char *first_key);
