"""Each part killed by itself, with what must be true afterwards said one by one."""
import concurrent.futures
import os
import re
import signal
import time

import pytest

from support import machine
from support.daemon import Daemon, until
from support.sockets import Socket

COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done"
ENDS = [("daemon",), ("daemon", "launcher"), ("keeper",), ("keeper", "daemon", "launcher")]


@pytest.fixture
def daemon():
    with Daemon() as running:
        yield running


def end_and_start(daemon, roles):
    """SIGTERM when no role is named."""
    if roles:
        daemon.kill(*roles)
        daemon.wait_ended()
    else:
        daemon.stop()
    daemon.start()


def count_up(text):
    numbers = [int(line) for line in text.splitlines() if line]
    assert numbers == list(range(1, len(numbers) + 1)), "the counter has a gap or a doubled line"
    return len(numbers)


@pytest.mark.parametrize("roles", [()] + ENDS, ids=lambda roles: "+".join(roles) or "SIGTERM")
def test_everything_is_there_after_the_next_start(daemon, roles):
    api = daemon.api
    box = api.sandbox("python", name="kept", metadata={"a": "b"}, env={"V": "w"}, timeout=3000, idleTimeout=2000)
    paused = api.sandbox(timeout=500)
    gone = api.sandbox()
    box.put("/workspace/f", b"content").must(201)
    done = box.run("echo done; exit 3")
    counter = box.begin(COUNT)
    feeder = box.begin("while read x; do echo got:$x; done; echo over", stdin=True)
    feeder.stdin(b"one\n").must(200)
    feeder.wait_for_output("got:one\n")
    ended = box.begin("echo quick")
    ended.wait()
    counter.wait_for_output("20\n")
    text, position = read(counter, 0)
    api.post(f"{paused.path}/pause").must(200)
    gone.delete().must(204)
    before = box.get()
    pids = set(machine.processes_in_group(daemon.instance()))

    end_and_start(daemon, roles)

    after = box.get()
    assert {name: value for name, value in after.items() if name not in ("timings", "runningExecutions")} == \
        {name: value for name, value in before.items() if name not in ("timings", "runningExecutions")}
    assert after["runningExecutions"] == 2 and after["timings"] is None
    assert paused.get()["status"] == "paused" and 400 < paused.get()["remaining"] <= 500
    assert (gone.get()["status"], gone.get()["reason"]) == ("stopped", "deleted")
    assert box.read("/workspace/f").body == b"content"
    assert api.get("/sandboxes/kept").must(200).json["id"] == box.id
    api.post("/sandboxes", {"name": "kept"}).error(409)
    assert box.run("echo $V")["stdout"] == "w\n"
    assert box.code("python", "print(1)")["stdout"] == "1\n"
    kept = api.get(f"{box.path}/executions/{done['executionId']}").must(200).json
    assert kept == done
    assert api.get(f"{box.path}/executions/{ended.id}").must(200).json["stdout"] == "quick\n"
    more, _ = read(counter, position, wait="10s")
    assert more and count_up(text + more.rpartition("\n")[0]) > 20
    assert feeder.stdin(b"two\n", eof=True).must(200).json["bytes"] == 4
    assert feeder.wait()["stdout"] == "got:one\ngot:two\nover\n"
    counter.cancel().must(204)
    assert counter.wait()["status"] == "cancelled"
    api.post(f"{paused.path}/resume").must(200)
    assert paused.run("echo awake")["stdout"] == "awake\n"
    ids = [item["executionId"] for item in api.get(f"{box.path}/executions").json["items"]]
    assert len(ids) == len(set(ids)) == 6
    assert pids & set(machine.processes_in_group(daemon.instance())), "the box was made anew"


def read(execution, start, wait="0"):
    page = execution.output(start, wait=wait)
    assert page["omitted"] == 0
    return "".join(chunk["data"] for chunk in page["chunks"]), page["next"]


