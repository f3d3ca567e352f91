"""Process.Process of envd, call by call and as the SDKs use it, with plain requests."""
import base64
import json

import pytest

from support.connect import Cut, Envd, Process, envelope, join, open_envd, start
from support.daemon import until


@pytest.fixture(scope="module")
def envd(daemon):
    made = open_envd(daemon.api, envVars={"OF_BOX": "box", "BOTH": "box"})
    yield made
    daemon.api.delete(f"/sandboxes/{made.id}")


def failed(stream):
    """The code and message of a stream that was refused."""
    assert list(stream) == []
    return stream.end["error"]["code"], stream.end["error"]["message"]


def refused(envd, call, value, **more):
    return failed(envd.stream(f"process.Process/{call}", value, **more))


def running(envd):
    return envd.unary("process.Process/List", {}).must(200).json["processes"]


# --- events ----------------------------------------------------------------------------------------


def test_a_start_is_followed_by_data_and_an_end(envd):
    with envd.stream("process.Process/Start", {"process": {"cmd": "/bin/echo", "args": ["hi"]}}) as stream:
        events = [message["event"] for message in stream]
        assert stream.end == {}
    assert list(events[0]) == ["start"] and events[0]["start"]["pid"] > 0
    assert events[1:] == [{"data": {"stdout": base64.b64encode(b"hi\n").decode()}},
                          {"end": {"exitCode": 0, "exited": True, "status": "exit status 0"}}]


def test_both_streams_and_the_status_arrive(envd):
    done = start(envd, "echo out; echo err >&2; exit 3").wait()
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    assert done.exit == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    assert done.stream.end == {}


def test_one_that_a_signal_ends_says_which(envd):
    done = start(envd, "kill -SEGV $$").wait()
    assert done.exit == {"exitCode": -1, "exited": False, "status": "signal: segmentation fault",
                         "error": "signal: segmentation fault"}


def test_pieces_are_no_larger_than_32_kib(envd):
    done = start(envd, "head -c 300000 /dev/zero").wait()
    assert done.stdout == bytes(300000)
    assert max(done.sizes) <= 32 << 10


def test_more_than_is_kept_arrives_for_who_reads_late(envd):
    """The process waits for its reader instead of losing what it has said."""
    flood = start(envd, "seq 1 1000000; echo last")
    other = start(envd, "echo meanwhile").wait()
    assert other.stdout == b"meanwhile\n"
    lines = flood.wait().stdout.split(b"\n")
    assert lines[:-2] == [b"%d" % i for i in range(1, 1000001)] and lines[-2:] == [b"last", b""]


def test_the_end_comes_when_both_pipes_are_closed(envd):
    done = start(envd, "(sleep 0.3; echo late; sleep 0.1; echo later >&2) & echo now").wait()
    assert (done.stdout, done.stderr) == (b"now\nlate\n", b"later\n")


def test_a_child_that_has_let_go_of_the_pipes_is_not_waited_for(envd):
    done = start(envd, "sleep 1000 >/dev/null 2>&1 & echo $!").wait()
    assert done.exit["exitCode"] == 0
    start(envd, f"kill {int(done.stdout)}").wait()


def test_silence_is_filled_with_pings(envd):
    quiet = start(envd, "cat", stdin=True, headers={"Keepalive-Ping-Interval": "1"})
    while quiet.pings < 2:
        assert quiet.step()
    quiet.say("CloseStdin").must(200)
    assert quiet.wait().exit["exitCode"] == 0


def test_no_pings_come_without_being_asked_for(envd):
    for value in ("0", "never"):
        done = start(envd, "sleep 1.2", headers={"Keepalive-Ping-Interval": value}).wait()
        assert (done.exit["exitCode"], done.pings) == (0, 0)


# --- what it runs in -------------------------------------------------------------------------------


def test_variables_of_the_request_win_over_those_of_the_sandbox(envd):
    done = start(envd, "echo $OF_BOX $BOTH $OWN $E2B_SANDBOX $E2B_SANDBOX_ID",
                 process={"envs": {"BOTH": "request", "OWN": "own"}}).wait()
    assert done.stdout.decode().split() == ["box", "request", "own", "true", envd.id]


