"""Others' MCP servers: one that misbehaves when asked to, on this machine and in a sandbox, over REST and the command line."""
import http.server
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import threading

import pytest

from support import machine
from support.cli import Cli
from support.daemon import HOLT, Daemon, until

SERVER = pathlib.Path(__file__).resolve().parents[2] / "support/mcp-server"
SECRET = "s3cr3t-0f-th3-row"
BOXED = {"command": "python3", "args": ["-u", "-c", SERVER.read_text()], "env": {"TOKEN": SECRET}}


def configure(daemon, servers):
    file = daemon.dir / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    daemon.flags += ["--mcp-servers-file", str(file)]
    return daemon


def hosted(daemon, *args, **fields):
    """A copy that the daemon's account can read."""
    program = daemon.dir / "mcp-server"
    shutil.copy(SERVER, program)
    return {"command": "/usr/bin/python3", "args": ["-u", str(program), *args], "host": True, **fields}


@pytest.fixture(scope="module")
def tooled():
    daemon = Daemon("--log-level", "debug", env={"OF_THE_DAEMON": "private", "TOKEN": SECRET})
    configure(daemon, {
        "near": hosted(daemon, env={"TOKEN": "${TOKEN}"}, tools={"ask": ["fail"], "deny": ["env"]}),
        "boxed": BOXED,
        "wrong": {"command": ["no", "text"]},
        "unset": {"command": "x", "env": {"KEY": "${NOBODY_SETS_THIS}"}},
        "dying": hosted(daemon, "--die-at-start"),
        "off": {"command": "x", "disabled": True},
        "asking": hosted(daemon, elicitation="ask", sampling="ask", tools={"allow": ["ask", "samp*"]}),
    })
    with daemon:
        yield daemon


@pytest.fixture
def tools(tooled):
    until(lambda: server(tooled.api, "near")["status"] == server(tooled.api, "boxed")["status"] == "ready",
          what="both servers")
    return tooled.api


def server(api, name):
    return next(one for one in api.get("/tools/servers").must(200).json["items"] if one["name"] == name)


def call(api, name, tool, /, timeout=None, **arguments):
    body = {"arguments": arguments, **({"timeout": timeout} if timeout else {})}
    return api.post(f"/tools/{name}/{tool}/call", body)


def said(answer):
    assert not answer.must(200).json["isError"], answer
    return answer.json["content"][0]["text"]


def later(function):
    """Runs it beside us; the result once it is asked for."""
    box = []
    thread = threading.Thread(target=lambda: box.append(function()))
    thread.start()

    def result():
        thread.join(120)
        return box[0]
    return result


def waiting(api, tool):
    return until(lambda: [one for one in api.get("/approvals").must(200).json["items"] if one["tool"] == tool],
                 what="the approval")[0]


def key_of(api, owner, role="user"):
    return api.using(api.post("/keys", {"name": "tools", "owner": owner, "role": role}).must(201).json["key"])


# --- what there is -----------------------------------------------------------------------------


def test_each_row_says_how_it_does(tools):
    assert [one["name"] for one in tools.get("/tools/servers").json["items"]] == [
        "near", "boxed", "wrong", "unset", "dying", "off", "asking"]
    near = server(tools, "near")
    assert (near["transport"], near["place"], near["program"], near["era"]) == ("stdio", "host", "faulty", "legacy")
    assert near["error"] is None and near["tools"] == 15
    assert server(tools, "boxed")["place"] == "sandbox"
    assert server(tools, "wrong")["status"] == "failed"
    assert server(tools, "wrong")["error"] == "command: want a string, got an array"
    assert server(tools, "unset")["error"] == "env.KEY: ${NOBODY_SETS_THIS} is not set in the daemon's environment"
    assert server(tools, "off")["status"] == "disabled"
    until(lambda: server(tools, "dying")["error"] == "the server has ended with exit code 4: cannot find my data")


def test_why_a_server_fails_is_for_admins(tools):
    viewer = key_of(tools, "tools-viewer", "viewer")
    assert server(viewer, "wrong")["error"] is None
    viewer.post("/tools/near/echo/call", {}).error(403)


