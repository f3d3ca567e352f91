/* One request for each of many ids: what fails is said, the others are done all the same. */
#pragma once

#include "cli/client.h"

struct act {
	const char *method, *pattern; /* of client_path(); % is the id */
	struct client *client;
	struct jw *json; /* gets what came of each; set by act_begin() when JSON is wanted */
	int failures;
	const struct buf *body; /* of each request; NULL: none */
};

/* An exit code, everything said. Prints the ids, or an array of what came back. */
int act_on_each(struct act *a, int n, char **ids);
/* The same for everything that the list has. */
int act_on_all(struct act *a, const char *list);
