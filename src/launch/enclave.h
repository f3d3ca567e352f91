/* Trees of our own making that boxes see a part of: each is the only mount of a namespace that
 * nobody lives in, so nothing of the machine is kept busy by it. Its files belong to the box's
 * root, whoever that is: a box's view of it maps their owner to its own ids. */
#pragma once

#include <sys/types.h>

struct err;
struct launch;

/* Whose the files of such a tree must be. */
uid_t enclave_owner(const struct launch *l);
/* The descriptor of the namespace; takes nothing. The caller is in the machine's mounts, before and
 * after. */
int enclave_make(struct launch *l, int tree, struct err *err);
/* A view for a box, mounted nowhere: its descriptor. layer_ns: its cell's; -1: owners are not
 * mapped. -EOPNOTSUPP on a kernel whose tmpfs cannot (before 6.3). */
int enclave_mount(int ns, int layer_ns, struct err *err);
