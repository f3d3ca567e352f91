"""Servers inside that stall, break off and lie, and clients that try to smuggle: what each side sees of it."""
import concurrent.futures
import contextlib
import http.client
import json
import pathlib

import pytest
import websocket

from support.daemon import Daemon, until
from support.raw import Raw, statuses

PORT = 3000
SERVER = (pathlib.Path(__file__).parents[1] / "support" / "box_server.py").read_bytes()


def serve(made):
    """Starts the server inside, and exposes it."""
    made.api.put(f"{made.path}/files/workspace/server.py", SERVER).must(200, 201)
    started = made.api.post(f"{made.path}/executions", {
        "argv": ["python3", "/workspace/server.py", str(PORT), "127.0.0.1"], "background": True}).must(202).json
    output = f"{made.path}/executions/{started['executionId']}/output"
    until(lambda: "listening" in json.dumps(made.api.get(output).must(200).json), what="the server inside")
    made.api.post(f"{made.path}/ports", {"port": PORT}).must(201)
    made.prefix = f"/api/v1{made.path}/ports/{PORT}"
    made.headers = {"Authorization": f"Bearer {made.api.key}"}
    return made


@pytest.fixture(scope="module")
def box(daemon):
    made = serve(daemon.api.sandbox(resources={"memory": "512Mi", "cpu": 2, "pids": 512}))
    yield made
    made.delete().must(204)


def ask(box, path, method="GET", body=None, **headers):
    connection = box.api.connect(60)
    with contextlib.closing(connection):
        connection.request(method, box.prefix + path, body=body, headers={**box.headers, **headers})
        answer = connection.getresponse()
        answer.data = answer.read()
        return answer


def message(answer):
    return json.loads(answer.data)["error"]["message"]


def raw(box):
    return Raw(box.api.target.port, 60)


def head(box, line, *more):
    return "\r\n".join([line.replace("{}", box.prefix), "Host: x", f"Authorization: {box.headers['Authorization']}", *more, "", ""])


# --- time ----------------------------------------------------------------------------------------


def late(box, name):
    answer = ask(box, f"/raw/{name}")
    return answer.status, message(answer)


def cut(box, name):
    connection = box.api.connect(60)
    with contextlib.closing(connection):
        connection.request("GET", f"{box.prefix}/raw/{name}", headers=box.headers)
        answer = connection.getresponse()
        try:
            answer.read()
            return answer.status, "whole"
        except (http.client.IncompleteRead, ConnectionError):
            return answer.status, "cut"


def untaken(box, name):
    """The server reads the head and no more; the client sends what goes, and waits."""
    with raw(box) as client:
        client.send(head(box, f"POST {{}}/raw/{name} HTTP/1.1", "Content-Length: 100000000"))
        client.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.socket.send(b"x" * 65536)
        client.socket.settimeout(60)
        data = client.read_until(b"}}")
    return statuses(data)[0], json.loads(data.partition(b"\r\n\r\n")[2])["error"]["message"]


def quiet(box, name):
    ws = websocket.create_connection(f"ws://127.0.0.1:{box.api.target.port}{box.prefix}/{name}", timeout=60,
                                     header=[f"Authorization: {box.headers['Authorization']}"])
    try:
        while True:
            ws.recv()
    except (websocket.WebSocketConnectionClosedException, ConnectionError):
        return 101, "cut"


WITHIN = "port 3000: its answer stopped within the head"
LATE = [
    (late, "deaf", 504, "port 3000: there was no answer in time"),
    (late, "stall-interim", 504, WITHIN),
    (late, "stall-head", 504, WITHIN),
    (late, "drip-head", 504, WITHIN),
    (untaken, "deaf", 504, "port 3000: the request was not taken in time"),
    # Once an answer has begun, all that can be said is that it is not whole.
    (cut, "stall-body", 200, "cut"),
    (cut, "stall-chunk", 200, "cut"),
    (cut, "stall-until-end", 200, "cut"),
    (quiet, "ws", 101, "cut"),
]


