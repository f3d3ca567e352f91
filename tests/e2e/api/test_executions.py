"""Executions: every way to start one, to follow it and to end it, and what its end says."""
import base64
import concurrent.futures
import json
import time

import pytest

from support.daemon import IS_ROOT, until

FIELDS = ["executionId", "sandboxId", "kind", "status", "reason", "startedAt", "completedAt", "exitCode",
          "signal", "timedOut", "truncated", "oomKilled", "cancelled", "leftovers", "warm", "background",
          "durationMs", "cpuMs", "peakMemoryBytes", "outputBytes", "omittedBytes", "stdout", "stderr"]
PLAIN = {"status": "completed", "reason": None, "exitCode": 0, "signal": None, "timedOut": False,
         "truncated": False, "oomKilled": False, "cancelled": False, "leftovers": False, "omittedBytes": 0}


def some(value, *names):
    return {name: value[name] for name in names}


# --- run and wait --------------------------------------------------------------------------------


def test_an_execution_has_every_documented_field(box):
    value = box.run("echo out; echo err >&2")
    assert list(value) == FIELDS
    assert some(value, *PLAIN) == PLAIN
    assert (value["kind"], value["background"], value["warm"]) == ("command", False, False)
    assert (value["stdout"], value["stderr"], value["outputBytes"]) == ("out\n", "err\n", 8)
    assert value["sandboxId"] == box.id and len(value["executionId"]) == 20
    assert value["startedAt"] <= value["completedAt"]
    assert value["durationMs"] > 0 and value["cpuMs"] >= 0 and value["peakMemoryBytes"] > 0


@pytest.mark.parametrize("language, text, out", [
    ("python", "print(6*7)", "42\n"), ("python3", "print('a')", "a\n"), ("py", "print('b')", "b\n"),
    ("javascript", "console.log(6*7)", "42\n"), ("js", "console.log('a')", "a\n"),
    ("node", "console.log('b')", "b\n"), ("nodejs", "console.log('c')", "c\n"),
    ("bash", "echo ${BASH_VERSION:+bash}", "bash\n"), ("sh", "echo a", "a\n"), ("shell", "echo b", "b\n")])
def test_code_runs_in_every_language(api, language, text, out):
    box = api.sandbox("base")
    value = box.code(language, text)
    assert (value["kind"], value["stdout"], value["exitCode"]) == ("code", out, 0), value
    box.delete().must(204)


def test_a_waiting_interpreter_is_quick_and_forgets(python):
    assert python.code("python", "secret = 1; print('x')")["stdout"] == "x\n"
    until(lambda: python.code("python", "print(1)")["warm"], what="a warm run")
    value = python.code("python", "print('secret' in globals())")
    assert value["stdout"] == "False\n"


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_codes_come_back(box, code):
    value = box.run(f"exit {code}")
    assert (value["exitCode"], value["status"], value["signal"]) == (code, "completed", None)


def test_a_signal_that_ends_it_is_named(box):
    value = box.run("kill -SEGV $$")
    assert (value["exitCode"], value["signal"], value["status"]) == (139, "SIGSEGV", "completed")


def test_an_exception_is_told_on_stderr(python):
    value = python.code("python", "raise ValueError('no good')")
    assert value["exitCode"] == 1 and "ValueError: no good" in value["stderr"]


def test_where_and_with_what_it_runs(api):
    box = api.sandbox(env={"A": "box", "B": "box"})
    value = box.run("pwd; echo $A $B $C", cwd="/tmp", env={"B": "own", "C": "own"})
    assert value["stdout"] == "/tmp\nbox own own\n"
    assert box.run("pwd")["stdout"] == "/workspace\n"
    assert box.run("id -u; id -g")["stdout"] == "1000\n1000\n"
    box.delete().must(204)