def test_login_variables_are_those_of_the_user(envd):
    done = start(envd, process={"cmd": "env"}).wait()
    seen = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert (seen["USER"], seen["LOGNAME"], seen["HOME"]) == ("user", "user", "/home/user")
    assert "/usr/bin" in seen["PATH"].split(":")


def test_the_user_is_the_one_in_the_authorization(envd):
    assert start(envd, "id -un").wait().stdout == b"user\n"
    assert start(envd, "id -un", user="").wait().stdout == b"user\n"
    assert start(envd, "id -un", user="user").wait().stdout == b"user\n"


@pytest.mark.usefixtures("needs_root")  # without subordinate ids a box has one user
def test_root_is_the_boxs_own(envd):
    assert start(envd, "id -u; echo $HOME", user="root").wait().stdout == b"0\n/root\n"


def test_a_user_who_is_not_there_is_not_authenticated(envd):
    stranger = {"process": {"cmd": "true"}}
    assert refused(envd, "Start", stranger, user="nobody-here") == ("unauthenticated",
                                                                    "invalid username: 'nobody-here'")
    for bad in ("Basic !", "Basic cm9vdA=="):
        assert refused(envd, "Start", stranger, headers={"Authorization": bad})[0] == "unauthenticated"


def test_a_working_directory_begins_at_the_root_or_at_home(envd):
    start(envd, "mkdir -p ~/work/deep").wait()
    for cwd, want in ((None, "/home/user"), ("", "/home/user"), ("/tmp", "/tmp"), ("~", "/home/user"),
                      ("~/work", "/home/user/work"), ("work/deep", "/home/user/work/deep")):
        done = start(envd, "pwd", process={} if cwd is None else {"cwd": cwd}).wait()
        assert done.stdout.decode() == want + "\n", cwd


def test_a_working_directory_that_is_not_there_is_named(envd):
    for cwd in ("/not/there", "/etc/passwd", "nowhere"):
        found = refused(envd, "Start", {"process": {"cmd": "true", "cwd": cwd}})
        assert found == ("invalid_argument", f"cwd '{cwd}' does not exist")
    assert refused(envd, "Start", {"process": {"cmd": "true", "cwd": "~root"}})[0] == "invalid_argument"


def test_a_program_that_is_not_there_is_an_invalid_argument(envd):
    code, text = refused(envd, "Start", {"process": {"cmd": "/no/such/program"}})
    assert code == "invalid_argument" and "/no/such/program" in text
    assert refused(envd, "Start", {"process": {"cmd": ""}})[0] == "invalid_argument"
    assert refused(envd, "Start", {"process": {}})[0] == "invalid_argument"
    assert refused(envd, "Start", {})[0] == "invalid_argument"


# --- input -----------------------------------------------------------------------------------------


def test_input_is_open_unless_the_request_says_otherwise(envd):
    cat = Process(envd, envd.stream("process.Process/Start", {"process": {"cmd": "cat"}}))
    assert cat.write(b"to you\n").must(200).json == {}
    assert cat.until(b"to you\n").say("CloseStdin").must(200).json == {}
    assert cat.wait().stdout == b"to you\n"
    assert start(envd, "cat; echo end", stdin=False).wait().stdout == b"end\n"


def test_a_megabyte_of_input_arrives_and_more_is_refused(envd):
    count = start(envd, "wc -c", stdin=True)
    count.write(bytes(1 << 20)).must(200)
    assert count.write(bytes((1 << 20) + 1)).status in (400, 413, 429)
    count.say("CloseStdin").must(200)
    assert count.wait().stdout.strip() == b"1048576"


