"""What ends while it is being ended: calls, streams and the daemon itself."""
import json

import pytest

from support.daemon import Daemon, until
from support.mcp import TASKS, Legacy, Modern, RpcError

STUBBORN = "trap 'touch /workspace/asked' TERM; touch /workspace/runs; while :; do sleep 0.2; done"


def is_there(daemon, box, name):
    return daemon.api.get(f"/sandboxes/{box}/files/workspace/{name}").status == 200


def test_the_daemon_ends_while_a_call_is_being_cancelled():
    with Daemon() as daemon:
        box = daemon.api.post("/sandboxes", {}).must(201).json["id"]
        modern = Modern(daemon)
        message = modern.message("tools/call", {"name": "exec", "arguments": {"command": STUBBORN, "sandbox_id": box}})
        connection = modern.connect()
        connection.request("POST", "/mcp", body=json.dumps(message), headers={
            **modern.headers(message), "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json", "Authorization": f"Bearer {modern.key}"})
        until(lambda: is_there(daemon, box, "runs"), what="the command")
        connection.close()  # nobody wants it any more
        until(lambda: is_there(daemon, box, "asked"), what="the signal")
        daemon.stop()
        assert daemon.complaints() == []
        daemon.start()


def test_who_comes_back_for_an_answer_that_was_too_long_to_keep_is_told():
    with Daemon("--mcp-output", "1M") as daemon:
        legacy = Legacy(daemon).initialize()
        number, reply = legacy.begin("tools/call", {"name": "exec", "_meta": {"progressToken": "p"}, "arguments": {
            "command": "sleep 2; head -c 700000 /dev/zero | tr '\\0' x"}})
        first = next(reply.events)
        assert len(legacy.result(reply, number)["structuredContent"]["stdout"]) == 700000
        last = reply.last_id
        assert legacy.resume(first.id).status == 400
        assert list(legacy.resume(last).messages()) == []  # it has seen all there was
        assert legacy.call("ping") == {}
        legacy.end()


def test_a_client_of_the_legacy_era_is_given_no_task_whatever_it_declares(daemon):
    legacy = Legacy(daemon, client={"extensions": {TASKS: {}}}).initialize()
    legacy.tool("exec", command="true")  # a sandbox that is yet to be made may take its time
    assert legacy.tool("exec", command="sleep 4; echo waited")["structuredContent"]["stdout"] == "waited\n"
    legacy.end()


def keys(api, owner):
    """Of one owner: one that may do things, and one that may only look."""
    return [api.post("/keys", {"name": role, "role": role, "owner": owner}).must(201).json["key"]
            for role in ("user", "viewer")]


def test_a_key_that_may_only_look_ends_no_sandbox_with_a_session(daemon, api):
    key, looks = keys(api, "of-sessions")
    legacy = Legacy(daemon, key=key, path="/mcp?sandbox=session").initialize()
    viewer = Legacy(daemon, key=looks)
    box = legacy.tool("exec", command="true")["structuredContent"]["sandbox_id"]
    viewer.session = legacy.session
    assert viewer.end() == 204
    assert legacy.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404
    assert api.get(f"/sandboxes/{box}").must(200).json["status"] == "running"
    api.delete(f"/sandboxes/{box}").must(204)


def test_a_key_that_may_only_look_ends_no_task(daemon, api):
    user, viewer = (Modern(daemon, key=key, client={"extensions": {TASKS: {}}}) for key in keys(api, "of-tasks"))
    task = user.tool("exec", command="sleep 600", timeout_ms=600_000)["taskId"]
    assert viewer.call("tasks/get", {"taskId": task})["status"] == "working"
    for method, more in (("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
        with pytest.raises(RpcError):
            viewer.call(method, {"taskId": task, **more})
    assert user.call("tasks/get", {"taskId": task})["status"] == "working"
    user.call("tasks/cancel", {"taskId": task})
    until(lambda: user.call("tasks/get", {"taskId": task})["status"] == "cancelled", what="its end")
