#include "api/recent.h"

#include <string.h>

void recent_note(struct recent *r, const char id[ID_LEN + 1])
{
	unsigned at = 0;

	while (at < r->n && strcmp(r->ids[at], id) != 0)
		at++;
	if (at == r->n && r->n < RECENT_MAX)
		r->n++;
	if (at == RECENT_MAX)
		at--;
	memmove(r->ids[1], r->ids[0], at * sizeof(r->ids[0]));
	memcpy(r->ids[0], id, ID_LEN);
	r->ids[0][ID_LEN] = '\0';
}
