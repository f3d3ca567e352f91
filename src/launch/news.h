/* What the first process of a new box says on its control socket, until the box is ready. */
#pragma once

struct box;

enum news {
	NEWS_NONE,   /* nothing, or nothing that counts */
	NEWS_READY,  /* holt-init waits */
	NEWS_PRIMED, /* what news_prime() asked for is over */
	NEWS_END,    /* it will never be ready: box.err says why, if anything was said */
};

enum news news_read(struct box *b);
/* The first program of a box is slow: every file it needs is looked up for the first time, every
 * kind of kernel memory is charged for the first time, every path in holt-init is taken for the
 * first time. A box that is to wait pays that ahead. One that has no such program stays as it is.
 */
int news_prime(struct box *b);
