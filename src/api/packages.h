/* Packages on their way into sandboxes. */
#pragma once

struct api;

void packages_forget(struct api *api); /* the api goes */
