"""`holt mcp`: MCP on standard input and output, in front of a daemon or of one of its own."""
import json
import os
import pathlib
import queue
import signal
import subprocess
import tempfile
import threading

import pytest

from support import machine
from support.cli import Cli
from support.daemon import HOLT, PATIENCE, Daemon, until
from support.mcp import LEGACY, META, MODERN

NOBODY = "http://127.0.0.1:1"


class Stdio:
    """A client that has started its server. Every line of the server's must be one message."""

    def __init__(self, *args, env, **more):
        self.process = subprocess.Popen([HOLT, "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, **more)
        self.number = 0
        self.lines = queue.Queue()
        self.complaints = []
        for reader in (self.read_lines, self.read_complaints):
            threading.Thread(target=reader, daemon=True).start()

    def read_lines(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def read_complaints(self):
        self.complaints.extend(self.process.stderr)

    def write(self, message):
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def next(self, wanted=lambda message: True):
        """The next message that is wanted; others are passed over."""
        while True:
            message = self.lines.get(timeout=PATIENCE)
            assert message is not None, self.complaints
            if wanted(message):
                return message

    def begin(self, method, params=None, is_modern=False, **meta):
        self.number += 1
        params = dict(params or {})
        if is_modern:
            params["_meta"] = {META + "protocolVersion": MODERN, META + "clientCapabilities": {},
                               META + "clientInfo": {"name": "plain", "version": "1"}, **meta}
        self.write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, number):
        message = self.next(lambda message: message.get("id") == number and "method" not in message)
        assert "error" not in message, message
        return message["result"]

    def call(self, method, params=None, **more):
        return self.answer(self.begin(method, params, **more))

    def notify(self, method, params=None):
        self.write({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def initialize(self, client=None):
        result = self.call("initialize", {"protocolVersion": LEGACY, "capabilities": client or {},
                                          "clientInfo": {"name": "plain", "version": "1"}})
        self.notify("notifications/initialized")
        return result

    def tool(self, name, /, is_modern=False, **arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments}, is_modern=is_modern)

    def end(self):
        """The client is done: the rest of what was said, and the exit code."""
        self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE)
        rest = []
        while (message := self.lines.get(timeout=PATIENCE)) is not None:
            rest.append(message)
        return code, rest


@pytest.fixture
def start(daemon):
    started = []

    def begin(*args, cli=None):
        started.append(Stdio(*args, env=(cli or Cli(daemon)).env))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()


def output(result):
    return json.dumps(result["content"])


def test_a_legacy_client_is_served(start):
    peer = start()
    assert peer.initialize()["protocolVersion"] == LEGACY
    assert peer.call("ping") == {}
    assert "exec" in [tool["name"] for tool in peer.call("tools/list")["tools"]]
    assert "42" in output(peer.tool("exec", command="echo $((6 * 7)) > /workspace/n; cat /workspace/n"))
    assert "42" in output(peer.tool("exec", command="cat /workspace/n")), "the sandbox is the session's"
    assert peer.end() == (0, [])
    assert peer.complaints == []


def test_a_modern_client_is_served(start):
    peer = start()
    assert MODERN in peer.call("server/discover", is_modern=True)["supportedVersions"]
    result = peer.tool("exec", is_modern=True, command="echo $((6 * 7))")
    assert result["resultType"] == "complete" and "42" in output(result)
    assert peer.end() == (0, [])


def lines_of(*messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "plain", "version": "1"}}}
GREETED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
EXEC = {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "exec", "arguments": {"command": "sleep 0.3; echo $((6 * 7))"}}}


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_all_at_once_and_then_the_end_gets_every_answer(daemon, tmp_path, kind):
    text = lines_of(HELLO, GREETED, EXEC)[:-1]  # the last line has no end
    if kind == "pipe":
        done = Cli(daemon).run("mcp", input=text)
    else:
        file = tmp_path / "in"
        file.write_bytes(text)
        with open(file, "rb") as opened, open(tmp_path / "out", "wb") as out:
            done = subprocess.run([HOLT, "mcp"], stdin=opened, stdout=out, stderr=subprocess.PIPE,
                                  env=Cli(daemon).env, timeout=PATIENCE, check=False)
        done.stdout = (tmp_path / "out").read_bytes()
    assert done.returncode == 0, done
    got = {message["id"]: message["result"] for message in map(json.loads, done.stdout.splitlines())}
    assert got[1]["protocolVersion"] == LEGACY and "42" in output(got[2])