def test_a_text_as_stdin_is_given_with_its_end(box):
    assert box.run("cat; echo '<end>'", stdin="a\nb")["stdout"] == "a\nb<end>\n"
    assert box.run("cat; echo '<end>'")["stdout"] == "<end>\n"
    big = "0123456789abcdef" * 40000
    value = box.run("wc -c", stdin=big)
    assert value["stdout"].strip() == str(len(big))


def test_argv_needs_no_shell(box):
    answer = box.api.post(f"{box.path}/executions", {"argv": ["/bin/echo", "$HOME", "a  b", ""]}).must(200)
    assert answer.json["stdout"] == "$HOME a  b \n"
    assert answer.json["kind"] == "command"


def test_what_cannot_be_started_failed_and_says_why(box):
    value = box.api.post(f"{box.path}/executions", {"argv": ["/no/such/program"]}).must(200).json
    assert (value["status"], value["exitCode"]) == ("failed", None)
    assert "No such file" in value["reason"]
    value = box.run("true", cwd="/no/such/directory")
    assert value["status"] == "failed" and value["reason"]


def test_a_user_can_be_named(box):
    def who(user):
        return box.api.post(f"{box.path}/executions", {"command": "id -u", "user": user})
    assert who("1000").must(200).json["stdout"] == "1000\n"
    root = who("0").must(200).json
    if IS_ROOT:
        assert root["stdout"] == "0\n"
    else:  # a box of an ordinary user has one user
        assert root["status"] == "failed" and root["reason"]
    answer = who("nosuchuser")
    assert answer.status == 400 or answer.json["status"] == "failed", answer


@pytest.mark.parametrize("body, field", [
    ({"content": "x"}, "type"), ({"type": "command"}, "content"), ({"type": "poem", "content": "x"}, "type"),
    ({"type": "command", "content": 5}, "content"), ({"type": "command", "content": ""}, "content"),
    ({"type": "code", "content": "x"}, "language"),
    ({"type": "code", "content": "x", "language": "cobol"}, "language"),
    ({"type": "command", "content": "x", "timeout": "61m"}, "timeout"),
    ({"type": "command", "content": "x", "timeout": "forever"}, "timeout"),
    ({"type": "command", "content": "x", "stdin": 5}, "stdin"),
    ({"type": "command", "content": "x", "stdin": True}, "stdin"),
    ({"type": "command", "content": "x", "env": {"A": None}}, "env.A"),
    ({"type": "command", "content": "x", "background": True, "cancelOnDisconnect": True},
     "cancelOnDisconnect"),
    ({"type": "command", "content": "x", "argv": ["x"]}, "argv"),
    ({"type": "command", "content": "x", "colour": "red"}, "colour")])
def test_a_bad_field_of_execute_is_named(box, body, field):
    box.api.post(f"{box.path}/execute", body).error(400, field=field)


@pytest.mark.parametrize("body", [
    {}, {"command": "a", "argv": ["b"]}, {"command": "a", "code": "b"}, {"argv": []}, {"argv": "ls"},
    {"code": "x"}, {"command": "a", "rows": 0}, {"command": "a", "rows": 65536}, {"argv": ["a", 5]},
    {"pty": True, "cols": -1, "background": True}])
def test_a_bad_execution_is_refused(box, body):
    answer = box.api.post(f"{box.path}/executions", body).must(400)
    assert answer.json["error"]["code"] == "invalid_request"


# --- limits --------------------------------------------------------------------------------------


def test_a_timeout_ends_the_whole_tree_and_is_flagged(box):
    value = box.run("sleep 300 & setsid sleep 301 & echo started; sleep 302", timeout="300ms")
    assert (value["status"], value["timedOut"], value["stdout"]) == ("timeout", True, "started\n")
    assert value["exitCode"] is not None
    assert box.run("pgrep -c sleep || true")["stdout"] == "0\n"


