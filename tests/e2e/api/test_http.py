"""The real daemon against hostile clients: smuggling, flooding, dawdling, leaving."""
import socket
import threading
import time

import pytest

from support import machine
from support.daemon import Daemon, until
from support.raw import Raw, statuses

HOST = "Host: h\r\n"
GOOD = "GET /healthz HTTP/1.1\r\n" + HOST + "\r\n"
LAST = "GET /healthz HTTP/1.1\r\n" + HOST + "Connection: close\r\n\r\n"


def exchange(port, data, half_close=False):
    with Raw(port) as raw:
        raw.send(data)
        if half_close:
            raw.half_close()
        return raw.read_all()


@pytest.fixture(autouse=True)
def still_serving(daemon):
    """Whatever a test did, the next client is served."""
    yield
    daemon.api.get("/healthz", seconds=60).must(200)


# --- what two servers could read differently -----------------------------------------------------


@pytest.mark.parametrize("head", [
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "Content-Length: 5\r\nContent-Length: 6\r\n",
    "Content-Length: 5\r\nContent-Length: 5\r\n",
    "Content-Length: 5, 5\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: -5\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: 5 5\r\n",
    "Content-Length: \r\n",
    "Content-Length: 99999999999999999999999\r\n",
    "Content-Length : 5\r\n",
    " Content-Length: 5\r\n",
    "Content\x00-Length: 5\r\n",
    "Content-Length: 5\x00\r\n",
    "Content-Length:\x0b5\r\n",
    "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding:\x0bchunked\r\n",
    "Transfer-Encoding\r\n : chunked\r\n",
    "Transfer-Encoding: chunked\r\n folded\r\n",
    "Transfer_Encoding: chunked\rContent-Length: 5\r\n",
    "X: a\nTransfer-Encoding: chunked\r\n",
    "X: a\r\n\x00: b\r\n",
    "X: \x7f\r\n",
    "Host: other\r\n",
    "Bad Header: x\r\n",
    ": empty\r\n",
    "nothing\r\n",
])
def test_a_head_with_two_readings_is_refused_and_the_connection_ends(daemon, head):
    """A hidden second request stands in the body; it must never be answered."""
    hidden = "0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: hidden\r\n\r\n"
    data = exchange(daemon.port, "POST /api/v1/sandboxes HTTP/1.1\r\n" + HOST + head + "\r\n" + hidden)
    assert len(statuses(data)) == 1, data
    assert statuses(data)[0] in (400, 413, 501), data
    assert b"invalid_request" in data and b"Connection: close" in data


@pytest.mark.parametrize("line, wanted", [
    ("GET /healthz HTTP/1.0", 505), ("GET /healthz HTTP/2.0", 505), ("GET /healthz HTTP/1.2", 505),
    ("GET /healthz", 505), ("GET /health z HTTP/1.1", 400),
    ("GET\t/healthz HTTP/1.1", 400), ("get /healthz HTTP/1.1", (400, 501)), ("BREW /healthz HTTP/1.1", (400, 405, 501)),
    ("CONNECT example.org:80 HTTP/1.1", (400, 501)), ("GET http://other/healthz HTTP/1.1", 400),
    ("GET /health\x00z HTTP/1.1", 400), ("GET healthz HTTP/1.1", 400), ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400),
    ("PRI * HTTP/2.0", (400, 505))])
def test_a_bad_request_line_is_refused(daemon, line, wanted):
    data = exchange(daemon.port, line + "\r\n" + HOST + "\r\n")
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(statuses(data)) == 1 and statuses(data)[0] in wanted + (501,), data


@pytest.mark.parametrize("head", ["", "Host: \r\n", "Host: a b\r\n", "Host: a\r\nHost: a\r\n", "Host: a,b\r\n"])
def test_one_host_is_named(daemon, head):
    assert statuses(exchange(daemon.port, "GET /healthz HTTP/1.1\r\n" + head + "\r\n")) == [400]


@pytest.mark.parametrize("body", [
    "5\r\nhello\r\n0\r\n\r\n", "5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n", "00005\r\nhello\r\n0\r\n\r\n"])
def test_well_formed_chunks_are_read(daemon, box, body):
    head = f"PUT /api/v1{box.path}/files/workspace/f HTTP/1.1\r\n{HOST}Authorization: Bearer {box.api.key}\r\n" \
           "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert statuses(exchange(daemon.port, head + body)) in ([201], [200])
    assert box.read("/workspace/f").body == b"hello"


@pytest.mark.parametrize("body", [
    "5\nhello\n0\n\n", "0x5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
    "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "fffffffffffffffff\r\nhello", "g\r\nhello\r\n0\r\n\r\n",
    "\r\nhello\r\n0\r\n\r\n", "5;" + "x" * 100000 + "\r\nhello\r\n0\r\n\r\n", "5;a\x00b\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n" + "T: x\r\n" * 10000 + "\r\n"], ids=lambda body: repr(body[:20]))