def test_tools_are_found_by_words_and_shown_in_detail(tools):
    found = tools.get("/tools?query=progress&detail=name").must(200).json["items"]
    assert found == [{"server": "near", "name": "progress"}, {"server": "boxed", "name": "progress"}]
    one = tools.get("/tools?query=echo&server=boxed&detail=full&limit=1").must(200).json["items"][0]
    assert one["policy"] == "allow" and one["inputSchema"]["properties"]["text"]["type"] == "string"
    names = [one["name"] for one in tools.get("/tools?server=near&limit=1000").must(200).json["items"]]
    assert "env" not in names and "echo" in names  # what is denied is not shown
    tools.get("/tools?detail=everything").error(400, field="detail")
    tools.get("/tools?limit=0").error(400, field="limit")


# --- calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["near", "boxed"])
def test_a_tool_is_called(tools, name):
    text = "two lines\nand some more: é 漢 \U0001f600 " + "x" * 300000
    assert said(call(tools, name, "echo", text=text)) == text
    assert said(tools.post(f"/tools/{name}/progress/call")) == "done"


def test_a_server_on_this_machine_is_nobody_with_nothing(tools):
    who = json.loads(said(call(tools, "near", "who")))
    assert who["uid"] == (os.geteuid() or who["uid"]) and who["uid"] != 0
    assert who["cwd"] == "/" and "OF_THE_DAEMON" not in who["env"]
    assert set(who["env"]) <= {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TMPDIR", "TOKEN", "TZ", "USER"}


def test_a_server_in_a_sandbox_has_its_own_and_its_secret(tools, tooled):
    who = json.loads(said(call(tools, "boxed", "who")))
    assert who["cwd"] == "/workspace" and "OF_THE_DAEMON" not in who["env"]
    assert said(call(tools, "boxed", "env", name="TOKEN")) == SECRET
    assert SECRET not in json.dumps(tools.get("/sandboxes?status=all").json)
    assert SECRET not in json.dumps(tools.get("/tools?detail=full").json)
    assert SECRET not in json.dumps(tools.get("/tools/servers").json)
    assert SECRET not in tooled.log()


def test_what_fails_says_so(tools):
    assert call(tools, "nobody", "echo").error(404) == "there is no server 'nobody'"
    assert call(tools, "off", "echo").error(404) == "there is no server 'off'"
    assert call(tools, "near", "nothing").error(404) == "the server 'near' has no tool 'nothing'"
    assert call(tools, "near", "env", name="TOKEN").error(403) == "the tool near.env is not allowed here"
    assert "not configured rightly" in call(tools, "wrong", "echo").error(503)
    tools.post("/tools/near/echo/call", {"arguments": []}).error(400, field="arguments")
    tools.post("/tools/near/echo/call", {"more": 1}).error(400, field="more")
    failed = call(tools, "boxed", "fail").must(200).json
    assert failed == {"content": [{"type": "text", "text": "that did not work"}], "isError": True}


@pytest.mark.parametrize("name", ["near", "boxed"])
def test_a_call_that_hangs_ends_with_its_time(tools, name):
    message = call(tools, name, "hang", timeout=0.5).error(504, code="gateway_timeout")
    assert message == f"the call of {name}.hang took longer than 500 ms"
    assert said(call(tools, name, "echo", text="goes on")) == "goes on"


def test_a_server_whose_sandbox_is_taken_away_gets_another(tools):
    before = server(tools, "boxed")["restarts"]
    answer = later(lambda: call(tools, "boxed", "hang"))
    until(lambda: server(tools, "boxed")["underWay"] == 1, what="the call")
    for box in tools.get("/sandboxes?metadata.holt.mcp=boxed").must(200).json["items"]:
        tools.delete(f"/sandboxes/{box['id']}").must(204)
    answer().error(502, code="bad_gateway")
    until(lambda: server(tools, "boxed")["restarts"] > before and server(tools, "boxed")["status"] == "ready",
          what="the restart")


@pytest.mark.parametrize("name", ["near", "boxed"])
def test_a_crash_is_told_and_the_server_comes_back(tools, tooled, name):
    before = server(tools, name)["restarts"]
    message = call(tools, name, "crash").error(502, code="bad_gateway")
    assert message == "the server has ended with exit code 3: about to crash with ***"
    until(lambda: server(tools, name)["restarts"] > before, what="the restart")
    until(lambda: server(tools, name)["status"] == "ready", what="its tools")
    assert said(call(tools, name, "echo", text="again")) == "again"
    assert SECRET not in tooled.log()


@pytest.mark.parametrize("name", ["near", "boxed"])
def test_floods_and_junk_do_no_harm(tools, name):
    assert said(call(tools, name, "flood")) == "done"
    assert said(call(tools, name, "junk")) == "done"


@pytest.mark.parametrize("name", ["near", "boxed"])
def test_a_giant_line_loses_the_server_and_nothing_else(tools, name):
    before = server(tools, name)["restarts"]
    message = call(tools, name, "giant").error(502, code="bad_gateway")
    assert message == "the server has sent a line of more than 16777216 bytes"
    until(lambda: server(tools, name)["restarts"] > before and server(tools, name)["status"] == "ready",
          what="the restart")


def test_a_list_that_changes_is_read_again(tools):
    said(call(tools, "boxed", "grow", name="sprout"))
    until(lambda: tools.get("/tools?query=sprout&detail=name").json["items"] == [{"server": "boxed", "name": "sprout"}],
          what="the new tool")
    assert said(call(tools, "boxed", "sprout")) == "new"


def test_a_client_that_leaves_takes_its_call_with_it(tools):
    connection = tools.connect()
    path, body, headers = tools.prepare("/tools/near/fail/call", None, {}, None)
    connection.request("POST", path, body=body, headers=headers)
    waiting(tools, "fail")
    connection.close()
    until(lambda: tools.get("/approvals").json["items"] == [], what="the end of the call")
    until(lambda: server(tools, "near")["underWay"] == 0, what="the end of the call")


def test_calls_are_events_and_lines_of_the_audit_log(tools):
    dora = key_of(tools, "tools-dora")
    said(call(dora, "near", "echo", text="noted"))
    call(dora, "near", "env").error(403)

    def lines():
        return [one["data"] for one in tools.get("/audit?owner=tools-dora&kind=tool").must(200).json["items"]]
    until(lambda: len(lines()) == 2, what="the lines")
    assert [(line["server"], line["tool"], line["outcome"]) for line in lines()] == [
        ("near", "echo", "ok"), ("near", "env", "denied")]
    assert "noted" not in json.dumps(lines())  # arguments are nobody's business
    metrics = tools.get("/metrics").body.decode()
    assert re.search(r'^holt_tool_calls_total\{server="near",outcome="ok"\} [1-9]', metrics, re.M)
    assert re.search(r'^holt_tool_calls_total\{server="near",outcome="denied"\} [1-9]', metrics, re.M)
    until(lambda: [one["kind"] for one in dora.get("/events").must(200).json["items"]].count("tool.called") == 2)


# --- approvals ---------------------------------------------------------------------------------


def test_a_call_waits_for_a_yes(tools):
    ann, bob = key_of(tools, "tools-ann"), key_of(tools, "tools-bob")
    answer = later(lambda: call(ann, "near", "fail", why="not"))
    one = waiting(ann, "fail")
    assert (one["server"], one["method"], one["owner"]) == ("near", "tools/call", "tools-ann")
    assert one["arguments"] == {"why": "not"}
    assert bob.get("/approvals").json["items"] == []
    bob.post(f"/approvals/{one['id']}", {"decision": "allow"}).error(404)
    ann.post(f"/approvals/{one['id']}", {"decision": "perhaps"}).error(400, field="decision")
    ann.post(f"/approvals/{one['id']}", {"decision": "allow"}).must(204)
    assert answer().must(200).json["isError"]  # it ran
    ann.post(f"/approvals/{one['id']}", {"decision": "allow"}).error(404)
    until(lambda: {"approval.wanted", "approval.allowed"} <= {one["kind"] for one in ann.get("/events").json["items"]})


def test_a_no_is_a_no(tools):
    answer = later(lambda: call(tools, "near", "fail"))
    tools.post(f"/approvals/{waiting(tools, 'fail')['id']}", {"decision": "deny"}).must(204)
    assert answer().error(403) == "the call of near.fail was not approved"


def test_a_token_of_one_sandbox_neither_calls_nor_decides(tools):
    box = tools.sandbox()
    bound = tools.using(tools.post(f"{box.path}/tokens", {"name": "bound"}).must(201).json["key"])
    answer = later(lambda: call(tools, "near", "fail"))
    one = waiting(tools, "fail")["id"]
    for attempt in (bound.get("/tools"), bound.get("/tools/servers"), bound.get("/approvals"),
                    call(bound, "near", "echo", text="x"), bound.post(f"/approvals/{one}", {"decision": "allow"})):
        assert attempt.status in (403, 404), attempt
    tools.post(f"/approvals/{one}", {"decision": "deny"}).must(204)
    answer().error(403)
    box.delete().must(204)


def test_what_a_server_asks_is_answered_by_an_admin(tools, tooled):
    ann = key_of(tools, "tools-ann")
    until(lambda: server(tools, "asking")["status"] == "ready", what="the server")
    answer = later(lambda: call(ann, "asking", "ask"))
    one = waiting(tools, "")
    assert (one["server"], one["method"], one["arguments"]["message"]) == ("asking", "elicitation/create", "Who are you?")
    assert ann.get("/approvals").json["items"] == []
    assert "wants an answer" in tools.post(f"/approvals/{one['id']}", {"decision": "allow"}).error(400, field="content")
    Cli(tooled).must("approvals", "allow", one["id"], "--content", '{"name": "Ada"}')
    assert json.loads(said(answer())) == {"action": "accept", "content": {"name": "Ada"}}
    answer = later(lambda: call(ann, "asking", "sample"))
    message = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "none"}
    tools.post(f"/approvals/{waiting(tools, '')['id']}", {"decision": "allow", "content": message}).must(204)
    assert json.loads(said(answer())) == message


