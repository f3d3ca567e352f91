/* The daemon: the only place that knows every module. */
#pragma once

struct config;
struct err;

/* Serves until it is told to end (SIGTERM, SIGINT): 0; or says why it could not begin. Started as
 * root it forks, and what serves has no privilege. Boxes live on after it. */
int app_serve(const struct config *c, struct err *err);
/* The same with what tests add. */
struct app_extras;
int app_serve_with(const struct config *c, const struct app_extras *extras, struct err *err);