def test_a_server_that_stops_on_the_way_is_not_waited_for():
    """All at once: each takes as long as the daemon's patience, which is enough for a slow machine to begin."""
    with Daemon(env={"HOLT_PORT_ANSWER_TIMEOUT": "4s", "HOLT_PORT_IDLE_TIMEOUT": "4s"}) as daemon:
        box = serve(daemon.api.sandbox(resources={"memory": "512Mi", "cpu": 2, "pids": 512}))
        with concurrent.futures.ThreadPoolExecutor(len(LATE)) as pool:
            seen = list(pool.map(lambda row: (*row[:2], *row[0](box, row[1])), LATE))
        assert seen == LATE


# --- half of a connection ------------------------------------------------------------------------


def test_a_server_may_end_its_side_behind_the_answer(box):
    for _ in range(3):  # the connection is not used again
        answer = ask(box, "/raw/half-closed")
        assert (answer.status, answer.data) == (200, b"ok")
    answer = ask(box, "/raw/half-closed-head")
    assert answer.status == 502 and "closed" in message(answer)


def test_a_client_that_ends_its_side_has_left(box):
    """As with other proxies: who cannot be told from one that is gone is not waited for."""
    with raw(box) as client:
        client.send(head(box, "GET {}/raw/deaf HTTP/1.1"))
        client.half_close()
        assert client.read_all() == b""


def test_an_answer_that_comes_before_the_request_is_over_arrives(box):
    for _ in range(5):
        answer = ask(box, "/raw/early", "POST", b"x" * 3_000_000)
        assert (answer.status, answer.data) == (413, b"stop")
    assert ask(box, "/after").status == 200


# --- answers with and without a body -------------------------------------------------------------


@pytest.mark.parametrize("name, status, body", [("205", 205, b""), ("204-body", 204, b""), ("head-body", 200, b"evil")])
def test_answers_have_the_body_that_their_status_allows(box, name, status, body):
    answer = ask(box, f"/raw/{name}")
    assert (answer.status, answer.data) == (status, body)
    assert ask(box, "/after").status == 200


def test_to_head_there_is_no_body_whatever_the_server_sends(box):
    with raw(box) as client:
        client.send(head(box, "HEAD {}/raw/head-body HTTP/1.1") + head(box, "GET {}/next HTTP/1.1", "Connection: close"))
        answer = client.read_all()
    assert statuses(answer) == [200, 200] and b"\r\n\r\nevil" not in answer
    assert answer.index(b"Content-Length: 4") < answer.index(b'"path": "/next"')


def test_an_upgrade_that_is_refused_is_an_answer_like_others(box):
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        websocket.create_connection(f"ws://127.0.0.1:{box.api.target.port}{box.prefix}/raw/no-upgrade", timeout=60,
                                    header=[f"Authorization: {box.headers['Authorization']}"])
    assert refused.value.status_code == 403
    answer = ask(box, "/here", Connection="Upgrade", Upgrade="h2c")
    seen = {name.lower() for name, _ in json.loads(answer.data)["headers"]}
    assert answer.status == 200 and not seen & {"upgrade", "connection"}


@pytest.mark.parametrize("name", ["gzip-chunked", "chunked-twice", "xchunked", "space-name", "no-name", "bare-lf"])
def test_an_answer_that_could_be_read_in_two_ways_is_a_bad_gateway(box, name):
    answer = ask(box, f"/raw/{name}")
    assert answer.status == 502 and message(answer).startswith(f"port {PORT}: "), answer.data
    assert ask(box, "/after").status == 200


@pytest.mark.parametrize("name", ["big-chunk", "chunk-junk", "many-trailers"])
def test_a_body_that_is_none_is_cut(box, name):
    with pytest.raises((http.client.IncompleteRead, http.client.BadStatusLine, ConnectionError)):
        ask(box, f"/raw/{name}")
    assert ask(box, "/after").status == 200


# --- requests that would be two ------------------------------------------------------------------

EVIL = "GET {}/evil HTTP/1.1\r\nHost: x\r\n\r\n"

