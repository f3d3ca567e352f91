"""A port as bytes: a WebSocket that is a connection to a program inside, whatever it speaks."""
import json
import socket
import time

import pytest
import websocket

from support.daemon import until

PORT = 4000
# Speaks no HTTP: "echo" sends all back, "hold" reads nothing, "shut" ends its side first and tells what came after,
# "reset" breaks off, "flood" sends for ever, "count" says how much came before the end.
SERVER = r"""
import socket, struct, threading
listener = socket.create_server(("127.0.0.1", %d))
print("listening", flush=True)
def carry(peer):
    word = b""
    while not word.endswith(b"\n"):
        more = peer.recv(1)
        if not more:
            return peer.close()
        word += more
    word = word.strip()
    if word == b"echo":
        while data := peer.recv(65536):
            peer.sendall(data)
    elif word == b"hold":
        threading.Event().wait()
    elif word == b"shut":
        peer.sendall(b"bye")
        peer.shutdown(socket.SHUT_WR)
        got = b""
        while data := peer.recv(65536):
            got += data
        print("after:" + got.decode(), flush=True)
    elif word == b"reset":
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif word == b"flood":
        while True:
            peer.sendall(b"x" * (1 << 20))
            print("a megabyte", flush=True)
    elif word == b"count":
        n = 0
        while data := peer.recv(65536):
            n += len(data)
        peer.sendall(str(n).encode())
    peer.close()
while True:
    threading.Thread(target=lambda p: carry(p), args=(listener.accept()[0],), daemon=True).start()
""" % PORT


def serve(box):
    started = box.api.post(f"{box.path}/executions", {"argv": ["python3", "-c", SERVER], "background": True}).must(202)
    box.output = f"{box.path}/executions/{started.json['executionId']}/output"
    until(lambda: "listening" in said(box), what="the server inside")
    return box


def said(box):
    return json.dumps(box.api.get(box.output).must(200).json)


def expose(box, **fields):
    return box.api.post(f"{box.path}/ports", {"port": PORT, **fields}).must(201).json


def dial(box, port=PORT, key=None, token=None, query="", word=None):
    headers = [f"Authorization: Bearer {key}"] if key else []
    headers += [f"X-Holt-Port-Token: {token}"] if token else []
    number = box.api.target.port
    plain = socket.create_connection(("127.0.0.1", number), 30, (box.api.source, 0))
    ws = websocket.create_connection(f"ws://127.0.0.1:{number}/api/v1{box.path}/tcp/{port}{query}",
                                     header=headers, timeout=30, socket=plain)
    if word:
        ws.send_binary(word + b"\n")
    return ws


def refused(box, **how):
    with pytest.raises(websocket.WebSocketBadStatusException) as raised:
        dial(box, **how)
    return raised.value.status_code


def end(ws):
    """What comes until the other side says that there is no more."""
    got = b""
    while True:
        data = ws.recv()
        if data == b"":
            return got
        got += data


def close_code(ws):
    while True:
        kind, frame = ws.recv_data_frame(control_frame=True)
        if kind == websocket.ABNF.OPCODE_CLOSE:
            return int.from_bytes(frame.data[:2], "big")


@pytest.fixture(scope="module")
def served(daemon):
    made = serve(daemon.api.sandbox(resources={"memory": "512Mi", "cpu": 2, "pids": 512}))
    expose(made)
    yield made
    made.delete().must(204)


def test_bytes_go_both_ways_and_both_sides_end(served):
    ws = dial(served, key=served.api.key, word=b"echo")
    every = bytes(range(256)) * 16
    ws.send_binary(every)
    got = b""
    while len(got) < len(every):
        got += ws.recv()
    assert got == every
    ws.send_binary(b"")
    assert end(ws) == b""
    assert close_code(ws) == 1000


def test_a_megabyte_is_counted_after_the_end_was_said(served):
    ws = dial(served, key=served.api.key, word=b"count")
    for _ in range(16):
        ws.send_binary(b"y" * 65536)
    ws.send_binary(b"")
    assert end(ws) == str(16 * 65536).encode()
    assert close_code(ws) == 1000