def test_a_batch_is_split(start):
    peer = start()
    peer.initialize()
    peer.write([{"jsonrpc": "2.0", "id": "a", "method": "ping"}, {"jsonrpc": "2.0", "id": "b", "method": "ping"}])
    assert {peer.next()["id"], peer.next()["id"]} == {"a", "b"}


def test_what_is_no_message_is_refused_and_what_follows_is_not(start):
    peer = start()
    peer.initialize()
    peer.write(b"nonsense")
    assert peer.next()["error"]["code"] == -32700
    peer.write(b"[]")
    assert peer.next()["error"]["code"] == -32600
    peer.write(b'{"jsonrpc":"2.0","id":"' + b"x" * (17 << 20) + b'","method":"ping"}')
    refused = peer.next()
    assert refused["id"] is None and refused["error"]["code"] == -32600
    peer.write(b"")
    assert peer.call("ping") == {}


def sleepers(number):
    wanted = b"sleep\0%d\0" % number
    return [pid for pid in machine.pids() if machine.command_of(pid) == wanted]


@pytest.mark.parametrize("is_modern,number", [(True, 917001), (False, 917002)])
def test_what_is_cancelled_ends_in_the_box(start, is_modern, number):
    peer = start()
    if not is_modern:
        peer.initialize()
    ident = peer.begin("tools/call", {"name": "exec", "arguments": {"command": f"sleep {number}"}},
                       is_modern=is_modern)
    until(lambda: sleepers(number), what="the start")
    peer.notify("notifications/cancelled", {"requestId": ident})
    until(lambda: not sleepers(number), what="the end")
    assert peer.end() == (0, []), "nobody waits for its answer"


def test_a_client_that_leaves_while_it_waits_ends_what_runs(start):
    peer = start()
    peer.initialize()
    peer.begin("tools/call", {"name": "exec", "arguments": {"command": "sleep 917003"}})
    until(lambda: sleepers(917003), what="the start")
    peer.process.send_signal(signal.SIGTERM)
    assert peer.process.wait(timeout=PATIENCE) == 0
    until(lambda: not sleepers(917003), what="the end of its session")


def test_a_stream_of_notices_is_passed_on_and_ends_with_the_input(start):
    peer = start()
    ident = peer.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, is_modern=True)
    first = peer.next()
    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["_meta"][META + "subscriptionId"] == ident
    assert peer.end()[0] == 0


def test_progress_comes_before_the_result(start):
    peer = start()
    peer.tool("exec", is_modern=True, command="rm -f /workspace/go")
    ident = peer.begin("tools/call", {"name": "exec", "arguments": {
        "command": "until [ -e /workspace/go ]; do sleep 0.1; done; echo two"}}, is_modern=True, progressToken="p")
    progress = peer.next(lambda message: message.get("method") == "notifications/progress")
    assert progress["params"]["progressToken"] == "p"
    peer.begin("tools/call", {"name": "exec", "arguments": {"command": "touch /workspace/go"}}, is_modern=True)
    assert "two" in output(peer.answer(ident))


def test_the_server_of_one_sandbox(start, daemon, api):
    box = Cli(daemon).must("sandbox", "create", "--template", "bash").strip()
    peer = start("--sandbox", box)
    peer.initialize()
    result = peer.tool("exec", command="echo here > /workspace/mark")
    assert result["structuredContent"]["sandbox_id"] == box
    assert peer.end()[0] == 0
    assert Cli(daemon).must("exec", box, "--", "cat", "/workspace/mark") == "here\n"
    Cli(daemon).must("sandbox", "rm", box)