def test_who_waits_too_long_has_a_no(tools):
    answer = call(tools, "near", "fail", timeout=0.2)
    assert answer.status in (403, 504)
    assert tools.get("/approvals").json["items"] == []


# --- the command line --------------------------------------------------------------------------


def test_the_command_line_finds_and_calls(tools, tooled):
    holt = Cli(tooled)
    assert [row["name"] for row in holt.json("tools", "servers", "--json")][:2] == ["near", "boxed"]
    assert "boxed" in holt.must("tools", "servers")
    assert "Says what it is told" in holt.must("tools", "ls", "--server", "boxed")
    assert [row["name"] for row in holt.json("tools", "search", "variable", "environment", "--json")] == ["env"]
    assert "inputSchema" in holt.must("tools", "show", "boxed", "echo")
    holt.fails("tools", "show", "boxed", "nothing")
    assert holt.must("tools", "call", "boxed", "echo", '{"text": "from a terminal"}') == "from a terminal\n"
    assert holt.must("tools", "call", "boxed", "echo", "-", input=b'{"text": "from a pipe"}') == "from a pipe\n"
    assert holt.fails("tools", "call", "boxed", "fail") == ["that did not work"]
    holt.fails("tools", "call", "boxed", "echo", "{")


def test_the_command_line_decides(tools, tooled):
    holt = Cli(tooled)
    asked = holt.begin("tools", "call", "near", "fail")
    one = waiting(tools, "fail")["id"]
    assert one in holt.must("approvals", "ls")
    holt.must("approvals", "deny", one)
    assert asked.wait(60) == 125 and b"was not approved" in asked.stderr.read()
    asked.stdout.close()
    asked.stderr.close()
    asked.stdin.close()
    holt.fails("approvals", "allow", one)


