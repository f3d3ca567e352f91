/* What MCP adds to the daemon: a command by tools/call over Streamable HTTP, beside the same
 * command by REST, in the same sandbox and the same run. Both wait for one answer on a kept
 * connection. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/bench.h"
#include "cli/bench_daemon.h"
#include "json/jv.h"

#define THINK_MS 10 /* between two requests, as an agent thinks */
#define ANSWER_MAX (1u << 20)
#define BODY_SIZE 512
#define HEAD_SIZE 320
#define DEMAND 1.3

#define RUN_TRUE "{\"type\":\"command\",\"content\":\"/bin/true\"}"
#define TAKES "Accept: application/json, text/event-stream\r\n"
#define SESSION "Mcp-Session-Id"
#define LEGACY "2025-11-25"
#define MODERN "2026-07-28"
#define MODERN_HEAD \
	TAKES "MCP-Protocol-Version: " MODERN "\r\nMcp-Method: tools/call\r\nMcp-Name: exec\r\n"
#define MODERN_META                                                               \
	",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" MODERN "\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define INITIALIZE                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{" \
	"\"protocolVersion\":\"" LEGACY "\",\"capabilities\":{},"              \
	"\"clientInfo\":{\"name\":\"holt-bench\",\"version\":\"1\"}}}"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

CLEANUP_FUNC(struct jv_doc *, jv_free)

struct mcp_probe {
	struct fetch conn;         /* owned: of one era's */
	char head[HEAD_SIZE];      /* of every request of it */
	char body[BODY_SIZE];      /* of the call */
	char target[BENCH_TARGET]; /* of REST */
	struct own_daemon *d;      /* borrowed */
	struct buf answer;         /* owned */
};

/* A benchmark of failures would be quick. */
static int check(const struct mcp_probe *p, bool is_mcp, struct err *err)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	int r = jv_parse(p->answer.data, p->answer.len, ANSWER_MAX, &doc, err);
	struct jv root = jv_root(doc);
	struct jv got = is_mcp ? jv_get(jv_get(root, "result"), "structuredContent") : root;
	int64_t code = -1;

	if (r < 0)
		return r;
	if (jv_i64(jv_get(got, is_mcp ? "exit_code" : "exitCode"), &code) < 0 || code != 0)
		return err_set(err, EIO, "the run ended with %.150s", buf_str(&p->answer));
	return 0;
}

static int call_once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct mcp_probe *p = self;
	uint64_t began;
	int r;

	bench_nap_ms(THINK_MS);
	began = clock_now_ns();
	r = fetch_want(&p->conn, 200, "POST", "/mcp", p->body, &p->answer, err);
	*ret_ns = clock_now_ns() - began;
	return r < 0 ? r : check(p, true, err);
}

static int rest_once(void *self, uint64_t *ret_ns, struct err *err)
{
	struct mcp_probe *p = self;
	uint64_t began;
	int r;

	bench_nap_ms(THINK_MS);
	began = clock_now_ns();
	r = fetch_want(&p->d->conn, 200, "POST", p->target, RUN_TRUE, &p->answer, err);
	*ret_ns = clock_now_ns() - began;
	return r < 0 ? r : check(p, false, err);
}

static int begin_legacy(struct mcp_probe *p, struct err *err)
{
	int r;

	p->conn.more = TAKES;
	p->conn.answer.keep = SESSION;
	r = fetch_want(&p->conn, 200, "POST", "/mcp", INITIALIZE, &p->answer, err);
	if (r < 0)
		return r;
	r = str_format(p->head, sizeof(p->head),
		       TAKES SESSION ": %s\r\nMCP-Protocol-Version: " LEGACY "\r\n",
		       p->conn.answer.kept);
	p->conn.more = p->head;
	return r < 0 ? err_sys(err, r, "a session")
		     : fetch_want(&p->conn, 202, "POST", "/mcp", INITIALIZED, &p->answer, err);
}

static int begin(struct mcp_probe *p, bool is_modern, const char *box, struct err *err)
{
	int r = fetch_open(&p->conn, p->d->port, p->d->key, err);

	if (r == 0)
		r = str_format(
			p->body, sizeof(p->body),
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
			"\"name\":\"exec\",\"arguments\":{\"command\":\"/bin/true\","
			"\"sandbox_id\":\"%s\"}%s}}",
			box, is_modern ? MODERN_META : "");
	if (r < 0 || !is_modern)
		return r < 0 ? r : begin_legacy(p, err);
	p->conn.more = MODERN_HEAD;
	return 0;
}

static int measure(struct bench *b, struct own_daemon *d, const char *box, bool is_modern,
		   struct err *err)
{
	struct mcp_probe p = { .conn.fd = -1, .d = d };
	const struct probe subject = { "tools/call", call_once, &p };
	const struct probe reference = { "POST execute of the same", rest_once, &p };
	struct bench_row *to = bench_add(b, "mcp",
					 is_modern ? "tools/call exec /bin/true, " MODERN
						   : "tools/call exec /bin/true, " LEGACY);
	int r = begin(&p, is_modern, box, err);

	bench_target(p.target, box, "/execute");
	if (r == 0)
		r = bench_pair(b, to, &subject, &reference, b->n, err);
	fetch_close(&p.conn);
	buf_done(&p.answer);
	if (r < 0)
		return r;
	bench_judge(to, DEMAND, false);
	(void)snprintf(to->note, sizeof(to->note), "%d ms between requests of either", THINK_MS);
	return 0;
}

int bench_mcp(struct bench *b, struct err *err)
{
	_cleanup_(own_daemon_stop) struct own_daemon d = { 0 };
	struct bench_sandbox box;
	int r = bench_daemon_start(&d, err);

	if (r == 0)
		r = bench_sandbox_create(&d, "{}", &box, err);
	if (r == 0)
		r = measure(b, &d, box.id, true, err);
	if (r == 0)
		r = measure(b, &d, box.id, false, err);
	return r == 0 ? bench_sandbox_delete(&d, box.id, err) : r;
}
