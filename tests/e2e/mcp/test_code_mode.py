"""Programs in sandboxes call others' tools over the one socket that they have for it."""
import contextlib
import json
import pathlib
import shutil
import tempfile
import time

import pytest

from support import machine, mcp
from support.cli import Cli
from support.daemon import Daemon, until

SERVER = pathlib.Path(__file__).resolve().parents[1] / "support" / "tool_server.py"
HOUR = {"timeout": 3600}


class World(Daemon):
    """A daemon with two servers that are the same program, and notes of what they were asked."""

    def __init__(self, *flags, more=None):
        super().__init__(*flags)
        self.marks = self.dir / "marks"
        self.marks.mkdir()
        self.marks.chmod(0o777)
        shutil.copy(SERVER, self.dir / "server.py")
        one = {"command": "/usr/bin/python3", "args": [str(self.dir / "server.py")], "host": True,
               "env": {"SECRET": "of-the-server", "MARKS": str(self.marks)},
               "tools": {"ask": ["guarded"], "deny": ["forbidden"]}}
        file = self.dir / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"fake": one, "second": {**one, "tools": {}}, **(more or {})}}))
        self.flags += ["--mcp-servers-file", str(file)]

    def wait_for_tools(self):
        until(lambda: all(s["status"] in ("ready", "failed") for s in self.api.get("/tools/servers").json["items"]),
              what="the servers")

    def noted(self, name):
        file = self.marks / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture(scope="module")
def world():
    with World() as running:
        running.wait_for_tools()
        yield running


@pytest.fixture
def box(world):
    made = world.api.sandbox("bash", tools=True)
    yield made
    made.delete().must(204, 404)


def python(box, text, **fields):
    return box.run("python3 - <<'END'\n" + text + "\nEND", **fields)


def says(result):
    assert result["exitCode"] == 0, result
    return result["stdout"]


# --- the three ways to call ------------------------------------------------------------------------


def test_python_node_and_a_shell_call_a_tool_in_a_box_without_network(box):
    assert says(python(box, "from holt_tools.fake import echo, add\nprint(echo('hi'), add(a=1, b=2))")) == \
        "hi {'sum': 3}\n"
    assert says(box.run("holt-call fake.echo '{\"message\": \"from a shell\"}'")) == "from a shell\n"
    assert says(box.run("echo '{\"message\":\n\"piped\"}' | holt-call fake.echo -")) == "piped\n"
    assert json.loads(says(box.run("holt-call --json fake.add '{\"a\": 2, \"b\": 3}'")))["structuredContent"] == {"sum": 5}
    if shutil.which("node", path="/usr/local/bin:/usr/bin"):
        box.put("/workspace/a.mjs", b"import { echo, add } from '/holt/tools/fake/index.mjs';\n"
                b"console.log(await echo({ message: 'node' }), await add({ a: 4, b: 5 }));\n")
        assert says(box.run("node /workspace/a.mjs")) == "node { sum: 9 }\n"
    # There is no other way out.
    assert says(box.run("grep -v lo: /proc/net/dev | tail -n +3 | wc -l")).strip() == "0"


def test_code_of_one_run_and_of_a_context_call_tools_too(box, world):
    text = "from holt_tools.fake import echo\nprint(echo('x'))"
    assert box.code("python", text)["stdout"] == "x\n"
    with sandbox(world, "python", tools=True) as warm:
        done = warm.code("python", text)
        assert (done["stdout"], done["warm"]) == ("x\n", True)
    context = world.api.post(f"/sandboxes/{box.id}/contexts", {"language": "python"}).must(201).json["contextId"]
    assert box.execute(text, kind="code", language="python", contextId=context).must(200).json["stdout"] == "x\n"


def test_what_a_tool_has_to_say_of_its_failure_is_an_exception(box):
    out = says(python(box, """
import holt_tools
from holt_tools.fake import fail
for f in (fail, lambda: holt_tools.call("fake", "nothing", {})):
    try:
        print("no error", f())
    except holt_tools.ToolError as e:
        print(e.code, e)
"""))
    lines = out.splitlines()
    assert lines[0] == "None it went wrong"
    assert lines[1].startswith("-32602 there is no tool 'fake.nothing'")
    failed = box.run("holt-call fake.fail")
    assert (failed["exitCode"], failed["stdout"]) == (1, "") and "it went wrong" in failed["stderr"]
    assert box.run("holt-call nothing")["exitCode"] == 1
    assert box.run("holt-call fake.echo 'not json'")["exitCode"] == 1
    assert box.run("holt-call")["exitCode"] == 2


