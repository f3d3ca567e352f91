/* Ids of builds as E2B's clients want them: UUIDs. Ours have 20 characters of 36, which is less
 * than the 122 bits that a UUID leaves free, so that each stands for the other and nothing is kept.
 */
#pragma once

#include <stdbool.h>

#include "base/id.h"

#define BUILD_UUID_SIZE 37
/* id: valid. */
void build_id_write(const char *id, char ret[BUILD_UUID_SIZE]);
/* False: it is none of those that build_id_write() makes. */
bool build_id_read(const char *uuid, char ret[ID_LEN + 1]);