def test_bad_chunks_are_refused_and_nothing_is_written(daemon, box, body):
    head = f"PUT /api/v1{box.path}/files/workspace/f HTTP/1.1\r\n{HOST}Authorization: Bearer {box.api.key}\r\n" \
           "Transfer-Encoding: chunked\r\n\r\n"
    data = exchange(daemon.port, head + body + GOOD, half_close=True)
    assert 200 not in statuses(data) and 201 not in statuses(data), data
    box.read("/workspace/f").error(404)


# --- too much ------------------------------------------------------------------------------------


@pytest.mark.parametrize("data, wanted", [
    ("GET /" + "a" * 9000 + " HTTP/1.1\r\n" + HOST + "\r\n", 414),
    ("GET / HTTP/1.1\r\n" + HOST + "X: " + "a" * 40000 + "\r\n\r\n", 431),
    ("GET / HTTP/1.1\r\n" + HOST + "X" * 40000 + ": a\r\n\r\n", 431),
    ("GET / HTTP/1.1\r\n" + HOST + "".join(f"X{n}: a\r\n" for n in range(101)) + "\r\n", 431),
    ("\r\n" * 100000 + GOOD, 431)], ids=["line", "value", "name", "count", "blank lines"])
def test_a_head_that_is_too_long_is_refused(daemon, data, wanted):
    assert statuses(exchange(daemon.port, data)) == [wanted]


def test_a_request_that_never_ends_is_cut_off(daemon):
    with Raw(daemon.port) as raw:
        sent = 0
        while raw.send("X: " + "a" * 8000 + "\r\n" if sent else "GET / HTTP/1.1\r\n" + HOST):
            sent += 8000
            assert sent < 50_000_000
            if sent > 100_000:
                break
        assert statuses(raw.read_all()) == [431]


def test_an_answer_larger_than_the_client_reads_does_not_fill_the_memory(daemon, box):
    box.run("truncate -s 120M big")
    before = machine.memory_of(daemon.parts()["daemon"])
    lazy = []
    for _ in range(10):
        raw = Raw(daemon.port)
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.send(f"GET /api/v1{box.path}/files/workspace/big HTTP/1.1\r\n{HOST}Authorization: Bearer {box.api.key}\r\n\r\n")
        lazy.append(raw)
    time.sleep(1)
    grown = machine.memory_of(daemon.parts()["daemon"]) - before
    for raw in lazy:
        raw.close()
    assert grown < 100 << 20, f"{grown >> 20} MiB for ten clients that do not read"


def test_pipelined_requests_are_answered_in_order(daemon):
    data = exchange(daemon.port, GOOD * 20 + "GET /nothing HTTP/1.1\r\n" + HOST + "\r\n" + LAST + GOOD)
    assert statuses(data) == [200] * 20 + [404, 200]


def test_a_pipeline_behind_a_slow_request_waits_and_is_bounded(daemon, box):
    body = '{"type":"command","content":"sleep 0.5; echo x"}'
    slow = f"POST /api/v1{box.path}/execute HTTP/1.1\r\n{HOST}Authorization: Bearer {box.api.key}\r\n" \
           f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    assert statuses(exchange(daemon.port, slow + GOOD + LAST)) == [200, 200, 200]
    with Raw(daemon.port) as raw:
        raw.socket.settimeout(1)
        raw.send(slow.replace("0.5", "5.0"))
        sent, flood = 0, GOOD.encode() * 1000
        try:
            while sent < 64 << 20:
                sent += raw.socket.send(flood)
        except TimeoutError:
            pass
        assert sent < 64 << 20  # the socket is full, not the server's memory


def test_expectations(daemon, box):
    head = f"PUT /api/v1{box.path}/files/workspace/f HTTP/1.1\r\n{HOST}Authorization: Bearer {box.api.key}\r\n" \
           "Content-Length: 5\r\n"
    with Raw(daemon.port) as raw:
        raw.send(head + "Expect: 100-continue\r\n\r\n")
        assert raw.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        raw.send("hello")
        assert statuses(raw.read_until(b"\r\n\r\n")) == [201]
    with Raw(daemon.port) as raw:  # refused before a byte of the body has gone
        raw.send(head.replace(box.api.key, "holt_" + "2" * 40) + "Expect: 100-continue\r\n\r\n")
        assert statuses(raw.read_until(b"\r\n\r\n")) in ([401], [429])
    assert statuses(exchange(daemon.port, head + "Expect: miracles\r\n\r\n")) == [417]


def test_a_query_s_escapes_are_checked(api):
    api.get("/sandboxes?limit=%zz").must(400)
    api.get("/sandboxes?name=%00").must(400)
    api.get("/sandboxes/%zz").must(400, 404)


# --- dawdling and leaving ------------------------------------------------------------------------


