/* The contract: OpenAPI 3.1 from the tables of routes, bodies, queries and schemas. Nothing is
 * written by hand twice, so it cannot say anything else than what the dispatcher does. */
#pragma once

struct buf;

/* Appends the document as JSON. -ENOMEM, -E2BIG */
int openapi_write(struct buf *b);
