/* What is done once when a database is opened: its place, its health, its schema. */
#pragma once

struct db;
struct err;
struct place;
struct store_options;

/* *ret_place is to be closed also when this fails. */
int start_database(const struct store_options *options, struct place *ret_place, struct db **ret,
		   struct err *err);
