"""A call whose client leaves while it waits to be let in takes nothing of its owner's share for good."""
import contextlib
import os
import signal
import socket
import struct
import threading

import pytest

from support.daemon import Daemon, until
from support.e2b_plain import Plane, Sandbox, control
from support.provider import AUDIENCE, ISSUER, Provider
from support.raw import Raw

SHARE = 4
OTHERS = 3  # of these: for who has no key of the owner


@pytest.fixture
def daemon():
    with Daemon("--max-connections-user", str(SHARE)) as running:
        yield running


def user(daemon, name):
    key = daemon.api.post("/keys", {"name": "k", "owner": name, "role": "user"}).must(201).json["key"]
    return daemon.api.using(key)


def send(daemon, box):
    raw = Raw(daemon.port, 60)
    raw.send(f"GET /files?path=/etc/hostname HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: {box.id}\r\n"
             f"X-Access-Token: {box.made['envdAccessToken']}\r\n\r\n")
    return raw


def leave(raw):
    """At once, with a reset: the server sees it without reading."""
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def is_running(box):
    return box.control.ask("GET", f"/sandboxes/{box.id}").must(200).json["state"] == "running"


def test_clients_that_leave_while_a_sandbox_wakes_leave_their_share(daemon):
    mallory = user(daemon, "mallory")
    box = Sandbox(mallory, autoPause=True, autoResume={"enabled": True})
    for _ in range(2 * SHARE):
        box.pause()
        leave(send(daemon, box))
        until(lambda: is_running(box), what="the wake")
    mallory.get("/user").must(200)
    box.kill()


def answered(raws):
    """The statuses that have come."""
    found = []
    for raw in raws:
        raw.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            found.append(int(raw.socket.recv(4096, socket.MSG_PEEK).split()[1]))
    return found


def test_who_waits_for_a_sandbox_to_wake_takes_its_owners_share(daemon):
    mallory = user(daemon, "mallory")
    box = Sandbox(mallory, autoPause=True, autoResume={"enabled": True})
    box.pause()
    launcher = daemon.parts()["launcher"]
    os.kill(launcher, signal.SIGSTOP)
    try:
        with contextlib.ExitStack() as stack:
            raws = [stack.enter_context(send(daemon, box)) for _ in range(2 * SHARE)]
            until(lambda: answered(raws).count(429) == 2 * SHARE - OTHERS, what="the refusals")
            os.kill(launcher, signal.SIGCONT)
            until(lambda: len(answered(raws)) == len(raws), what="the answers")
    finally:
        with contextlib.suppress(ProcessLookupError):  # one that hangs for long is replaced
            os.kill(launcher, signal.SIGCONT)
    until(lambda: mallory.get("/user").status == 200, what="the share's end")
    box.kill()


def hold(daemon, stack, path, headers=""):
    """Requests whose bodies do not come; once all are answered that will be."""
    raws = [stack.enter_context(Raw(daemon.port, 60)) for _ in range(2 * SHARE)]
    for raw in raws:
        raw.send(f"POST /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: 100\r\n\r\n{{")
    until(lambda: answered(raws).count(429) == 2 * SHARE - OTHERS, what="the refusals")


LISTEN = "import socket,time; s=socket.socket(); s.bind((\"0.0.0.0\",8000)); s.listen(500); time.sleep(600)"


def test_visitors_of_a_port_leave_its_owner_a_share(daemon):
    anna = user(daemon, "anna")
    box = anna.sandbox("python", resources={"pids": 128})
    box.begin(f"python3 -c '{LISTEN}'")
    anna.post(f"{box.path}/ports", {"port": 8000, "public": True}).must(200, 201)
    until(lambda: anna.get(f"{box.path}/ports").must(200).json["listening"], what="the server inside")
    with contextlib.ExitStack() as stack:
        hold(daemon, stack, f"{box.path}/ports/8000/")
        anna.get("/user").must(200)
        anna.delete(box.path).must(204)


def test_tokens_of_a_sandbox_leave_its_owner_a_share(daemon):
    """Programs inside may hold one, and must not keep the owner from ending them."""
    anna = user(daemon, "anna")
    box = anna.sandbox()
    token = anna.post(f"{box.path}/tokens", {}).must(201).json["key"]
    with contextlib.ExitStack() as stack:
        hold(daemon, stack, f"{box.path}/execute", f"Authorization: Bearer {token}\r\n")
        anna.get("/user").must(200)
        anna.delete(box.path).must(204)


def test_a_disabled_user_s_token_wakes_nothing(daemon):
    anna = user(daemon, "anna")
    box = Sandbox(anna, autoPause=True, autoResume={"enabled": True})
    box.pause()
    daemon.api.post("/users", {"name": "anna", "status": "disabled"}).must(201)
    with send(daemon, box) as raw:
        assert b" 401 " in raw.read_until(b"\r\n")
    assert daemon.api.get(f"/sandboxes/{box.id}").must(200).json["status"] == "paused"
    daemon.api.delete(f"/sandboxes/{box.id}").must(204)


def upload_path(client):
    url = control(client).ask("GET", f"/templates/mine/files/{64 * '0'}").must(201).json["url"]
    return url[url.index("/templates/"):]


def test_uploads_by_a_signed_address_take_their_owners_share(daemon):
    mallory = user(daemon, "mallory")
    path = upload_path(mallory)
    with contextlib.ExitStack() as stack:
        raws = [stack.enter_context(Raw(daemon.port, 60)) for _ in range(2 * SHARE)]
        for raw in raws:
            raw.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx")
        until(lambda: answered(raws).count(429) == SHARE, what="the refusals")
    until(lambda: mallory.get("/user").status == 200, what="the share's end")


def test_an_address_for_an_upload_ends_with_its_key_and_its_owner(daemon):
    def put(path):
        return Plane(daemon.api).ask("PUT", path, body=b"x").status

    made = daemon.api.post("/keys", {"name": "k", "owner": "mallory", "role": "user"}).must(201).json
    path = upload_path(daemon.api.using(made["key"]))
    other = upload_path(user(daemon, "mallory"))
    assert put(path) == 200
    assert put(path.replace(f"&by={made['id']}", "")) == 401
    daemon.api.delete(f"/keys/{made['id']}").must(204)
    assert put(path) == 401 and put(other) == 200
    daemon.api.post("/users", {"name": "mallory", "status": "disabled"}).must(201)
    assert put(other) == 401


def in_flight(daemon):
    text = daemon.api.get("/metrics").must(200).body.decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("holt_http_requests_in_flight"))


def test_clients_that_leave_while_a_token_s_key_is_looked_for_leave_their_share():
    may_answer = threading.Event()
    with Provider() as provider, Daemon("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-jwks", provider.url, "--jwt-refresh", "1s",
                                        "--max-connections-user", str(SHARE)) as daemon:
        until(lambda: provider.asked > 0, what="the first look")
        write, asked = provider.jwks, provider.asked
        provider.jwks = lambda: may_answer.wait(30) and write()
        provider.add("EdDSA", "new")
        token = provider.keys[0].token("zoe")

        def ask():
            raw = Raw(daemon.port, 60)
            raw.send(f"GET /api/v1/user HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
            return raw

        raws = []
        until(lambda: raws.append(ask()) or provider.asked > asked, what="a look for the key")
        raws += [ask() for _ in range(2 * SHARE)]
        until(lambda: in_flight(daemon) > 2 * SHARE, what="the waiting")
        for raw in raws:
            leave(raw)
        until(lambda: in_flight(daemon) == 1, what="the leaving")
        may_answer.set()
        until(lambda: daemon.api.using(token).get("/user").status == 200, what="a free share")
