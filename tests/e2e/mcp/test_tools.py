"""The tools, as a model uses them: by plain requests of the modern era against a real daemon."""
import base64
import json
import threading

import pytest

from support import machine
from support.chain import all_lines
from support.daemon import Daemon, until
from support.mcp import Legacy, Modern, RpcError


@pytest.fixture
def legacy(daemon):
    peer = Legacy(daemon).initialize()
    yield peer
    peer.end()


class Box:
    """One sandbox of a test's own, by its tools."""

    def __init__(self, daemon):
        self.peer = Modern(daemon)
        self.id = self.ok("sandbox_create")["sandbox_id"]

    def raw(self, tool, **arguments):
        if not tool.startswith("sandbox_"):
            arguments.setdefault("sandbox_id", self.id)
        return self.peer.call("tools/call", {"name": tool, "arguments": arguments})

    def ok(self, tool, **arguments):
        result = self.raw(tool, **arguments)
        assert not result.get("isError"), result
        return result.get("structuredContent", result["content"])

    def fails(self, tool, **arguments):
        result = self.raw(tool, **arguments)
        assert result["isError"], result
        return result["content"][0]["text"]

    def text(self, path, **arguments):
        return [block["text"] for block in self.ok("read_file", path=path, **{"line_numbers": False, **arguments})]


@pytest.fixture(scope="module")
def box(daemon):
    made = Box(daemon)
    yield made
    made.ok("sandbox_kill", sandbox_id=made.id)


def sleeping(number):
    """Who sleeps so many seconds, on the whole machine; no other test uses the number."""
    wanted = b"sleep\0%d\0" % number
    return [pid for pid in machine.pids() if machine.command_of(pid) == wanted]


# --- the list ----------------------------------------------------------------------------------


def test_the_list_is_whole_sorted_and_the_same_each_time(daemon):
    peer = Modern(daemon)
    tools = peer.call("tools/list")["tools"]
    names = [tool["name"] for tool in tools]
    assert names == sorted(names)
    assert {"exec", "run_code", "read_file", "write_file", "edit_file", "list_dir", "search_files", "process_start",
            "process_output", "process_input", "process_kill", "process_list", "sandbox_create", "sandbox_list",
            "sandbox_kill", "sandbox_fork", "sandbox_snapshot"} <= set(names)
    assert peer.call("tools/list")["tools"] == tools
    for tool in tools:
        assert tool["description"] and tool["title"], tool["name"]
        assert tool["inputSchema"]["type"] == "object"
        for name, field in tool["inputSchema"].get("properties", {}).items():
            assert field.get("description"), f"{tool['name']}.{name}"
    one = next(tool for tool in tools if tool["name"] == "exec")
    assert one["inputSchema"]["required"] == ["command"]
    assert set(one["inputSchema"]["properties"]) == {"command", "timeout_ms", "working_dir", "env", "session",
                                                     "sandbox_id"}
    assert one["inputSchema"]["additionalProperties"] is False
    assert one["outputSchema"]["properties"]["exit_code"]["type"] == ["integer", "null"]
    assert next(t for t in tools if t["name"] == "read_file")["annotations"]["readOnlyHint"] is True


def test_schemas_say_what_settings_allow_and_are_fit_for_strict_hosts():
    """No maps with names of the model's own, null for what may be left out, real bounds and defaults."""
    def walk(schema, where):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False, where
        for name, field in schema.get("properties", {}).items():
            assert name in schema.get("required", []) or "null" in field["type"], f"{where}.{name}"
            assert field.get("maximum", 0) < 2 ** 53, f"{where}.{name}"
            walk(field, f"{where}.{name}")
    with Daemon("--exec-timeout", "7s", "--exec-timeout-max", "70s") as daemon:
        peer = Modern(daemon)
        tools = {tool["name"]: tool["inputSchema"] for tool in peer.call("tools/list")["tools"]}
        for name, schema in tools.items():
            walk(schema, name)
        for name in ("exec", "run_code"):
            time = tools[name]["properties"]["timeout_ms"]
            assert (time["default"], time["maximum"]) == (7000, 70_000)
        assert tools["read_file"]["properties"]["offset"]["default"] == 1
        assert tools["search_files"]["properties"]["limit"]["default"] == 100
        result = peer.tool("exec", command="true", timeout_ms=70_001)
        assert result["isError"] and "timeout_ms" in result["content"][0]["text"]
        given = peer.tool("exec", command="echo $A", env=["A=b=c"], session=None, working_dir=None, timeout_ms=None)
        assert given["structuredContent"]["stdout"] == "b=c\n"
        assert "NAME=value" in peer.tool("exec", command="true", env=["A"])["content"][0]["text"]


