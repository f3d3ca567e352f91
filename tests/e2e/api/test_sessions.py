"""Sessions of agents: one sandbox each, whoever asks, whatever dies, and nothing but that sandbox."""
import concurrent.futures
import itertools
import json
import urllib.parse

import pytest

from support.daemon import Daemon, until
from support.mcp import Legacy, Modern, RpcError

SESSIONS = "/api/sessions"
NAMES = (f"chat-{n}" for n in itertools.count())
ALL = {"error", "message", "data"}


@pytest.fixture
def anna(key_for):
    return key_for("user", owner="anna")


@pytest.fixture
def session(anna):
    """A session's id, for a client that has its owner's key."""
    name = next(NAMES)
    make(anna, id=name)
    yield name
    anna.delete(f"{SESSIONS}/{name}").must(200, 404)


def make(client, **fields):
    answer = client.post(SESSIONS, fields).must(201).json
    assert set(answer) == ALL and answer["error"] is False
    return answer["data"]


def provision(client, name, query=""):
    return client.post(f"{SESSIONS}/{name}/sandbox{query}").must(200).json


def token_of(given):
    kind, token = given["headers"]["Authorization"].split()
    assert kind == "Bearer"
    return token


def live(client):
    return [item["id"] for item in client.get("/sandboxes?limit=500").must(200).json["items"]]


# --- as kagent's clients ask -----------------------------------------------------------------------


def test_a_session_is_made_shown_listed_and_ended(anna):
    name = next(NAMES)
    made = make(anna, id=name, name="a talk", agent_ref="kagent/helper", user_id="u-1", metadata={"a": "b"},
                workspace={"template": "bash", "resources": {"pids": 20}, "timeout": 90, "env": {"SECRET": "hush"}})
    assert made["id"] == name and made["user_id"] == "u-1" and made["agent_ref"] == "kagent/helper"
    assert made["owner"] == "anna" and made["metadata"] == {"a": "b"}
    assert made["workspace"]["enabled"] and made["workspace"]["template"] == "bash"
    assert made["workspace"]["timeout"] == 90 and made["workspace"]["resources"] == {"pids": 20}
    assert made["workspace"]["env_names"] == ["SECRET"] and "hush" not in json.dumps(made)
    shown = anna.get(f"{SESSIONS}/{name}?user_id=u-1&order=asc&limit=-1", headers={"X-User-ID": "u-1"}).must(200).json
    assert shown["data"] == {"session": made, "events": []}
    assert made in anna.get(f"{SESSIONS}?user_id=u-1").must(200).json["data"]
    assert made not in anna.get(f"{SESSIONS}?user_id=u-2").must(200).json["data"]
    anna.get(f"{SESSIONS}/{name}?user_id=u-2").error(404)
    anna.delete(f"{SESSIONS}/{name}", headers={"X-User-ID": "u-2"}).error(404)
    given = provision(anna, name)
    assert anna.get(f"/sandboxes/{given['sandbox_id']}").must(200).json["metadata"]["session"] == name
    ended = anna.delete(f"{SESSIONS}/{name}?user_id=u-1").must(200).json
    assert set(ended) == ALL
    anna.get(f"{SESSIONS}/{name}").error(404)
    anna.delete(f"{SESSIONS}/{name}").error(404)
    assert given["sandbox_id"] not in live(anna)


def test_an_id_is_made_up_and_the_owner_is_the_user(anna):
    made = make(anna)
    assert len(made["id"]) == 20 and made["user_id"] == "anna"
    anna.delete(f"{SESSIONS}/{made['id']}").must(200)


def test_pages_of_sessions_are_whole(key_for):
    client = key_for("user", owner="pages")
    names = {make(client)["id"] for _ in range(7)}
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get(f"{SESSIONS}?limit=3{cursor and '&cursor=' + urllib.parse.quote(cursor)}").must(200).json
        seen += [item["id"] for item in page["data"]]
        cursor = page["nextCursor"]
    assert sorted(seen) == sorted(names)


