"""Our client at a server of 2024-11-05, which speaks HTTP+SSE: found by asking, and only at its own place."""
import json
import os
import queue
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.daemon import BUILD, PATIENCE

CLIENT = BUILD / "tests/mcp/client/mcp-conformance-client"
TOOLS = [{"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
RESULTS = {
    "initialize": {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "old", "version": "1"}},
    "tools/list": {"tools": TOOLS},
    "tools/call": {"content": [{"type": "text", "text": "5"}]},
}


class Old(BaseHTTPRequestHandler):
    """GET /sse says where to post, and brings the answers."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        self.say("endpoint", self.server.endpoint)
        while (message := self.server.answers.get()) is not None:
            self.say("message", json.dumps(message))

    def say(self, event, data):
        self.wfile.write(f"event: {event}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_here = self.path.startswith("/message")
        if is_here:
            self.server.heard.append(body["method"])
            if "id" in body:
                self.server.answers.put({"jsonrpc": "2.0", "id": body["id"], "result": RESULTS[body["method"]]})
        self.send_response(202 if is_here else 404)
        self.send_header("Content-Length", "8")
        self.end_headers()
        self.wfile.write(b"Accepted")


@pytest.fixture
def server():
    running = ThreadingHTTPServer(("127.0.0.1", 0), Old)
    running.daemon_threads = True
    running.answers, running.heard = queue.Queue(), []
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.answers.put(None)
    running.shutdown()
    thread.join()
    running.server_close()


def visit(server):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
    return subprocess.run([CLIENT, f"http://127.0.0.1:{server.server_port}/sse"], env=env, capture_output=True,
                          timeout=PATIENCE, check=False)


@pytest.mark.parametrize("endpoint", ["/message?session=1", "message?session=1", "http://127.0.0.1:{port}/message"])
def test_it_is_spoken_to_in_its_own_way(server, endpoint):
    server.endpoint = endpoint.format(port=server.server_port)
    done = visit(server)
    assert done.returncode == 0, done.stderr
    assert server.heard == ["initialize", "notifications/initialized", "tools/list", "tools/call"]


def test_what_is_elsewhere_is_not_spoken_to(server):
    server.endpoint = f"http://localhost:{server.server_port}/message"
    done = visit(server)
    assert done.returncode == 1 and b"another place" in done.stderr
    assert server.heard == []