def test_tools_are_found_by_ls_and_cat_and_search(box):
    assert says(box.run("ls /holt/tools")).split() == ["README.md", "__init__.py", "_call.mjs", "_call.py", "fake", "second"]
    assert "forbidden.py" not in says(box.run("ls /holt/tools/fake"))
    assert "Adds two numbers." in says(box.run("cat /holt/tools/fake/add.py"))
    assert says(box.run("holt-call --search 'adds numbers'")).startswith("fake.add\tAdds two numbers.\n")
    assert says(python(box, "import holt_tools\nt = holt_tools.search('adds numbers', 'full')[0]\n"
                       "print(t['server'], t['name'], t['inputSchema']['required'])")) == "fake add ['a', 'b']\n"
    listed = says(box.run("holt-call --list")).splitlines()
    assert len([line for line in listed if "grown" not in line]) == 17


def test_the_key_of_a_server_stays_outside(box):
    assert says(box.run("holt-call fake.secret")) == "ok\n"
    found = says(box.run("env; cat /proc/*/environ /holt/tools/*.py /holt/tools/*/*.py 2>/dev/null | tr '\\0' '\\n'; true"))
    assert "of-the-server" not in found


def test_files_follow_what_servers_offer(world):
    with sandbox(world, tools=["second"]) as box:
        assert "grown.py" not in says(box.run("ls /holt/tools/second"))
        assert says(box.run("holt-call second.grow")) == "grown\n"
        until(lambda: "grown.py" in box.run("ls /holt/tools/second")["stdout"], what="the new tool's file")
        assert says(python(box, "from holt_tools.second import grown\nprint(grown())")) == "grown{}\n"


def test_every_box_of_many_follows():
    """More than are written to at a time."""
    with World() as world:
        world.wait_for_tools()
        boxes = [world.api.sandbox("bash", tools=["fake"]) for _ in range(36)]
        assert all("echo.py" in says(box.run("ls /holt/tools/fake")) for box in boxes)
        assert says(boxes[0].run("holt-call fake.grow")) == "grown\n"
        boxes.pop().delete().must(204)
        for box in boxes:
            until(lambda: box.run("ls /holt/tools/fake/grown.py")["exitCode"] == 0, what="the new tool's file")
        for box in boxes:
            box.delete().must(204)


@contextlib.contextmanager
def sandbox(world, template="bash", **fields):
    made = world.api.sandbox(template, **fields)
    try:
        yield made
    finally:
        made.delete().must(204, 404)


# --- who may what ------------------------------------------------------------------------------------


def test_a_sandbox_without_a_grant_has_nothing(world):
    with sandbox(world) as box:
        assert box.get()["tools"] is False
        missing = box.run("holt-call fake.echo '{}'")
        assert missing["exitCode"] != 0 and "fake" not in missing["stdout"]
        assert box.run("ls /holt/tools/")["exitCode"] != 0
        assert box.run("ls /dev/shm/holt")["exitCode"] != 0


def test_a_grant_of_one_server_shows_nothing_of_the_other(world):
    with sandbox(world, tools=["second"]) as box:
        assert box.get()["tools"] == ["second"]
        assert says(box.run("ls -d /holt/tools/*/")) == "/holt/tools/second/\n"
        assert says(box.run("holt-call second.echo '{\"message\": \"mine\"}'")) == "mine\n"
        refused = box.run("holt-call fake.echo '{\"message\": \"not mine\"}'")
        assert refused["exitCode"] == 1 and "there is no tool" in refused["stderr"]
        assert "fake" not in says(box.run("holt-call --list; holt-call --search echo"))


def test_what_the_policy_denies_is_denied_whoever_asks(world, box):
    before = len(world.noted("called"))
    for line in ("holt-call fake.forbidden", "holt-call --json fake.forbidden '{}'"):
        refused = box.run(line)
        assert refused["exitCode"] == 1, refused
    assert all(name != "forbidden" for name, _ in world.noted("called")[before:])