def test_a_server_asks_and_is_answered_through_it(fixtures):
    env = dict(os.environ, HOLT_URL=f"http://127.0.0.1:{fixtures.port}", HOLT_API_KEY=fixtures.key)
    peer = Stdio(env=env)
    peer.initialize({"elicitation": {}, "sampling": {}})
    ident = peer.begin("tools/call", {"name": "test_elicitation", "arguments": {"message": "who?"}})
    asked = peer.next(lambda message: message.get("method") == "elicitation/create")
    peer.write({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
    assert "decline" in output(peer.answer(ident))
    # One that leaves instead of answering does not hold anything up.
    peer.begin("tools/call", {"name": "test_elicitation", "arguments": {"message": "who?"}})
    peer.next(lambda message: message.get("method") == "elicitation/create")
    assert peer.end()[0] == 0


def test_a_key_that_is_none_is_an_error_of_the_request(start, daemon):
    peer = start(cli=Cli(daemon, HOLT_API_KEY_FILE=None, HOLT_API_KEY="holt_nobody"))
    peer.write(HELLO)
    refused = peer.next()
    assert refused["id"] == 1 and refused["error"]["code"] < 0
    assert peer.end()[0] == 0


# --- without a daemon --------------------------------------------------------------------------


def private(place, *args):
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOLT_")}
    return Stdio(*args, env=dict(env, HOLT_URL=NOBODY, TMPDIR=str(place)))


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory(prefix="holt-e2e.") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # the daemon is another account when root starts it
        yield folder


def test_without_a_daemon_it_has_one_of_its_own(place):
    peer = private(place)
    peer.initialize()
    assert "42" in output(peer.tool("exec", command="echo $((6 * 7)); sleep 917004 &"))
    assert [entry.name[:9] for entry in place.iterdir()] == ["holt-mcp-"]
    assert peer.end() == (0, [])
    assert any(b"one is started" in line for line in peer.complaints)
    assert list(place.iterdir()) == []
    assert not sleepers(917004)


def test_its_own_daemon_ends_also_when_it_is_killed(place):
    peer = private(place)
    peer.initialize()
    peer.tool("exec", command="sleep 917005 &")
    peer.process.kill()
    peer.process.wait()
    until(lambda: not list(place.iterdir()), what="the removal")
    assert not sleepers(917005)


def test_told_not_to_it_starts_none(place):
    peer = private(place, "--no-start")
    assert peer.end() == (125, [])
    assert any(b"127.0.0.1:1" in line for line in peer.complaints)
    assert list(place.iterdir()) == []


def test_for_a_sandbox_it_starts_none(place):
    peer = private(place, "--sandbox", "build")
    assert peer.end() == (125, [])
    assert list(place.iterdir()) == []


# --- a host that comes back ---------------------------------------------------------------------


@pytest.mark.parametrize("is_modern", [True, False])
def test_files_are_there_when_the_host_starts_it_again(start, is_modern):
    def begun():
        peer = start()
        if not is_modern:
            peer.initialize()
        return peer
    first = begun()
    first.tool("exec", is_modern=is_modern, command="echo kept > /workspace/again")
    assert first.end()[0] == 0
    assert "kept" in output(begun().tool("exec", is_modern=is_modern, command="cat /workspace/again"))


# --- a daemon that comes back ------------------------------------------------------------------


@pytest.mark.parametrize("is_modern", [True, False])
def test_a_restart_of_the_daemon_is_not_noticed(is_modern):
    with Daemon() as daemon:
        peer = Stdio(env=Cli(daemon).env)
        if not is_modern:
            peer.initialize()
        peer.tool("exec", is_modern=is_modern, command="echo kept > /workspace/mark")
        daemon.flags += ["--listen", f"127.0.0.1:{daemon.port}"]
        daemon.stop()
        ident = peer.begin("tools/list", is_modern=is_modern)
        assert "error" in peer.next(lambda message: message.get("id") == ident), "nobody is there"
        daemon.start()
        assert "kept" in output(peer.tool("exec", is_modern=is_modern, command="cat /workspace/mark"))
        assert peer.end()[0] == 0
