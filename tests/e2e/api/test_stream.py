"""Executions over one WebSocket: messages as documented, several at once, errors."""
import shutil
import subprocess

import pytest

from support.daemon import until
from support.sockets import Socket, refusal


def stream(box, **more):
    return Socket(box.api, f"{box.path}/stream", **more)


def run(ident, content, mode="command", **fields):
    return {"type": "execute", "executionId": ident, "mode": mode, "content": content, **fields}


def test_the_whole_conversation(python):
    with stream(python) as socket:
        socket.send(run("mine-1", "import sys; print(6*7); sys.stderr.write('bad')", "code", language="python",
                        timeout=30))
        start = socket.next("execution_start")
        assert sorted(start) == ["executionId", "id", "startedAt", "type"] and start["executionId"] == "mine-1"
        end, output = socket.until("execution_complete")
        assert all(message["type"] == "output" and message["executionId"] == "mine-1" for message in output)
        text = {name: "".join(message["content"] for message in output if message["stream"] == name)
                for name in ("stdout", "stderr")}
        assert text == {"stdout": "42\n", "stderr": "bad"}
        assert (end["executionId"], end["id"], end["status"], end["exitCode"]) == \
            ("mine-1", start["id"], "completed", 0)
        assert "stdout" not in end and end["outputBytes"] == 6
        assert python.api.get(f"{python.path}/executions/{start['id']}").must(200).json["stdout"] == "42\n"
        socket.send({"type": "ping"})
        assert socket.next("pong") == {"type": "pong"}


def test_without_a_name_it_has_the_server_s(box):
    with stream(box, by="token") as socket:
        socket.send({"type": "execute", "mode": "command", "content": "echo $A; pwd", "env": {"A": "b"}, "cwd": "/"})
        start = socket.next("execution_start")
        assert start["executionId"] == start["id"]
        end, output = socket.until("execution_complete")
        assert "".join(message["content"] for message in output) == "b\n/\n"


def test_several_at_once_keep_apart(box):
    count = 8
    with stream(box) as socket:
        for n in range(count):
            socket.send(run(f"n{n}", f"for i in 1 2 3 4 5; do echo {n}-$i; sleep 0.02; done; exit {n}"))
        text, codes = {}, {}
        while len(codes) < count:
            message = socket.receive()
            if message["type"] == "output":
                text[message["executionId"]] = text.get(message["executionId"], "") + message["content"]
            elif message["type"] == "execution_complete":
                codes[message["executionId"]] = message["exitCode"]
    assert codes == {f"n{n}": n for n in range(count)}
    assert text == {f"n{n}": "".join(f"{n}-{i}\n" for i in range(1, 6)) for n in range(count)}


def test_no_more_than_sixteen_at_once(box):
    with stream(box) as socket:
        for n in range(17):
            socket.send(run(f"n{n}", "sleep 100"))
        error, _ = socket.until("error")
        assert (error["code"], error["executionId"]) == ("rate_limited", "n16")
        for n in range(16):
            socket.send({"type": "cancel", "executionId": f"n{n}"})
        for _ in range(16):
            end, _ = socket.until("execution_complete")
            assert end["status"] == "cancelled"
        socket.send(run("again", "echo x"))
        assert socket.until("execution_complete")[0]["exitCode"] == 0


def test_a_name_in_use_is_a_conflict_and_can_be_used_again_later(box):
    with stream(box) as socket:
        socket.send(run("a", "sleep 100"))
        socket.next("execution_start")
        socket.send(run("a", "echo"))
        assert socket.next("error")["code"] == "conflict"
        socket.send({"type": "cancel", "executionId": "a"})
        assert socket.until("execution_complete")[0]["cancelled"]
        socket.send(run("a", "true"))
        assert socket.until("execution_complete")[0]["exitCode"] == 0


@pytest.mark.parametrize("message", [
    "no json", "[1]", "{}", '{"type":"dance"}', '{"type":"execute"}',
    '{"type":"execute","mode":"command"}', '{"type":"execute","mode":"poem","content":"x"}',
    '{"type":"execute","mode":"code","content":"x"}', '{"type":"execute","mode":"command","content":"x","what":1}',
    '{"type":"execute","mode":"command","content":"x","executionId":""}',
    '{"type":"execute","mode":"command","content":"x","timeout":"61m"}',
    '{"type":"execute","mode":"command","content":"x","executionId":"' + "a" * 65 + '"}'])
