"""The protocol's Inspector, as a person runs it on a command line."""
import json

import pytest

from support import mcp
from support.daemon import HOLT, Daemon

INSPECTOR = mcp.MODULES / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
ERAS = ("legacy", "auto", "modern")


@pytest.fixture(scope="module")
def skilled(clients):
    daemon = Daemon()
    daemon.flags += ["--skills-dir", str(mcp.make_skills(daemon.dir / "skills"))]
    with daemon:
        yield daemon


@pytest.fixture(params=["http", "stdio"])
def inspect(request, skilled, tmp_path):
    """Runs it against the daemon, over HTTP or through `holt mcp`; what it ended with, and its output."""
    if request.param == "http":
        where = [f"http://127.0.0.1:{skilled.port}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {skilled.key}"]
    else:
        where = [HOLT, "mcp", "-e", f"HOLT_URL=http://127.0.0.1:{skilled.port}", "-e", f"HOLT_API_KEY_FILE={skilled.key_file}"]

    def run(era, *args):
        return mcp.node(INSPECTOR, "--cli", *where, "--protocol-era", era, "--format", "json", "--quiet",
                        "--connect-timeout", "60000", *args, HOME=str(tmp_path))
    return run


def result(done):
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_lists_and_calls(inspect, era):
    # 6: a schema that a client may refuse.
    names = [tool["name"] for tool in result(inspect(era, "--method", "tools/list", "--strict"))["tools"]]
    assert "exec" in names
    called = result(inspect(era, "--method", "tools/call", "--tool-name", "exec", "--tool-arg", "command=echo $((6*7))"))
    assert called["structuredContent"]["stdout"] == "42\n"
    refused = inspect(era, "--method", "tools/call", "--tool-name", "exec", "--tool-args-json", '{"command": 7}')
    assert "command" in refused.stdout + refused.stderr


def test_the_inspector_verifies_skills(inspect):
    # 7: a sum that is wrong; 8: not all could be looked at; 9: there are no sums.
    done = inspect("modern", "--method", "skills/list", "--verify", "--require-digests")
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["name"] for row in rows] == ["count-words", "make-report"]
    assert {file["status"] for row in rows for file in row["files"]} == {"verified"}
    assert len(rows[0]["files"]) == 3


def test_the_inspector_reads_what_is_offered(inspect):
    assert result(inspect("modern", "--method", "prompts/list"))["prompts"]
    assert result(inspect("modern", "--method", "resources/templates/list"))["resourceTemplates"]
