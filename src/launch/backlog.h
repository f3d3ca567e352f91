/* Connections of boxes that no program has accepted yet. What is sent on them Linux charges to
 * nobody until they are accepted, and only what all of the machine has for TCP bounds it. So with
 * each look at file locks (locks.h) it is counted, and a box that has too much of it is ended. */
#pragma once

#include "launch/backlog_reader.h"

struct launch;

/* Before the look: who is to be looked at. */
void backlog_ask(const struct launch *l, struct backlog_table *t);
/* Behind it: ends who has too much. */
void backlog_judge(struct launch *l, const struct backlog_table *t);