def test_a_command_is_told_in_plain_text(box):
    def said(command):
        return box.peer.tool("exec", sandbox_id=box.id, command=command)["content"][0]["text"]
    assert said("echo out") == "out\n"
    assert said("echo out; echo err >&2; exit 3") == "out\n[stderr]\nerr\n[exit code 3]\n"
    assert said("true") == "[exit code 0, no output]\n"
    listed = box.peer.tool("list_dir", sandbox_id=box.id, path="/etc")["content"][0]["text"]
    assert not listed.startswith("{") and "- name: passwd" in listed


def test_a_session_of_exec_keeps_directory_and_variables(box):
    box.ok("exec", command="mkdir -p deep; cd deep; export A=1; B=2", session="s")
    assert box.ok("exec", command="pwd; echo $A$B", session="s")["stdout"] == "/workspace/deep\n12\n"
    assert box.ok("exec", command="pwd; echo $A$B")["stdout"] == "/workspace\n\n"
    assert box.ok("exec", command="echo $C", session="s", env=["C=3"])["stdout"] == "3\n"
    assert box.ok("exec", command="(exit 4)", session="s")["exit_code"] == 4
    assert "working_dir" in box.fails("exec", command="true", session="s", working_dir="/tmp")


def test_lines_have_their_numbers(box):
    box.ok("write_file", path="numbered", content="one\ntwo\nthree")
    assert box.text("numbered", line_numbers=True) == ["     1\tone\n     2\ttwo\n     3\tthree"]
    assert box.ok("read_file", path="numbered", offset=2, limit=1)[0]["text"] == "     2\ttwo\n"


def test_an_edit_tells_the_lines_that_changed(box):
    box.ok("write_file", path="changed", content="a\nb x c x\nd\nx\n")
    told = box.ok("edit_file", path="changed", old_text="x", new_text="1\n2", replace_all=True, dry_run=True)
    assert told["changes"] == [{"line": 2, "text": "b 1\n2 c 1\n2"}, {"line": 6, "text": "1\n2"}]
    assert box.ok("edit_file", path="changed", old_text="d\n", new_text="")["changes"] == [{"line": 3, "text": "x"}]
    assert box.text("changed") == ["a\nb x c x\nx\n"]


def test_a_call_is_logged_with_its_tool():
    with Daemon() as daemon:
        Modern(daemon).tool("sandbox_list")
        with pytest.raises(RpcError):
            Modern(daemon).tool("no_such_tool")
        until(lambda: "tool=sandbox_list" in daemon.log() or '"tool":"sandbox_list"' in daemon.log(), what="its line")
        assert "no_such_tool" not in daemon.log()


def test_a_cursor_that_was_never_given_is_refused(daemon):
    with pytest.raises(RpcError) as refused:
        Modern(daemon).call("tools/list", {"cursor": "nonsense"})
    assert refused.value.code == -32602


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(daemon):
    peer = Modern(daemon)
    for params in ({"name": "no_such"}, {}, {"name": 5}, {"name": "exec", "arguments": [1]}):
        with pytest.raises(RpcError) as refused:
            peer.call("tools/call", params)
        assert refused.value.code == -32602, params


@pytest.mark.parametrize("arguments, says", [
    ({}, "command"), ({"command": ""}, "command"), ({"command": 5}, "command"), ({"command": "true", "tiemout": 1}, "tiemout"),
    ({"command": "true", "timeout_ms": -1}, "timeout_ms"), ({"command": "true", "timeout_ms": 10**15}, "timeout_ms"),
    ({"command": "true", "env": ["1X=y"]}, "env"), ({"command": "x" * 100_000}, "command"),
    ({"command": "true", "working_dir": "/" + "d" * 5000}, "working_dir"),
    ({"command": "true", "sandbox_id": "nobodys"}, "nobodys")])
def test_wrong_arguments_are_told_to_the_model(box, arguments, says):
    assert says in box.fails("exec", **{"sandbox_id": box.id, **arguments})


# --- exec --------------------------------------------------------------------------------------