@pytest.mark.parametrize("roles", [("daemon",), ("daemon", "launcher")], ids="+".join)
def test_output_that_came_meanwhile_is_not_lost(daemon, roles):
    """More than fits into the pipe: while nobody is there, the program waits."""
    box = daemon.api.sandbox()
    running = box.begin("sleep 0.3; seq 1 60000; echo end")
    early = box.begin("seq 1 60000 | head -c 200000; sleep 1; echo; echo end")
    until(lambda: early.get()["outputBytes"] == 200000, what="output")
    daemon.kill(*roles)
    daemon.wait_ended()
    time.sleep(1)
    daemon.start()
    want = "".join(f"{n}\n" for n in range(1, 60001))
    done = running.wait()
    assert (done["status"], done["exitCode"], done["truncated"]) == ("completed", 0, False)
    assert done["stdout"] == want + "end\n"
    done = early.wait()
    assert done["stdout"] == want[:200000] + "\nend\n" and done["outputBytes"] == 200005


def test_a_stream_that_broke_is_resumed_without_loss(daemon):
    box = daemon.api.sandbox()
    running = box.begin(COUNT)
    text, last = "", None
    for roles in (("daemon",), ("launcher",), ("daemon", "launcher")):
        try:
            with running.events(last=last) as events:
                for number, event in enumerate(events):
                    if event.name == "output":
                        text, last = text + event.data["data"], event.id
                    if number == 30:
                        daemon.kill(*roles)
                    if number == 60:
                        break
        except OSError:
            pass
        if "daemon" in roles:
            daemon.wait_ended()
            daemon.start()
        assert int(last) == len(text)
    with running.events(last=last) as events:
        for number, event in enumerate(events):
            if event.name == "output":
                text += event.data["data"]
            if number == 30:
                break
    assert count_up(text.rpartition("\n")[0]) > 90


def test_requests_wait_for_a_new_launcher(daemon):
    """Killed alone, the launcher is replaced; nobody sees more than a delay."""
    api = daemon.api
    box = api.sandbox()
    counter = box.begin(COUNT)
    before = daemon.parts()
    for _ in range(3):
        daemon.kill("launcher")
        with concurrent.futures.ThreadPoolExecutor(10) as crowd:
            made = list(crowd.map(lambda n: api.sandbox(), range(6)))
            paused = crowd.submit(api.post, f"{box.path}/pause").result().must(200)
        assert paused.json["status"] == "paused"
        api.post(f"{box.path}/resume").must(200)
        for other in made:
            assert other.run("echo on")["stdout"] == "on\n"
            other.delete().must(204)
        assert box.run("echo on")["stdout"] == "on\n"
    after = daemon.parts()
    assert after["launcher"] != before["launcher"] and after["daemon"] == before["daemon"]
    assert counter.get()["status"] == "running"
    until(lambda: "holt_launcher_restarts_total 3" in api.get("/metrics").body.decode(), what="the count")
    assert api.get("/readyz").must(200).json["checks"]["launcher"] == "ok"


@pytest.fixture
def impatient():
    with Daemon("--launcher-timeout", "4s") as running:
        yield running


def test_a_launcher_that_hangs_is_replaced(impatient):
    """Stopped, it neither ends nor answers: after a while it is killed, and boxes go on."""
    daemon, api = impatient, impatient.api
    box = api.sandbox()
    counter = box.begin(COUNT)
    before = daemon.parts()
    daemon.note_parts()
    os.kill(before["launcher"], signal.SIGSTOP)
    assert box.run("echo on")["stdout"] == "on\n"
    with concurrent.futures.ThreadPoolExecutor(1) as crowd:
        waiting = crowd.submit(api.post, "/sandboxes", {}, seconds=90)
        until(lambda: daemon.parts().get("launcher", before["launcher"]) != before["launcher"], 60, "another launcher")
        made = waiting.result()
    assert made.status == 201, "who waited did so for nothing"
    assert box.run("echo on")["stdout"] == "on\n"
    assert counter.get()["status"] == "running"
    until(lambda: re.search(r"^holt_launcher_restarts_total [1-9]", api.get("/metrics").body.decode(), re.M), what="the count")
    api.delete(f"/sandboxes/{made.json['id']}").must(204)


