"""Both eras of the protocol by plain requests: what a client may say, and what it is told."""
import json
import threading

import pytest

from support import machine, mcp
from support.daemon import Daemon, until
from support.mcp import Legacy, Modern, RpcError


@pytest.fixture
def legacy(daemon):
    peer = Legacy(daemon).initialize()
    yield peer
    peer.end()


@pytest.fixture
def modern(daemon):
    return Modern(daemon)


def sleeping(number):
    """Who sleeps so many seconds, on the whole machine; no other test uses the number."""
    wanted = b"sleep\0%d\0" % number
    return [pid for pid in machine.pids() if machine.command_of(pid) == wanted]


# --- the legacy era ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_an_old_version_is_spoken_as_asked_for(daemon, version):
    peer = Legacy(daemon, version=version).initialize()
    assert peer.server["protocolVersion"] == version
    assert peer.server["serverInfo"]["name"]
    assert peer.call("ping") == {}
    result = peer.tool("exec", command="echo $((6 * 7))")
    assert result["content"][0]["type"] == "text"
    assert "42" in result["content"][0]["text"]
    # What came with 2025-06-18 is not told to those who came before.
    assert ("structuredContent" in result) == (version >= "2025-06-18")
    assert peer.end() in (200, 202, 204)


def test_a_version_that_nobody_knows_gets_the_newest(daemon):
    peer = Legacy(daemon, version="1999-01-01").initialize()
    assert peer.server["protocolVersion"] == mcp.LEGACY
    peer.end()


def test_a_batch_is_answered_in_the_one_version_that_has_them(daemon):
    peer = Legacy(daemon, version="2025-03-26").initialize()
    batch = [{"jsonrpc": "2.0", "id": "a", "method": "ping"},
             {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
             {"jsonrpc": "2.0", "id": 7, "method": "tools/list"},
             {"jsonrpc": "2.0", "id": 8, "method": "no/such"}]
    got = {message["id"]: message for message in peer.post(batch).messages()}
    assert set(got) == {"a", 7, 8}
    assert got["a"]["result"] == {}
    assert got[7]["result"]["tools"]
    assert got[8]["error"]["code"] == -32601
    assert peer.post([{"jsonrpc": "2.0", "method": "notifications/initialized"}]).status == 202
    assert peer.post([]).status == 400
    assert peer.post([batch[0]] * 1000).status == 400
    peer.end()


def test_a_batch_is_refused_by_later_versions(legacy):
    assert legacy.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]).status == 400


def test_a_session_is_wanted_known_and_ended(daemon):
    peer = Legacy(daemon).initialize()
    assert all(0x21 <= ord(c) <= 0x7e for c in peer.session)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert peer.ask("POST", ping, {"MCP-Protocol-Version": peer.version}).status == 400
    assert peer.ask("POST", ping, {**peer.headers(), "Mcp-Session-Id": peer.session[:-1] + "!"}).status == 404
    assert peer.ask("POST", ping, {**peer.headers(), "MCP-Protocol-Version": "1999-01-01"}).status == 400
    assert peer.end() in (200, 202, 204)
    assert peer.post(ping).status == 404
    assert peer.ask("GET", headers={**peer.headers(), "Accept": "text/event-stream"}).status == 404


def where(peer, command="true"):
    result = peer.tool("exec", command=command)["structuredContent"]
    return result["sandbox_id"], result["stdout"]


def test_sessions_of_a_key_work_in_its_sandbox_one_after_the_other(daemon, modern):
    first = Legacy(daemon).initialize()
    box, _ = where(first, "echo kept > /workspace/of-key")
    first.end()
    second = Legacy(daemon).initialize()
    assert where(second, "cat /workspace/of-key") == (box, "kept\n")
    assert where(modern, "cat /workspace/of-key") == (box, "kept\n")
    second.end()


