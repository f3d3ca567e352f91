/* What streams keep for clients that come back. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "mcp/server_impl.h"

#define SESSIONS 70u /* more than there is room for, when each keeps all that it may */

struct place {
	struct mcp_session session;
	struct mcp_stream stream;
};

static void open_place(struct mcp_server *s, struct place *p)
{
	memset(p, 0, sizeof(*p));
	p->session.server = p->stream.server = s;
	list_init(&p->session.streams);
	list_init(&p->stream.events);
	p->stream.session = &p->session;
	p->stream.is_common = true; /* nobody is connected, and it stays */
	list_push_back(&p->session.streams, &p->stream.node);
}

static void forget(struct place *p)
{
	LIST_FOREACH (&p->stream.events, e, struct mcp_event, node) {
		list_remove(&e->node);
		free(e);
	}
}

static void sessions_together_keep_no_more_than_there_is_room_for(void **state)
{
	static struct place places[SESSIONS];
	static char text[MCP_KEPT_BYTES];
	struct mcp_server s = { 0 };
	size_t sum = 0;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < SESSIONS; i++) {
		open_place(&s, &places[i]);
		mcp_stream_send(&places[i].stream, text, sizeof(text));
		assert_true(s.kept <= MCP_KEPT_ALL);
		sum += places[i].stream.kept;
	}
	assert_int_equal(sum, s.kept);
	assert_int_equal(s.kept, MCP_KEPT_ALL);
	for (size_t i = 0; i < SESSIONS; i++)
		forget(&places[i]);
}

static void the_newest_of_a_session_stays(void **state)
{
	static char text[MCP_KEPT_BYTES / 4];
	struct mcp_server s = { 0 };
	struct place p;
	const struct mcp_event *first;

	(void)state;
	open_place(&s, &p);
	for (int i = 0; i < 6; i++)
		mcp_stream_send(&p.stream, text, sizeof(text));
	first = LIST_ENTRY(p.stream.events.next, struct mcp_event, node);
	assert_int_equal(first->number, 2);
	assert_int_equal(s.kept, MCP_KEPT_BYTES);
	forget(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_together_keep_no_more_than_there_is_room_for),
		cmocka_unit_test(the_newest_of_a_session_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