@pytest.mark.parametrize("body, field", [
    ({"id": "a/b"}, None), ({"id": ".."}, None), ({"id": "x" * 64}, "id"), ({"id": ""}, "id"), ({"name": 1}, "name"),
    ({"agent": "typo"}, "agent"), ({"workspace": {"template": "none-such"}}, None),
    ({"workspace": {"resources": {"pids": 0}}}, "workspace.resources.pids"),
    ({"workspace": {"timeout": "9000h"}}, None), ({"user_id": "x" * 257}, "user_id"),
    ({"metadata": {str(n): "" for n in range(33)}}, "metadata"), ({"metadata": {"a": "x" * 1025}}, "metadata.a"),
    ({"name": "x" * 257}, "name"), ({"agent_ref": "x" * 257}, "agent_ref"), ({"workspace": {"env": {"1": ""}}}, None),
    ({"workspace": {"env": {f"A{n}": "x" * 1024 for n in range(32)}}}, None), ({"workspace": {"typo": 1}}, "workspace.typo"),
    ({"workspace": {"on_timeout": "stay"}}, "workspace.on_timeout"),
])
def test_what_cannot_be_is_refused(anna, body, field):
    answer = anna.post(SESSIONS, body)
    assert answer.status == 400, answer
    if field:
        answer.error(400, field=field)


def test_an_id_is_taken_once_by_each_owner(anna, session, key_for):
    anna.post(SESSIONS, {"id": session}).error(409)
    bob = key_for("user", owner="bob")
    make(bob, id=session)
    bob.delete(f"{SESSIONS}/{session}").must(200)
    anna.get(f"{SESSIONS}/{session}").must(200)


# --- the sandbox -----------------------------------------------------------------------------------


def test_a_hundred_calls_at_once_yield_one_sandbox(anna, session):
    before = set(live(anna))
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        given = list(pool.map(lambda _: provision(anna, session), range(100)))
    assert len({one["sandbox_id"] for one in given}) == 1
    assert [one["created"] for one in given].count(True) == 1
    assert all(one["ready"] for one in given) and len({token_of(one) for one in given}) == 1
    assert len(set(live(anna)) - before) == 1


def test_the_answer_says_how_to_reach_it(anna, session):
    given = provision(anna, session)
    assert given["mcp_url"] == f"http://127.0.0.1:{anna.target.port}/sandboxes/{given['sandbox_id']}/mcp"
    assert given["protocol"] == "streamable-http" and given["ready"] and given["created"]
    shown = anna.get(f"{SESSIONS}/{session}/sandbox").must(200)
    assert shown.json == {name: value for name, value in given.items() if name != "created"}
    assert shown.headers["Cache-Control"] == "no-store"
    assert not provision(anna, session)["created"]
    path = f"{SESSIONS}/{session}/sandbox"
    assert anna.get(path, headers={"Host": "holt.example:81"}).json["mcp_url"].startswith("http://holt.example:81/sand")
    for host in ("a/b", 'a"b', "a b", "<a>", "user@a"):
        answer = anna.get(path, headers={"Host": host})
        assert answer.status == 400 or answer.json["mcp_url"].startswith("http://localhost/sandboxes/"), host


def test_no_sandbox_is_404_and_no_workspace_400(anna, session):
    anna.get(f"{SESSIONS}/{session}/sandbox").error(404)
    anna.get(f"{SESSIONS}/none/sandbox").error(404)
    anna.post(f"{SESSIONS}/none/sandbox").error(404)
    made = make(anna, workspace={"enabled": False})
    anna.post(f"{SESSIONS}/{made['id']}/sandbox").error(400)
    anna.get(f"{SESSIONS}/{made['id']}/sandbox").error(400)
    anna.delete(f"{SESSIONS}/{made['id']}").must(200)


def test_one_that_has_ended_is_made_anew_and_one_that_sleeps_is_woken(anna, session):
    first = provision(anna, session)
    anna.delete(f"/sandboxes/{first['sandbox_id']}").must(204)
    anna.get(f"{SESSIONS}/{session}/sandbox").error(404)
    second = provision(anna, session)
    assert second["created"] and second["sandbox_id"] != first["sandbox_id"]
    anna.post(f"/sandboxes/{second['sandbox_id']}/pause").must(200)
    assert not anna.get(f"{SESSIONS}/{session}/sandbox").must(200).json["ready"]
    third = provision(anna, session)
    assert third["ready"] and not third["created"] and third["sandbox_id"] == second["sandbox_id"]


def test_who_does_not_wait_is_told_to_ask_again(anna, session):
    answer = anna.post(f"{SESSIONS}/{session}/sandbox?timeout=0")
    if answer.status != 200:  # it may be there in no time
        answer.error(503)
        assert int(answer.headers["Retry-After"]) >= 1
    assert provision(anna, session)["ready"]
    assert anna.post(f"{SESSIONS}/{session}/sandbox", {"timeout": "10s"}).must(200).json["ready"]
    anna.post(f"{SESSIONS}/{session}/sandbox?timeout=3601s").error(400, field="timeout")
    anna.post(f"{SESSIONS}/{session}/sandbox", {"timeout": 3601}).error(400, field="timeout")


