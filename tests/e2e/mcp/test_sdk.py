"""Published SDKs and the Inspector against a daemon with a key, over HTTP and through `holt mcp`."""
import json

import pytest

from support import mcp
from support.daemon import HOLT

SDK = mcp.HERE / "scenario/sdk.mjs"
# v1 knows the legacy era alone.
WAYS = [("v1", "http", "legacy"), ("v1", "stdio", "legacy"), ("v2", "http", "legacy"), ("v2", "http", "auto"),
        ("v2", "http", "modern"), ("v2", "stdio", "legacy"), ("v2", "stdio", "auto"), ("v2", "stdio", "modern")]


def environment(daemon):
    return {"MCP_URL": f"http://127.0.0.1:{daemon.port}/mcp", "MCP_KEY": daemon.key,
            "MCP_COMMAND": json.dumps([HOLT, "mcp"]), "HOLT_URL": f"http://127.0.0.1:{daemon.port}",
            "HOLT_API_KEY_FILE": str(daemon.key_file)}


@pytest.mark.parametrize("sdk,over,mode", WAYS)
def test_an_sdk_does_all_that_there_is(daemon, clients, sdk, over, mode):
    done = clients.node(SDK, sdk, over, mode, seconds=600, **environment(daemon))
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["feature"]: line["error"] for line in found if line["result"] != "ok"} == {}
    assert len(found) > 10
