"""holt port forward: ports of a sandbox as ports of this machine."""
import contextlib
import json
import re
import signal
import socket
import subprocess

import pytest

from support.daemon import until

# Says back what it hears, in capitals, and ends when the other side has.
SERVER = r"""
import socket, threading
listener = socket.create_server(("127.0.0.1", 4000))
print("listening", flush=True)
def carry(peer):
    while data := peer.recv(65536):
        peer.sendall(data.upper())
    peer.sendall(b"<end>")
    peer.close()
while True:
    threading.Thread(target=carry, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def served(daemon):
    made = daemon.api.sandbox(resources={"pids": 256})
    started = daemon.api.post(f"{made.path}/executions", {"argv": ["python3", "-c", SERVER], "background": True}).must(202)
    path = f"{made.path}/executions/{started.json['executionId']}/output"
    until(lambda: "listening" in json.dumps(daemon.api.get(path).must(200).json), what="the server inside")
    daemon.api.post(f"{made.path}/ports", {"port": 4000}).must(201)
    yield made
    made.delete().must(204)


@contextlib.contextmanager
def forward(cli, box, *args, code=0):
    """The running command and its local ports; ended by Ctrl-C at last."""
    process = cli.begin("port", "forward", box, *args, stdin=subprocess.DEVNULL)
    try:
        wanted = [a for a in args if not a.startswith("-")]
        lines = [process.stdout.readline().decode() for _ in wanted]
        process.ports = [int(re.match(r"127\.0\.0\.1:(\d+) -> ", line)[1]) for line in lines]
        yield process
        process.send_signal(signal.SIGINT)
        process.said = process.communicate(timeout=60)[1].decode()
        assert process.returncode == code, process.said
    finally:
        process.kill()
        process.wait()


def dial(port):
    return socket.create_connection(("127.0.0.1", port), 60)


def rest(s):
    got = b""
    while data := s.recv(65536):
        got += data
    return got


def test_each_connection_is_one_inside(cli, served):
    with forward(cli, served.id, "0:4000") as running:
        first, second = dial(running.ports[0]), dial(running.ports[0])
        second.sendall(b"two")
        assert second.recv(3) == b"TWO"
        first.sendall(b"one")
        assert first.recv(3) == b"ONE"
        first.shutdown(socket.SHUT_WR)
        assert rest(first) == b"<end>"
        second.sendall(b"still")
        assert second.recv(5) == b"STILL"
        second.close()
    assert running.said.count("port 4000: a connection from 127.0.0.1:") == 2


def test_megabytes_arrive_whole(cli, served):
    with forward(cli, served.id, "0:4000") as running:
        s = dial(running.ports[0])
        data = b"abcdefgh" * (1 << 17)
        got = b""
        for at in range(0, len(data), 1 << 16):
            s.sendall(data[at:at + (1 << 16)])
            while len(got) < at + (1 << 15):
                got += s.recv(1 << 16)
        s.shutdown(socket.SHUT_WR)
        assert got + rest(s) == data.upper() + b"<end>"


def test_a_connection_that_fails_ends_no_other(cli, daemon, served):
    daemon.api.post(f"{served.path}/ports", {"port": 4001}).must(201)
    with forward(cli, served.id, "0:4000", "0:4001") as running:
        good, bad = dial(running.ports[0]), dial(running.ports[1])
        assert rest(bad) == b""
        good.sendall(b"on")
        assert good.recv(2) == b"ON"
        again = dial(running.ports[1])
        assert rest(again) == b""
        good.sendall(b"still on")
        assert good.recv(8) == b"STILL ON"
    assert running.said.count("port 4001: nothing listens there") == 2


def test_ctrl_c_ends_what_is_open(cli, served):
    with forward(cli, served.id, "0:4000") as running:
        s = dial(running.ports[0])
        s.sendall(b"x")
        assert s.recv(1) == b"X"
    with contextlib.suppress(ConnectionResetError):
        assert s.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        dial(running.ports[0])


def test_what_is_closed_stays_closed_unless_that_is_asked_for(cli, daemon, box):
    said = cli.fails("port", "forward", box, "0:5000")
    assert any("port 5000 is not exposed" in line and "--expose" in line for line in said)
    ports = lambda: [p["port"] for p in cli.json("port", "ls", box, "--json")["items"]]
    cli.must("port", "expose", box, "5001")
    with forward(cli, box, "--expose", "0:5000", "0:5001") as running:
        assert sorted(ports()) == [5000, 5001] and len(running.ports) == 2
    assert ports() == [5001]


def test_it_says_where_as_json(cli, served):
    process = cli.begin("port", "forward", served.id, "0:4000", "--json", stdin=subprocess.DEVNULL)
    said = json.loads(process.stdout.readline())
    assert [(one["address"], one["port"]) for one in said] == [("127.0.0.1", 4000)]
    dial(said[0]["local"]).close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.mark.parametrize("text", ["0", "70000", "x", "1:", ":1", "1:0", "1:2:3", "0x10", "99999:80", "-1:80"])
def test_what_is_no_port_is_refused(cli, served, text):
    said = cli.fails("port", "forward", served.id, "--", text)
    assert any("want PORT or LOCAL:PORT" in line for line in said), said


def test_a_local_port_that_is_taken_is_told(cli, served):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        said = cli.fails("port", "forward", served.id, f"{number}:4000")
        assert any(f"127.0.0.1:{number}: Address already in use" in line for line in said), said


def test_a_sandbox_that_is_not_there_is_told(cli):
    assert any("there is no sandbox 'nowhere'" in line for line in cli.fails("port", "forward", "nowhere", "0:80"))
