"""Many sessions at once, and clients that vanish without a word."""
import concurrent.futures
import json
import signal
import subprocess

import pytest

from support import machine, mcp
from support.daemon import HOLT, Daemon, until
from support.mcp import Legacy

SESSIONS = 500
HANDS = 50  # so many act at the same moment


@pytest.fixture
def quick():
    """Who is gone for a second is gone for good."""
    with Daemon("--mcp-resume", "1s") as daemon:
        yield daemon


def sleeping(number):
    wanted = b"sleep\0%d\0" % number
    return [pid for pid in machine.pids() if machine.command_of(pid) == wanted]


def test_five_hundred_sessions_are_kept_apart(quick):
    box = quick.api.sandbox().id

    def begin(_):
        peer = Legacy(quick).initialize()
        stream = peer.ask("GET", headers={**peer.headers(), "Accept": "text/event-stream"})
        assert stream.status == 200
        return peer, stream

    def work(number):
        peer = peers[number][0]
        assert peer.call("ping") == {}
        got = peer.tool("exec", command=f"echo {number}", sandbox_id=box)["structuredContent"]
        return got["stdout"], peer.end()

    with concurrent.futures.ThreadPoolExecutor(HANDS) as hands:
        peers = list(hands.map(begin, range(SESSIONS)))
        assert len({peer.session for peer, _ in peers}) == SESSIONS
        ends = list(hands.map(work, range(SESSIONS)))
    assert [said for said, _ in ends] == [f"{number}\n" for number in range(SESSIONS)]
    assert {status for _, status in ends} <= {200, 202, 204}
    for _, stream in peers:
        assert list(stream.messages()) == []  # each ends with its session
    assert len(quick.api.get("/sandboxes").must(200).json["items"]) == 1  # none was made for who asked for none


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_bridge_that_is_gone_leaves_no_process_behind(quick, era, ending):
    env = {"HOLT_URL": f"http://127.0.0.1:{quick.port}", "HOLT_API_KEY_FILE": str(quick.key_file), "HOME": str(quick.dir)}
    with subprocess.Popen([HOLT, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as bridge:
        def say(message):
            bridge.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            bridge.stdin.flush()

        call = {"id": 2, "method": "tools/call",
                "params": {"name": "exec", "arguments": {"command": "sleep 47201 & sleep 47202"}}}
        if era == "legacy":
            say({"id": 1, "method": "initialize", "params": {"protocolVersion": mcp.LEGACY, "capabilities": {},
                                                            "clientInfo": {"name": "plain", "version": "1"}}})
            assert json.loads(bridge.stdout.readline())["result"]["protocolVersion"] == mcp.LEGACY
            say({"method": "notifications/initialized"})
        else:
            call["params"]["_meta"] = {mcp.META + "protocolVersion": mcp.MODERN, mcp.META + "clientCapabilities": {}}
        say(call)
        until(lambda: sleeping(47201) and sleeping(47202))
        bridge.send_signal(ending)
        bridge.wait(60)
    until(lambda: not sleeping(47201) and not sleeping(47202))
