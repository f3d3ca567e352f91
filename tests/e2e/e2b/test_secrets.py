"""E2B's secrets: kept for their owner, changed, listed and forgotten, and their values never told."""
import json

import pytest

from support.client import Answer
from support.daemon import Daemon
from support.e2b import e2b_key

VALUE = "hush-4711-very-quiet"


def ask(api, method, path="", value=None, path_before="/secrets"):
    """As the clients do it; no answer ever has the value in it."""
    connection = api.connect()
    try:
        connection.request(method, path_before + path, body=None if value is None else json.dumps(value),
                           headers={"X-API-KEY": e2b_key(api.key), "Content-Type": "application/json"})
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
    finally:
        connection.close()
    assert VALUE not in str(answer.headers) and VALUE.encode() not in answer.body
    return answer


def error(answer, status, word):
    assert answer.status == status and answer.json["code"] == status and word in answer.json["message"], answer


@pytest.fixture
def owner(api):
    """Makes owners, who are gone with all that they have when the test is over: a client for each."""
    names = []

    def make(name):
        api.post("/users", {"name": name, "role": "user"}).must(201)
        names.append(name)
        return api.using(api.post("/keys", {"name": "test", "owner": name, "role": "user"}).must(201).json["key"])

    yield make
    for name in names:
        api.delete(f"/users/{name}").must(204, 404)


@pytest.fixture
def ann(owner):
    return owner("secretive")


def test_a_secret_is_made_changed_and_forgotten(ann):
    made = ask(ann, "POST", "", {"name": "Key-One", "value": VALUE, "metadata": {"for": "tests"}}).must(201).json
    assert set(made) == {"secretID", "name", "currentVersion", "metadata", "createdAt", "updatedAt"}
    assert made["name"] == "key-one" and made["secretID"].startswith("sec_") and made["currentVersion"] == 1
    for called in ("key-one", "KEY-ONE", made["secretID"]):
        assert ask(ann, "GET", f"/{called}").must(200).json == made
    error(ask(ann, "POST", "", {"name": "KEY-one", "value": VALUE}), 409, "key-one")

    kept = ask(ann, "POST", "/key-one", {"value": VALUE + "2"}).must(200).json
    assert kept["currentVersion"] == 2 and kept["metadata"] == {"for": "tests"}
    assert kept["createdAt"] == made["createdAt"]
    other = ask(ann, "POST", f"/{made['secretID']}", {"value": VALUE, "metadata": {}}).must(200).json
    assert other["currentVersion"] == 3 and other["metadata"] == {} and other["secretID"] == made["secretID"]

    assert ask(ann, "GET").must(200).json == [other]
    ask(ann, "DELETE", "/key-one").must(204)
    for method, value in (("GET", None), ("DELETE", None), ("POST", {"value": VALUE})):
        for called in ("key-one", made["secretID"], made["secretID"][4:], "sec_", "no%20name"):
            error(ask(ann, method, f"/{called}", value), 404, "secret")
    assert ask(ann, "GET").must(200).json == []


@pytest.mark.parametrize("value, word", [
    ({"value": VALUE}, "name"),
    ({"name": "one"}, "value"),
    ({"name": "", "value": VALUE}, "name"),
    ({"name": "x" * 129, "value": VALUE}, "name"),
    ({"name": "with blank", "value": VALUE}, "name"),
    ({"name": "../one", "value": VALUE}, "name"),
    ({"name": "é", "value": VALUE}, "name"),
    ({"name": "sec_one", "value": VALUE}, "name"),
    ({"name": "SEC_one", "value": VALUE}, "name"),
    ({"name": "one", "value": {"a": VALUE}}, "value"),
    ({"name": "one", "value": VALUE + "\0"}, "value"),
    ({"name": "one", "value": VALUE + "x" * (16 << 10)}, "value"),
    ({"name": "one", "value": VALUE, "metadata": [VALUE]}, "metadata"),
    ({"name": "one", "value": VALUE, "metadata": {"a": 1}}, "metadata"),
    ({"name": "one", "value": VALUE, "metadata": {"a": "x" * 1025}}, "metadata"),
    ({"name": "one", "value": VALUE, "metadata": {"x" * 129: "a"}}, "metadata"),
    ({"name": "one", "value": VALUE, "metadata": {str(i): "a" for i in range(33)}}, "metadata"),
    ({"name": "one", "value": VALUE, "metadata": {str(i): "x" * 1024 for i in range(8)}}, "metadata"),
])
def test_what_is_no_secret_is_named(ann, value, word):
    error(ask(ann, "POST", "", value), 400, word)
    assert ask(ann, "GET").must(200).json == []


