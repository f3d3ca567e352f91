/* What a tool found out, as text for models and people: beside the JSON of structuredContent, which
 * many hosts never show to a model. */
#pragma once

#include "json/jv.h"

struct buf;

void plain_text(struct jv object, struct buf *ret);