def test_input_that_is_closed_takes_nothing_and_closes_again(envd):
    closed = start(envd, "cat; exec sleep 1000", stdin=True)
    closed.say("CloseStdin").must(200)
    closed.say("CloseStdin").must(200)
    answer = closed.write(b"x").must(500)
    assert answer.json["code"] == "internal"
    without = start(envd, "exec sleep 1000", stdin=False)
    assert without.write(b"x").must(500).json["code"] == "internal"
    for one in (closed, without):
        one.say("SendSignal", signal="SIGNAL_SIGKILL").must(200)
        one.wait()


def test_input_goes_where_it_is_meant_or_nowhere(envd):
    cat = start(envd, "cat", stdin=True)
    assert cat.write(b"x", to="pty").must(500).json["code"] == "internal"
    assert cat.say("SendInput", input={}).must(501).json["code"] == "unimplemented"
    assert cat.say("SendInput").must(400).json["code"] == "invalid_argument"
    assert cat.say("SendInput", input={"stdin": "no base64!"}).must(400).json["code"] == "invalid_argument"
    assert cat.say("Update", pty={"size": {"cols": 10, "rows": 10}}).must(500).json["code"] == "internal"
    cat.say("CloseStdin").must(200)
    assert cat.wait().stdout == b""


def stream_input(envd, *messages):
    return envd.stream("process.Process/StreamInput", b"".join(
        message if isinstance(message, bytes) else envelope(message) for message in messages))


def bytes_for(data, to="stdin"):
    return {"data": {"input": {to: base64.b64encode(data).decode()}}}


def test_a_stream_of_input_arrives_in_its_order(envd):
    count = start(envd, "cat", stdin=True)
    pieces = [b"%d\n" % i for i in range(500)] + [b"x" * 300000 + b"\n", b"y" * 300000]
    with stream_input(envd, {"start": {"process": {"pid": count.pid}}}, {"keepalive": {}},
                      *map(bytes_for, pieces)) as stream:
        assert list(stream) == [{}] and stream.end == {}
    count.say("CloseStdin").must(200)
    assert count.wait().stdout == b"".join(pieces)


def test_a_stream_of_input_for_nobody_or_of_nothing_is_refused(envd):
    cat = start(envd, "cat", stdin=True)
    begin = {"start": {"process": {"pid": cat.pid}}}
    assert failed(stream_input(envd, {"start": {"process": {"pid": 4194000}}}))[0] == "not_found"
    for wrong in ((bytes_for(b"x"),), (begin, begin), (begin, {}), (begin, b"\0\0\0"), (begin, b"\1\0\0\0\0"),
                  (begin, envelope(b"{")), (begin, b"\0\xff\xff\xff\xff"), (begin, envelope({}, flags=2)),
                  (begin, {"data": {"input": {"stdin": "?"}}})):
        assert failed(stream_input(envd, *wrong))[0] == "invalid_argument", wrong
    assert failed(stream_input(envd, begin, bytes_for(b"x", "pty")))[0] == "internal"
    cat.say("CloseStdin").must(200)
    assert failed(stream_input(envd, begin, bytes_for(b"x")))[0] in ("internal", "not_found")
    cat.wait()


def test_a_client_that_wants_a_gateway_for_mcp_is_told_by_its_own_first_command(api, needs_root):
    """They make the sandbox, start the program in it, and kill the sandbox when that fails."""
    envd = open_envd(api, "mcp-gateway", mcp={"browserbase": {"apiKey": "x"}})
    done = start(envd, "mcp-gateway --config '{}'", user="root").wait()
    assert done.exit["exitCode"] == 127 and b"mcp-gateway: command not found" in done.stderr


# --- signals, deadline ------------------------------------------------------------------------------


@pytest.mark.parametrize("signal, status", [("SIGNAL_SIGKILL", "signal: killed"), (9, "signal: killed"),
                                            ("SIGNAL_SIGTERM", "signal: terminated"), (15, "signal: terminated")])
def test_a_signal_ends_it(envd, signal, status):
    victim = start(envd, "exec sleep 1000")
    assert victim.say("SendSignal", signal=signal).must(200).json == {}
    assert victim.wait().exit == {"exitCode": -1, "exited": False, "status": status, "error": status}


