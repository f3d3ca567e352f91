"""Others' published servers behind ours: on this machine, in a sandbox made of a snapshot, and over HTTP."""
import io
import json
import pathlib
import shutil
import socket
import subprocess
import tarfile
import tempfile

import pytest

from support import mcp
from support.daemon import Daemon, until

EVERYTHING = "@modelcontextprotocol/server-everything"
FILES = "@modelcontextprotocol/server-filesystem"
MAIN = "dist/index.js"
SPARED = ("*.map", "*.ts", "*.cts", "*.mts", "*.yml", "LICENSE*", "cjs", "examples", "test", "tests")


def needed(*names):
    """The packages that these need, themselves included. All of them lie in one folder, side by side or inside."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop()
        folder = mcp.MODULES / name
        if name in found or not folder.exists():
            continue
        found.add(name)
        todo += json.loads((folder / "package.json").read_text()).get("dependencies", {})
    return sorted(found)


@pytest.fixture(scope="module")
def packages(clients):
    """Where any account can read them."""
    with tempfile.TemporaryDirectory(prefix="holt-mcp.") as top:
        folder = pathlib.Path(top) / "node_modules"
        for name in needed(EVERYTHING, FILES):
            shutil.copytree(mcp.MODULES / name, folder / name, symlinks=True, ignore=shutil.ignore_patterns(*SPARED))
        folder.parent.chmod(0o755)
        yield folder


@pytest.fixture(scope="module")
def node(clients):
    """The machine's own may be too old for these: then it is the one that mcp-clients brought."""
    return shutil.which("node", path=mcp.environment()["PATH"])


def is_open(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def remote(packages, node):
    """server-everything over Streamable HTTP, on a port of its own; somebody else may be quicker to take it."""
    for _ in range(5):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen([node, packages / EVERYTHING / MAIN, "streamableHttp"],
                                   env={**mcp.environment(), "PORT": str(port)}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: process.poll() is not None or is_open(port), what="the server")
        if process.poll() is None:
            break
    assert process.poll() is None
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


def pack(packages):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(packages, arcname="node_modules")
    return data.getvalue()


@pytest.fixture(scope="module")
def daemon(packages, node, remote):
    running = Daemon()
    shown = running.dir / "shown"
    shown.mkdir()
    (shown / "hello.txt").write_text("hello from a file\n")
    file = running.dir / "servers.json"
    file.write_text(json.dumps({"mcpServers": {
        "near": {"command": node, "args": [str(packages / EVERYTHING / MAIN)], "host": True},
        "files": {"command": node, "args": [str(packages / FILES / MAIN), str(shown)], "host": True},
        "remote": {"type": "http", "url": remote},
    }}))
    running.flags += ["--mcp-servers-file", str(file)]
    with running:
        # A server's sandbox: what it needs was put into one, of which a snapshot was taken.
        box = running.api.sandbox("node", resources={"memory": "1G", "disk": "400M"})
        running.api.put(f"{box.path}/archive?path=/workspace", pack(packages)).must(200, 204)
        running.api.post(f"{box.path}/snapshots", {"name": "servers"}).must(201)
        box.delete().must(204)
        servers = json.loads(file.read_text())["mcpServers"]
        servers["boxed"] = {"command": "node", "args": [f"/workspace/node_modules/{EVERYTHING}/{MAIN}"],
                            "snapshot": "servers", "resources": {"memory": "1G", "disk": "400M"}, "env": {"IN": "a box"}}
        file.write_text(json.dumps({"mcpServers": servers}))
        running.stop()
        running.start()
        until(lambda: all(one["status"] == "ready" for one in states(running)), what="all servers")
        yield running
        file.write_text('{"mcpServers": {}}')  # nobody needs the snapshot any more
        running.stop()
        running.start()
        until(lambda: running.api.delete("/snapshots/servers").status in (204, 404), what="the snapshot's end")


def states(daemon):
    return daemon.api.get("/tools/servers").must(200).json["items"]


def call(daemon, server, tool, **arguments):
    return daemon.api.post(f"/tools/{server}/{tool}/call", {"arguments": arguments}).must(200).json


def test_what_they_offer_is_known(daemon):
    # A server is ready with its tools; the other lists come behind them.
    until(lambda: all(one["resources"] > 0 and one["prompts"] > 0 for one in states(daemon) if one["name"] != "files"),
          what="the other lists")
    found = {one["name"]: one for one in states(daemon)}
    for name in ("near", "boxed", "remote"):
        assert found[name]["program"] == "mcp-servers/everything" and found[name]["era"] == "legacy"
        assert found[name]["tools"] > 5
    assert found["files"]["tools"] > 5
    assert {one["name"]: one["place"] for one in states(daemon)} == {
        "near": "host", "files": "host", "remote": "remote", "boxed": "sandbox"}


@pytest.mark.parametrize("server", ["near", "boxed", "remote"])
def test_everything_answers(daemon, server):
    assert call(daemon, server, "echo", message="hi")["content"] == [{"type": "text", "text": "Echo: hi"}]
    assert "5" in call(daemon, server, "get-sum", a=2, b=3)["content"][0]["text"]
    structured = call(daemon, server, "get-structured-content", location="Chicago")
    assert structured["structuredContent"]["temperature"] is not None
    assert call(daemon, server, "get-tiny-image")["content"][1]["type"] == "image"
    wrong = daemon.api.post(f"/tools/{server}/echo/call", {"arguments": {}})
    assert wrong.status == 400 or wrong.json["isError"]


def test_a_box_has_the_rows_environment_and_not_ours(daemon):
    env = json.loads(call(daemon, "boxed", "get-env")["content"][0]["text"])
    assert env["IN"] == "a box" and not any(name.startswith("HOLT_API") for name in env)


def test_files_are_read_and_written(daemon):
    shown = daemon.dir / "shown"
    assert "hello from a file" in call(daemon, "files", "read_text_file", path=str(shown / "hello.txt"))["content"][0]["text"]
    outside = call(daemon, "files", "read_text_file", path="/etc/passwd")
    assert outside["isError"]
