#include "base/id.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
#define ALPHABET_LEN (sizeof(alphabet) - 1)

void id_make(char dst[ID_LEN + 1])
{
	uint8_t bytes[ID_LEN * 2];
	size_t n = 0;

	while (n < ID_LEN) {
		/* Without the kernel's random source an id could be guessed: better none at all. */
		if (getentropy(bytes, sizeof(bytes)) < 0)
			abort();
		for (size_t i = 0; i < sizeof(bytes) && n < ID_LEN; i++) {
			/* The largest multiple of 36; bytes above it would favour some letters. */
			if (bytes[i] < 256 / ALPHABET_LEN * ALPHABET_LEN)
				dst[n++] = alphabet[bytes[i] % ALPHABET_LEN];
		}
	}
	dst[ID_LEN] = '\0';
}

void id_next(struct id_source *s, char dst[ID_LEN + 1])
{
	for (size_t n = 0; n < ID_LEN;) {
		uint8_t byte;

		if (s->left == 0) {
			ssize_t got = getrandom(s->bytes, sizeof(s->bytes), 0);

			if (got < 0 && errno != EINTR)
				abort(); /* as in id_make() */
			s->left = got < 0 ? 0 : (unsigned)got;
			continue;
		}
		byte = s->bytes[--s->left];
		s->bytes[s->left] = 0; /* an id is nobody's to find again */
		if (byte < 256 / ALPHABET_LEN * ALPHABET_LEN)
			dst[n++] = alphabet[byte % ALPHABET_LEN];
	}
	dst[ID_LEN] = '\0';
}

bool id_is_valid(const char *s)
{
	return s && strspn(s, alphabet) == ID_LEN && s[ID_LEN] == '\0';
}
