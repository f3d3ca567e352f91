/* The first program of a box is slow: every file it needs is looked up for the first time, every
 * kind of kernel memory is charged for the first time. A box that waits in a pool pays that ahead.
 */
#pragma once

/* Runs /bin/true as the box's user and waits for its end. A box that has none stays as it is. */
void prime_box(void);
