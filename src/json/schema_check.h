/* Whether a value is what a JSON Schema of somebody else's says: the keywords that published
 * schemas use. What is not understood is passed over, so that nothing is refused that might be
 * right. */
#pragma once

#include "json/jv.h"

struct err;

/* 0; -EINVAL with the first thing that is wrong, by its path: "filter.limit: want at most 100".
 * A schema that takes too long to follow is passed. */
int schema_check(struct jv schema, struct jv value, struct err *err);
