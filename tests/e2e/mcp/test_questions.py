"""What the conformance suite does not look at, by the same fixtures: contents to the letter, and what a client may do with
a state that it was given to bring back."""
import pytest

from support.mcp import Legacy, Modern, RpcError

FORM = {"elicitation": {"form": {}}}


@pytest.fixture
def modern(fixtures):
    return Modern(fixtures, client=FORM)


@pytest.fixture
def legacy(fixtures):
    peer = Legacy(fixtures, client=FORM).initialize()
    yield peer
    peer.end()


def answered(**content):
    return {"action": "accept", "content": content}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_tool_says_what_it_says_and_no_more(request, era):
    result = request.getfixturevalue(era).tool("test_simple_text")
    assert result["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]
    assert not result["isError"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_progress_is_told_in_its_order_and_before_the_end(request, era):
    peer, heard = request.getfixturevalue(era), []
    if era == "legacy":
        peer.tool("test_tool_with_progress", token="p1", heard=heard)
    else:
        peer.tool("test_tool_with_progress", meta={"progressToken": "p1"}, heard=heard)
    assert [message["method"] for message in heard] == ["notifications/progress"] * 3
    assert [(message["params"]["progressToken"], message["params"]["progress"], message["params"]["total"])
            for message in heard] == [("p1", 0, 100), ("p1", 50, 100), ("p1", 100, 100)]


def test_a_log_is_told_to_who_asked_for_it(modern, legacy):
    heard = []
    modern.tool("test_tool_with_logging", meta={"io.modelcontextprotocol/logLevel": "info"}, heard=heard)
    assert [message["params"]["data"] for message in heard] == \
        ["Tool execution started", "Tool processing data", "Tool execution completed"]
    for level, count in (("info", 3), ("warning", 0)):
        heard = []
        legacy.call("logging/setLevel", {"level": level})
        legacy.tool("test_tool_with_logging", heard=heard)
        assert len(heard) == count


def ask(peer, tool="test_input_required_result_request_state", **more):
    return peer.call("tools/call", {"name": tool, "arguments": {}, **more})


def test_a_state_is_brought_back(modern):
    asked = ask(modern)
    assert asked["resultType"] == "input_required"
    assert list(asked["inputRequests"]) == ["confirm"]
    done = ask(modern, inputResponses={"confirm": answered(ok=True)}, requestState=asked["requestState"])
    assert done["resultType"] == "complete"
    assert done["content"][0]["text"] == "state-ok"


def test_without_its_state_an_answer_is_of_no_use(modern):
    done = ask(modern, inputResponses={"confirm": answered(ok=True)})
    assert done["isError"]


def changes(state):
    yield state[:-1]
    yield state + "A"
    for at in range(0, len(state), max(1, len(state) // 8)):
        yield state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1:]
    yield "x" * 100000


def test_a_changed_state_is_refused(modern):
    state = ask(modern)["requestState"]
    for other in changes(state):
        with pytest.raises(RpcError) as told:
            ask(modern, inputResponses={"confirm": answered(ok=True)}, requestState=other)
        assert told.value.code == -32602, other[:80]


def test_a_state_is_good_for_its_own_request_alone(modern):
    state = ask(modern)["requestState"]
    answers = {"confirm": answered(ok=True)}
    with pytest.raises(RpcError):  # another tool
        ask(modern, "test_input_required_result_tampered_state", inputResponses=answers, requestState=state)
    with pytest.raises(RpcError):  # other arguments
        modern.call("tools/call", {"name": "test_input_required_result_request_state", "arguments": {"x": 1},
                                   "inputResponses": answers, "requestState": state})
    with pytest.raises(RpcError):  # another method
        modern.call("prompts/get", {"name": "test_simple_prompt", "inputResponses": answers, "requestState": state})


def test_who_cannot_be_asked_is_told_what_is_missing(fixtures):
    silent = Modern(fixtures)
    with pytest.raises(RpcError) as told:
        silent.tool("test_input_required_result_elicitation")
    assert (told.value.code, told.value.status) == (-32021, 400)
    assert "elicitation" in told.value.data["requiredCapabilities"]
    mute = Legacy(fixtures).initialize()
    assert mute.tool("test_elicitation", message="hm")["isError"]
    mute.end()


def test_an_answer_to_what_was_never_asked_changes_nothing(legacy):
    for ident in ("holt-1", "x", 0, 99999):
        reply = legacy.post({"jsonrpc": "2.0", "id": ident, "result": answered(name="nobody")})
        assert reply.status in (202, 400, 404)
        reply.close()
    assert legacy.call("ping") == {}


def test_a_question_is_answered_by_its_own_session_alone(fixtures, legacy):
    number, reply = legacy.begin("tools/call", {"name": "test_elicitation", "arguments": {"message": "who?"}})
    messages = reply.messages()
    question = next(messages)
    assert question["method"] == "elicitation/create"
    stranger = Legacy(fixtures, client=FORM).initialize()
    stranger.post({"jsonrpc": "2.0", "id": question["id"], "result": answered(username="evil", email="e")}).close()
    assert legacy.post({"jsonrpc": "2.0", "id": question["id"],
                        "result": answered(username="me", email="m")}).status == 202
    (done,) = [message for message in messages if message.get("id") == number]
    assert '"me"' in done["result"]["content"][0]["text"]
    stranger.end()