# --- the daemon's own life ---------------------------------------------------------------------


def alive(marker):
    return [pid for pid in machine.pids() if marker.encode() in machine.command_of(pid)]


def test_servers_end_with_the_daemon_and_begin_with_it():
    daemon = Daemon()
    marker = str(daemon.dir / "mcp-server")
    configure(daemon, {"near": hosted(daemon), "boxed": BOXED, "deaf": {  # never looks at its input
        "command": "/usr/bin/python3", "args": ["-c", "import time; time.sleep(900)", marker + ".deaf"], "host": True}})

    def ready():
        return all(one["status"] == "ready" for one in daemon.api.get("/tools/servers").json["items"]
                   if one["name"] != "deaf") and alive(marker + ".deaf")
    with daemon:
        until(ready)
        assert alive(marker)
        daemon.stop()
        assert alive(marker) == []
        daemon.start()
        until(ready)
        daemon.kill("daemon")  # without a word to anybody
        daemon.wait_ended()
        until(lambda: alive(marker) == [], what="the end of its servers")
        daemon.start()
        until(ready)
        boxes = until(lambda: [one for one in daemon.api.get("/sandboxes?metadata.holt.mcp=boxed").json["items"]])
        assert len(boxes) == 1  # that of before is gone
        assert said(call(daemon.api, "boxed", "echo", text="there")) == "there"


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a page")

    def log_message(self, *_):
        pass


