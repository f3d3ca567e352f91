/* Is it alive, is it ready. Readiness asks the store to write; the answer is good for a second, so
 * that nobody without a key can make the disk busy. */
#pragma once

struct api;
struct ready; /* opaque */

struct ready *ready_create(struct api *api); /* NULL without memory */
struct ready *ready_free(struct ready *r);   /* takes NULL, returns NULL */