def test_somebody_may_say_yes_or_no_to_a_call(world, box):
    for decision, code in (("allow", 0), ("deny", 1)):
        run = box.begin("holt-call fake.guarded '{\"n\": 7}'", **HOUR)
        wanted = until(lambda: [a for a in world.api.get("/approvals").json["items"] if a.get("sandbox", box.id) == box.id],
                       what="the question")[0]
        assert (wanted["server"], wanted["tool"]) == ("fake", "guarded")
        world.api.post(f"/approvals/{wanted['id']}", {"decision": decision}).must(204)
        assert run.wait()["exitCode"] == code


def test_a_call_that_nobody_says_yes_to_is_denied():
    with World("--mcp-approval-timeout", "1s") as world:
        world.wait_for_tools()
        with sandbox(world, tools=True) as box:
            refused = box.run("holt-call fake.guarded")
            assert refused["exitCode"] == 1 and refused["stderr"].startswith("holt-call: ")
        assert world.noted("called") == []


def test_calls_are_events_and_lines_of_the_audit_log(world, box):
    says(box.run("holt-call fake.echo '{\"message\": \"noted\"}'"))
    line = until(lambda: [e for e in world.api.get(f"/events?subject={box.id}&limit=100").json["items"]
                          if e["kind"] == "tool.called"], what="the event")[0]
    assert "echo" in json.dumps(line) and "noted" not in json.dumps(line)


# --- ends -----------------------------------------------------------------------------------------------


def test_a_program_that_is_killed_takes_its_call_along(world, box):
    before = len(world.noted("cancelled"))
    run = box.begin("exec holt-call fake.wait", **HOUR)
    until(lambda: ["wait", {}] in world.noted("called") or ["wait", None] in world.noted("called"), what="the call")
    run.signal("SIGKILL")
    run.wait()
    until(lambda: len(world.noted("cancelled")) > before, what="the call's end")


def test_the_end_of_a_sandbox_ends_its_calls(world):
    before, asked = len(world.noted("cancelled")), len(world.noted("called"))
    with sandbox(world, tools=True) as box:
        box.begin("holt-call fake.wait & holt-call fake.wait; wait", **HOUR)
        until(lambda: len(world.noted("called")) >= asked + 2, what="the calls")
    until(lambda: len(world.noted("cancelled")) >= before + 2, what="the calls' end")


def test_tools_are_there_again_after_a_crash_a_pause_and_a_stop():
    with World() as world:
        world.wait_for_tools()
        box = world.api.sandbox("python", tools=True, timeout=3600)
        run = box.begin("while [ ! -e go ]; do sleep 0.05; done; holt-call fake.echo '{\"message\": \"same box\"}'",
                        cwd="/workspace", **HOUR)
        world.kill("daemon", "keeper", "launcher")
        world.start()
        world.wait_for_tools()
        box.put("/workspace/go", b"")
        ended = until(lambda: (lambda v: v if v["status"] != "running" else None)(run.get()), what="the run")
        assert (ended["exitCode"], ended["stdout"]) == (0, "same box\n")
        world.api.post(f"/sandboxes/{box.id}/pause").must(200)
        world.api.post(f"/sandboxes/{box.id}/resume").must(200)
        assert says(box.run("holt-call fake.echo '{\"message\": \"awake\"}'")) == "awake\n"
        if world.api.post(f"/sandboxes/{box.id}/stop").status == 200:  # where files can be kept
            world.api.post(f"/sandboxes/{box.id}/start").must(200)
            assert says(box.run("holt-call fake.echo '{\"message\": \"another box\"}'")) == "another box\n"
            until(lambda: box.run("ls /holt/tools/fake/echo.py")["exitCode"] == 0, what="its files")
        box.delete().must(204)


def test_a_sandbox_that_nobody_uses_ends_whatever_it_was_given(world):
    made = world.api.sandbox("bash", tools=True, idleTimeout=1)
    assert says(made.run("holt-call fake.echo '{\"message\": \"x\"}'")) == "x\n"
    until(lambda: world.api.get(f"/sandboxes/{made.id}").json["status"] == "stopped", what="its end")


# --- hostile programs --------------------------------------------------------------------------------------

FLOOD = """
import json, os, socket, sys, threading
def dial():
    s = socket.socket(socket.AF_UNIX)
    s.connect("/holt/tools.sock")
    return s
def line(n, **params):
    return json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}).encode() + b"\\n"
def talk(s):
    f = s.makefile("rb")
    return f.readline()
"""


