/* The table of users as the store has it, at a start. */
#pragma once

struct err;
struct store;
struct users;

/* *ret is owned. A record that cannot be read shuts its user out, and is logged. */
int users_load(const struct store *st, struct users **ret, struct err *err);
