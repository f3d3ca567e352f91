/* What every fuzz target needs. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it must hold in every build. */
#define MUST(cond)               \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)