def test_a_command_says_what_it_wrote_and_how_it_ended(box):
    got = box.ok("exec", command="echo hello; echo oops >&2; exit 42")
    assert (got["stdout"], got["stderr"], got["exit_code"]) == ("hello\n", "oops\n", 42)
    assert (got["timed_out"], got["truncated"], got["notes"]) == (False, False, [])
    assert got["sandbox_id"] == box.id and got["duration_ms"] > 0
    result = box.raw("exec", command="echo hello")
    assert result["content"][0]["text"] == result["structuredContent"]["stdout"]


def test_a_command_runs_where_and_with_what_it_is_told(box):
    assert box.ok("exec", command="pwd")["stdout"] == "/workspace\n"
    box.ok("exec", command="mkdir -p deep/er")
    assert box.ok("exec", command="pwd", working_dir="deep/er")["stdout"] == "/workspace/deep/er\n"
    assert box.ok("exec", command="pwd", working_dir="/tmp")["stdout"] == "/tmp\n"
    assert "nowhere" in box.fails("exec", command="pwd", working_dir="nowhere")
    assert box.ok("exec", command="echo $A-$B", env=["A=1", "B=two words"])["stdout"] == "1-two words\n"


def test_a_command_that_takes_too_long_is_ended_and_the_result_says_so(box):
    got = box.ok("exec", command="echo begun; sleep 4711 & sleep 4711", timeout_ms=700)
    assert got["timed_out"] is True and got["exit_code"] != 0
    assert got["stdout"] in ("begun\n", "")  # however slow the machine is
    assert any("timed out" in note for note in got["notes"])
    until(lambda: not sleeping(4711))


def test_much_output_is_told_head_and_tail_and_a_file_has_the_rest(box):
    got = box.ok("exec", command="seq 1 100000; echo end >&2")
    assert got["truncated"] is True and got["exit_code"] == 0
    assert got["stdout"].startswith("1\n2\n3\n") and got["stdout"].endswith("\n99999\n100000\n")
    assert "bytes left out" in got["stdout"] and len(got["stdout"]) < 40_000
    assert got["stderr"] == "end\n"
    assert got["output_file"].startswith("/workspace/.holt/output/")
    assert box.ok("exec", command=f"grep -c . {got['output_file']}")["stdout"] == "100001\n"


def test_more_output_than_is_kept_is_said(box):
    got = box.ok("exec", command="head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert got["truncated"] is True and got["stdout"].endswith("x\nend\n")
    assert any("were not kept" in note for note in got["notes"]), got["notes"]


def test_output_that_is_no_text_is_marked(box):
    got = box.ok("exec", command="printf 'a\\xff\\xfeb\\0c'")
    assert got["stdout"] == "a\ufffd\ufffdb\0c"
    assert any("UTF-8" in note for note in got["notes"])


def test_characters_are_not_cut_in_the_middle(box):
    got = box.ok("exec", command="for i in $(seq 1 30000); do printf 'ä€'; done")
    assert "\ufffd" not in got["stdout"] and got["truncated"]
    assert not any("UTF-8" in note for note in got["notes"])


def test_a_call_that_is_cancelled_ends_all_that_it_started(daemon, legacy):
    legacy.tool("exec", command="true")
    # A tree that would outlive its parent, and goes into a session of its own.
    params = {"name": "exec", "arguments": {"command": "setsid sleep 4712 & (sleep 4712; true) & sleep 4712"}}
    number = legacy.next_id()
    reply = []
    thread = threading.Thread(target=lambda: reply.append(legacy.post(
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})))
    thread.start()
    until(lambda: len(sleeping(4712)) == 3)
    assert legacy.notify("notifications/cancelled", {"requestId": number, "reason": "test"}) == 202
    until(lambda: not sleeping(4712))
    thread.join()
    reply[0].close()
    assert legacy.tool("exec", command="echo fine")["structuredContent"]["stdout"] == "fine\n"


def test_a_bomb_of_processes_is_cancelled_too(legacy):
    legacy.tool("exec", command="true")
    bomb = "f() { f & f & sleep 4713; }; f; sleep 4713"
    number, done = legacy.next_id(), []
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call",
               "params": {"name": "exec", "arguments": {"command": bomb}}}
    thread = threading.Thread(target=lambda: done.append(legacy.post(message)))
    thread.start()
    until(lambda: len(sleeping(4713)) > 5)
    legacy.notify("notifications/cancelled", {"requestId": number})
    until(lambda: not sleeping(4713))
    thread.join()
    done[0].close()
    assert not legacy.tool("exec", command="true").get("isError")


