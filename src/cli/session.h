/* One box for one command: a launcher of our own, a template, a claimed box and its socket. */
#pragma once

#include "cli/box_args.h"
#include "provider/guest_client.h"
#include "provider/launcher.h"

struct session {
	struct launcher *launcher;  /* owned */
	struct guest_client *guest; /* owned */
	struct launcher_box box;    /* its id is "" until claimed */
};

/* On failure everything is undone. */
int session_open(struct session *s, const struct box_args *args, struct err *err);
/* Destroys the box and stops the launcher; ret_usage (may be NULL) is what the box used. */
int session_close(struct session *s, struct box_usage *ret_usage, struct err *err);
