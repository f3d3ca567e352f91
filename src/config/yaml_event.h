/* What YAML may hold here, wherever it is read: nothing that makes small files big or values mean
 * something else. */
#pragma once

#include <stdbool.h>

#include <yaml.h>

/* Why an event is not taken (aliases, anchors, tags, NUL bytes); NULL: it is. */
const char *yaml_event_problem(const yaml_event_t *e);
bool yaml_event_is_null(const yaml_event_t *e); /* a plain scalar: "", "~", "null" */
void yaml_event_done(yaml_event_t *e);          /* also of an empty one */