def test_somebody_who_wants_to_know_hears_how_it_goes(box):
    heard = []
    result = box.peer.tool("exec", meta={"progressToken": "p"}, heard=heard, sandbox_id=box.id,
                           command="for i in 1 2 3 4; do echo line $i; sleep 0.9; done")
    assert result["structuredContent"]["stdout"] == "line 1\nline 2\nline 3\nline 4\n"
    told = [message["params"] for message in heard if message["method"] == "notifications/progress"]
    assert told and all(one["progressToken"] == "p" for one in told)
    assert [one["progress"] for one in told] == sorted({one["progress"] for one in told})
    assert any("line" in one["message"] for one in told)


def test_memory_that_was_used_up_is_said(box):
    got = box.ok("run_code", code="x = bytearray(10**10)\nfor i in range(0, len(x), 4096): x[i] = 1")
    assert got["exit_code"] != 0
    assert "MemoryError" in got["stderr"] or any("memory" in note for note in got["notes"]), got


def test_a_daemon_that_ends_leaves_what_runs_running():
    with Daemon() as daemon:
        peer = Legacy(daemon).initialize()
        peer.tool("exec", command="true")
        busy = [("exec", {"command": "sleep 4716", "timeout_ms": 600_000}),
                ("run_code", {"context_id": "c", "code": "import time; time.sleep(4717)", "timeout_ms": 600_000}),
                ("run_code", {"code": "import os; os.execvp('sleep', ['sleep', '4718'])", "timeout_ms": 600_000})]
        process = peer.tool("process_start", command="echo x; sleep 4719")["structuredContent"]["process_id"]
        busy.append(("process_output", {"process_id": process, "position": 2, "wait_ms": 60_000}))
        threads = [threading.Thread(target=gone, args=(peer, name, given)) for name, given in busy]
        for thread in threads:
            thread.start()
        until(lambda: sleeping(4716) and sleeping(4718) and sleeping(4719))
        daemon.stop()
        for thread in threads:
            thread.join()
        assert sleeping(4716) and sleeping(4718) and sleeping(4719)
        daemon.start()
        after = Legacy(daemon)
        after.session, after.version = peer.session, peer.version
        listed = after.tool("process_list")["structuredContent"]["processes"]
        assert sum(one["running"] for one in listed) >= 3


def gone(peer, name, arguments):
    """A call whose answer never comes."""
    try:
        peer.post({"jsonrpc": "2.0", "id": peer.next_id(), "method": "tools/call",
                   "params": {"name": name, "arguments": arguments}}).close()
    except OSError:
        pass


# --- one's own sandbox -------------------------------------------------------------------------


def test_a_session_that_asks_for_it_has_a_sandbox_of_its_own(daemon, api):
    one, two = (Legacy(daemon, path="/mcp?sandbox=session").initialize() for _ in range(2))

    def run(peer, command):
        return peer.tool("exec", command=command)["structuredContent"]

    first = run(one, "echo mine > note; cat note")
    assert first["stdout"] == "mine\n" and any("new sandbox" in note for note in first["notes"])
    again = run(one, "cat note")
    assert (again["sandbox_id"], again["stdout"], again["notes"]) == (first["sandbox_id"], "mine\n", [])
    other = run(two, "cat note")
    assert other["sandbox_id"] != first["sandbox_id"] and other["exit_code"] == 1
    one.end()
    two.end()


def test_many_calls_at_once_share_one_new_sandbox(legacy):
    ids, threads = [], []

    def run():
        ids.append(legacy.tool("exec", command="true")["structuredContent"]["sandbox_id"])

    for _ in range(8):
        threads.append(threading.Thread(target=run))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8 and len(set(ids)) == 1


def test_whoever_lost_a_sandbox_is_told(legacy):
    first = legacy.tool("exec", command="echo x > note")["structuredContent"]["sandbox_id"]
    assert not legacy.tool("sandbox_kill")["isError"]
    got = legacy.tool("exec", command="cat note")["structuredContent"]
    assert got["sandbox_id"] != first and got["exit_code"] == 1
    assert any(first in note and "has ended" in note for note in got["notes"]), got["notes"]