def test_a_kill_is_answered_when_the_process_is_gone(envd):
    """Seen from inside, where a client looks next; a terminal takes the longest to go."""
    for _ in range(20):
        victim = start(envd, process={"cmd": "/bin/bash", "args": ["-i"]}, pty={"size": {"cols": 80, "rows": 24}})
        victim.say("SendSignal", signal="SIGNAL_SIGKILL").must(200)
        assert victim.pid not in [process["pid"] for process in running(envd)]
        assert victim.say("SendSignal", signal="SIGNAL_SIGKILL").status == 404
        victim.wait()


def test_a_kill_takes_what_the_shell_has_started_along(envd):
    victim = start(envd, "sleep 1000 & echo $!; wait").until(b"\n")
    victim.say("SendSignal", signal="SIGNAL_SIGKILL").must(200)
    assert victim.wait().exit["status"] == "signal: killed"
    child = int(victim.stdout)
    until(lambda: start(envd, f"kill -0 {child}").wait().exit["exitCode"], what="the child's end")


def test_other_signals_are_not_implemented(envd):
    cat = start(envd, "cat", stdin=True)
    for signal in ("SIGNAL_UNSPECIFIED", "SIGNAL_SIGHUP", 0, 2, -9, 900, None, [9]):
        assert cat.say("SendSignal", signal=signal).must(501).json["code"] == "unimplemented"
    assert cat.say("SendSignal").must(501).json["code"] == "unimplemented"
    cat.say("CloseStdin").must(200)
    assert cat.wait().exit["exitCode"] == 0


def test_the_timeout_is_the_deadline_of_the_process(envd):
    late = start(envd, "sleep 1000", headers={"Connect-Timeout-Ms": "300"}).wait()
    assert late.error["code"] == "deadline_exceeded" and late.exit is None
    assert late.pid not in [process["pid"] for process in running(envd)]


def test_the_deadline_ends_what_the_process_left_behind(envd):
    late = start(envd, "sleep 1000 & echo now", headers={"Connect-Timeout-Ms": "2000"}).wait()
    assert late.error["code"] == "deadline_exceeded" and late.exit is None


def test_no_timeout_and_zero_are_none(envd):
    for value in ("0", ""):
        assert start(envd, "echo on", headers={"Connect-Timeout-Ms": value}).wait().stdout == b"on\n"
    wanted = {"process": {"cmd": "true"}}
    for value in ("soon", "-1", "12345678901"):
        assert refused(envd, "Start", wanted, headers={"Connect-Timeout-Ms": value})[0] == "invalid_argument"


# --- coming and going --------------------------------------------------------------------------------


def test_a_client_that_leaves_ends_nothing_and_another_reads_from_the_beginning(envd):
    first = start(envd, "echo one; cat; echo three", stdin=True).until(b"one\n")
    first.close()
    assert first.pid in [process["pid"] for process in running(envd)]
    second = join(envd, first.pid).until(b"one\n")
    second.write(b"two\n").must(200)
    second.say("CloseStdin").must(200)
    assert second.wait().stdout == b"one\ntwo\nthree\n"
    assert second.pid == first.pid and second.exit["exitCode"] == 0


def test_the_end_of_one_that_is_over_is_told_again(envd):
    done = start(envd, "echo said; exit 7").wait()
    for _ in range(2):
        again = join(envd, done.pid).wait()
        assert (again.stdout, again.exit["exitCode"]) == (b"said\n", 7)


def test_two_follow_one(envd):
    first = start(envd, "cat", stdin=True)
    second = join(envd, first.pid)
    first.write(b"both").must(200)
    first.say("CloseStdin").must(200)
    assert first.wait().stdout == second.wait().stdout == b"both"


def test_what_is_not_there_is_not_found(envd):
    code, text = refused(envd, "Connect", {"process": {"pid": 4194000}})
    assert code == "not_found" and "4194000" in text
    assert refused(envd, "Connect", {"process": {"tag": "no such"}})[0] == "not_found"
    gone = start(envd, "true").wait()
    for call, more in (("SendInput", {"input": {"stdin": ""}}), ("CloseStdin", {}),
                       ("SendSignal", {"signal": "SIGNAL_SIGKILL"}), ("Update", {"pty": {"size": {}}})):
        answer = gone.say(call, **more).must(404)
        assert answer.json["code"] == "not_found" and answer.json["message"]


