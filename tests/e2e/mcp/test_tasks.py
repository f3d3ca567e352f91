"""Long calls as tasks: by plain requests against a real daemon, and over its death."""
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import machine, mcp
from support.daemon import Daemon, until
from support.mcp import Modern, RpcError

KNOWS = {"extensions": {mcp.TASKS: {}}}


def sleeping(number):
    """Who sleeps so many seconds, on the whole machine; no other test uses the number."""
    wanted = b"sleep\0%d\0" % number
    return [pid for pid in machine.pids() if machine.command_of(pid) == wanted]


@pytest.fixture
def peer(daemon):
    return Modern(daemon, client=KNOWS)


def ended(peer, task):
    def look():
        got = peer.call("tasks/get", {"taskId": task})
        return got if got["status"] not in ("working", "input_required") else None
    return until(look)


def waits_for(name):
    """A command that goes on when it is told to: nothing here depends on how fast the machine is."""
    return f"echo begun; until [ -e {name} ]; do sleep 0.1; done; echo over"


def refused(peer, method, params):
    with pytest.raises(RpcError) as caught:
        peer.call(method, params)
    return caught.value.code


def test_a_short_command_is_no_task(peer):
    peer.tool("exec", command="true")  # a sandbox that is yet to be made may take its time
    result = peer.tool("exec", command="echo quick")
    assert result["resultType"] == "complete" and result["structuredContent"]["stdout"] == "quick\n"


def test_a_long_command_becomes_a_task_and_tells_its_end(peer):
    task = peer.tool("exec", command=waits_for("told"), timeout_ms=600_000)
    assert task["resultType"] == "task" and task["status"] == "working" and "content" not in task
    got = peer.call("tasks/get", {"taskId": task["taskId"]})
    assert got["taskId"] == task["taskId"] and got["resultType"] == "complete"
    assert got["status"] == "working" and "result" not in got
    peer.tool("exec", command="touch told")
    got = ended(peer, task["taskId"])
    assert got["status"] == "completed" and got["result"]["isError"] is False
    assert got["result"]["structuredContent"]["stdout"] == "begun\nover\n"
    assert peer.call("tasks/cancel", {"taskId": task["taskId"]})["resultType"] == "complete"
    assert peer.call("tasks/get", {"taskId": task["taskId"]})["status"] == "completed"


def test_a_client_who_knows_no_tasks_waits(daemon):
    peer = Modern(daemon)
    result = peer.tool("exec", command="sleep 4; echo over")
    assert result["resultType"] == "complete" and result["structuredContent"]["stdout"] == "over\n"
    for method in ("tasks/get", "tasks/cancel"):
        assert refused(peer, method, {"taskId": "x"}) == -32021


def test_a_task_that_is_cancelled_ends_with_all_it_started(peer):
    task = peer.tool("exec", command="setsid sleep 4801 & sleep 4801", timeout_ms=600_000)["taskId"]
    until(lambda: len(sleeping(4801)) == 2)
    peer.call("tasks/cancel", {"taskId": task})
    got = ended(peer, task)
    assert got["status"] == "cancelled" and "result" not in got
    until(lambda: not sleeping(4801))


def test_another_owners_task_is_not_there(daemon, api, peer):
    key = api.post("/api/v1/keys", {"owner": "eve", "role": "user", "name": "tasks"}).json["key"]
    eve = Modern(daemon, key=key, client=KNOWS)
    task = peer.tool("exec", command="sleep 4802", timeout_ms=600_000)["taskId"]
    until(lambda: sleeping(4802))
    for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
        assert refused(eve, method, {"taskId": task, **more}) == -32602
        for unknown in ("nothing", "a" * 41, "a" * 20 + "." + "b" * 20, ""):
            assert refused(peer, method, {"taskId": unknown, **more}) in (-32602, -32020)
    assert sleeping(4802)
    peer.call("tasks/cancel", {"taskId": task})
    assert ended(peer, task)["status"] == "cancelled"


def test_whoever_listens_hears_of_the_end(peer):
    task = peer.tool("exec", command=waits_for("heard"), timeout_ms=600_000)["taskId"]
    number, reply = peer.begin("subscriptions/listen", {"notifications": {"taskIds": [task]}})
    messages = reply.messages()
    assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
    peer.tool("exec", command="touch heard")
    params = next(message for message in messages if message.get("method") == "notifications/tasks")["params"]
    assert params["taskId"] == task and params["status"] == "completed"
    assert params["result"]["structuredContent"]["stdout"] == "begun\nover\n"
    assert params["_meta"][mcp.META + "subscriptionId"] == number
    reply.close()


def test_a_token_of_one_sandbox_hears_of_its_tasks_alone(daemon, peer):
    """Also when it knows the name of another sandbox's."""
    box = daemon.api.sandbox()
    token = daemon.api.post(f"{box.path}/tokens", {}).must(201).json["key"]
    agent = Modern(daemon, key=token, client=KNOWS)
    theirs = peer.tool("exec", command=waits_for("theirs"), timeout_ms=600_000)["taskId"]
    own = agent.tool("exec", command=waits_for("own"), timeout_ms=600_000)["taskId"]
    _, reply = agent.begin("subscriptions/listen", {"notifications": {"taskIds": [theirs, own]}})
    messages = reply.messages()
    assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
    peer.tool("exec", command="touch theirs")
    assert ended(peer, theirs)["status"] == "completed"
    agent.tool("exec", command="touch own")
    heard = next(message for message in messages if message.get("method") == "notifications/tasks")["params"]
    assert heard["taskId"] == own, heard
    reply.close()
    box.delete().must(204)


def test_a_task_outlives_the_daemon():
    with Daemon() as daemon:
        peer = Modern(daemon, client=KNOWS)
        over = peer.tool("exec", command=waits_for("reborn"), timeout_ms=600_000)["taskId"]
        on = peer.tool("exec", command="sleep 4803", timeout_ms=600_000)["taskId"]
        daemon.kill("daemon")
        daemon.start()
        peer = Modern(daemon, client=KNOWS)
        assert peer.call("tasks/get", {"taskId": on})["status"] == "working"
        peer.tool("exec", command="touch reborn")
        got = ended(peer, over)
        assert got["status"] == "completed"
        assert got["result"]["structuredContent"]["stdout"] == "begun\nover\n"
        assert peer.call("tasks/cancel", {"taskId": on})["resultType"] == "complete"
        assert ended(peer, on)["status"] == "cancelled"
        until(lambda: not sleeping(4803))


def test_more_tasks_than_are_kept_are_waited_for():
    with mcp.Fixtures() as daemon:
        def begin(seconds):
            return Modern(daemon, client=KNOWS).tool("slow_compute", seconds=seconds)

        with ThreadPoolExecutor(32) as pool:
            made = list(pool.map(begin, [600] * 256))
        assert all(one["resultType"] == "task" for one in made)
        assert len({one["taskId"] for one in made}) == 256
        assert begin(1)["resultType"] == "complete"
        # Those who have been told of their end are kept, too: nobody is told twice of one name.
        peer = Modern(daemon, client=KNOWS)
        peer.call("tasks/cancel", {"taskId": made[0]["taskId"]})
        assert ended(peer, made[0]["taskId"])["status"] == "cancelled"
        assert begin(1)["resultType"] == "complete"