def test_the_largest_is_kept(ann):
    # 8 values and as many names of one byte: 8192 bytes. The most awkward of all bytes takes six in JSON.
    value = {"name": "x" * 128, "value": "\1" * (16 << 10), "metadata": {str(i): "\1" * 1023 for i in range(8)}}
    made = ask(ann, "POST", "", value).must(201).json
    assert made["metadata"] == value["metadata"] and ask(ann, "GET", "/" + "x" * 128).must(200).json == made
    more = {"value": "", "metadata": {**value["metadata"], "m": ""}}
    error(ask(ann, "POST", "/" + "x" * 128, more), 400, "metadata")
    assert ask(ann, "POST", "/" + "x" * 128, {"value": ""}).must(200).json["currentVersion"] == 2


def test_an_owner_has_a_hundred_in_pages(ann):
    for i in range(100):
        ask(ann, "POST", "", {"name": f"s{i}", "value": VALUE}).must(201)
    error(ask(ann, "POST", "", {"name": "more", "value": VALUE}), 429, "100 secrets")
    found, token = [], ""
    while True:
        page = ask(ann, "GET", f"?limit=30&nextToken={token}").must(200)
        found += [secret["name"] for secret in page.json]
        token = page.headers.get("X-Next-Token", "")
        if not token:
            break
        assert len(page.json) == 30
    assert sorted(found) == sorted(f"s{i}" for i in range(100))
    for query in ("limit=0", "limit=101", "nextToken=nonsense"):
        error(ask(ann, "GET", "?" + query), 400, query.split("=")[0])


def test_nobody_else_has_them(api, ann, owner):
    made = ask(ann, "POST", "", {"name": "mine", "value": VALUE}).must(201).json
    for other in (owner("curious"), api):  # an admin's key has its own, too
        for called in ("mine", made["secretID"], made["secretID"][4:]):
            for method, value in (("GET", None), ("POST", {"value": "x"}), ("DELETE", None)):
                error(ask(other, method, f"/{called}", value), 404, "secret")
        assert made not in ask(other, "GET").must(200).json
    viewer = api.using(api.post("/keys", {"name": "v", "owner": "secretive", "role": "viewer"}).must(201).json["key"])
    for method, path in (("GET", ""), ("POST", ""), ("GET", "/mine"), ("DELETE", "/mine")):
        error(ask(viewer, method, path, {"name": "a", "value": "b"} if method == "POST" else None), 403, "")
    assert ask(ann, "GET", "/mine").must(200).json == made


def test_they_go_with_their_owner(api, owner):
    ann = owner("leaving")
    ask(ann, "POST", "", {"name": "mine", "value": VALUE}).must(201)
    api.delete("/users/leaving").must(204)
    ann = owner("leaving")  # another one of the same name
    assert ask(ann, "GET").must(200).json == []
    ask(ann, "POST", "", {"name": "mine", "value": VALUE}).must(201)


@pytest.mark.parametrize("text", ["${e2b.secrets.mine}", "Bearer ${e2b.secrets.mine}", "${e2b.identity.tokens.aws}"])
def test_a_rule_that_needs_one_is_refused(ann, text):
    """It would have to be put into TLS that nobody opens: who was told nothing would rely on it."""
    network = {"rules": {"api.test": [{"transform": {"headers": {"Authorization": text}}}]}}
    error(ask(ann, "POST", "", {"templateID": "base", "network": network}, "/v2/sandboxes"), 400, "network.rules")
    box = ask(ann, "POST", "", {"templateID": "base"}, "/v2/sandboxes").must(201).json["sandboxID"]
    error(ask(ann, "PUT", f"/{box}/network", network, "/sandboxes"), 400, "network.rules")
    ask(ann, "DELETE", f"/{box}", None, "/sandboxes").must(204)


def test_they_survive_a_crash_and_are_said_nowhere():
    with Daemon() as own:
        made = ask(own.api, "POST", "", {"name": "kept", "value": VALUE, "metadata": {"a": "b"}}).must(201).json
        changed = ask(own.api, "POST", "/kept", {"value": VALUE + "2"}).must(200).json
        ask(own.api, "POST", "", {"name": "kept", "value": VALUE}).must(409)
        ask(own.api, "POST", "", {"name": "bad name", "value": VALUE}).must(400)
        own.kill("daemon")
        own.wait_ended()
        own.start()
        assert ask(own.api, "GET", "/kept").must(200).json == changed and changed["secretID"] == made["secretID"]
        told = [own.api.get(path).must(200).body.decode()
                for path in ("/audit?limit=100", "/events?limit=100", "/metrics")]
        assert made["secretID"][4:] in told[0]
        assert not [text for text in [*told, own.log()] if VALUE in text]