def test_too_much_memory_is_flagged(api):
    box = api.sandbox("python", resources={"memory": "64Mi"})
    value = box.code("python", "x = bytearray(500 << 20)\nprint(len(x))")
    if value["oomKilled"]:
        assert (value["exitCode"], value["signal"], value["status"]) == (137, "SIGKILL", "completed")
    else:  # some kernels refuse before they kill
        assert "MemoryError" in value["stderr"], value
    value = box.run("python3 -c \"x=[bytes([n%251])*(1<<20) for n in range(500)]\"; echo $?")
    assert value["oomKilled"] or "137" in value["stdout"], value
    assert box.run("echo fine")["stdout"] == "fine\n"
    box.delete().must(204)


def test_the_oldest_output_gives_way_and_is_counted(box):
    value = box.run("seq 1 300000", timeout=100)
    size = sum(len(str(n)) + 1 for n in range(1, 300001))
    assert (value["truncated"], value["outputBytes"]) == (True, size)
    assert value["stdout"].endswith("\n299999\n300000\n")
    assert len(value["stdout"]) + value["omittedBytes"] == size
    assert 1 << 19 < len(value["stdout"]) <= 1 << 20


def test_what_it_leaves_behind_is_flagged(box):
    value = box.run("sleep 60 >/dev/null 2>&1 & echo on")
    assert (value["leftovers"], value["stdout"]) == (True, "on\n")
    until(lambda: box.run("pgrep -c sleep")["stdout"] == "1\n", what="the program behind the shell")


def test_many_at_once_in_one_sandbox_are_bounded(api):
    box = api.sandbox(resources={"pids": 400})
    running = []
    for _ in range(200):
        answer = box.api.post(f"{box.path}/executions", {"argv": ["/bin/sleep", "100"], "background": True})
        if answer.status != 202:
            break
        running.append(answer.json["executionId"])
    answer.error(503)
    assert answer.headers["Retry-After"] and len(running) == box.get()["runningExecutions"] == 128
    for ident in running:
        box.api.delete(f"{box.path}/executions/{ident}").must(204)
    until(lambda: box.get()["runningExecutions"] == 0, 30, "their end")
    assert box.run("echo on")["stdout"] == "on\n"
    box.delete().must(204)


def test_more_processes_than_allowed_fail_and_nothing_else_does(api):
    box = api.sandbox(resources={"pids": 20})
    crowd = "import os\ntry:\n while True: os.fork() or os.execlp('sleep', 'sleep', '60')\n" \
            "except OSError as e: print(e)"
    value = box.api.post(f"{box.path}/executions", {"argv": ["python3", "-c", crowd]}).must(200).json
    assert (value["exitCode"], value["leftovers"]) == (0, True) and "unavailable" in value["stdout"], value
    last = box.begin("exec sleep 60")
    value = box.run("true")
    assert value["status"] == "failed" and value["reason"], value
    last.cancel().must(204)
    last.wait()
    assert box.run("echo room")["stdout"] == "room\n"
    assert box.get()["status"] == "running"
    box.delete().must(204)


# --- background ----------------------------------------------------------------------------------


def test_a_background_execution_answers_at_once_and_runs_on(box):
    answer = box.api.post(f"{box.path}/execute", {"type": "command", "background": True,
                                                  "content": "sleep 0.3; echo later; exit 3"}).must(202)
    value = answer.json
    assert (value["status"], value["background"], value["exitCode"]) == ("running", True, None)
    assert value["completedAt"] is None
    path = f"/api/v1{box.path}/executions/{value['executionId']}"
    assert answer.headers["Location"] == path
    assert box.api.get(f"{path}/wait?timeout=0").must(202).json["status"] == "running"
    done = box.api.get(f"{path}/wait").must(200).json
    assert (done["status"], done["exitCode"], done["stdout"]) == ("completed", 3, "later\n")
    again = box.api.get(path).must(200).json
    assert again == done
    assert box.api.get(f"{path}/wait?timeout=0").must(200).json == done