def test_time_to_live_passes_while_nobody_is_there_but_not_for_the_paused(daemon):
    short, paused = daemon.api.sandbox(timeout=2), daemon.api.sandbox(timeout=2)
    daemon.api.post(f"{paused.path}/pause").must(200)
    daemon.stop()
    time.sleep(2.2)
    daemon.start()
    until(lambda: short.get()["status"] == "stopped", what="the timeout")
    assert short.get()["reason"] == "timeout"
    assert paused.get()["status"] == "paused"
    daemon.api.post(f"{paused.path}/resume").must(200)
    until(lambda: paused.get()["status"] == "stopped", what="the timeout")


def test_a_terminal_outlives_the_daemon(daemon):
    box = daemon.api.sandbox()
    with Socket(daemon.api, f"{box.path}/pty") as socket:
        ident = socket.next("start")["executionId"]
        socket.send_bytes(b"x=kept; echo first-$x\n")
        data = b""
        while b"first-kept\r\n" not in data:
            message = socket.receive()
            data += message if isinstance(message, bytes) else b""
    daemon.kill("daemon")
    daemon.wait_ended()
    daemon.start()
    with Socket(daemon.api, f"{box.path}/pty?execution={ident}") as socket:
        socket.next("start")
        data = b""
        while b"first-kept\r\n" not in data:
            data += socket.receive()
        socket.send_bytes(b"echo second-$x; exit 5\n")
        exit, before = socket.until("exit")
        assert b"second-kept" in b"".join(before) and exit["exitCode"] == 5


def init_above(daemon, words):
    """The first process of the box in which this runs."""
    pid = until(lambda: next((pid for pid in machine.processes_in_group(daemon.instance())
                              if words in machine.command_of(pid)), None), what="the command")
    while machine.program_of(pid) != "holt-init":
        pid = int(machine.stat_of(pid)[1])
    return pid


def test_a_box_that_dies_while_nobody_watches_is_told(daemon):
    box = daemon.api.sandbox()
    other = daemon.api.sandbox()
    running = box.begin("echo begun; sleep 1000")
    running.wait_for_output("begun")
    daemon.kill("daemon", "launcher")
    daemon.wait_ended()
    os.kill(init_above(daemon, b"sleep\x001000"), signal.SIGKILL)
    daemon.start()
    value = box.get()
    assert value["status"] == "failed" and value["reason"] and value["endedAt"]
    done = running.get()
    assert (done["status"], done["exitCode"]) == ("interrupted", None) and done["reason"]
    until(lambda: other.execute("echo fine").status != 503, what="a box that is found again")
    assert other.run("echo fine")["stdout"] == "fine\n"
    assert box.execute("true").status in (404, 409)


def test_a_box_that_dies_under_the_daemon_s_eyes_is_told(daemon):
    box = daemon.api.sandbox()
    running = box.begin("echo begun; sleep 1000")
    running.wait_for_output("begun")
    os.kill(init_above(daemon, b"sleep\x001000"), signal.SIGKILL)
    until(lambda: box.get()["status"] == "failed", what="the failure")
    assert "signal 9" in box.get()["reason"] or "killed" in box.get()["reason"]
    assert running.wait()["status"] == "interrupted"


def test_a_deletion_that_was_under_way_is_finished(daemon):
    boxes = [daemon.api.sandbox() for _ in range(6)]
    with concurrent.futures.ThreadPoolExecutor(6) as crowd:
        answers = [crowd.submit(try_delete, box) for box in boxes]
        time.sleep(0.005)
        daemon.kill("daemon")
        answers = [answer.result() for answer in answers]
    daemon.wait_ended()
    daemon.start()
    for box, answer in zip(boxes, answers):
        status = box.get()["status"]
        assert status == "stopped" if answer == 204 else status in ("stopped", "running"), (answer, box.get())


def try_delete(box):
    try:
        return box.delete().status
    except Exception:
        return None


def test_many_restarts_in_a_row_change_nothing(daemon):
    box = daemon.api.sandbox()
    counter = box.begin(COUNT)
    text, position = "", 0
    for n in range(6):
        end_and_start(daemon, ENDS[n % len(ENDS)])
        more, position = read(counter, position, wait="10s")
        text += more
    assert count_up(text.rpartition("\n")[0]) > 5
    assert box.get()["status"] == "running" and len(machine.groups_named(daemon.instance())) > 0