@pytest.mark.parametrize("by", ["query", "header"])
def test_a_session_may_have_a_sandbox_of_its_own_which_is_stopped_and_kept(daemon, by):
    """Its files are there for a while behind the session's end, and for good when somebody starts it again."""
    class Own(Legacy):
        def ask(self, method, body=None, headers=None, *more):
            return super().ask(method, body, {**({"Holt-Sandbox": "session"} if by == "header" else {}),
                                              **(headers or {})}, *more)

    def is_kept(box):
        return daemon.api.get(f"/sandboxes/{box}").must(200).json["status"] in ("suspended", "stopped")
    one, two = (Own(daemon, path="/mcp?sandbox=session" if by == "query" else "/mcp").initialize() for _ in range(2))
    (box, _), (other, _) = where(one, "echo mine > /workspace/mine"), where(two)
    assert len({box, other, where(Modern(daemon))[0]}) == 3
    daemon.api.patch(f"/sandboxes/{box}", {"metadata": {"team": "blue"}}).must(200)
    assert one.end() == 204
    until(lambda: is_kept(box), what="its being stopped")
    daemon.api.post(f"/sandboxes/{box}/start").must(200)
    assert daemon.api.get(f"/sandboxes/{box}/files/workspace/mine").must(200).body == b"mine\n"
    until(lambda: daemon.api.get(f"/sandboxes/{box}").must(200).json["metadata"] == {"team": "blue"},
          what="its being somebody's, with their metadata")
    daemon.api.delete(f"/sandboxes/{box}").must(204)
    # The other's while is over long ago.
    two.end()
    until(lambda: is_kept(other), what="its being stopped")
    daemon.api.patch(f"/sandboxes/{other}", {"metadata": {"mcp-session-ended": "1"}}).must(200)
    until(lambda: daemon.api.get(f"/sandboxes/{other}").json.get("endedAt"), what="its end")


def test_another_wish_for_a_sandbox_is_refused(daemon):
    for path, head in (("/mcp?sandbox=mine", {}), ("/mcp", {"Holt-Sandbox": "mine"})):
        peer = Legacy(daemon, path=path)
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
        assert peer.ask("POST", message, head).status == 400


def test_nobody_uses_anothers_session(daemon, legacy):
    made = daemon.api.post("/keys", {"name": "other", "role": "user", "owner": "somebody"})
    other = Legacy(daemon, key=made.must(201).json["key"])
    other.session = legacy.session
    assert other.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404
    assert other.ask("DELETE", headers=other.headers()).status == 404
    assert legacy.call("ping") == {}


def test_a_client_that_was_cut_off_comes_back_for_its_answer(legacy):
    number, reply = legacy.begin("tools/call", {"name": "exec", "arguments": {"command": "sleep 5; echo late"},
                                                "_meta": {"progressToken": "p"}})
    assert reply.is_stream
    event = next(reply.events)  # the first has an id, and nothing else
    assert event.id
    reply.close()
    again = legacy.resume(event.id)
    assert again.status == 200
    assert legacy.result(again, number)["structuredContent"]["stdout"] == "late\n"


def test_an_answer_that_has_come_is_told_again(legacy):
    number, reply = legacy.begin("tools/call", {"name": "exec", "arguments": {"command": "sleep 4; echo once"}})
    first = next(reply.events)
    assert legacy.result(reply, number)["structuredContent"]["stdout"] == "once\n"
    assert legacy.result(legacy.resume(first.id), number)["structuredContent"]["stdout"] == "once\n"


def test_a_place_in_no_stream_is_refused(legacy):
    for event_id in ("x", "999-1", "-1-1", "1" * 5000, "1-18446744073709551616"):
        assert legacy.resume(event_id).status in (400, 404, 431), event_id


def test_what_is_cancelled_ends_with_all_that_it_started(legacy):
    number, reply = legacy.begin("tools/call", {"name": "exec",
                                                "arguments": {"command": "sleep 47001 & setsid sleep 47002"}})
    until(lambda: sleeping(47001) and sleeping(47002))
    assert legacy.notify("notifications/cancelled", {"requestId": number, "reason": "enough"}) == 202
    until(lambda: not sleeping(47001) and not sleeping(47002))
    assert not [message for message in reply.messages() if "result" in message]


def test_a_level_is_set_and_kept_to(legacy):
    assert legacy.call("logging/setLevel", {"level": "warning"}) == {}
    with pytest.raises(RpcError) as told:
        legacy.call("logging/setLevel", {"level": "loud"})
    assert told.value.code == -32602


# --- the modern era ----------------------------------------------------------------------------


def test_the_modern_era_has_no_get_and_no_delete(modern):
    for method in ("GET", "DELETE"):
        reply = modern.ask(method, headers={"MCP-Protocol-Version": mcp.MODERN})
        assert reply.status == 405
        assert "POST" in reply.headers["Allow"]


