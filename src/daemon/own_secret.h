/* The daemon's own secret: what it makes tokens of sandboxes with, so that they need not be kept.
 * As old as its data, and nobody else's. */
#pragma once

struct err;
struct secret;

#define OWN_SECRET_LEN 32

/* Of the file in this directory, which is made if there is none. EBADMSG: it is damaged. */
int own_secret_open(int data_fd, struct secret **ret, struct err *err);
