"""Skills: folders of an operator's, served with their sums, read by a tool, put into a sandbox."""
import base64
import hashlib
import json
import os
import shutil
import urllib.parse

import pytest

from support.daemon import Daemon, until
from support.mcp import HERE, META, Legacy, Modern, RpcError

SCRIPT = "#!/bin/sh\necho \"skilled $1\"\n"


def write(path, data, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    path.chmod(mode)


def skill(folder, name, about="what it is for", **files):
    write(folder / name / "SKILL.md", f"---\nname: {name}\ndescription: \"{about}\"\nmetadata:\n  by: us\n---\n# {name}\n")
    for path, data in files.items():
        write(folder / name / path, data, 0o755 if path.endswith(".sh") else 0o644)


@pytest.fixture(scope="module")
def skilled():
    daemon = Daemon("--skills-dir", "skills")
    folder = daemon.dir / "skills"
    folder.mkdir(mode=0o755)
    skill(folder, "greeting", "Greets: politely", **{"scripts/hello.sh": SCRIPT, "data.bin": b"\0\xff\0",
                                                     "docs/Q&A one.md": "# Q\n"})
    skill(folder, "alone")
    with daemon:
        daemon.folder = folder
        yield daemon


@pytest.fixture(params=[Modern, Legacy])
def peer(request, skilled):
    if request.param is Modern:
        yield Modern(skilled)
        return
    made = Legacy(skilled).initialize()
    yield made
    made.end()


def entries(peer):
    return {entry["uri"]: entry for entry in peer.call("skills/list", {})["skills"]}


def read(peer, uri):
    (content,) = peer.call("resources/read", {"uri": uri})["contents"]
    return content, content["text"].encode() if "text" in content else base64.b64decode(content["blob"])


def test_the_extension_is_declared(skilled):
    legacy = Legacy(skilled).initialize()
    for capabilities in (Modern(skilled).call("server/discover")["capabilities"], legacy.server["capabilities"]):
        assert capabilities["extensions"][META + "skills"] == {"directoryRead": True}
        assert "resources" in capabilities
    legacy.end()


def test_what_is_listed_is_what_is_read(peer):
    entry = entries(peer)["skill://greeting/SKILL.md"]
    assert entry["frontmatter"] == {"name": "greeting", "description": "Greets: politely", "metadata": {"by": "us"}}
    files = {file["uri"]: file for file in entry["resources"]}
    assert set(files) == {"skill://greeting/SKILL.md", "skill://greeting/scripts/hello.sh",
                          "skill://greeting/data.bin", "skill://greeting/docs/Q%26A%20one.md"}
    for uri, file in files.items():
        content, data = read(peer, uri)
        assert content["uri"] == uri
        assert len(data) == file["size"]
        assert file["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
    assert read(peer, "skill://greeting/SKILL.md")[0]["mimeType"] == "text/markdown"
    assert "blob" in read(peer, "skill://greeting/data.bin")[0]
    assert read(peer, "skill://greeting/docs/Q&A%20one.md")[1] == b"# Q\n"
    assert peer.call("skills/get", {"uri": entry["uri"]})["skill"] == entry


def test_resources_list_has_the_instructions(peer):
    listed = {row["uri"]: row for row in peer.call("resources/list", {})["resources"]}
    row = listed["skill://greeting/SKILL.md"]
    assert (row["name"], row["description"], row["mimeType"]) == ("greeting", "Greets: politely", "text/markdown")
    templates = peer.call("resources/templates/list", {})["resourceTemplates"]
    assert "skill://{name}/{+path}" in [row["uriTemplate"] for row in templates]


def test_directories_are_read_level_by_level(peer):
    def children(uri):
        rows = peer.call("resources/directory/read", {"uri": uri})["resources"]
        return {row["name"]: row for row in rows}

    top = children("skill://greeting")
    assert set(top) == {"SKILL.md", "data.bin", "docs", "scripts"}
    assert top["scripts"]["mimeType"] == "inode/directory"
    assert top["SKILL.md"]["mimeType"] == "text/markdown"
    assert set(children("skill://greeting/")) == set(top)
    below = children(top["scripts"]["uri"])
    assert set(below) == {"hello.sh"}
    assert below["hello.sh"]["size"] == len(SCRIPT)
    for wrong in ("skill://greeting/SKILL.md", "skill://nobody", "skill://greeting/..", "skill://greeting/script",
                  "skill://"):
        with pytest.raises(RpcError) as caught:
            children(wrong)
        assert caught.value.code == -32602


@pytest.mark.parametrize("uri", ["skill://nobody/SKILL.md", "skill://greeting/../alone/SKILL.md", "skill://greeting",
                                 "skill://greeting/%2e%2e/alone/SKILL.md", "skill:///etc/passwd", "skill://greeting/%",
                                 "skill://greeting/" + "a" * 5000])
def test_nothing_else_can_be_read(peer, uri):
    for method, codes in (("resources/read", (-32602,) if isinstance(peer, Modern) else (-32002,)),
                          ("skills/get", (-32602,))):
        with pytest.raises(RpcError) as caught:
            peer.call(method, {"uri": uri})
        assert caught.value.code in codes
        assert caught.value.data == {"uri": uri}


def test_bad_folders_are_left_out_and_the_log_says_why(skilled):
    folder = skilled.folder
    try:
        skill(folder, "linked")
        os.symlink("/etc/passwd", folder / "linked/passwd")
        skill(folder, "piped")
        os.mkfifo(folder / "piped/fifo")
        skill(folder, "open-to-all", notes="x")
        (folder / "open-to-all/notes").chmod(0o666)
        write(folder / "misnamed/SKILL.md", "---\nname: other\ndescription: d\n---\n")
        skill(folder, "large")
        with open(folder / "large/big", "wb") as big:
            big.truncate((16 << 20) + 1)
        os.symlink("greeting", folder / "alias")
        skill(folder, "after")  # the last that is made: when it is there, the others were looked at
        names = until(lambda: {row["frontmatter"]["name"] for row in Modern(skilled).call("skills/list")["skills"]}
                      >= {"after"} and skilled.log().count("left out") >= 6, what="the look at the folders")
        assert names
        assert set(entries(Modern(skilled))) == {f"skill://{name}/SKILL.md" for name in ("after", "alone", "greeting")}
        log = skilled.log()
        for name, why in (("linked", "is a link"), ("piped", "neither a file"), ("open-to-all", "written by anybody"),
                          ("misnamed", "its directory is"), ("large", "more than 16 MiB"), ("alias", "is a link")):
            assert any(f"{name}: left out" in line and why in line for line in log.splitlines()), (name, why)
    finally:
        for name in ("linked", "piped", "open-to-all", "misnamed", "large", "after"):
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / "alias").unlink(missing_ok=True)
    until(lambda: set(entries(Modern(skilled))) == {"skill://alone/SKILL.md", "skill://greeting/SKILL.md"},
          what="the end of the bad folders")


def test_a_new_skill_is_told_to_those_who_listen(skilled):
    peer = Modern(skilled)
    number, reply = peer.begin("subscriptions/listen", {"notifications": {"resourcesListChanged": True,
                                                                          "toolsListChanged": True}})
    messages = reply.messages()
    assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
    try:
        skill(skilled.folder, "newcomer", "fresh")
        heard = {next(messages)["method"], next(messages)["method"]}
        assert heard == {"notifications/resources/list_changed", "notifications/tools/list_changed"}
        until(lambda: "skill://newcomer/SKILL.md" in entries(peer), what="the new skill")
        (tool,) = [row for row in peer.call("tools/list")["tools"] if row["name"] == "get_skill"]
        assert "- newcomer: fresh" in tool["description"]
    finally:
        reply.close()
        shutil.rmtree(skilled.folder / "newcomer")
    until(lambda: "skill://newcomer/SKILL.md" not in entries(peer), what="its end")
    assert number


def test_a_change_of_a_file_is_told_to_who_subscribed(skilled):
    uri = "skill://greeting/docs/Q%26A%20one.md"
    file = skilled.folder / "greeting/docs/Q&A one.md"
    legacy = Legacy(skilled).initialize()
    stream = legacy.ask("GET", headers={**legacy.headers(), "Accept": "text/event-stream"})
    assert legacy.call("resources/subscribe", {"uri": uri}) == {}
    _, reply = Modern(skilled).begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    modern = reply.messages()
    assert next(modern)["method"] == "notifications/subscriptions/acknowledged"
    before = file.read_bytes()
    try:
        write(file, "# changed\n")
        for messages in (modern, stream.messages()):
            told = next(message for message in messages if message["method"] == "notifications/resources/updated")
            assert told["params"]["uri"] == uri
        until(lambda: read(legacy, uri)[1] == b"# changed\n", what="the new file")
    finally:
        write(file, before)
        reply.close()
        stream.close()
    until(lambda: read(legacy, uri)[1] == before, what="the old file")
    legacy.end()


def test_get_skill_reads_instructions_and_files(peer):
    tools = {row["name"]: row for row in peer.call("tools/list", {})["tools"]}
    assert "- greeting: Greets: politely" in tools["get_skill"]["description"]
    assert tools["get_skill"]["annotations"]["readOnlyHint"] is True
    result = peer.tool("get_skill", name="greeting")
    assert result["content"][0]["text"].startswith("---\nname: greeting\n")
    assert "scripts/hello.sh" in result["content"][1]["text"]
    assert len(peer.tool("get_skill", name="alone")["content"]) == 1
    assert peer.tool("get_skill", name="greeting", file="scripts/hello.sh")["content"][0]["text"] == SCRIPT
    blob = peer.tool("get_skill", name="greeting", file="data.bin")["content"][0]["resource"]
    assert (blob["uri"], base64.b64decode(blob["blob"])) == ("skill://greeting/data.bin", b"\0\xff\0")


@pytest.mark.parametrize("arguments", [{"name": "nobody"}, {"name": "../greeting"}, {"name": ""}, {},
                                       {"name": "greeting", "file": "../alone/SKILL.md"},
                                       {"name": "greeting", "file": "/etc/passwd"},
                                       {"name": "greeting", "file": "scripts"},
                                       {"name": "greeting", "file": "f" * 600}])
def test_get_skill_gives_nothing_else(peer, arguments):
    result = peer.tool("get_skill", **arguments)
    assert result["isError"] is True
    assert result["content"][0]["text"]


def test_a_skill_is_put_into_the_sandbox_and_runs_there(peer):
    if isinstance(peer, Modern):
        peer.tool("exec", command="rm -rf /workspace/.skills; mkdir -p /workspace/.skills/greeting;"
                                  " echo old > /workspace/.skills/greeting/old")
    result = peer.tool("install_skill", name="greeting")
    assert not result.get("isError"), result
    told = result["structuredContent"]
    assert told["path"] == "/workspace/.skills/greeting" and told["files"] == 4
    out = peer.tool("exec", command=f"cd {told['path']} && ls -A && scripts/hello.sh me && cmp data.bin data.bin")
    assert out["structuredContent"]["stdout"].split("\n")[:4] == ["SKILL.md", "data.bin", "docs", "scripts"]
    assert "skilled me" in out["structuredContent"]["stdout"]
    assert "old" not in out["structuredContent"]["stdout"].split()
    assert peer.tool("install_skill", name="nobody")["isError"] is True


def test_who_may_not_read_files_sees_no_skills(skilled):
    key = skilled.api.post("/keys", {"name": "no files", "role": "user",
                                     "scopes": ["sandbox:read", "exec"]}).must(201).json
    peer = Modern(skilled, key=key["key"])
    for method, params in (("skills/list", {}), ("skills/get", {"uri": "skill://alone/SKILL.md"}),
                           ("resources/read", {"uri": "skill://alone/SKILL.md"}),
                           ("resources/directory/read", {"uri": "skill://alone"})):
        with pytest.raises(RpcError):
            peer.call(method, params)
    listed = peer.call("resources/list")["resources"]
    assert not [row for row in listed if row["uri"].startswith("skill://")]
    assert peer.tool("get_skill", name="alone")["isError"] is True
    skilled.api.delete(f"/keys/{key['id']}").must(204)


def test_a_cursor_of_somebody_elses_is_refused(peer):
    for cursor in ("!", "AA", 7, urllib.parse.quote("/etc"), "a" * 9000):
        with pytest.raises(RpcError) as caught:
            peer.call("skills/list", {"cursor": cursor})
        assert caught.value.code == -32602


ODD = """---
name: odd
description: >-
  folded, with "quotes", colons: and
  a second line
license: 'it''s ours'
compatibility: any
allowed-tools: Bash(git:*) Read
metadata: {version: "1.0", empty: ""}
x-list: [1, 2.5, true, null, text, {a: b}]
x-date: 2024-01-02
x-block: |
  kept
    as it is
---
body
"""


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_published_client_verifies_every_file(skilled, clients, era):
    folder = skilled.folder / "odd"
    try:
        write(folder / "SKILL.md", ODD)
        for number, name in enumerate(["a b", "Q&A", "100%", "ü", "(x)[y]", "semi;colon=1", "plus+at@", "d/e/f.txt", "#?"]):
            write(folder / "files" / name, f"file {number}")
        until(lambda: len(entries(Modern(skilled)).get("skill://odd/SKILL.md", {}).get("resources", [])) == 10,
              what="the odd skill")
        done = clients.node(HERE / "scenario/skills.mjs", era, MCP_URL=f"http://127.0.0.1:{skilled.port}/mcp",
                            MCP_KEY=skilled.key)
        assert done.returncode == 0, done.stdout + done.stderr
        seen = json.loads(done.stdout)
        assert set(seen) == {"alone", "greeting", "odd"}
        assert "files/100%" in seen["odd"] and "files/#?" in seen["odd"]
    finally:
        shutil.rmtree(folder)
        until(lambda: "skill://odd/SKILL.md" not in entries(Modern(skilled)), what="its end")


def test_many_skills_come_in_pages_and_their_descriptions_are_bounded(skilled):
    many = [f"many-{i:03}" for i in range(70)]
    try:
        for name in many:
            skill(skilled.folder, name, "d" * 1000)
        peer = Modern(skilled)

        def walk():
            names, params, pages = [], {}, 0
            while True:
                page = peer.call("skills/list", params)
                names += [row["frontmatter"]["name"] for row in page["skills"]]
                pages += 1
                if "nextCursor" not in page:
                    return names, pages
                params = {"cursor": page["nextCursor"]}

        until(lambda: set(walk()[0]) >= set(many), what="all of them")
        names, pages = walk()
        assert names == sorted(many + ["alone", "greeting"]) and pages == 3
        (tool,) = [row for row in peer.call("tools/list")["tools"] if row["name"] == "get_skill"]
        assert len(tool["description"]) < 24 << 10
        assert all(f"- {name}" in tool["description"] for name in many)
    finally:
        for name in many:
            shutil.rmtree(skilled.folder / name, ignore_errors=True)
    until(lambda: len(entries(Modern(skilled))) == 2, what="their end")


def test_a_hostile_sandbox_gets_no_skill_elsewhere(skilled):
    peer = Modern(skilled)
    box = skilled.api.sandbox()
    box.run("ln -s /usr /workspace/.skills")
    result = peer.tool("install_skill", name="greeting", sandbox_id=box.id)
    assert result["isError"] is True, result
    box.run("rm /workspace/.skills; mkdir /workspace/.skills; ln -s /workspace/victim /workspace/.skills/greeting;"
            " mkdir /workspace/victim; echo mine > /workspace/victim/mine")
    result = peer.tool("install_skill", name="greeting", sandbox_id=box.id)
    assert not result.get("isError"), result
    assert box.run("cat /workspace/victim/mine; ls /workspace/victim; test ! -L /workspace/.skills/greeting"
                   )["exitCode"] == 0
    assert box.run("ls /workspace/victim")["stdout"] == "mine\n"
    box.run("rm -rf /workspace/.skills; : > /workspace/.skills")
    assert peer.tool("install_skill", name="greeting", sandbox_id=box.id)["isError"] is True
    box.delete().must(204)
    assert peer.tool("install_skill", name="greeting", sandbox_id=box.id)["isError"] is True