def test_who_discovers_is_told_what_there_is(modern):
    found = modern.call("server/discover")
    assert found["supportedVersions"] == [mcp.MODERN]
    assert found["resultType"] == "complete"
    assert found["ttlMs"] >= 0 and found["cacheScope"] in ("public", "private")
    assert {"tools", "prompts", "resources", "completions"} <= set(found["capabilities"])
    assert mcp.TASKS in found["capabilities"]["extensions"]


def test_a_session_of_the_other_era_means_nothing(modern, legacy):
    message = modern.message("tools/list")
    reply = modern.ask("POST", message, {**modern.headers(message), "Mcp-Session-Id": "anything",
                                         "Last-Event-ID": "1-1"})
    assert modern.result(reply, message["id"])["tools"]


def test_who_leaves_cancels(modern):
    _, reply = modern.begin("tools/call", {"name": "exec", "arguments": {"command": "sleep 47003 & sleep 47004"}})
    until(lambda: sleeping(47003) and sleeping(47004))
    reply.close()
    until(lambda: not sleeping(47003) and not sleeping(47004))


def test_who_leaves_before_the_answer_has_begun_cancels_too(modern):
    message = modern.message("tools/call", {"name": "exec", "arguments": {"command": "sleep 47005"}})
    connection = modern.connect()
    connection.request("POST", modern.path, json.dumps(message),
                       {"Authorization": f"Bearer {modern.key}", "Accept": mcp.BOTH,
                        "Content-Type": "application/json", **modern.headers(message)})
    until(lambda: sleeping(47005))
    connection.close()
    until(lambda: not sleeping(47005))


def test_both_eras_of_one_key_list_the_same_tools(legacy, modern):
    def names(page):
        return [tool["name"] for tool in page["tools"]]
    assert names(legacy.call("tools/list")) == names(modern.call("tools/list"))


# --- those who vanish, and those whom nobody asked ---------------------------------------------


def test_a_vanished_client_leaves_no_process_behind():
    with Daemon("--mcp-resume", "1s") as daemon:
        peer = Legacy(daemon).initialize()
        _, reply = peer.begin("tools/call", {"name": "exec", "arguments": {"command": "sleep 47006 & sleep 47007"}})
        until(lambda: sleeping(47006) and sleeping(47007))
        reply.close()
        until(lambda: not sleeping(47006) and not sleeping(47007))
        # The session is still good for who comes back after all.
        assert peer.tool("exec", command="echo here")["structuredContent"]["stdout"] == "here\n"


def test_a_killed_daemon_knows_its_sessions_again():
    with Daemon() as daemon:
        peer = Legacy(daemon, path="/mcp?sandbox=session").initialize()
        before = peer.tool("exec", command="echo kept > /workspace/kept")["structuredContent"]["sandbox_id"]
        answers = []

        def call():
            try:
                answers.append(peer.tool("exec", command="sleep 47008"))
            except Exception as error:  # whatever a cut connection is to the client
                answers.append(error)
        caller = threading.Thread(target=call)
        caller.start()
        until(lambda: sleeping(47008))
        daemon.kill("daemon", "keeper")
        caller.join()
        assert not isinstance(answers[0], dict)
        daemon.start()
        after = peer.tool("exec", command="cat /workspace/kept")["structuredContent"]
        assert after["stdout"] == "kept\n"
        assert after["sandbox_id"] == before
        assert peer.end() in (200, 202, 204)
        until(lambda: not sleeping(47008))  # its sandbox was stopped with the session


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_without_a_key_nobody_is_heard(daemon, era):
    peer = Legacy(daemon, key="holt_wrong") if era == "legacy" else Modern(daemon, key="holt_wrong")
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}} if era == "legacy" else \
        peer.message("server/discover")
    reply = peer.ask("POST", message, peer.headers(message) if era == "modern" else None)
    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_foreign_origin_is_refused(modern):
    message = modern.message("server/discover")
    for head in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert modern.ask("POST", message, {**modern.headers(message), **head}).status == 403


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"7", b'"x"', b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
                                  b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
                                  b'{"jsonrpc":"2.0","id":1,"method":7}', b'{"jsonrpc":"2.0","id":1}',
                                  b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', b"[" * 100000,
                                  b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b"\xff\xfe"])
def test_what_is_no_message_is_refused(legacy, body):
    reply = legacy.ask("POST", body, legacy.headers())
    assert reply.status == 400
    assert all("error" in message for message in reply.messages())


def test_a_message_that_is_too_large_is_refused(legacy):
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "y" * (8 << 20)}}
    try:
        assert legacy.post(message).status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was not even read
    assert legacy.call("ping") == {}
