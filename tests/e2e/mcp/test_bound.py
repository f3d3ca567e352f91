"""The address that is one sandbox's: what kagent's sandbox-mcp promises of its tools, and no way out of the sandbox."""
import pytest

from support import mcp
from support.daemon import Daemon
from support.mcp import Legacy, Modern, RpcError


@pytest.fixture(scope="module")
def skilled():
    daemon = Daemon()
    daemon.flags += ["--skills-dir", str(mcp.make_skills(daemon.dir / "skills"))]
    with daemon:
        yield daemon


@pytest.fixture(scope="module")
def box(skilled):
    return skilled.api.sandbox()


@pytest.fixture(params=[Modern, Legacy])
def peer(request, skilled, box):
    made = request.param(skilled, path=f"/sandboxes/{box.id}/mcp")
    return made.initialize() if request.param is Legacy else made


def good(result):
    assert not result["isError"], result
    return result["structuredContent"]


def text(result):
    return result["content"][0]["text"]


def bad(result):
    assert result["isError"], result
    return text(result)


def test_a_command_says_what_it_says(peer):
    got = good(peer.tool("exec", command="echo hello"))
    assert (got["stdout"], got["stderr"], got["exit_code"]) == ("hello\n", "", 0)


def test_a_command_ends_as_it_ends(peer):
    assert good(peer.tool("exec", command="exit 42"))["exit_code"] == 42


def test_a_command_runs_where_it_is_told_to(peer):
    good(peer.tool("exec", command="mkdir -p /workspace/there"))
    assert good(peer.tool("exec", command="pwd", working_dir="/workspace/there"))["stdout"] == "/workspace/there\n"


def test_no_command_is_an_error(peer):
    assert "command" in bad(peer.tool("exec", command=""))
    assert "command" in bad(peer.tool("exec"))


def test_a_command_has_only_so_much_time(peer):
    result = peer.tool("exec", command="sleep 47101", timeout_ms=100)
    assert result["structuredContent"]["timed_out"]


def test_a_file_is_written_and_read(peer):
    assert good(peer.tool("write_file", path="note.txt", content="some text\n"))["ok"]
    assert text(peer.tool("read_file", path="note.txt", line_numbers=False)) == "some text\n"


def test_a_files_directories_are_made(peer):
    good(peer.tool("write_file", path="/workspace/a/b/c.txt", content="deep"))
    assert text(peer.tool("read_file", path="a/b/c.txt", line_numbers=False)) == "deep"


def test_a_directory_is_listed(peer):
    good(peer.tool("exec", command="rm -rf listed; mkdir -p listed/sub; printf 12345 > listed/file"))
    entries = good(peer.tool("list_dir", path="listed"))["entries"]
    assert [(entry["name"], entry["type"]) for entry in entries] == [("file", "file"), ("sub", "directory")]
    assert entries[0]["size"] == 5
    assert "listed" in [entry["name"] for entry in good(peer.tool("list_dir"))["entries"]]


def test_a_file_that_is_not_there_is_an_error(peer):
    assert "none.txt" in bad(peer.tool("read_file", path="none.txt"))
    assert bad(peer.tool("list_dir", path="nowhere"))


def test_an_empty_file_is_a_file(peer):
    good(peer.tool("write_file", path="empty.txt", content=""))
    result = peer.tool("read_file", path="empty.txt")
    assert not result["isError"]
    assert "".join(block.get("text", "") for block in result["content"]) == ""


def test_skills_are_named_where_the_tool_is_described(peer):
    (tool,) = [tool for tool in peer.call("tools/list")["tools"] if tool["name"] == "get_skill"]
    assert "count-words" in tool["description"] and "How to count words." in tool["description"]


def test_a_skill_is_loaded(peer):
    assert "See [how](references/how.md)." in text(peer.tool("get_skill", name="count-words"))


@pytest.mark.parametrize("name", ["none", "../count-words", "..", "/etc", "count-words/../make-report", ".", ""])
def test_no_other_skill_is_loaded(peer, name):
    bad(peer.tool("get_skill", name=name))


def test_without_skills_there_are_none(daemon):
    peer = Modern(daemon, path=f"/sandboxes/{daemon.api.sandbox().id}/mcp")
    assert peer.call("skills/list")["skills"] == []


def test_a_bound_client_knows_no_other_sandbox(peer, skilled):
    names = {tool["name"] for tool in peer.call("tools/list")["tools"]}
    assert not [name for name in names if name.startswith("sandbox_")]
    for tool in peer.call("tools/list")["tools"]:
        assert "sandbox_id" not in tool["inputSchema"]["properties"], tool["name"]
    with pytest.raises(RpcError) as told:
        peer.tool("sandbox_list")
    assert told.value.code == -32602
    other = skilled.api.sandbox()
    assert "sandbox_id" in bad(peer.tool("exec", command="true", sandbox_id=other.id))
    with pytest.raises(RpcError):
        peer.call("resources/read", {"uri": f"sandbox://{other.id}/files/etc/passwd"})


def test_a_sandbox_that_is_not_there_has_no_address(skilled):
    peer = Modern(skilled, path="/sandboxes/aaaaaaaaaaaaaaaaaaaa/mcp")
    message = peer.message("tools/list")
    assert peer.ask("POST", message, peer.headers(message)).status == 404


def test_anothers_sandbox_has_none_either(skilled, box):
    made = skilled.api.post("/keys", {"name": "other", "role": "user", "owner": "somebody"}).must(201).json
    peer = Modern(skilled, key=made["key"], path=f"/sandboxes/{box.id}/mcp")
    message = peer.message("tools/list")
    assert peer.ask("POST", message, peer.headers(message)).status == 404