def test_what_is_no_request_is_an_error_and_the_next_one_is_heard(box):
    out = says(python(box, FLOOD + r"""
s = dial(); f = s.makefile("rb")
for bad in (b"hello", b"{}", b"[]", b"null", b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
            b'{"jsonrpc":"2.0","id":1,"method":"tools/delete"}', b'{"jsonrpc":"2.0","id":2,"method":"tools/call"}',
            b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"server":1,"name":"echo"}}',
            b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"server":"fake","name":"echo","arguments":[]}}',
            b'{"jsonrpc":"2.0","id":5,"method":"tools/search","params":{"detail":"everything"}}',
            b"\xff\xfe", b"[" * 10000, b'{"jsonrpc":"2.0","id":"' + b"a" * 1000 + b'","method":"ping"}'):
    s.sendall(bad + b"\n")
    answer = json.loads(f.readline())
    assert answer["error"]["code"] in (-32700, -32600, -32601, -32602), (bad[:80], answer)
s.sendall(b"\n\n" + b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}\n' + line(9, server="fake", name="echo", arguments={"message": "still"}))
print(json.loads(f.readline())["result"]["content"][0]["text"])
"""))
    assert out == "still\n"


def test_a_line_without_an_end_is_refused_and_costs_no_memory(box, world):
    before = machine.memory_of(world.parts()["daemon"])
    out = says(python(box, FLOOD + r"""
def pour(s):
    try:
        for _ in range(100):
            s.sendall(b"x" * (1 << 20))
    except OSError:
        pass
s = dial(); threading.Thread(target=pour, args=(s,), daemon=True).start()
print(json.loads(talk(s))["error"]["message"])
many = [dial() for _ in range(8)]
for s in many:
    threading.Thread(target=pour, args=(s,), daemon=True).start()
print(all(b'"error"' in talk(s) for s in many))
"""))
    grown = machine.memory_of(world.parts()["daemon"]) - before
    assert grown < 400 << 20, grown  # of 900 MB that came; a sanitizer holds back what was freed
    assert out.splitlines() == ["the line is too long", "True"]
    assert says(box.run("holt-call fake.echo '{\"message\": \"well\"}'")) == "well\n"


def test_a_thousand_connections_are_no_ones_trouble(box, world):
    run = box.begin("python3 - <<'END'\n" + FLOOD + """
all = []
try:
    for _ in range(1000):
        s = socket.socket(socket.AF_UNIX); s.settimeout(1)
        s.connect("/holt/tools.sock"); all.append(s)
except OSError as e:
    pass
print(len(all) < 1000, flush=True)
sys.stdin.read()
END""", **HOUR)
    assert run.wait()["stdout"] == "True\n"
    with sandbox(world, tools=True) as other:
        assert says(other.run("holt-call fake.echo '{\"message\": \"other\"}'")) == "other\n"
    assert says(box.run("holt-call fake.echo '{\"message\": \"well\"}'")) == "well\n"


def test_who_does_not_read_is_not_read(box, world):
    """Answers of 1 MB that nobody takes: the daemon stops asking for them."""
    asked = len(world.noted("called"))
    run = box.begin("python3 - <<'END'\n" + FLOOD + """
s = dial()
def pour():
    for i in range(60):
        s.sendall(line(i, server="fake", name="large", arguments={"bytes": 1 << 20}))
threading.Thread(target=pour, daemon=True).start()
import time
while not os.path.exists("/workspace/read"):
    time.sleep(0.05)
f = s.makefile("rb")
print(sorted(json.loads(f.readline())["id"] for _ in range(60)) == list(range(60)))
END""", **HOUR)
    until(lambda: len(world.noted("called")) > asked, what="the first call")

    def is_still():
        now = len(world.noted("called"))
        time.sleep(1)
        return len(world.noted("called")) == now
    until(is_still, what="the standstill")
    assert len(world.noted("called")) - asked < 40
    with sandbox(world, tools=True) as other:
        assert says(other.run("holt-call fake.echo '{\"message\": \"other\"}'")) == "other\n"
    box.put("/workspace/read", b"")
    assert run.wait()["stdout"] == "True\n"


def test_an_answer_that_is_too_large_is_an_error(box):
    refused = box.run("holt-call fake.large '{\"bytes\": 5000000}'")
    assert refused["exitCode"] == 1 and "too large" in refused["stderr"]