def test_another_owners_sandbox_is_not_there(daemon, api, box):
    key = api.post("/api/v1/keys", {"owner": "mallory", "role": "user", "name": "tools"}).json["key"]
    peer = Modern(daemon, key=key)
    for name, arguments in (("exec", {"command": "true"}), ("read_file", {"path": "/etc/passwd"}),
                            ("list_dir", {}), ("sandbox_kill", {}), ("sandbox_fork", {}), ("sandbox_snapshot", {})):
        result = peer.tool(name, sandbox_id=box.id, **arguments)
        assert result["isError"] and "there is no sandbox" in result["content"][0]["text"], (name, result)
    assert peer.tool("sandbox_list")["structuredContent"]["sandboxes"] == []


def test_a_key_that_may_only_look_runs_nothing(daemon, api, box):
    key = api.post("/api/v1/keys", {"owner": "admin", "role": "viewer", "name": "looker"}).json["key"]
    peer = Modern(daemon, key=key)
    for name, arguments in (("exec", {"command": "true"}), ("write_file", {"path": "x", "content": "y"}),
                            ("sandbox_create", {}), ("sandbox_kill", {}), ("process_start", {"command": "true"})):
        given = arguments if name == "sandbox_create" else {"sandbox_id": box.id, **arguments}
        result = peer.tool(name, **given)
        assert result["isError"] and "may not do that" in result["content"][0]["text"], (name, result)


def test_an_endpoint_of_one_sandbox_knows_no_other(daemon, box):
    peer = Modern(daemon, path=f"/sandboxes/{box.id}/mcp")
    tools = {tool["name"]: tool for tool in peer.call("tools/list")["tools"]}
    assert not [name for name in tools if name.startswith("sandbox_")]
    assert "sandbox_id" not in tools["exec"]["inputSchema"]["properties"]
    assert peer.tool("exec", command="pwd")["structuredContent"]["sandbox_id"] == box.id
    assert peer.tool("exec", command="true", sandbox_id=box.id)["isError"]
    with pytest.raises(RpcError):
        peer.tool("sandbox_kill")


def test_what_was_asked_of_a_tool_is_in_the_audit_log(daemon, api):
    key = api.post("/api/v1/keys", {"owner": "noted", "role": "user", "name": "tools"}).json["key"]
    looker = api.post("/api/v1/keys", {"owner": "noted", "role": "viewer", "name": "looks"}).json["key"]
    peer = Modern(daemon, key=key)
    ran = peer.tool("exec", command="true")["structuredContent"]["sandbox_id"]
    peer.tool("list_dir")
    assert Modern(daemon, key=looker).tool("exec", command="true")["isError"]
    peer.tool("sandbox_kill")

    def lines():
        return [(line["data"]["tool"], line["data"]["outcome"]) for line in all_lines(api)[0]
                if line["kind"] == "tool" and line["owner"] == "noted"]

    until(lambda: len(lines()) == 3)
    assert lines() == [("exec", "began"), ("exec", "refused"), ("sandbox_kill", "began")]
    assert [line["data"]["sandbox"] for line in all_lines(api)[0] if line["data"].get("tool") == "exec"
            and line["owner"] == "noted"][0] == ran


# --- code --------------------------------------------------------------------------------------


def test_code_runs_by_itself_and_remembers_nothing(box):
    got = box.ok("run_code", code="x = 6\nprint(x * 7)")
    assert (got["stdout"], got["exit_code"]) == ("42\n", 0)
    got = box.ok("run_code", code="print(x)")
    assert got["exit_code"] == 1 and "NameError" in got["stderr"]
    assert box.ok("run_code", language="bash", code="echo $0 | tail -c 5")["exit_code"] == 0
    assert "language" in box.fails("run_code", language="cobol", code="x")


def test_code_in_a_context_remembers_and_tells_values(box):
    box.ok("run_code", context_id="notes", code="x = 6")
    got = box.ok("run_code", context_id="notes", code="print('hi')\nx * 7")
    assert got["stdout"] == "hi\n" and got["results"] == [{"is_main": True, "text": "42"}]
    same = box.ok("run_code", context_id=got["context_id"], code="x")
    assert same["results"][0]["text"] == "6"
    failed = box.ok("run_code", context_id="notes", code="1 / 0")
    assert failed["error"]["name"] == "ZeroDivisionError" and failed["exit_code"] == 1
    assert "context" in box.fails("run_code", context_id="notes", language="bash", code="true")
    assert "no context" in box.fails("run_code", context_id="a" * 20, code="1")