def test_a_server_in_a_sandbox_reaches_what_its_row_names():
    # Programs do not ask the proxy for 127.0.0.1, which is their own.
    with http.server.ThreadingHTTPServer(("127.0.0.2", 0), Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        url = f"http://127.0.0.2:{pages.server_port}/"
        with configure(Daemon("--internet", "--internet-allow-private"), {
                "out": {**BOXED, "network": ["127.0.0.2"]}, "open": {**BOXED, "network": True},
                "elsewhere": {**BOXED, "network": ["127.0.0.3"]}, "closed": BOXED}) as daemon:
            until(lambda: all(one["status"] == "ready" for one in daemon.api.get("/tools/servers").json["items"]))
            assert said(call(daemon.api, "out", "fetch", url=url)) == "a page"
            assert said(call(daemon.api, "open", "fetch", url=url)) == "a page"
            assert call(daemon.api, "elsewhere", "fetch", url=url).must(200).json["isError"]
            assert call(daemon.api, "closed", "fetch", url=url).must(200).json["isError"]
        pages.shutdown()


def test_where_nothing_leads_out_such_a_server_says_so():
    with configure(Daemon(), {"out": {**BOXED, "network": True}}) as daemon:
        until(lambda: server(daemon.api, "out")["error"] == "network: nothing leads out of sandboxes here")


@pytest.mark.parametrize("text, mode, why", [
    ("{", 0o600, "servers.json: "), ("{}", 0o600, 'want {"mcpServers": {"NAME": {...}}}'),
    ('{"mcpServers": {}}', 0o606, "anybody may write it")])
def test_a_file_that_is_wrong_as_a_whole_is_refused(text, mode, why):
    daemon = Daemon()
    file = daemon.dir / "servers.json"
    file.write_text(text)
    file.chmod(mode)
    daemon.flags += ["--mcp-servers-file", str(file)]
    daemon.start(wait=False)
    assert daemon.process.wait(120) == 125 and why in daemon.log()
    shutil.rmtree(daemon.dir)


def test_a_file_of_the_working_directory_names_no_servers(tmp_path):
    (tmp_path / "holt.yaml").write_text("mcp_servers_file: servers.json\n")
    (tmp_path / "holt.yaml").chmod(stat.S_IRUSR | stat.S_IWUSR)
    (tmp_path / "servers.json").write_text('{"mcpServers": {"x": {"command": "true", "host": true}}}')
    done = subprocess.run([HOLT, "serve", "--state-dir", "state", "--listen", "127.0.0.1:0"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 125 and "mcp_servers_file is not taken from" in done.stderr