def test_background_has_no_timeout_unless_it_asks(box):
    running = box.begin("sleep 5", timeout="200ms")
    assert running.wait()["status"] == "timeout"


def test_the_list_has_every_execution_once_without_output(box):
    ids = [box.run(f"echo {n}")["executionId"] for n in range(5)]
    ids.append(box.begin("sleep 60").id)
    seen, cursor = [], ""
    while cursor is not None:
        page = box.api.get(f"{box.path}/executions?limit=2" + (f"&cursor={cursor}" if cursor else "")).must(200).json
        assert list(page) == ["items", "nextCursor"]
        for item in page["items"]:
            assert list(item) == FIELDS[:-2]
            seen.append(item["executionId"])
        cursor = page["nextCursor"]
    assert seen == ids[::-1]


def test_an_unknown_execution_is_not_found(box):
    for method, more in (("GET", ""), ("DELETE", ""), ("GET", "/output"), ("GET", "/wait"), ("POST", "/stdin"),
                         ("POST", "/cancel")):
        box.api.ask(method, f"{box.path}/executions/{'a' * 20}{more}").error(404)
    box.api.post(f"{box.path}/executions/nope/signal", {"signal": 15}).error(404)
    box.api.post(f"{box.path}/executions/nope/resize", {"rows": 1, "cols": 1}).error(404)


def test_an_execution_is_found_in_its_own_sandbox_only(api, box):
    other = api.sandbox()
    ident = box.run("true")["executionId"]
    api.get(f"{box.path}/executions/{ident}").must(200)
    api.get(f"{other.path}/executions/{ident}").error(404)
    other.delete().must(204)


# --- input, signals, cancel ----------------------------------------------------------------------


def test_input_arrives_in_pieces_until_its_end(box):
    running = box.begin("while read line; do echo got:$line; done; echo over", stdin=True)
    assert running.stdin(b"one\n").must(200).json == {"bytes": 4, "eof": False}
    running.wait_for_output("got:one\n")
    assert running.stdin(b"two\n", eof=True).must(200).json == {"bytes": 4, "eof": True}
    assert running.wait()["stdout"] == "got:one\ngot:two\nover\n"
    running.stdin(b"late").error(409)


def test_an_empty_body_may_close_the_input(box):
    running = box.begin("cat", stdin=True)
    assert running.stdin(eof=True).must(200).json == {"bytes": 0, "eof": True}
    assert running.wait()["exitCode"] == 0


def test_input_of_exact_bytes_survives(box):
    data = bytes(range(256)) * 2048
    running = box.begin("sha256sum", stdin=True)
    for start in range(0, len(data), 100000):
        running.stdin(data[start:start + 100000]).must(200)
    running.stdin(eof=True).must(200)
    import hashlib
    assert running.wait()["stdout"].split()[0] == hashlib.sha256(data).hexdigest()


def test_input_that_nobody_reads_waits_and_is_bounded(box):
    running = box.begin("sleep 100", stdin=True)
    with concurrent.futures.ThreadPoolExecutor(30) as crowd:
        futures = [crowd.submit(running.stdin, b"x" * (1 << 20)) for _ in range(30)]
        until(lambda: sum(future.done() for future in futures) >= 13, what="refusals")
        running.cancel().must(204)
        answers = [future.result().status for future in futures]
    assert answers.count(503) >= 10, answers
    assert set(answers) <= {200, 409, 503}, answers
    running.stdin(b"x" * ((1 << 20) + 1)).must(413)


def test_no_open_input_is_a_conflict(box):
    box.begin("sleep 5").stdin(b"x").error(409)


@pytest.mark.parametrize("name", ["SIGUSR1", "USR1", 10])
def test_signals_by_name_and_number(box, name):
    running = box.begin("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done")
    running.wait_for_output("ready")
    running.signal(name).must(204)
    done = running.wait()
    assert (done["stdout"], done["exitCode"]) == ("ready\ncaught\n", 5)
    running.signal(name).error(409)


