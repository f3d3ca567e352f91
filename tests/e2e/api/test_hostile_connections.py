"""One owner opens everything that can be opened: the others, an admin and health checks go on at once."""
import contextlib
import resource
import socket

import pytest

from support.daemon import Daemon, until
from support.raw import Raw

CONNECTIONS = 256
SHARE = CONNECTIONS // 4  # of one user, unless somebody sets it


@pytest.fixture
def daemon():
    """One whose connections are few enough to be taken by a test."""
    with Daemon("--max-connections", str(CONNECTIONS)) as running:
        yield running


def user(daemon, name):
    key = daemon.api.post("/keys", {"name": "k", "owner": name, "role": "user"}).must(201).json["key"]
    return daemon.api.using(key)


def ask(raw, client, method, path, headers="", body=""):
    raw.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n{headers}\r\n{body}")


class Crowd(contextlib.ExitStack):
    """Requests that do not end, each on a connection of its own."""

    def __init__(self, daemon, client):
        super().__init__()
        self.daemon, self.client, self.all = daemon, client, []

    def add(self, count, method, path, headers="", body=""):
        for _ in range(count):
            raw = self.enter_context(Raw(self.daemon.port, 60))
            ask(raw, self.client, method, path, headers, body)
            self.all.append(raw)

    def statuses(self):
        """What has been answered, by connection; None: nothing yet."""
        found = []
        for raw in self.all:
            raw.socket.setblocking(False)
            try:
                head = raw.socket.recv(4096, socket.MSG_PEEK)
                found.append(int(head.split()[1]) if head else 0)
            except BlockingIOError:
                found.append(None)
            except OSError:
                found.append(0)
            finally:
                raw.socket.settimeout(60)
        return found


def in_flight(daemon):
    text = daemon.api.get("/metrics").must(200).body.decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("holt_http_requests_in_flight"))


SSE = "Accept: text/event-stream\r\n"
SOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


def everything(crowd, box, execution, count):
    """Waits, streams, sockets, uploads, watches and requests to ports that are never answered."""
    base = f"/api/v1{box.path}"
    crowd.add(count, "GET", f"{base}/executions/{execution.id}/wait?timeout=600")
    crowd.add(count, "GET", f"{base}/executions/{execution.id}/output", SSE)
    crowd.add(count, "GET", "/api/v1/events", SSE)
    crowd.add(count, "GET", f"{base}/pty", SOCKET)
    crowd.add(count, "PUT", f"{base}/files/workspace/slow", "Content-Length: 1000000\r\n", "x")
    crowd.add(count, "GET", f"{base}/watch?path=/workspace", SSE)


def serves(daemon, client):
    """Everything that must go on: answers come without waiting for the crowd."""
    for path in ("/healthz", "/readyz"):
        with Raw(daemon.port, 20) as raw:
            raw.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert raw.read_all().startswith(b"HTTP/1.1 200"), path
    daemon.api.get("/keys").must(200)
    box = client.sandbox()
    assert box.run("echo served")["stdout"] == "served\n"
    box.delete().must(204)


def test_one_owner_takes_its_share_and_no_more(daemon):
    mallory, bob = user(daemon, "mallory"), user(daemon, "bob")
    box = mallory.sandbox()
    execution = box.begin("sleep 600")
    with Crowd(daemon, mallory) as crowd:
        everything(crowd, box, execution, SHARE // 8)
        everything(crowd, box, execution, SHARE)
        assert len(crowd.all) > CONNECTIONS
        # What is refused is told so, with a time to come again; what is not goes on.
        until(lambda: sum(1 for status in crowd.statuses() if status == 429) >= len(crowd.all) - SHARE - 40, 60,
              "refusals")
        refused = next(raw for raw, status in zip(crowd.all, crowd.statuses()) if status == 429)
        head = refused.read_until(b"\r\n\r\n")
        assert b"Retry-After: 1" in head and in_flight(daemon) <= SHARE + 1
        serves(daemon, bob)
        mallory.get("/user").must(429)
        text = daemon.api.get("/metrics").must(200).body.decode()
        assert 'holt_denials_total{reason="owner_connections"}' in text
    until(lambda: mallory.get("/user").status == 200, 60, "the share is free again")
    execution.cancel()
    box.delete().must(204)


def test_all_users_together_leave_some_to_others_admins_and_health_checks(daemon):
    bob = user(daemon, "bob")
    waits = []
    for name in ("a", "b", "c", "d", "e"):
        one = user(daemon, name)
        box = one.sandbox()
        waits.append((one, f"/api/v1{box.path}/executions/{box.begin('sleep 600').id}/wait?timeout=600"))
    with contextlib.ExitStack() as stack:
        crowds = [stack.enter_context(Crowd(daemon, one)) for one, _ in waits]
        for crowd, (_, path) in zip(crowds, waits):
            crowd.add(SHARE, "GET", path)
        until(lambda: any(503 in crowd.statuses() for crowd in crowds), 60, "a refusal")
        until(lambda: in_flight(daemon) >= CONNECTIONS - CONNECTIONS // 8, 60, "the crowd")
        serves(daemon, bob)
        assert in_flight(daemon) <= CONNECTIONS - CONNECTIONS // 16
        assert 'holt_denials_total{reason="connections"}' in daemon.api.get("/metrics").must(200).body.decode()


def test_who_says_nothing_keeps_nobody_out(daemon):
    """No key is needed for this: connections without a request, with half a head, and with answers that are not read."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        with contextlib.ExitStack() as stack:
            # An older one of another peer, which is as quiet: the peer with the most gives way.
            quiet = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), 60, ("127.0.0.3", 0)))
            for n in range(2 * CONNECTIONS):
                raw = stack.enter_context(Raw(daemon.port, 60))
                with contextlib.suppress(OSError):
                    raw.send(("", "GET /healthz HTTP/1.1\r\nHost: local", "GET /api/v1/openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 20)[n % 3])
            client = daemon.api.coming_from("127.0.0.2")
            for path in ("/healthz", "/readyz"):
                client.using("").get(path).must(200)
            client.get("/keys").must(200)
            assert 'holt_denials_total{reason="idle_connection"}' in client.get("/metrics").must(200).body.decode()
            quiet.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert quiet.recv(12) == b"HTTP/1.1 200"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_public_port_takes_its_owners_share(daemon):
    """Anybody may call it: what they hold is the owner's, and not all there is."""
    mallory, bob = user(daemon, "mallory"), user(daemon, "bob")
    box = mallory.sandbox("python", resources={"pids": 128})
    box.begin("python3 -c 'import socket,time; s=socket.socket(); s.bind((\"0.0.0.0\",8000)); s.listen(500); time.sleep(600)'")
    mallory.post(f"{box.path}/ports", {"port": 8000, "public": True}).must(200, 201)
    with Crowd(daemon, daemon.api.using("")) as crowd:
        for _ in range(CONNECTIONS):
            raw = crowd.enter_context(Raw(daemon.port, 60))
            raw.send(f"GET /api/v1{box.path}/ports/8000/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
            crowd.all.append(raw)
        until(lambda: 429 in crowd.statuses(), 60, "a refusal")
        serves(daemon, bob)
        assert in_flight(daemon) <= SHARE + 1
