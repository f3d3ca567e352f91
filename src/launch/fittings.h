/* What boxes with TEMPLATE_SUDO have beside the machine's programs or an image's: `sudo` (holt-init
 * under another name), `python` where there is only a `python3`, and an /etc whose files are the
 * box's root's own, so that he may write to them. It lies between what a box is made of and what is
 * written; one for each template, made for its first box. */
#pragma once

struct cell;
struct err;
struct launch;
struct template;

/* A view for a box, mounted nowhere: its descriptor. */
int fittings_mount(struct launch *l, struct template *t, struct cell *cell, struct err *err);
