"""Every block of commands in README and docs is run by a test, which this file names or has."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest

from support.cli import Cli
from support.daemon import BUILD, HOLT, ROOT, Daemon, until

E2E = "tests/e2e/"
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
# How the block begins, and who runs it. What only somebody else's program can run is run as far as that program is there.
RUN_BY = {
    "README.md": {
        "$ holt sandbox create --name demo": "cli/test_pages.py::test_the_first_lines_of_the_readme_work",
        "make run": "cli/test_pages.py::test_the_first_run_shows_a_sandbox",
        "alias holt=": "cli/test_readme.py::test_the_walk_through_a_sandbox_works",
        "export E2B_API_KEY=": "cli/test_pages.py::test_the_variables_for_e2b_are_a_key_and_addresses",
        "holt repl demo": "cli/test_readme.py::test_the_walk_through_a_platform_works",
        "holt session create": "cli/test_readme.py::test_the_walk_through_a_session_works",
        "export HOLT_API_KEY=": "cli/test_readme.py::test_the_walk_over_http_works",
        "holt doctor": "cli/test_readme.py::test_the_walk_without_a_daemon_works",
    },
    "docs/api.md": {
        "export HOLT=": "cli/test_pages.py::test_the_commands_of_the_api_work",
        "post sandboxes/demo/contexts": "cli/test_pages.py::test_the_commands_of_the_api_work",
    },
    "docs/e2b.md": {
        "make run": "e2b/test_guide.py::test_a_program_of_the_guide_runs",
        "e2b sandbox create": "e2b/test_e2b_cli.py::test_a_sandbox_is_created_listed_and_killed",
    },
    "docs/mcp.md": {
        "export HOLT_API_KEY=": "cli/test_readme.py::test_the_walk_over_http_works",
        "claude mcp add": "cli/test_mcp_page.py::test_the_servers_that_hosts_start_answer",
        "npx @modelcontextprotocol/inspector": "mcp/test_inspector.py::test_the_inspector_lists_and_calls",
        "holt tools servers": "cli/test_pages.py::test_the_commands_for_tools_work",
        "holt-call tracker.list_issues": "cli/test_pages.py::test_tools_are_called_from_a_sandbox_as_the_page_says",
        "holt session create chat-1": "cli/test_pages.py::test_the_commands_for_sessions_work",
    },
    "docs/operating.md": {
        "$ make && sudo make install": "test_dist.py::test_the_programs_run_from_where_they_are_unpacked",
        "$ sudo holt serve": "support/daemon.py::start",
        "": "api/test_operating.py::test_every_command_of_the_operators_guide_works",
    },
}


def blocks(page):
    return re.findall(r"^```(?:sh|console)\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)


def block(page, first):
    found = [text for text in blocks(page) if text.startswith(first)]
    assert len(found) == 1, (page, first)
    return found[0]


def test_every_block_of_commands_is_run_by_a_test():
    for page in PAGES:
        table = RUN_BY.get(page, {})
        for text in blocks(page):
            assert any(text.startswith(first) for first in table), f"{page}: no test runs the block\n{text}"
        for first, who in table.items():
            file, test = who.split("::")
            assert any(text.startswith(first) for text in blocks(page)), f"{page}: there is no block {first!r} any more"
            assert f"def {test}" in (ROOT / E2E / file).read_text(), who


@pytest.fixture
def home(tmp_path, daemon):
    (tmp_path / ".config/holt").mkdir(parents=True)
    shutil.copy(daemon.key_file, tmp_path / ".config/holt/key")
    return tmp_path


def run(script, home, daemon, **env):
    env = {"PATH": f"{os.path.dirname(HOLT)}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8",
           "HOLT_URL": f"http://127.0.0.1:{daemon.port}", **env}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script.replace("127.0.0.1:8765", f"127.0.0.1:{daemon.port}")],
                          env=env, cwd=home, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_first_lines_of_the_readme_work(home, daemon):
    text = block("README.md", "$ holt sandbox create --name demo")
    commands = re.findall(r"^\$ (.*)$", text, re.M)
    printed = run("\n".join(commands) + "\nholt sandbox rm demo\n", home, daemon)
    assert text.splitlines()[-1] in printed


def test_the_variables_for_e2b_are_a_key_and_addresses(home, daemon):
    check = 'curl -sS --fail "$E2B_API_URL/sandboxes" -H "X-API-Key: $E2B_API_KEY"; echo " $E2B_SANDBOX_URL"'
    assert run(block("README.md", "export E2B_API_KEY=") + check, home, daemon).startswith("[")


def test_the_commands_of_the_api_work(home, daemon):
    printed = run("".join(blocks("docs/api.md")) + "\nholt sandbox rm demo\n", home, daemon)
    assert r'"stdout":"42\n"' in printed and re.search(r'"text": ?"21"', printed)


def test_the_commands_for_sessions_work(home, daemon):
    printed = run(block("docs/mcp.md", "holt session create chat-1") + "holt session rm chat-1\n", home, daemon)
    assert "chat-1" in printed


SERVER = '''
import json, sys
def tool(name, about, **properties):
    return {"name": name, "description": about,
            "inputSchema": {"type": "object", "properties": {k: {"type": "string"} for k in properties}}}
TOOLS = [tool("read_text_file", "Read a file as text", path=1), tool("write_file", "Write a file", path=1),
         tool("list_issues", "List issues", state=1), tool("add_comment", "Add to the comments of an issue", body=1)]
for line in sys.stdin:
    got = json.loads(line)
    result = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}},
              "tools/list": {"tools": TOOLS},
              "tools/call": {"content": [{"type": "text", "text": "what the tool says"}]}}.get(got.get("method"))
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
    if "id" in got:
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], **answer}), flush=True)
'''


@pytest.fixture(scope="module")
def tooled():
    """A daemon with the servers of the page, or what has their names."""
    daemon = Daemon()
    program = daemon.dir / "server.py"
    program.write_text(SERVER)
    row = {"command": "/usr/bin/python3", "args": ["-u", str(program)], "host": True, "tools": {"ask": ["write_*"]}}
    (daemon.dir / "servers.json").write_text(json.dumps({"mcpServers": {"files": row, "tracker": row}}))
    daemon.flags += ["--mcp-servers-file", str(daemon.dir / "servers.json")]
    with daemon:
        until(lambda: all(one["status"] == "ready" for one in daemon.api.get("/tools/servers").must(200).json["items"]), what="the servers")
        yield daemon


def test_the_commands_for_tools_work(tooled):
    cli = Cli(tooled)
    asking = cli.begin("tools", "call", "files", "write_file", '{"path": "/srv/docs/b.txt"}')
    ident = until(lambda: [one["id"] for one in cli.json("approvals", "ls", "--json")], what="the question")[0]
    script = block("docs/mcp.md", "holt tools servers").replace("allow ID", f"allow {ident}")
    printed = run(script, tooled.dir, tooled, HOLT_API_KEY=tooled.key)
    assert "ready" in printed and "read_text_file" in printed and "what the tool says" in printed
    assert asking.wait(60) == 0 and b"what the tool says" in asking.stdout.read()


def test_tools_are_called_from_a_sandbox_as_the_page_says(tooled):
    cli = Cli(tooled)
    box = cli.must("sandbox", "create", "--tools", "tracker").strip()
    printed = cli.must("exec", box, "--", "sh", "-ec", block("docs/mcp.md", "holt-call tracker.list_issues"))
    assert "what the tool says" in printed and "add_comment" in printed
    cli.must("sandbox", "rm", box)


@pytest.fixture
def place():
    """A directory that the daemon's account can enter."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="holt-e2e."))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_the_first_run_shows_a_sandbox(place):
    """`make run` behind its build, in a home of its own."""
    build = place / "build"
    build.mkdir()
    for name in ("holt", "holt-launch", "holt-init", "holt-warm.so"):
        os.symlink(BUILD / name, build / name)
    address = f"127.0.0.1:{free_port()}"
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "LANG": "C.UTF-8", "HOLT_STATE_DIR": str(place / "state"),
           "HOLT_LISTEN": address, "HOLT_URL": f"http://{address}"}

    def first_run(*args):
        done = subprocess.run([ROOT / "scripts/first-run", build, *args], env=env, cwd=place, timeout=300, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        return done.stdout
    try:
        assert "hello from a box" in first_run()
        assert "runs already" in first_run()
        subprocess.run([build / "holt", "sandbox", "rm", "first"], env=env, cwd=place, check=True, timeout=60)
    finally:
        sys.stdout.write((build / "holt.log").read_text())
        assert "stopped" in first_run("--stop")