def test_descriptors_that_are_sent_along_stop_nobody(box):
    """It takes an hour to close such a one; who sends it may wait, and nobody else does."""
    box.begin("python3 - <<'END'\n" + FLOOD + """
import array, struct
a = socket.socket(); a.bind(("127.0.0.1", 0)); a.listen()
full = socket.socket(); full.connect(a.getsockname()); full.setblocking(False)
try:
    while True: full.send(b"x" * 65536)
except BlockingIOError:
    pass
full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
s = dial()
s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [full.fileno()]))])
open("/workspace/sent", "w")
full.close()
s.close()
END""", **HOUR)
    until(lambda: box.run("test -e /workspace/sent")["exitCode"] == 0, what="the descriptor")
    assert says(box.run("holt-call fake.echo '{\"message\": \"well\"}'")) == "well\n"


def test_a_box_is_held_to_its_budget():
    with World("--mcp-box-calls", "5") as world:
        world.wait_for_tools()
        with sandbox(world, tools=True) as box, sandbox(world, tools=True) as other:
            got = [box.run("holt-call fake.echo '{\"message\": \"x\"}'") for _ in range(7)]
            assert [g["exitCode"] for g in got] == [0] * 5 + [1] * 2
            assert "in an hour" in got[-1]["stderr"]
            told = until(lambda: [e for e in world.api.get("/events?limit=200").json["items"] if e["kind"] == "quota.exceeded"],
                         what="the event")
            assert len(told) == 1 and "toolCalls" in json.dumps(told) and box.id in json.dumps(told)
            assert says(other.run("holt-call fake.echo '{\"message\": \"x\"}'")) == "x\n"


def test_the_bytes_of_a_box_are_counted():
    with World("--mcp-box-bytes", "20K") as world:
        world.wait_for_tools()
        with sandbox(world, tools=True) as box:
            assert says(box.run("holt-call fake.large '{\"bytes\": 15000}' | wc -c")) == "15001\n"
            assert says(box.run("holt-call fake.large '{\"bytes\": 15000}' | wc -c")) == "15001\n"  # begun in time
            refused = box.run("holt-call fake.echo '{\"message\": \"x\"}'")
            assert refused["exitCode"] == 1 and "bytes" in refused["stderr"]


# --- templates, forks, others' doors ---------------------------------------------------------------------


@pytest.mark.parametrize("template", ["python", "node", "base", "e2b"])
def test_every_template_has_them(world, template):
    with sandbox(world, template, tools=["fake"]) as box:
        assert says(box.run("holt-call fake.echo '{\"message\": \"here\"}'")) == "here\n"
        assert says(python(box, "from holt_tools.fake import echo\nprint(echo('x'))")) == "x\n"


def test_a_box_that_has_no_sockets_is_refused_tools(world):
    body = {"securityLevel": "custom", "security": {"syscalls": "strict"}, "tools": True}
    assert "strict" in world.api.post("/sandboxes", body).must(400).json["error"]["message"]
    with sandbox(world, securityLevel="custom", security={"proc": "processes"}, tools=True) as box:
        assert says(box.run("holt-call fake.echo '{\"message\": \"strict\"}'")) == "strict\n"
        assert says(python(box, "from holt_tools.fake import echo\nprint(echo('x'))")) == "x\n"


@pytest.mark.skipif(not pathlib.Path("/bin/busybox").exists(), reason="needs a static busybox")
def test_an_image_that_has_nothing_of_it_has_holt_call():
    with tempfile.TemporaryDirectory(prefix="holt-images.") as images:
        root = pathlib.Path(images, "small")
        (root / "bin").mkdir(parents=True)
        shutil.copy("/bin/busybox", root / "bin/busybox")
        for name in ("sh", "ls"):
            (root / "bin" / name).symlink_to("busybox")
        for path in (pathlib.Path(images), root, root / "bin"):
            path.chmod(0o755)
        with World("--images-dir", images, "--image-max", "64M") as world:
            world.wait_for_tools()
            body = {"name": "small", "root": {"kind": "dir", "path": "small"}, "steps": []}
            made = world.api.post("/templates/builds", body).must(202).json
            until(lambda: world.api.get(f"/templates/builds/{made['id']}").json["status"] in ("ready", "failed"),
                  what="the template")
            with sandbox(world, "small", tools=True) as box:
                assert says(box.run("holt-call fake.secret")) == "ok\n"
                assert "echo.mjs" in says(box.run("ls /holt/tools/fake"))
            for one in world.api.get("/templates").json["items"]:
                world.api.delete(f"/templates/{one['id']}")


