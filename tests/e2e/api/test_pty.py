"""Terminals over WebSocket: a real client library, a real shell."""
import time

import pytest

from support.daemon import until
from support.sockets import Socket, refusal


def read_until(socket, word, then=b"", seconds=60):
    """Bytes up to the word and, behind it, the other one; other messages are dropped."""
    data, end = b"", time.monotonic() + seconds
    while word not in data or then not in data.partition(word)[2]:
        assert time.monotonic() < end, data
        message = socket.receive()
        assert message is not None, data
        if isinstance(message, bytes):
            data += message
    return data


@pytest.mark.parametrize("by", ["header", "token"])
def test_a_shell_echoes_and_ends(box, by):
    with Socket(box.api, f"{box.path}/pty", by=by) as socket:
        ident = socket.next("start")["executionId"]
        socket.send_bytes(b"echo $((6*7))-x; tty; echo $TERM\n")
        data = read_until(socket, b"xterm-256color\r\n")
        assert b"42-x\r\n" in data and b"/dev/pts/" in data
        socket.send_bytes(b"exit 7\n")
        exit, _ = socket.until("exit")
        assert exit == {"type": "exit", "exitCode": 7, "signal": None, "status": "completed"}
        assert socket.receive() is None and socket.code == 1000
    value = box.api.get(f"{box.path}/executions/{ident}").must(200).json
    assert (value["kind"], value["exitCode"]) == ("pty", 7)


def test_the_size_is_as_asked_and_can_change(box):
    # The shell reads the size and writes it back before each prompt: what changes in between is lost. So
    # each change waits for the prompt.
    with Socket(box.api, f"{box.path}/pty?rows=33&cols=101") as socket:
        ident = socket.next("start")["executionId"]
        socket.send_bytes(b"stty size\n")
        read_until(socket, b"33 101", then=b"$ ")
        socket.send({"type": "resize", "rows": 40, "cols": 120})
        socket.send_bytes(b"stty size\n")
        read_until(socket, b"40 120", then=b"$ ")
        box.api.post(f"{box.path}/executions/{ident}/resize", {"rows": 50, "cols": 60}).must(204)
        socket.send_bytes(b"stty size\n")
        read_until(socket, b"50 60")
        box.api.post(f"{box.path}/executions/{ident}/resize", {"rows": 0, "cols": 60}).error(400, field="rows")
        box.api.delete(f"{box.path}/executions/{ident}").must(204)
    box.api.post(f"{box.path}/executions/{box.begin('sleep 5').id}/resize", {"rows": 1, "cols": 1}).error(409)


def test_a_terminal_goes_on_without_its_socket_and_remembers(box):
    with Socket(box.api, f"{box.path}/pty") as first:
        ident = first.next("start")["executionId"]
        first.send_bytes(b"x=kept; echo before-$x\n")
        read_until(first, b"before-kept")
    with Socket(box.api, f"{box.path}/pty?execution={ident}") as second:
        assert second.next("start")["executionId"] == ident
        read_until(second, b"before-kept")
        with Socket(box.api, f"{box.path}/pty?execution={ident}") as third:
            third.next("start")
            second.send_bytes(b"echo again-$x\n")
            assert b"again-kept" in read_until(second, b"again-kept\r\n")
            read_until(third, b"again-kept\r\n")
            second.send_bytes(b"exit\n")
            assert third.until("exit")[0]["exitCode"] == 0


def test_kill_ends_it_with_its_socket(box):
    with Socket(box.api, f"{box.path}/pty?kill=1&command=sleep+100") as socket:
        socket.next("start")
        assert box.get()["runningExecutions"] == 1
    until(lambda: box.get()["runningExecutions"] == 0, what="its end")


def test_a_command_a_directory_a_signal_and_a_ping(box):
    path = f"{box.path}/pty?command=pwd;+trap+%27echo+caught;exit+3%27+INT;+echo+go;+while+:;+do+sleep+0.05;+done&cwd=/tmp"
    with Socket(box.api, path) as socket:
        socket.next("start")
        assert b"/tmp" in read_until(socket, b"go")
        socket.send({"type": "ping"})
        socket.until("pong")
        socket.send({"type": "signal", "signal": "SIGINT"})
        read_until(socket, b"caught")
        assert socket.until("exit")[0]["exitCode"] == 3


def test_control_c_is_a_signal_too(box):
    with Socket(box.api, f"{box.path}/pty") as socket:
        socket.next("start")
        socket.send_bytes(b"sleep 100\n")
        read_until(socket, b"sleep 100")
        time.sleep(0.3)
        socket.send_bytes(b"\x03")
        socket.send_bytes(b"echo status-$?\n")
        read_until(socket, b"status-130")


@pytest.mark.parametrize("message", ["no json", "[]", '{"type":"dance"}', '{"type":"resize","rows":0,"cols":1}',
                                     '{"type":"resize"}', '{"type":"signal","signal":"NOPE"}', "{}"])
def test_a_bad_message_is_told_and_the_terminal_goes_on(box, message):
    with Socket(box.api, f"{box.path}/pty?kill=1") as socket:
        socket.next("start")
        socket.send(message)
        error, _ = socket.until("error")
        assert error["code"] == "invalid_request" and error["message"]
        socket.send_bytes(b"echo still-$((1+1))\n")
        read_until(socket, b"still-2")


def test_a_message_that_is_too_long_ends_the_socket(box):
    with Socket(box.api, f"{box.path}/pty?kill=1") as socket:
        socket.next("start")
        try:
            socket.send_bytes(b"x" * ((1 << 20) + 1))
            while socket.receive() is not None:
                pass
        except OSError:
            pass  # it may close before all of it has gone
        assert socket.code in (1009, None)
    assert box.run("echo on")["stdout"] == "on\n"


def test_much_output_arrives_whole(box):
    with Socket(box.api, f"{box.path}/pty?command=stty+raw;+head+-c+3000000+/dev/zero+|+tr+%27%5C0%27+x;+exit") as socket:
        socket.next("start")
        _, before = socket.until("exit")
        assert not any(isinstance(message, dict) for message in before)
        assert sum(map(len, before)) == 3000000


def test_what_cannot_be_a_terminal_is_an_ordinary_answer(box):
    assert refusal(box.api, f"/sandboxes/{'a' * 20}/pty") == 404
    assert refusal(box.api, f"{box.path}/pty?execution={'a' * 20}") == 404
    assert refusal(box.api, f"{box.path}/pty?rows=0") == 400
    assert refusal(box.api, f"{box.path}/pty?execution={box.begin('sleep 5').id}") == 409
    assert refusal(box.api, f"{box.path}/pty", by="nothing") == 401
    assert box.api.get(f"{box.path}/pty").status == 426
    box.api.post(f"{box.path}/pause").must(200)
    assert refusal(box.api, f"{box.path}/pty") == 409


def test_a_terminal_over_rest(box):
    running = box.begin(pty=True, rows=20, cols=50, stdin=True)
    running.stdin(b"stty size; exit 4\n").must(200)
    done = running.wait()
    assert (done["kind"], done["exitCode"]) == ("pty", 4) and "20 50" in done["stdout"]


def test_the_end_of_the_sandbox_ends_the_socket(api):
    box = api.sandbox()
    with Socket(api, f"{box.path}/pty") as socket:
        socket.next("start")
        box.delete().must(204)
        exit, _ = socket.until("exit")
        assert exit["exitCode"] is None and exit["status"] in ("interrupted", "cancelled")
        assert socket.receive() is None and socket.code == 1000
