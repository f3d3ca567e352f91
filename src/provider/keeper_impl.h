/* Between the keeper and its client; for keeper*.c only. A request is one byte, the answer this,
 * with the launcher's socket when the code is 0. One SOCK_SEQPACKET message each. */
#pragma once

#include <stdint.h>

struct keeper_answer {
	uint32_t number; /* the request's byte */
	int32_t code;    /* 0 or a negative errno */
	int32_t pid;
	char text[240]; /* why not, for a person */
};
