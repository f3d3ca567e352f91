"""Bodies of messages: nothing of one stays behind its answer, and one that is too long is refused as a message is."""
import json
import pathlib

import pytest

from support import machine
from support.daemon import HOLT, Daemon
from support.mcp import Legacy, Modern

IS_SANITIZED = b"__asan_init" in pathlib.Path(HOLT).read_bytes()
MISFIT = "x" * 18000  # more than an arena keeps for the next request


def refused(modern, length):
    """A message whose head does not match: it is answered before anything of it is carried out."""
    message = modern.message("tools/call", {"name": "exec", "arguments": {"command": "y" * length}})
    reply = modern.ask("POST", message, {**modern.headers(message), "Mcp-Name": MISFIT})
    list(reply.messages())
    return reply.status


def test_nothing_of_a_refused_message_stays_in_memory():
    with Daemon() as daemon:
        modern = Modern(daemon)
        for _ in range(20):
            assert refused(modern, 1 << 20) == 400
        before = machine.memory_of(daemon.parts()["daemon"])
        for _ in range(60):
            assert refused(modern, 1 << 20) == 400
        grown = machine.memory_of(daemon.parts()["daemon"]) - before
        assert IS_SANITIZED or grown < 20 << 20, grown  # a sanitizer holds back what was freed, and finds what is not


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_message_that_is_too_long_is_an_error_of_the_protocol(daemon, is_announced):
    peer = Legacy(daemon).initialize()
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%s"}}' % (b"y" * (4 << 20))
    connection = peer.connect()
    head = {**peer.headers(), "Authorization": f"Bearer {peer.key}", "Content-Type": "application/json"}
    if is_announced:  # nothing of it has to be sent
        connection.putrequest("POST", "/mcp")
        for name, value in {**head, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders()
    else:
        connection.request("POST", "/mcp", iter([body]), head, encode_chunked=True)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    assert answer.status == 413
    assert said["jsonrpc"] == "2.0" and said["id"] is None
    assert said["error"]["code"] == -32000 and "too long" in said["error"]["message"]
    assert peer.call("ping") == {}
    peer.end()
