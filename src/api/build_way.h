/* How builds get packages: the way out that installs in sandboxes have, too. */
#pragma once

struct api;

void build_way_offer(struct api *api);
void build_way_forget(struct api *api); /* the api goes */