def test_a_bad_message_is_told_and_the_socket_goes_on(box, message):
    with stream(box) as socket:
        socket.send(message)
        error = socket.next("error")
        assert sorted(error) == ["code", "executionId", "field", "message", "type"]
        assert error["code"] == "invalid_request" and error["message"]
        socket.send({"type": "ping"})
        socket.next("pong")


def test_a_cancel_of_nothing_is_not_found(box):
    with stream(box) as socket:
        socket.send({"type": "cancel", "executionId": "none"})
        error = socket.next("error")
        assert (error["code"], error["executionId"]) == ("not_found", "none")


def test_a_closed_socket_ends_only_what_it_was_told_to(box):
    with stream(box) as socket:
        socket.send(run("ends", "sleep 100", cancelOnDisconnect=True))
        socket.send(run("stays", "sleep 101", timeout=90))
        socket.next("execution_start")
        socket.next("execution_start")
    until(lambda: box.get()["runningExecutions"] == 1, what="the cancel")
    assert box.run("pgrep -f 'sleep 10[01]' -a | grep -c 'sleep 101'")["stdout"].strip() != "0"


def test_a_character_is_never_cut_between_two_messages(python):
    word = "☃ü€𝄞" * 5
    code = f"import os,time\nfor b in {word!r}.encode():\n os.write(1, bytes([b])); time.sleep(0.003)"
    with stream(python) as socket:
        socket.send(run("u", code, "code", language="python"))
        _, before = socket.until("execution_complete")
        assert "".join(message.get("content", "") for message in before) == word


def test_binary_messages_are_no_part_of_this(box):
    with stream(box) as socket:
        socket.send_bytes(b"\x00\x01")
        assert socket.receive() is None and socket.code == 1003


def test_a_slow_reader_loses_nothing(box):
    with stream(box) as socket:
        socket.send(run("big", "yes 0123456789abcde | head -c 4000000", timeout=100))
        until(lambda: box.get()["runningExecutions"] == 1)
        import time
        time.sleep(1)
        _, before = socket.until("execution_complete")
        assert sum(len(message.get("content", "")) for message in before) == 4000000
        assert not any(message["type"] == "gap" for message in before)


def test_upgrades_that_are_not_allowed(box, key_for):
    assert refusal(box.api, f"{box.path}/stream", origin="https://evil.example") == 403
    assert refusal(key_for("viewer"), f"{box.path}/stream") == 403
    assert refusal(box.api.using("holt_" + "0" * 40), f"{box.path}/stream") == 401
    assert refusal(box.api.using("holt_" + "0" * 40), f"{box.path}/stream", by="token") == 401
    assert refusal(key_for("user", owner="another"), f"{box.path}/stream") == 404


def test_a_token_in_the_query_is_for_sockets_only(box):
    box.api.using(None).get(f"{box.path}?token={box.api.key}").error(401)


NODE = """
const socket = new WebSocket(process.argv[1]);
let text = '';
socket.onopen = () => socket.send(JSON.stringify({type: 'execute', mode: 'command', content: 'echo from node'}));
socket.onmessage = (event) => {
  const message = JSON.parse(event.data);
  if (message.type === 'output') text += message.content;
  if (message.type === 'execution_complete') { console.log(text.trim(), message.exitCode); socket.close(); }
};
socket.onerror = (event) => { console.log('error', event.message); process.exit(1); };
"""


def test_another_client_library_agrees(box):
    node = shutil.which("node")
    flags = subprocess.run([node, "--experimental-websocket", "-e", "new WebSocket"], capture_output=True) if node else None
    if not flags or b"bad option" in flags.stderr or b"not defined" in flags.stderr:
        pytest.skip("no node with a WebSocket of its own")
    url = f"ws://127.0.0.1:{box.api.target.port}/api/v1{box.path}/stream?token={box.api.key}"
    done = subprocess.run([node, "--experimental-websocket", "-e", NODE, url], capture_output=True, timeout=30)
    assert done.stdout == b"from node 0\n", done