def test_sandboxes_of_sessions_have_them(world):
    world.api.ask("POST", "/api/sessions", {"id": "code"}).must(200, 201)
    box = world.api.ask("POST", "/api/sessions/code/sandbox").must(200, 201).json
    ident = (box.get("data") or box)["sandbox_id"]
    assert world.api.get(f"/sandboxes/{ident}").json["tools"] is True
    world.api.ask("DELETE", "/api/sessions/code").must(200, 204)


def test_a_fork_has_what_its_parent_has(world, box):
    forked = world.api.post(f"/sandboxes/{box.id}/fork", {}).must(201).json
    child = forked["items"][0] if "items" in forked else forked
    api = world.api
    assert child["tools"] is True
    run = api.post(f"/sandboxes/{child['id']}/execute", {"type": "command", "content": "holt-call fake.echo '{\"message\": \"fork\"}'"}).must(200).json
    assert run["stdout"] == "fork\n"
    api.delete(f"/sandboxes/{child['id']}").must(204)


def test_the_socket_of_one_box_is_not_in_another(world, box):
    with sandbox(world) as plain:
        got = python(plain, "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('/holt/tools.sock')")
        assert got["exitCode"] != 0 and ("FileNotFoundError" in got["stderr"])


def test_a_real_server_is_called_from_a_box(clients):
    program = clients.MODULES / "@modelcontextprotocol/server-everything/dist/index.js"
    node = shutil.which("node", path=clients.environment()["PATH"])
    with World(more={"everything": {"command": node, "args": [str(program)], "host": True}}) as world:
        world.wait_for_tools()
        with sandbox(world, tools=["everything"]) as box:
            assert "echo.py" in says(box.run("ls /holt/tools/everything"))
            assert "hello" in says(box.run("holt-call everything.echo '{\"message\": \"hello\"}'"))
            assert "hello" in says(python(box, "from holt_tools.everything import echo\nprint(echo(message='hello'))"))
            # Every file of it is one that the language reads.
            assert says(box.run("python3 -c 'import holt_tools.everything'")) == ""


def test_sandboxes_of_mcp_clients_call_tools(world):
    peer = mcp.Modern(world)
    got = peer.tool("run_code", language="python", code="from holt_tools.fake import echo\nprint(echo('from a model'))")
    assert "from a model" in json.dumps(got)


def test_a_model_finds_tools_by_words(world):
    peer = mcp.Modern(world)
    assert "search_tools" in [tool["name"] for tool in peer.call("tools/list")["tools"]]
    found = peer.tool("search_tools", query="adds numbers")["structuredContent"]["tools"]
    assert (found[0]["server"], found[0]["name"]) == ("fake", "add") and "inputSchema" not in found[0]
    full = peer.tool("search_tools", query="adds numbers", detail="full", limit=1)["structuredContent"]
    assert full["tools"][0]["inputSchema"]["required"] == ["a", "b"] and full["truncated"] is True
    assert peer.tool("search_tools", query="x", detail="wrong")["isError"] is True
    with sandbox(world, tools=["second"]) as box:
        bound = mcp.Modern(world, path=f"/sandboxes/{box.id}/mcp")
        assert {t["server"] for t in bound.tool("search_tools", limit=100)["structuredContent"]["tools"]} == {"second"}
    with sandbox(world) as box:
        bound = mcp.Modern(world, path=f"/sandboxes/{box.id}/mcp")
        assert bound.tool("search_tools")["structuredContent"]["tools"] == []


def test_the_command_line_gives_a_sandbox_its_tools(world):
    cli = Cli(world)
    made = cli.run("sandbox", "create", "--tools", "fake", "--tools", "second", "--json")
    assert made.returncode == 0, made
    value = json.loads(made.stdout)
    assert value["tools"] == ["fake", "second"]
    ran = cli.run("exec", value["id"], "--", "holt-call", "second.echo", '{"message": "by hand"}')
    assert (ran.returncode, ran.stdout) == (0, b"by hand\n"), ran
    assert cli.run("sandbox", "rm", value["id"]).returncode == 0
