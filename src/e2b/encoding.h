/* Which content coding an answer has, by Accept-Encoding (RFC 9110). */
#pragma once

#include <stdbool.h>

enum encoding {
	ENCODING_REFUSED, /* 406: none of ours is acceptable */
	ENCODING_IDENTITY,
	ENCODING_GZIP,
};

/* header may be NULL. gzip where it is named and not worth less than the bytes as they are. */
enum encoding encoding_choose(const char *header);
/* Whether the bytes may go as they are. */
bool encoding_takes_identity(const char *header);