def test_a_signal_to_the_tree_reaches_everything(box):
    running = box.begin("sleep 300 & setsid sleep 301 & echo ready; wait")
    running.wait_for_output("ready")
    running.signal("KILL", tree=True).must(204)
    running.wait()
    until(lambda: box.run("pgrep -c sleep || true")["stdout"] == "0\n")


@pytest.mark.parametrize("value", ["NOPE", 0, 65, -1, 9999, None, [], "SIG"])
def test_no_such_signal(box, value):
    running = box.begin("sleep 5")
    running.signal(value).error(400, field="signal")


def test_cancel_ends_the_tree_with_a_grace(box):
    polite = box.begin("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    rude = box.begin("trap '' TERM; (trap '' TERM; sleep 300) & echo ready; while :; do sleep 0.05; done")
    for running in (polite, rude):
        running.wait_for_output("ready")
    polite.cancel().must(204)
    box.api.delete(rude.path).must(204)
    done = polite.wait()
    assert (done["status"], done["cancelled"], done["stdout"]) == ("cancelled", True, "ready\nbye\n")
    done = rude.wait()
    assert (done["status"], done["cancelled"], done["signal"]) == ("cancelled", True, "SIGKILL")
    until(lambda: box.run("pgrep -c sleep || true")["stdout"] == "0\n")
    polite.cancel().must(204)


def test_a_client_that_leaves_ends_only_what_it_asked_to_end(box):
    for ends in (True, False):
        connection = box.api.connect()
        connection.request("POST", f"/api/v1{box.path}/execute",
                           body=json.dumps({"type": "command", "content": "sleep 100",
                                            "timeout": 90, "cancelOnDisconnect": ends}),
                           headers={"Authorization": f"Bearer {box.api.key}",
                                    "Content-Type": "application/json"})
        until(lambda: box.get()["runningExecutions"] == 1)
        connection.close()
        if ends:
            until(lambda: box.get()["runningExecutions"] == 0, what="the cancel")
    time.sleep(0.5)
    assert box.get()["runningExecutions"] == 1


def test_the_end_of_the_box_is_an_interruption(api):
    box = api.sandbox()
    running = box.begin("echo begun; sleep 100")
    running.wait_for_output("begun")
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        waiting = other.submit(running.wait)
        time.sleep(0.2)
        box.delete().must(204)
        done = waiting.result()
    assert done["status"] in ("interrupted", "cancelled") and done["exitCode"] is None, done
    assert done["stdout"] == "begun\n" and done["reason"]
    assert running.get()["status"] == done["status"]


def test_a_box_that_kills_its_own_init_is_failed_with_a_reason(api):
    box = api.sandbox("python", resources={"memory": "64Mi"})
    assert box.run("kill -9 1; kill -TERM 1; echo alive")["stdout"] == "alive\n"
    assert box.get()["status"] == "running"
    box.delete().must(204)


# --- text and bytes ------------------------------------------------------------------------------


def test_invalid_text_is_replaced_and_base64_is_exact(python):
    text = r"import sys; sys.stdout.buffer.write(b'a\xff\xc3\x28z\x00' + bytes(range(128, 256)))"
    value = python.code("python", text)
    assert value["stdout"].startswith("a\ufffd") and "\x00" in value["stdout"]
    exact = b"a\xff\xc3\x28z\x00" + bytes(range(128, 256))
    again = python.api.get(f"{python.path}/executions/{value['executionId']}?encoding=base64").must(200).json
    assert base64.b64decode(again["stdout"]) == exact
    direct = python.execute(text, kind="code", language="python", query="?encoding=base64").must(200).json
    assert base64.b64decode(direct["stdout"]) == exact
    python.api.get(f"{python.path}/executions/{value['executionId']}?encoding=rot13").error(400, field="encoding")
