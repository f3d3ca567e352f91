"""`holt top`: a live table on a terminal, one look for a program."""
import http.server
import re
import signal
import threading

import pytest


@pytest.fixture
def api(daemon):
    return daemon.api


@pytest.fixture
def boxes(api):
    made = [api.sandbox(name=name) for name in ("alpha-top", "beta-top")]
    yield made
    for one in made:
        one.delete().must(204, 404)


def test_without_a_terminal_it_prints_once(cli, boxes):
    lines = cli.must("top").splitlines()
    assert re.match(r"sandboxes \d+, running \d+; executions \d+; cpu [\d.]+%; memory ", lines[0])
    assert lines[1].startswith("pool ") and " ready" in lines[1]
    head = next(line for line in lines if line.startswith("ID "))
    assert head.split()[:6] == ["ID", "NAME", "STATUS", "TEMPLATE", "CPU%", "MEMORY"]
    row = next(line for line in lines if "alpha-top" in line)
    assert boxes[0].id in row and " running " in row and " / 256 MiB" in row
    assert "\x1b" not in "".join(lines)


def test_a_program_gets_json(cli, boxes):
    rows = {row["id"]: row for row in cli.json("top", "--json")}
    row = rows[boxes[1].id]
    assert row["name"] == "beta-top" and row["status"] == "running" and row["memoryMax"] == 256 << 20
    assert row["cpuPercent"] is None or row["cpuPercent"] >= 0
    assert row["executions"] == 0


def test_rows_are_sorted(cli, boxes):
    names = [row["name"] for row in cli.json("top", "--json", "--sort", "name") if row["name"]]
    assert names == sorted(names)
    memory = [row["memory"] or 0 for row in cli.json("top", "--json", "--sort", "memory")]
    assert memory == sorted(memory, reverse=True)
    assert "one of cpu, memory, name" in cli.fails("top", "--sort", "colour")[0]


def test_on_a_terminal_it_is_drawn_again(cli, api, boxes):
    with cli.terminal("top", "--interval", "200ms") as terminal:
        terminal.wait_for(rb"\x1b\[\?1049h")
        terminal.wait_for(rb"alpha-top")
        terminal.wait_for(rb"q quit")
        third = api.sandbox(name="gamma-top")
        terminal.wait_for(rb"gamma-top")
        third.delete().must(204)
        terminal.wait_for(rb"\x1b\[H((?!gamma-top|\x1b\[J)[\s\S])*\x1b\[J")  # a whole screen without it
        terminal.type(b"n")
        terminal.wait_for(rb"alpha-top[\s\S]*beta-top")
        terminal.type(b"q")
        terminal.wait_for(rb"\x1b\[\?25h\x1b\[\?1049l")
        assert terminal.wait() == 0
        assert terminal.now() == terminal.before


def test_the_screen_follows_the_window(cli, boxes):
    with cli.terminal("top", "--interval", "1h", rows=30, cols=120) as terminal:
        terminal.wait_for(rb"beta-top")
        terminal.wait_for(rb"q quit")
        terminal.resize(3, 20)
        screen = terminal.wait_for(rb"\x1b\[H([\s\S]*?)\x1b\[J")[1]
        lines = screen.replace(b"\x1b[K", b"").split(b"\r\n")
        assert len(lines) == 3 and all(len(line) <= 20 for line in lines)
        terminal.type(b"q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("way", ["key", "signal"])
def test_ctrl_c_leaves_the_terminal_as_it_was(cli, way):
    with cli.terminal("top", "--interval", "1h", controls=True) as terminal:
        terminal.wait_for(rb"q quit")
        assert terminal.now() != terminal.before
        if way == "key":
            terminal.type(b"\x03")
        else:
            terminal.process.send_signal(signal.SIGTERM)
        terminal.wait_for(rb"\x1b\[\?25h\x1b\[\?1049l")
        assert terminal.wait() == (0 if way == "key" else 128 + signal.SIGTERM)
        assert terminal.now() == terminal.before


class Handler(http.server.BaseHTTPRequestHandler):
    """A daemon that is ill for a while."""

    def do_GET(self):
        body = b'{"items":[],"nextCursor":null}'
        self.send_response(503 if self.server.is_ill else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_it_goes_on_when_the_daemon_comes_again(cli):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.is_ill = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ill = cli.with_env(HOLT_URL=f"http://127.0.0.1:{server.server_port}")
        with ill.terminal("top", "--interval", "100ms") as terminal:
            terminal.wait_for(rb"sandboxes 0, [\s\S]*q quit")
            server.is_ill = True
            terminal.wait_for(rb"\x1b\[H((?!q quit|\x1b\[J)[\s\S])*503[^\x1b]*\x1b\[J")  # what is wrong, below the last good look
            server.is_ill = False
            terminal.wait_for(rb"q quit")
            terminal.type(b"q")
            assert terminal.wait() == 0
        server.shutdown()


def test_who_may_not_see_pools_does_without(cli, api):
    key = api.post("/keys", {"name": "top", "role": "viewer", "owner": "viewer-top"}).must(201).json
    lines = cli.with_env(HOLT_API_KEY=key["key"]).must("top").splitlines()
    assert lines[0].startswith("sandboxes 0,") and not any(line.startswith("pool") for line in lines)
    api.delete(f"/keys/{key['id']}").must(204)


def test_what_is_wrong_is_said_at_once(cli):
    assert cli.with_env(HOLT_URL="http://127.0.0.1:1").fails("top", code=125)
    with cli.with_env(HOLT_URL="http://127.0.0.1:1").terminal("top") as terminal:
        terminal.wait_for(rb"holt: ")
        assert terminal.wait() == 125
        assert terminal.now() == terminal.before