def test_code_in_a_context_is_cancelled_and_the_context_stays(legacy):
    legacy.tool("run_code", context_id="c", code="x = 5")
    number, done = legacy.next_id(), []
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call",
               "params": {"name": "run_code", "arguments": {
                   "context_id": "c", "code": "import subprocess\nsubprocess.run(['sleep', '4720'])"}}}
    thread = threading.Thread(target=lambda: done.append(legacy.post(message)))
    thread.start()
    until(lambda: sleeping(4720))
    legacy.notify("notifications/cancelled", {"requestId": number})
    until(lambda: not sleeping(4720))
    thread.join()
    done[0].close()
    assert legacy.tool("run_code", context_id="c", code="x")["structuredContent"]["results"][0]["text"] == "5"


def test_a_picture_is_a_block(box):
    data = base64.b64encode(b"\x89PNG not really").decode()
    code = f"class P:\n    def _repr_png_(self):\n        return __import__('base64').b64decode('{data}')\nP()"
    result = box.raw("run_code", context_id="pictures", code=code)
    pictures = [block for block in result["content"] if block["type"] == "image"]
    assert [(one["mimeType"], one["data"]) for one in pictures] == [("image/png", data)]


# --- files -------------------------------------------------------------------------------------


def test_a_file_is_written_with_its_directories_and_read_again(box):
    got = box.ok("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert got["ok"] is True and got["bytes"] == 8 and got["path"] == "/workspace/a/b/c.txt"
    assert box.text("a/b/c.txt") == ["one\ntwo\n"]
    box.ok("write_file", path="a/b/c.txt", content="three\n", append=True)
    assert box.text("/workspace/a/b/c.txt") == ["one\ntwo\nthree\n"]
    box.ok("write_file", path="empty", content="")
    assert box.text("empty") == [""]
    assert box.ok("write_file", path="bytes", content=base64.b64encode(b"a\0b").decode(), encoding="base64")["bytes"] == 3
    assert "base64" in box.fails("write_file", path="bytes", content="%%%", encoding="base64")


def test_a_large_file_is_written_whole(box):
    content = "0123456789abcde\n" * 60_000
    assert box.ok("write_file", path="large", content=content)["bytes"] == len(content)
    assert box.ok("exec", command="wc -c < large")["stdout"].strip() == str(len(content))


def test_lines_of_a_file_are_read_and_the_rest_is_named(box):
    box.ok("exec", command="seq 1 1000 > lines; head -c 100000 /dev/zero | tr '\\0' x > oneline")
    assert box.text("lines", offset=10, limit=2)[0] == "10\n11\n"
    assert "offset 12" in box.text("lines", offset=10, limit=2)[1]
    assert box.text("lines", offset=999) == ["999\n1000\n"]
    assert "ends with line" in box.fails("read_file", path="lines", offset=5000)
    text, note = box.text("oneline")
    assert len(text) == 32 << 10 and "line 1" in note
    box.ok("exec", command="seq 1 100000 > long")
    text, note = box.text("long")
    last = int(text.rstrip().rsplit("\n", 1)[1])
    assert text.endswith("\n") and f"offset {last + 1}]" in note
    assert box.text("long", offset=last + 1, limit=1)[0] == f"{last + 1}\n"


def test_a_file_that_is_no_text_comes_as_what_it_is(box):
    box.ok("exec", command="printf 'x\\0y' > data.bin; printf '\\x89PNG\\0' > p.png; head -c 2000000 /dev/urandom > big")
    block = box.ok("read_file", path="data.bin")[0]
    assert block["type"] == "resource" and base64.b64decode(block["resource"]["blob"]) == b"x\0y"
    assert block["resource"]["uri"] == f"sandbox://{box.id}/files/workspace/data.bin"
    again = box.peer.call("resources/read", {"uri": block["resource"]["uri"]})["contents"][0]
    assert again["blob"] == block["resource"]["blob"]
    assert box.ok("read_file", path="p.png")[0]["type"] == "image"
    assert "no text" in box.fails("read_file", path="big")


def test_files_that_are_not_there_or_are_none_are_said(box):
    box.ok("exec", command="mkfifo -m 600 pipe; mkdir -p dir")
    for path in ("nowhere", "dir", "pipe", "dir/none/deeper", "/proc/1/mem"):
        assert path in box.fails("read_file", path=path)
    assert box.fails("list_dir", path="nowhere")
    assert box.fails("write_file", path="/usr/bin/x", content="y")
    assert box.fails("read_file", path="d/" * 2000 + "x")


def test_a_link_leads_nowhere_but_into_the_box(box):
    box.ok("exec", command="ln -sf /etc/hostname out; ln -sfn / root; ln -sf ../../../../../../etc/shadow up; ln -sfn loop loop")
    assert box.text("out") == [box.ok("exec", command="cat /etc/hostname")["stdout"]]
    names = {entry["name"] for entry in box.ok("list_dir", path="root")["entries"]}
    assert "workspace" in names
    assert names == {entry["name"] for entry in box.ok("list_dir", path="/")["entries"]}
    box.fails("read_file", path="up")
    box.fails("read_file", path="loop")
    box.ok("write_file", path="../../../../../../tmp/climbed", content="in the box")
    assert box.ok("exec", command="cat /tmp/climbed")["stdout"] == "in the box"


def test_a_directory_is_listed_by_name(box):
    box.ok("exec", command="mkdir -p list/sub; printf 123 > list/b; ln -sf b list/a; mkdir many; cd many; touch $(seq 1 1500)")
    entries = box.ok("list_dir", path="list")["entries"]
    assert [(e["name"], e["type"]) for e in entries] == [("a", "symlink"), ("b", "file"), ("sub", "directory")]
    assert entries[1]["size"] == 3
    got = box.ok("list_dir", path="many")
    assert len(got["entries"]) == 1000 and got["truncated"] is True and got["total"] == 1500
    assert "list" in {entry["name"] for entry in box.ok("list_dir")["entries"]}


def test_an_edit_is_exact_and_of_one_place(box):
    box.ok("write_file", path="edit.txt", content="one two\ntwo three\nfour\n")
    assert "2 times" in box.fails("edit_file", path="edit.txt", old_text="two", new_text="2")
    assert "not in the file" in box.fails("edit_file", path="edit.txt", old_text="Four", new_text="4")
    assert box.ok("edit_file", path="edit.txt", old_text="two\ntwo", new_text="2\n2")["replacements"] == 1
    assert box.text("edit.txt") == ["one 2\n2 three\nfour\n"]
    got = box.ok("edit_file", path="edit.txt", old_text="2", new_text="zwei", replace_all=True, dry_run=True)
    assert got["replacements"] == 2 and got["dry_run"] is True
    assert box.text("edit.txt") == ["one 2\n2 three\nfour\n"]
    assert box.ok("edit_file", path="edit.txt", old_text="2", new_text="", replace_all=True)["replacements"] == 2
    assert box.text("edit.txt") == ["one \n three\nfour\n"]
    assert "the same" in box.fails("edit_file", path="edit.txt", old_text="x", new_text="x")
    box.fails("edit_file", path="nowhere", old_text="x", new_text="y")
    assert "old_text" in box.fails("edit_file", path="edit.txt", old_text="x" * 20_000, new_text="y")


def test_files_are_found_by_name_and_by_what_they_hold(box):
    box.ok("exec", command="mkdir -p s/t; echo 'def f(x): pass' > s/a.py; echo 'X = 1' > s/t/b.py; echo x > s/c.txt; printf 'x\\0' > s/z.py")
    got = box.ok("search_files", path="s", name="*.py")
    assert {one["path"] for one in got["matches"]} == {"a.py", "t/b.py", "z.py"}
    got = box.ok("search_files", path="s", pattern="x", ignore_case=True, name="*.py")
    assert {(one["path"], one["line"]) for one in got["matches"]} == {("a.py", 1), ("t/b.py", 1)}
    assert got["skipped"] == 1
    got = box.ok("search_files", path="s", pattern="^def [a-z]", regex=True)
    assert [one["text"] for one in got["matches"]] == ["def f(x): pass"]
    assert box.ok("search_files", path="s", pattern="x", limit=1)["truncated"] is True
    box.ok("exec", command="mkdir many-lines; seq -f 'x %0.f' 1 5000 > many-lines/f")
    got = box.ok("search_files", path="many-lines", pattern="x", limit=1000)
    assert got["truncated"] is True and len(json.dumps(got)) < 64 << 10
    assert box.fails("search_files", path="s")
    assert box.fails("search_files", path="s", pattern="(", regex=True)


# --- processes ---------------------------------------------------------------------------------


def test_a_process_is_started_followed_fed_and_ended(box):
    started = box.ok("process_start", command="echo ready; while read l; do echo got $l; done; echo over", stdin=True)
    process = started["process_id"]
    assert started["running"] is True
    got = box.ok("process_output", process_id=process, wait_ms=20_000)
    assert got["stdout"] == "ready\n"
    box.ok("process_input", process_id=process, text="one\n")
    got = box.ok("process_output", process_id=process, position=got["position"], wait_ms=20_000)
    assert got["stdout"] == "got one\n" and got["running"] is True
    assert process in [one["process_id"] for one in box.ok("process_list")["processes"]]
    box.ok("process_input", process_id=process, end=True)

    def ended():
        last = box.ok("process_output", process_id=process, position=got["position"])
        return last if not last["running"] else None

    until(lambda: ended() is not None)
    last = ended()
    assert last["stdout"] == "over\n" and last["exit_code"] == 0 and last["status"] == "completed"


def test_a_process_is_killed_with_its_children(box):
    process = box.ok("process_start", command="setsid sleep 4714 & sleep 4714")["process_id"]
    until(lambda: len(sleeping(4714)) == 2)
    got = box.ok("process_kill", process_id=process)
    assert got["running"] is False and got["status"] == "cancelled"
    until(lambda: not sleeping(4714))
    assert "no process" in box.fails("process_kill", process_id="a" * 20)
    assert "signal" in box.fails("process_kill", process_id=process, signal="SIGNOTHING")


def test_a_signal_reaches_a_process(box):
    process = box.ok("process_start", command="trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.1; done")
    process = process["process_id"]
    box.ok("process_output", process_id=process, wait_ms=20_000)
    box.ok("process_kill", process_id=process, signal="USR1")
    until(lambda: not box.ok("process_output", process_id=process)["running"])
    got = box.ok("process_output", process_id=process)
    assert got["stdout"] == "ready\ncaught\n" and got["exit_code"] == 3


def test_output_of_a_process_comes_page_by_page(box):
    process = box.ok("process_start", command="for i in $(seq 1 20000); do echo ä€$i; done")["process_id"]
    until(lambda: not box.ok("process_output", process_id=process)["running"])
    text, position, pages = "", 0, 0
    while True:
        got = box.ok("process_output", process_id=process, position=position)
        text, position, pages = text + got["stdout"], got["position"], pages + 1
        if not got["has_more"]:
            break
    assert pages > 2 and text == "".join(f"ä€{i}\n" for i in range(1, 20001))
    assert box.ok("process_output", process_id=process, position=10**9)["stdout"] == ""


def test_a_thousand_processes_meet_a_limit_with_a_word(daemon):
    own = Box(daemon)
    refused = None
    for _ in range(1000):
        result = own.raw("process_start", command="sleep 4715")
        if result["isError"]:
            refused = result["content"][0]["text"]
            break
        if not result["structuredContent"]["running"]:
            refused = result["structuredContent"]["reason"]
            break
    assert refused
    own.ok("sandbox_kill", sandbox_id=own.id)
    until(lambda: not sleeping(4715))


# --- sandboxes ---------------------------------------------------------------------------------


def test_sandboxes_are_made_listed_copied_kept_and_ended(api, box, needs_freezer):
    made = box.ok("sandbox_create", name="by-tools", template="bash", env=["GREETING=hello"], timeout_ms=600_000)
    assert (made["name"], made["template"], made["state"]) == ("by-tools", "bash", "running")
    assert box.ok("exec", sandbox_id="by-tools", command="echo $GREETING > f; cat f")["stdout"] == "hello\n"
    assert "by-tools" in [one.get("name") for one in box.ok("sandbox_list")["sandboxes"]]
    copies = box.ok("sandbox_fork", sandbox_id="by-tools", count=2)["sandboxes"]
    assert [box.ok("exec", sandbox_id=one["sandbox_id"], command="cat f")["stdout"] for one in copies] == ["hello\n"] * 2
    kept = box.ok("sandbox_snapshot", sandbox_id="by-tools", name="by-tools-kept")
    assert kept["name"] == "by-tools-kept"
    again = box.ok("sandbox_create", snapshot="by-tools-kept")
    assert box.text("f", sandbox_id=again["sandbox_id"]) == ["hello\n"]
    for one in [made, again, *copies]:
        assert box.ok("sandbox_kill", sandbox_id=one["sandbox_id"])["ok"] is True
    api.delete(f"/api/v1/snapshots/{kept['snapshot_id']}").must(204)
    assert "no sandbox" in box.fails("exec", sandbox_id=made["sandbox_id"], command="true")
    assert "template" in box.fails("sandbox_create", template="no-such")
    assert "timeout" in box.fails("sandbox_create", timeout_ms=10**13)
