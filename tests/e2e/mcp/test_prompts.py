"""Prompts, and values for arguments."""
import pytest

from support.mcp import Legacy, Modern, RpcError

NAMES = ["run-and-fix-tests", "explore-a-repository", "data-analysis", "review-a-file"]


@pytest.fixture(params=[Modern, Legacy])
def peer(request, daemon):
    if request.param is Modern:
        yield Modern(daemon)
        return
    made = Legacy(daemon).initialize()
    yield made
    made.end()


def text_of(peer, prompt, **arguments):
    (message,) = peer.call("prompts/get", {"name": prompt, "arguments": arguments})["messages"]
    assert message["role"] == "user" and message["content"]["type"] == "text"
    return message["content"]["text"]


def test_prompts_are_listed_with_their_arguments(peer):
    rows = {row["name"]: row for row in peer.call("prompts/list", {})["prompts"]}
    assert list(rows) == NAMES
    for row in rows.values():
        assert row["title"] and row["description"]
        for argument in row["arguments"]:
            assert argument["description"]
    assert {arg["name"]: arg["required"] for arg in rows["data-analysis"]["arguments"]} == \
        {"file": True, "question": True, "language": False, "sandbox_id": False}


def test_arguments_are_filled_in_and_what_was_not_given_is_left_out(peer):
    text = text_of(peer, "run-and-fix-tests", command="make check", path="/workspace/p")
    assert "Run `make check` with the tool exec" in text and "in /workspace/p." in text
    assert "Find out how" not in text and "sandbox_id" not in text
    assert "Find out how its tests are run" in text_of(peer, "run-and-fix-tests")
    text = text_of(peer, "data-analysis", file="/workspace/d.csv", question="why {file}?", sandbox_id="box")
    assert "in /workspace/d.csv of the sandbox box" in text and "answer: why {file}?" in text
    for name in NAMES:
        arguments = {"file": "f", "question": "q", "path": "p"} if name != "run-and-fix-tests" else {}
        text = text_of(peer, name, **arguments)
        assert not set("{}[]|") & set(text.replace("/workspace", "")), text


@pytest.mark.parametrize("params", [{"name": "nobody"}, {}, {"name": "review-a-file"},
                                    {"name": "review-a-file", "arguments": {"path": 7}},
                                    {"name": "review-a-file", "arguments": {"path": "x" * 5000}},
                                    {"name": "data-analysis", "arguments": {"file": "f"}}])
def test_wrong_prompts_are_refused(peer, params):
    with pytest.raises(RpcError) as caught:
        peer.call("prompts/get", params)
    assert caught.value.code == -32602


def complete(peer, ref, name, value, before=None):
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    if before:
        params["context"] = {"arguments": before}
    found = peer.call("completion/complete", params)["completion"]
    assert len(found["values"]) <= 100
    return found["values"]


PROMPT = {"type": "ref/prompt", "name": "data-analysis"}
FILES = {"type": "ref/resource", "uri": "sandbox://{sandbox_id}/files/{+path}"}


def test_values_are_completed(peer, daemon):
    box = daemon.api.sandbox()
    assert complete(peer, PROMPT, "language", "py") == ["python"]
    assert "bash" in complete(peer, PROMPT, "language", "")
    assert complete(peer, PROMPT, "language", "cobol") == []
    assert complete(peer, PROMPT, "sandbox_id", box.id[:12]) == [box.id]
    assert box.id in complete(peer, FILES, "sandbox_id", box.id[:1])
    assert complete(peer, PROMPT, "question", "w") == []
    box.delete().must(204)


@pytest.mark.parametrize("params", [{}, {"ref": {"type": "ref/prompt", "name": "nobody"},
                                         "argument": {"name": "a", "value": ""}},
                                    {"ref": PROMPT}, {"ref": PROMPT, "argument": {"name": "language"}},
                                    {"ref": {"type": "ref/else"}, "argument": {"name": "a", "value": ""}}])
def test_wrong_completions_are_refused(peer, params):
    with pytest.raises(RpcError) as caught:
        peer.call("completion/complete", params)
    assert caught.value.code == -32602


def test_a_list_that_is_whole_takes_no_cursor(peer):
    for method in ("prompts/list", "resources/templates/list"):
        with pytest.raises(RpcError) as caught:
            peer.call(method, {"cursor": "bm9uZQ"})
        assert caught.value.code == -32602
