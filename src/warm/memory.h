/* Puts the template's heap on huge pages. A fork copies, and the end of a process takes down, one
 * entry for each page: with 4 KiB pages that is most of what a short run costs. A child that writes
 * still copies 4 KiB at a time. Best effort: where the kernel cannot do it, nothing is lost but
 * time. */
#pragma once

struct memory; /* opaque */

/* Before the interpreter starts: its arenas are laid out for it. NULL: without. */
struct memory *memory_prepare(void);
/* After its imports. */
void memory_collapse(struct memory *m);