def test_those_that_run_are_listed_with_what_they_are(envd):
    cat = start(envd, "cat", stdin=True, tag="the cat", process={"envs": {"A": "b"}, "cwd": "/tmp"})
    mine, = [process for process in running(envd) if process["pid"] == cat.pid]
    assert mine == {"pid": cat.pid, "tag": "the cat",
                    "config": {"cmd": "/bin/bash", "args": ["-l", "-c", "cat"], "envs": {"A": "b"}, "cwd": "/tmp"}}
    other = join(envd, tag="the cat")
    assert other.pid == cat.pid
    envd.unary("process.Process/CloseStdin", {"process": {"tag": "the cat"}}).must(200)
    cat.wait(), other.wait()
    assert cat.pid not in [process["pid"] for process in running(envd)]


# --- terminals ---------------------------------------------------------------------------------------


def terminal(envd, **size):
    return start(envd, process={"cmd": "/bin/bash", "args": ["-i", "-l"],
                                "envs": {"TERM": "xterm-256color", "PS1": "ready> "}}, pty={"size": size})


def test_a_terminal_takes_input_and_changes_its_size(envd):
    shell = terminal(envd, cols=81, rows=25)
    shell.write(b"stty size; echo $((40+2))\r", to="pty").must(200)
    shell.until(b"25 81", "pty").until(b"42", "pty")
    shell.say("Update", pty={"size": {"cols": 100, "rows": 30}}).must(200)
    shell.write(b"stty size\r", to="pty").must(200)
    shell.until(b"30 100", "pty")
    shell.write(b"exit 5\r", to="pty").must(200)
    shell.wait()
    assert shell.exit["exitCode"] == 5 and not shell.stdout and not shell.stderr


def test_a_terminal_has_no_stdin_to_write_to_or_to_close(envd):
    shell = terminal(envd, cols=80, rows=24)
    assert shell.write(b"x").must(500).json["code"] == "internal"
    assert shell.say("CloseStdin").must(500).json["code"] == "internal"
    shell.write(b"head -c 100000 /dev/zero | tr '\\0' x\r", to="pty").must(200)
    shell.until(b"x" * 100000, "pty")
    assert max(shell.sizes) <= 16 << 10
    shell.write(b"exit 6\r", to="pty").must(200)
    assert shell.wait().exit["exitCode"] == 6


def test_a_size_that_cannot_be_is_refused(envd):
    wanted = {"process": {"cmd": "bash"}, "pty": {"size": {"cols": 70000, "rows": 24}}}
    assert refused(envd, "Start", wanted)[0] == "invalid_argument"
    shell = terminal(envd)
    shell.write(b"stty size\r", to="pty").must(200)
    shell.until(b"24 80", "pty")
    assert shell.say("Update", pty={"size": {"cols": 1, "rows": 70000}}).must(400).json["code"] == "invalid_argument"
    shell.say("SendSignal", signal="SIGNAL_SIGKILL").must(200)
    shell.wait()


# --- the protocol ------------------------------------------------------------------------------------


def test_a_call_that_nobody_knows_is_not_implemented(envd):
    for call in ("process.Process/Dance", "process.Nothing/Start", "grpc.health.v1.Health/Check"):
        answer = envd.unary(call, {}).must(404)
        assert answer.json["code"] == "unimplemented" and answer.json["message"]
    assert envd.request("GET", "/process.Process/List").status in (404, 405)


def test_fields_that_nobody_knows_are_passed_over(envd):
    done = start(envd, "echo on", process={"newer": {"deep": [1]}}, alsoNew=7).wait()
    assert done.stdout == b"on\n"
    assert envd.unary("process.Process/List", {"later": True}).must(200)


