/* JSON values for people. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "json/jv.h"

struct table;

/* A value in a few characters: texts as they are, "-" for null; "" when it does not fit. All of
 * these write to dst whatever the value is, and return it. */
const char *show_text(struct jv v, char *dst, size_t size);
/* The object's members, one a line: "name: value", those of objects inside indented. */
void show_object(struct jv object, FILE *to);
/* How long ago the time is, or how long still; "-" for null. */
const char *show_since(struct jv iso, char *dst, size_t size);
const char *show_until(struct jv iso, char *dst, size_t size);