def test_dawdlers_are_cut_off_and_hold_nobody_up(daemon):
    """The head's ten seconds count from its first byte, however slowly the rest comes."""
    slow = [Raw(daemon.port, 40) for _ in range(30)]
    threads = []
    for n, raw in enumerate(slow):
        head = f"GET /healthz HTTP/1.1\r\n{HOST}X: " + "a" * 300
        raw.send(head[:10])
        thread = threading.Thread(target=raw.trickle, args=(head[10:].encode(), 0.3), daemon=True)
        thread.start()
        threads.append(thread)
    begin = time.monotonic()
    while time.monotonic() - begin < 5:
        asked = time.monotonic()
        daemon.api.get("/healthz").must(200)
        assert time.monotonic() - asked < 8
        time.sleep(0.2)
    for raw in slow:
        data = raw.read_all()
        assert statuses(data) in ([408], []), data
        raw.close()
    assert time.monotonic() - begin > 8


def test_a_body_that_never_ends_is_cut_off():
    with Daemon("--body-timeout", "1s") as daemon:
        box = daemon.api.sandbox()
        with Raw(daemon.port, 40) as raw:
            raw.send(f"PUT /api/v1{box.path}/files/workspace/slow HTTP/1.1\r\n{HOST}Authorization: Bearer {daemon.key}\r\n"
                     "Content-Length: 100000\r\n\r\n")
            raw.trickle(b"x" * 10000, 0.05)
            data = raw.read_all()
        assert statuses(data) == [408] and b"took too long" in data
        daemon.api.get(f"{box.path}/files/workspace/slow").must(404)
        box.delete().must(204)


def test_a_flood_of_connections_is_bounded_and_passes():
    with Daemon("--max-connections", "50") as daemon:
        crowd = [Raw(daemon.port) for _ in range(120)]
        until(lambda: sum(1 for raw in crowd if has_answer(raw)) >= 70, what="refusals")
        refused = [raw for raw in crowd if has_answer(raw)]
        assert all(statuses(raw.read_all()) in ([503], []) for raw in refused[:10])
        for raw in crowd:
            if raw not in refused:
                raw.send(GOOD)
                assert statuses(raw.read_until(b"\r\n\r\n")) == [200]
                break
        else:
            pytest.fail("nobody was served")
        for raw in crowd:
            raw.close()
        until(lambda: daemon.api.get("/healthz").status == 200, what="service")


def has_answer(raw):
    raw.socket.setblocking(False)
    try:
        raw.socket.recv(1, socket.MSG_PEEK)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        raw.socket.settimeout(20)


def open_descriptors(api):
    """As the daemon counts them: nobody but root may look into it."""
    text = api.get("/metrics").must(200).body.decode()
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith("process_open_fds "))


def test_connections_that_come_and_go_leave_nothing(daemon, api):
    fds = open_descriptors(api)
    for n in range(300):
        raw = Raw(daemon.port)
        if n % 3:
            raw.send((GOOD * 3)[:n])
        if n % 5 == 0:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.close()
    until(lambda: open_descriptors(api) <= fds + 3, what="closing")


def test_a_client_that_closes_its_side_gets_the_answers_that_are_ready(daemon):
    assert statuses(exchange(daemon.port, GOOD * 3, half_close=True)) == [200] * 3


def test_leaving_in_the_middle_of_anything_harms_nobody(daemon, box):
    box.run("truncate -s 20M big")
    auth = f"{HOST}Authorization: Bearer {box.api.key}\r\n"
    text = '{"type":"command","content":"yes | head -c 3000000","stream":true}'
    for request in (f"GET /api/v1{box.path}/files/workspace/big HTTP/1.1\r\n{auth}\r\n",
                    f"GET /api/v1{box.path}/archive HTTP/1.1\r\n{auth}\r\n",
                    f"GET /api/v1{box.path}/watch HTTP/1.1\r\n{auth}\r\n",
                    f"PUT /api/v1{box.path}/archive HTTP/1.1\r\n{auth}Content-Length: 100000\r\n\r\n" + "\0" * 512,
                    f"POST /api/v1{box.path}/execute HTTP/1.1\r\n{auth}Content-Type: application/json\r\n"
                    f"Content-Length: {len(text)}\r\n\r\n{text}"):
        for cut in (1, 3, 10):
            raw = Raw(daemon.port)
            raw.send(request)
            time.sleep(0.02 * cut)
            raw.close()
    until(lambda: box.get()["runningExecutions"] == 0, 30, "their end")
    assert box.run("echo on")["stdout"] == "on\n"


def test_random_bytes_are_answered_or_cut(daemon):
    import random
    chance = random.Random(7)
    for _ in range(60):
        data = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 2000)))
        answer = exchange(daemon.port, data, half_close=True)
        assert answer == b"" or statuses(answer)[0] >= 400


def test_mutated_requests_are_answered_or_cut(daemon, box):
    import random
    chance = random.Random(11)
    good = (f"POST /api/v1{box.path}/execute HTTP/1.1\r\n{HOST}Authorization: Bearer {box.api.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 35\r\n\r\n"
            '{"type":"command","content":"true"}').encode()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            place = chance.randrange(len(data))
            kind = chance.randrange(3)
            if kind == 0:
                data[place] = chance.randrange(256)
            elif kind == 1:
                del data[place]
            else:
                data[place:place] = bytes([chance.choice(b"\r\n\0 :;,\xff")])
        answer = exchange(daemon.port, bytes(data), half_close=True)
        assert answer == b"" or statuses(answer), answer