def test_the_program_may_end_its_side_first(served):
    ws = dial(served, key=served.api.key, word=b"shut")
    assert end(ws) == b"bye"
    ws.send_binary(b"still here")
    ws.send_binary(b"")
    assert close_code(ws) == 1000
    until(lambda: "after:still here" in said(served), what="what was sent after its end")


def test_a_connection_that_breaks_inside_is_told(served):
    assert close_code(dial(served, key=served.api.key, word=b"reset")) == 1011


def test_text_and_what_comes_after_the_end_are_refused(served):
    ws = dial(served, key=served.api.key, word=b"hold")
    ws.send("text")
    assert close_code(ws) == 1003
    ws = dial(served, key=served.api.key, word=b"hold")
    ws.send_binary(b"")
    ws.send_binary(b"more")
    assert close_code(ws) == 1003


def test_a_program_that_reads_nothing_holds_the_client_back(served):
    """What waits is bounded: the client cannot send for ever."""
    ws = dial(served, key=served.api.key, word=b"hold")
    ws.settimeout(1)
    sent = 0
    with pytest.raises((websocket.WebSocketTimeoutException, BlockingIOError, socket.timeout)):
        while sent < 256 << 20:
            ws.send_binary(b"z" * 65536)
            sent += 65536
    ws.sock.close()


def test_a_client_that_reads_nothing_holds_the_program_back(served):
    ws = dial(served, key=served.api.key, word=b"flood")
    assert ws.recv()
    seen = []

    def stands_still():
        """Twice the same number of megabytes, a while apart."""
        seen.append(said(served).count("a megabyte"))
        time.sleep(0.3)
        return len(seen) > 2 and seen[-1] == seen[-2] > 0

    until(stands_still, what="the program waiting")
    assert seen[-1] < 64
    ws.sock.close()


def test_who_may_is_who_may_ask_the_port(served, key_for):
    api = served.api
    token = expose(served)["token"]
    assert refused(served) == 401
    assert refused(served, token="port_" + "0" * 40) == 401
    assert refused(served, key="holt_" + "0" * 40) == 401
    assert refused(served, query="?token=holt_" + "0" * 40) == 401
    assert refused(served, key=key_for("user", owner="somebody-else").key) == 404
    assert refused(served, key=key_for("viewer").key) == 403
    assert refused(served, key=api.key, port=4001) == 404  # closed until it is exposed, for its owner too
    assert refused(served, port=4001) == 401
    for way in ({"token": token}, {"key": api.key}, {"query": f"?token={api.key}"}):
        ws = dial(served, word=b"echo", **way)
        ws.send_binary(b"hello")
        assert ws.recv() == b"hello"
        ws.close()
    api.get(f"{served.path}/tcp/{PORT}").error(426)


def test_a_port_where_nobody_listens_is_a_bad_gateway(served):
    served.api.post(f"{served.path}/ports", {"port": 4002}).must(201)
    assert refused(served, key=served.api.key, port=4002) == 502


def test_it_ends_with_the_port_the_key_and_the_sandbox(api, key_for, box):
    serve(box)
    expose(box)
    # The port is closed.
    ws = dial(box, key=api.key, word=b"echo")
    api.delete(f"{box.path}/ports/{PORT}").must(204)
    assert close_code(ws) == 1011
    # The key ends.
    token = expose(box)["token"]
    made = api.post("/keys", {"name": "short", "role": "admin"}).must(201).json
    ws = dial(box, key=made["key"], word=b"echo")
    api.delete(f"/keys/{made['id']}").must(204)
    assert close_code(ws) == 1008
    # The port's own token is another.
    ws = dial(box, token=token, word=b"echo")
    expose(box)
    assert close_code(ws) == 1011
    # The sandbox ends.
    ws = dial(box, key=api.key, word=b"echo")
    box.delete().must(204)
    assert close_code(ws) == 1011


def test_a_paused_sandbox_is_woken_where_that_is_allowed(api, box):
    serve(box)
    expose(box)
    api.post(f"{box.path}/pause").must(200)
    assert refused(box, key=api.key) == 409
    api.post(f"{box.path}/resume").must(200)
    expose(box, wake=True)
    api.post(f"{box.path}/pause").must(200)
    ws = dial(box, key=api.key, word=b"echo")
    ws.send_binary(b"awake")
    assert ws.recv() == b"awake"
    ws.close()
