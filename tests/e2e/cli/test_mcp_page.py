"""docs/mcp.md: what it tells people to paste into their hosts leads to a server that answers."""
import json
import re
import subprocess
import tomllib

import pytest

from support.cli import Cli
from support.daemon import HOLT, ROOT, Daemon
from support.mcp import Modern

PAGE = ROOT / "docs" / "mcp.md"
FIRST = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}}


def blocks(kind, text=None):
    return re.findall(rf"^```{kind}\n(.*?)^```$", text or PAGE.read_text(), re.M | re.S)


def servers():
    """Every server of every host's file: what that host calls things differs, what they mean does not."""
    hosts = PAGE.read_text().split("\n## Hosts\n")[1].split("\n## ")[0]
    files = [json.loads(text) for text in blocks("json", hosts)] + [tomllib.loads(text) for text in blocks("toml", hosts)]
    for file in files:
        found = file.get("mcpServers") or file.get("servers") or file.get("mcp_servers")
        assert found, file
        yield from found.values()


@pytest.fixture(scope="module")
def daemon():
    with Daemon() as running:
        yield running


def test_the_servers_that_hosts_start_answer(daemon):
    started = {(one["command"], *one["args"]) for one in servers() if "command" in one}
    assert started
    for program, *args in started:
        assert program == "holt"
        done = subprocess.run([HOLT, *args], input=json.dumps(FIRST) + "\n", env=Cli(daemon).env, cwd=daemon.dir, text=True,
                              capture_output=True, timeout=60, check=True)
        assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "holt"


def test_the_servers_that_hosts_connect_to_answer(daemon):
    reached = [one for one in servers() if "command" not in one]
    assert len(reached) >= 4
    for one in reached:
        url = one.get("url") or one["httpUrl"]
        header = one.get("headers", {}).get("Authorization") or f"Bearer ${{{one['bearer_token_env_var']}}}"
        # However a host writes it: a variable of the environment, or what it asks for.
        header = re.sub(r"\$\{(?:env:|input:)?(?:HOLT_API_KEY|holt-key)\}|\$HOLT_API_KEY", daemon.key, header)
        assert header == f"Bearer {daemon.key}", one
        done = subprocess.run(["curl", "-sS", url.replace(":8765", f":{daemon.port}"), "-H", f"Authorization: {header}",
                               "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream",
                               "-d", json.dumps(FIRST)], capture_output=True, text=True, timeout=60, check=True)
        text = next(line.removeprefix("data: ") for line in done.stdout.splitlines() if "result" in line)
        assert json.loads(text)["result"]["serverInfo"]["name"] == "holt"


def test_the_tools_that_are_printed_are_those_that_are_offered(daemon):
    box = daemon.api.sandbox()
    for flags, path in (([], "/mcp"), (["--bound"], f"/sandboxes/{box.id}/mcp")):
        printed = json.loads(subprocess.run([HOLT, "mcp", "tools", *flags], env=Cli(daemon).env, cwd=daemon.dir, check=True,
                                            stdout=subprocess.PIPE).stdout)["tools"]
        offered = Modern(daemon, path=path).call("tools/list")["tools"]
        wanted = {one["name"]: one["inputSchema"] for one in offered}
        assert {one["name"]: one["inputSchema"] for one in printed} == wanted
    box.delete().must(204)


def test_the_commands_of_the_page_are_there():
    for line in re.findall(r"^(holt .*)$", "".join(blocks("sh")), re.M):
        words = re.match(r"holt ([a-z]+(?: [a-z]+)?)", line).group(1).split()
        assert subprocess.run([HOLT, *words, "--help"], capture_output=True, check=False).returncode == 0, line
