/* The token of an exposed port: `port_` and 40 hex digits, shown once. As of keys, only SHA-256 of
 * the secret bytes is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "crypto/hash.h"

#define PORT_TOKEN_SECRET_LEN 20
#define PORT_TOKEN_SIZE (sizeof("port_") + 2 * PORT_TOKEN_SECRET_LEN) /* with its NUL */

int port_token_make(char text[PORT_TOKEN_SIZE], uint8_t hash[HASH_LEN]);
bool port_token_is(const char *text, const uint8_t hash[HASH_LEN]);