def test_what_is_no_message_is_an_invalid_argument(envd):
    for body in (b"", b"{", b"[]", b"null", b"\xff", b"{}{}"):
        answer = envd.unary("process.Process/SendSignal", body).must(400)
        assert answer.json["code"] == "invalid_argument" and answer.json["message"]
    good = envelope({"process": {"cmd": "true"}})
    for body in (b"", good[:4], good[:-1], good + good, b"\x01" + good[1:], b"\x80" + good[1:],
                 envelope(b"{"), envelope(b"[]"), envelope({}, flags=2), b"\0\xff\xff\xff\xff{}"):
        assert refused(envd, "Start", body)[0] == "invalid_argument", body
    for wrong in ({"process": {"cmd": 7}}, {"process": []}, {"process": {"cmd": "true", "args": "x"}},
                  {"process": {"cmd": "true", "envs": {"A": 1}}}, {"process": {"cmd": "true", "envs": {"A=B": "1"}}},
                  {"process": {"cmd": "tr\0ue"}}):
        assert refused(envd, "Start", wrong)[0] == "invalid_argument", wrong


def test_what_is_too_large_is_refused(envd):
    many = {"process": {"cmd": "true", "args": ["x"] * 2000}}
    assert refused(envd, "Start", many)[0] == "invalid_argument"
    long = {"process": {"cmd": "true", "args": ["x" * (200 << 10)]}}
    assert refused(envd, "Start", long)[0] == "invalid_argument"
    large = envd.unary("process.Process/List", json.dumps({"x": "y" * (3 << 20)}).encode())
    assert large.status == 413 and large.body


def test_messages_that_are_not_json_are_not_taken(envd):
    for call, kind in (("List", "application/proto"), ("List", "application/connect+json"), ("List", "text/plain"),
                       ("Start", "application/connect+proto"), ("Start", "application/json")):
        answer = envd.unary(f"process.Process/{call}", {}, headers={"Content-Type": kind})
        assert answer.status == 415 and answer.json["message"]
        assert answer.headers["Accept-Post"] in ("application/json", "application/connect+json")


def test_nobody_gets_in_without_the_sandboxs_own_token(daemon, api, envd):
    other = open_envd(daemon.api)
    for token in (None, "", "x", envd.token[:-1] + ("0" if envd.token[-1] != "0" else "1"), other.token):
        stranger = Envd(api, envd.id, token)
        answer = stranger.unary("process.Process/List", {}).must(401)
        assert answer.json["code"] == "unauthenticated" and answer.json["message"]
        with pytest.raises(AssertionError, match="401"):
            start(stranger, "true")
    daemon.api.delete(f"/sandboxes/{other.id}").must(204)


def test_a_sandbox_that_ends_cuts_its_streams_off_and_is_gone(daemon):
    envd = open_envd(daemon.api)
    assert envd.request("GET", "/health").status == 204
    quiet, terminal_ = start(envd, "exec sleep 1000"), terminal(envd)
    daemon.api.delete(f"/sandboxes/{envd.id}").must(204)
    for one in (quiet, terminal_):
        with pytest.raises(Cut):
            one.wait()
        assert one.exit is None and one.stream.end is None
    until(lambda: envd.request("GET", "/health").status == 502, what="its end")
    answer = envd.unary("process.Process/List", {}).must(502)
    assert answer.json["code"] == 502 and answer.json["sandboxId"] == envd.id


def test_a_sandbox_has_room_for_so_many_streams_and_no_more(daemon):
    envd = open_envd(daemon.api)
    cat = start(envd, "cat", stdin=True)
    more = [join(envd, cat.pid) for _ in range(63)]
    code, text = refused(envd, "Connect", {"process": {"pid": cat.pid}})
    assert code == "resource_exhausted" and "64" in text
    more.pop().close()
    until(lambda: not refused_or_none(envd, cat.pid), what="room for another")
    for one in more:
        one.close()
    daemon.api.delete(f"/sandboxes/{envd.id}").must(204)


def refused_or_none(envd, pid):
    with envd.stream("process.Process/Connect", {"process": {"pid": pid}}) as stream:
        return next(stream, None) is None