def test_a_session_ended_while_its_sandbox_is_made_leaves_nothing(anna):
    before = set(live(anna))
    names = [make(anna)["id"] for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        making = [pool.submit(anna.post, f"{SESSIONS}/{name}/sandbox") for name in names]
        ending = [pool.submit(anna.delete, f"{SESSIONS}/{name}") for name in names]
        assert all(one.result().status == 200 for one in ending)
        assert all(one.result().status in (200, 404) for one in making)
    assert set(live(anna)) == before


# --- whose it is -----------------------------------------------------------------------------------


def test_another_owner_sees_nothing_of_it(anna, session, key_for):
    provision(anna, session)
    bob = key_for("user", owner="bob")
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/sandbox"), ("POST", "/sandbox")):
        bob.ask(method, f"{SESSIONS}/{session}{path}").error(404)
    assert session not in [item["id"] for item in bob.get(SESSIONS).must(200).json["data"]]
    anna.get(f"{SESSIONS}/{session}/sandbox").must(200)


def test_an_admin_finds_it_by_what_is_unique(api, anna, session):
    uid = anna.get(f"{SESSIONS}/{session}").must(200).json["data"]["session"]["uid"]
    assert api.get(f"{SESSIONS}/{uid}").must(200).json["data"]["session"]["id"] == session
    api.get(f"{SESSIONS}/{session}").error(404)


def test_who_may_only_look_gets_no_token(anna, session, key_for):
    provision(anna, session)
    viewer = key_for("viewer", owner="anna")
    assert viewer.get(f"{SESSIONS}/{session}/sandbox").must(200).json["headers"] == {}
    viewer.post(f"{SESSIONS}/{session}/sandbox").error(403)
    viewer.delete(f"{SESSIONS}/{session}").error(403)
    narrow = key_for("user", owner="anna", scopes=["sandbox:read", "sandbox:write"])
    assert narrow.post(f"{SESSIONS}/{session}/sandbox").must(200).json["headers"] == {}


# --- what the token opens --------------------------------------------------------------------------


def test_the_token_opens_its_sandbox(anna, session):
    given = provision(anna, session)
    agent = anna.using(token_of(given))
    path = f"/sandboxes/{given['sandbox_id']}"
    agent.put(f"{path}/files/workspace/a.txt", b"hello").must(201)
    done = agent.post(f"{path}/execute", {"type": "command", "content": "cat /workspace/a.txt"}).must(200).json
    assert done["stdout"] == "hello"
    agent.get(path).must(200)
    assert agent.get("/user").must(200).json["owner"] == "anna"


def test_the_token_opens_nothing_else(anna, session, box):
    given = provision(anna, session)
    mine = given["sandbox_id"]
    agent = anna.using(token_of(given))
    other = anna.sandbox()
    try:
        for target in (other.id, box.id, "none"):
            agent.get(f"/sandboxes/{target}").error(404)
            agent.get(f"/sandboxes/{target}/files/etc/passwd").error(404)
            agent.post(f"/sandboxes/{target}/execute", {"type": "command", "content": "id"}).error(404)
        for method, path in [("GET", "/sandboxes"), ("POST", "/sandboxes"), ("GET", "/keys"), ("POST", "/keys"),
                             ("POST", "/user/apikeys"), ("GET", "/events"), ("GET", "/snapshots"), ("POST", "/templates"),
                             ("GET", SESSIONS), ("POST", SESSIONS), ("GET", f"{SESSIONS}/{session}"),
                             ("DELETE", f"{SESSIONS}/{session}"), ("POST", f"{SESSIONS}/{session}/sandbox"),
                             ("DELETE", f"/sandboxes/{mine}"), ("PATCH", f"/sandboxes/{mine}"),
                             ("POST", f"/sandboxes/{mine}/snapshots"), ("POST", f"/sandboxes/{mine}/fork"),
                             ("POST", f"/sandboxes/{mine}/pause"), ("POST", f"/sandboxes/{mine}/tokens"),
                             ("POST", f"/sandboxes/{mine}/ports"), ("GET", "/metrics"), ("GET", "/audit")]:
            assert agent.ask(method, path, {} if method in ("POST", "PATCH") else None).status == 403, (method, path)
    finally:
        other.delete()


def test_the_token_ends_with_the_key_that_asked_for_it(api, anna, session):
    """And only with that one: another key's is another token."""
    made = api.post("/keys", {"name": "x", "owner": "anna"}).must(201).json
    given, other = provision(api.using(made["key"]), session), provision(anna, session)
    agent, lasting = api.using(token_of(given)), api.using(token_of(other))
    path = f"/sandboxes/{given['sandbox_id']}"
    with agent.events("GET", f"{path}/watch", seconds=30) as events:
        agent.get(path).must(200)
        api.delete(f"/keys/{made['id']}").must(204)
        for _ in events:
            pass  # until the daemon ends it
    agent.get(path).error(401)
    lasting.get(path).must(200)


def test_a_forged_token_is_none(api, anna, session):
    given = provision(anna, session)
    token = token_of(given)
    other = provision(anna, make(anna)["id"])
    forged = [token[:-1] + ("0" if token[-1] != "0" else "1"), token[:-1], token + "0", "box_", token[4:],
              "box_" + "a" * 60, token[:24].replace(given["sandbox_id"], other["sandbox_id"]) + token[24:]]
    for number, bad in enumerate(forged):
        api.coming_from(f"127.9.{number}.1").using(bad).get(f"/sandboxes/{given['sandbox_id']}").error(401)
    both = {"Authorization": f"Bearer {token}", "X-API-Key": anna.key}
    api.get(f"/sandboxes/{given['sandbox_id']}", headers=both).error(401)
    anna.delete(f"/sandboxes/{other['sandbox_id']}").must(204)


def test_the_token_ends_with_its_sandbox(api, anna, session):
    given = provision(anna, session)
    anna.delete(f"/sandboxes/{given['sandbox_id']}").must(204)
    api.using(token_of(given)).get(f"/sandboxes/{given['sandbox_id']}").error(401)
    again = provision(anna, session)
    api.using(token_of(given)).get(f"/sandboxes/{again['sandbox_id']}").error(401)


# --- by MCP ----------------------------------------------------------------------------------------

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def peer_of(daemon, given, path=None):
    return Modern(daemon, key=token_of(given), path=path or urllib.parse.urlsplit(given["mcp_url"]).path, client=TASKS)


def test_the_address_and_the_headers_are_all_that_an_agent_needs(daemon, anna, session):
    given = provision(anna, session)
    agent = peer_of(daemon, given)
    assert agent.tool("write_file", path="a.txt", content="hello")["structuredContent"]["ok"]
    done = agent.tool("exec", command="cat a.txt; exit 42")["structuredContent"]
    assert done["stdout"] == "hello" and done["exit_code"] == 42 and done["sandbox_id"] == given["sandbox_id"]
    assert "hello" in json.dumps(agent.tool("read_file", path="a.txt")["content"])
    tools = {one["name"]: one for one in agent.call("tools/list")["tools"]}
    assert {"exec", "read_file", "write_file", "list_dir"} <= set(tools)
    assert not [name for name in tools if name.startswith("sandbox_")]
    assert all("sandbox_id" not in one["inputSchema"]["properties"] for one in tools.values())


def test_use_wakes_a_sandbox_that_keeps_its_files(daemon, anna):
    made = make(anna, workspace={"on_timeout": "pause"})["id"]
    given = provision(anna, made)
    agent = peer_of(daemon, given)
    agent.tool("write_file", path="a.txt", content="kept")
    anna.post(f"/sandboxes/{given['sandbox_id']}/pause").must(200)
    assert agent.tool("exec", command="cat a.txt")["structuredContent"]["stdout"] == "kept"
    anna.delete(f"{SESSIONS}/{made}").must(200)


def test_by_mcp_the_token_opens_nothing_else_either(daemon, anna, session):
    given = provision(anna, session)
    other = anna.sandbox()
    try:
        assert peer_of(daemon, given, f"/sandboxes/{other.id}/mcp").begin("tools/list")[1].status == 404
        assert Modern(daemon, key="none", path=f"/sandboxes/{other.id}/mcp").begin("tools/list")[1].status == 401
        everywhere = peer_of(daemon, given, "/mcp")  # the same sandbox, and no other
        hers = Modern(daemon, key=anna.key, client=TASKS)
        task = hers.tool("exec", command="sleep 600", timeout_ms=600000, sandbox_id=other.id)["taskId"]
        assert everywhere.tool("exec", command="true")["structuredContent"]["sandbox_id"] == given["sandbox_id"]
        for agent in (peer_of(daemon, given), everywhere):
            for name, arguments in (("sandbox_create", {}), ("sandbox_list", {}), ("sandbox_kill", {"sandbox_id": other.id}),
                                    ("exec", {"command": "true", "sandbox_id": other.id}),
                                    ("read_file", {"path": "/etc/passwd", "sandbox_id": other.id})):
                try:
                    assert agent.tool(name, **arguments).get("isError"), name
                except RpcError:
                    pass  # there is no such tool for it
            listed = json.dumps(agent.call("resources/list"))
            assert given["sandbox_id"] in listed and other.id not in listed
            for method, params in (("resources/read", {"uri": f"sandbox://{other.id}/files/etc/passwd"}),
                                   ("tasks/get", {"taskId": task}), ("tasks/cancel", {"taskId": task})):
                with pytest.raises(RpcError) as refused:
                    agent.call(method, params)
                assert refused.value.code == -32602, (method, refused.value)
        assert hers.call("tasks/get", {"taskId": task})["status"] == "working"
    finally:
        other.delete().must(204)


def test_what_a_token_has_opened_ends_with_its_sandbox(daemon, anna, session):
    given = provision(anna, session)
    agent = Legacy(daemon, key=token_of(given), path=urllib.parse.urlsplit(given["mcp_url"]).path).initialize()
    listens = agent.ask("GET", headers=agent.headers())
    assert listens.status == 200 and listens.is_stream
    anna.delete(f"/sandboxes/{given['sandbox_id']}").must(204)
    list(listens.messages())  # until the server ends it
    assert agent.begin("tools/list")[1].status == 401


# --- deaths ----------------------------------------------------------------------------------------


def statuses_of_hosts(daemon, *hosts):
    peer = Modern(daemon)
    message = peer.message("tools/list")
    return [peer.ask("POST", message, {**peer.headers(message), "Host": host}).status for host in hosts]


def test_sessions_outlive_a_kill_and_what_was_ended_stays_so():
    with Daemon("--public-url", "https://holt.example/x") as daemon:
        assert statuses_of_hosts(daemon, "holt.example", "HOLT.example", "localhost") == [200] * 3
        assert statuses_of_hosts(daemon, "evil.example", "holt.example.evil", "holt.example:1", "x.holt.example") == [403] * 4
        kept, gone = make(daemon.api)["id"], make(daemon.api)["id"]
        before = provision(daemon.api, kept)
        assert before["mcp_url"] == f"https://holt.example/x/sandboxes/{before['sandbox_id']}/mcp"
        provision(daemon.api, gone)
        daemon.api.delete(f"{SESSIONS}/{gone}").must(200)
        daemon.kill("keeper", "daemon", "launcher")
        daemon.start()
        after = provision(daemon.api, kept)
        assert not after["created"] and after == before | {"created": False}
        daemon.api.using(token_of(before)).get(f"/sandboxes/{before['sandbox_id']}").must(200)
        daemon.api.get(f"{SESSIONS}/{gone}").error(404)
        assert live(daemon.api) == [before["sandbox_id"]]


def test_a_kill_while_sandboxes_are_made_leaves_one_for_each_session():
    with Daemon() as daemon:
        names = [make(daemon.api)["id"] for _ in range(6)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(daemon.api.post, f"{SESSIONS}/{name}/sandbox") for name in names * 2]
            concurrent.futures.wait(asked, return_when=concurrent.futures.FIRST_COMPLETED)
            daemon.kill("daemon")
            concurrent.futures.wait(asked)
        daemon.wait_ended()
        daemon.start()
        told = {one.result().json["sandbox_id"] for one in asked if not one.exception() and one.result().status == 200}
        given = {provision(daemon.api, name)["sandbox_id"] for name in names}
        assert len(given) == len(names) and told <= given
        assert set(live(daemon.api)) == given
        for name in names:
            daemon.api.delete(f"{SESSIONS}/{name}").must(200)
        assert live(daemon.api) == []


def test_a_kill_while_sessions_end_leaves_none_half_ended():
    """Whatever the daemon had got to, a session is either whole or gone with its sandbox."""
    with Daemon() as daemon:
        names = [make(daemon.api)["id"] for _ in range(6)]
        boxes = {name: provision(daemon.api, name)["sandbox_id"] for name in names}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            ends = [pool.submit(daemon.api.delete, f"{SESSIONS}/{name}") for name in names]
            ends[0].exception()  # the first has an answer: the others are on their way
            daemon.kill("daemon")
            concurrent.futures.wait(ends)
        daemon.wait_ended()
        daemon.start()
        left = {item["id"] for item in daemon.api.get(SESSIONS).must(200).json["data"]}
        until(lambda: set(live(daemon.api)) == {boxes[name] for name in left}, what="ending what was begun")
        assert names[0] not in left
        for name in left:
            assert not provision(daemon.api, name)["created"]
            daemon.api.delete(f"{SESSIONS}/{name}").must(200)
        assert live(daemon.api) == []