SMUGGLES = {
    "both lengths": ("POST {}/a HTTP/1.1", ["Content-Length: 4", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
    "both, other order": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: chunked", "Content-Length: 4"], "0\r\n\r\n"),
    "two lengths": ("POST {}/a HTTP/1.1", ["Content-Length: 0", "Content-Length: 4"], "body"),
    "a list of lengths": ("POST {}/a HTTP/1.1", ["Content-Length: 4, 4"], "body"),
    "a signed length": ("POST {}/a HTTP/1.1", ["Content-Length: +4"], "body"),
    "a length in hex": ("POST {}/a HTTP/1.1", ["Content-Length: 0x4"], "body"),
    "a length with a space": ("POST {}/a HTTP/1.1", ["Content-Length: 4 0"], "body"),
    "a space before the colon": ("POST {}/a HTTP/1.1", ["Content-Length : 4"], "body"),
    "a folded header": ("POST {}/a HTTP/1.1", ["X-A: b", " Content-Length: 4"], "body"),
    "a folded coding": ("POST {}/a HTTP/1.1", ["Transfer-Encoding:", " chunked"], "0\r\n\r\n"),
    "another coding": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: gzip"], "body"),
    "a coding list": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: gzip, chunked"], "0\r\n\r\n"),
    "a coding twice": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], "0\r\n\r\n"),
    "a coding with a tab": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: \x0bchunked"], "0\r\n\r\n"),
    "a coding that nearly is": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: xchunked"], "0\r\n\r\n"),
    "a name with a dash below": ("POST {}/a HTTP/1.1", ["Transfer-Encoding\x0b: chunked"], "0\r\n\r\n"),
    "a NUL in a header": ("POST {}/a HTTP/1.1", ["X-A: b\x00c"], ""),
    "a bare CR": ("POST {}/a HTTP/1.1", ["X-A: b\rTransfer-Encoding: chunked"], "0\r\n\r\n"),
    "a bad chunk": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: chunked"], "4x\r\nbody\r\n0\r\n\r\n"),
    "a signed chunk": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: chunked"], "-1\r\nbody\r\n0\r\n\r\n"),
    "a chunk that overflows": ("POST {}/a HTTP/1.1", ["Transfer-Encoding: chunked"], "10000000000000004\r\nbody\r\n0\r\n\r\n"),
    "a space in the target": ("GET {}/a b HTTP/1.1", [], ""),
    "HTTP/1.0": ("GET {}/a HTTP/1.0", [], ""),
    "a second Host": ("GET {}/a HTTP/1.1", ["Host: y"], ""),
}


def seen_inside(box):
    """How many requests for /evil have come to the server: it tells of each that it is asked."""
    return json.loads(ask(box, "/count").data)["evil"]


@pytest.mark.parametrize("name", SMUGGLES)
def test_what_could_be_two_requests_is_none(box, name):
    line, fields, body = SMUGGLES[name]
    with raw(box) as client:
        client.send(head(box, line, *fields) + body + EVIL.replace("{}", box.prefix))
        answer = client.read_all()
    # Refused with one answer, and nothing behind it is listened to; or without any.
    assert len(statuses(answer)) <= 1 and all(400 <= s <= 505 for s in statuses(answer)), answer
    assert seen_inside(box) == 0


def test_a_body_that_looks_like_a_request_is_a_body(box):
    inner = "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = ask(box, "/here", "POST", inner.encode())
    assert json.loads(answer.data)["length"] == len(inner)
    with raw(box) as client:
        client.send(head(box, "POST {}/here HTTP/1.1", "Transfer-Encoding: chunked", "Connection: close")
                    + f"{len(inner):x};ext=1\r\n{inner}\r\n0\r\nX-Trailer: 1\r\n\r\n")
        answer = client.read_all()
    assert statuses(answer) == [200] and b"X-Trailer" not in answer
    assert seen_inside(box) == 0


def test_a_target_cannot_break_out_of_its_line(box):
    for path in ("/a%0d%0aX-Evil:%201", "/a?b=%0d%0a%0d%0aGET%20/evil"):
        answer = ask(box, path)
        seen = json.loads(answer.data)
        assert seen["path"] == path and not any(n.lower() == "x-evil" for n, _ in seen["headers"])
    assert seen_inside(box) == 0
