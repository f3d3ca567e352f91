"""Files of sandboxes as resources: read inside the box, bounded, and nobody else's."""
import base64

import pytest

from support.mcp import Legacy, Modern, RpcError

MAX = 2 << 20


@pytest.fixture(params=[Modern, Legacy])
def peer(request, daemon):
    if request.param is Modern:
        yield Modern(daemon)
        return
    made = Legacy(daemon).initialize()
    yield made
    made.end()


@pytest.fixture(scope="module")
def box(daemon):
    made = daemon.api.sandbox()
    yield made
    made.delete().must(204, 404)


def uri_of(box, path):
    return f"sandbox://{box.id}/files{path}"


def run(box, command):
    done = box.run(command)
    assert done["exitCode"] == 0, done
    return done


def read(peer, uri):
    (content,) = peer.call("resources/read", {"uri": uri})["contents"]
    assert content["uri"] == uri
    return content


def refused(peer, method, uri, code=None):
    with pytest.raises(RpcError) as caught:
        peer.call(method, {"uri": uri})
    missing = -32602 if isinstance(peer, Modern) else -32002
    assert caught.value.code == (code or missing), caught.value
    assert caught.value.data == {"uri": uri}
    return str(caught.value)


def test_a_text_comes_as_text_and_bytes_as_base64(peer, box):
    run(box, "printf 'h\\303\\251llo' > /workspace/a.txt; printf '\\000\\377' > '/workspace/b c.bin'; : > /workspace/empty")
    text = read(peer, uri_of(box, "/workspace/a.txt"))
    assert (text["text"], text["mimeType"]) == ("héllo", "text/plain")
    assert base64.b64decode(read(peer, uri_of(box, "/workspace/b%20c.bin"))["blob"]) == b"\0\xff"
    assert read(peer, uri_of(box, "/workspace/empty"))["text"] == ""


def test_a_sandbox_is_listed_and_its_directories_can_be_read(peer, box):
    run(box, "mkdir -p /workspace/dir/sub; echo 1 > /workspace/dir/one")
    rows = {}
    params = {}
    while True:
        page = peer.call("resources/list", params)
        rows.update({row["uri"]: row for row in page["resources"]})
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert rows[uri_of(box, "/workspace")]["mimeType"] == "inode/directory"
    assert sorted(read(peer, uri_of(box, "/workspace/dir"))["text"].split()) == ["one", "sub/"]
    found = peer.call("resources/directory/read", {"uri": uri_of(box, "/workspace/dir/")})["resources"]
    assert [(row["name"], row["mimeType"]) for row in found] == \
        [("one", "application/octet-stream"), ("sub", "inode/directory")]
    assert found[0]["uri"] == uri_of(box, "/workspace/dir/one") and found[0]["size"] == 2
    templates = peer.call("resources/templates/list", {})["resourceTemplates"]
    assert "sandbox://{sandbox_id}/files/{+path}" in [row["uriTemplate"] for row in templates]


def test_a_long_directory_comes_in_pages_without_loss(peer, box):
    run(box, "mkdir -p /workspace/many; cd /workspace/many; for i in $(seq 250); do : > f$i; done")
    names, params, pages = [], {"uri": uri_of(box, "/workspace/many")}, 0
    while True:
        page = peer.call("resources/directory/read", params)
        names += [row["name"] for row in page["resources"]]
        pages += 1
        if "nextCursor" not in page:
            break
        params["cursor"] = page["nextCursor"]
    assert pages == 3
    assert sorted(names) == sorted(f"f{i}" for i in range(1, 251))


def test_what_is_too_large_is_refused_with_a_reason(peer, box):
    run(box, f"head -c {MAX} /dev/zero | tr '\\0' a > /workspace/most; truncate -s {MAX + 1} /workspace/more")
    assert len(read(peer, uri_of(box, "/workspace/most"))["text"]) == MAX
    assert "read_file" in refused(peer, "resources/read", uri_of(box, "/workspace/more"), -32602)
    run(box, "mkdir -p /workspace/crowd; cd /workspace/crowd; seq 4097 | xargs touch")
    assert "list_dir" in refused(peer, "resources/read", uri_of(box, "/workspace/crowd"), -32602)
    run(box, "rm -rf /workspace/crowd /workspace/most /workspace/more")


@pytest.mark.parametrize("path", ["/workspace/none", "/workspace/none/deeper", "/workspace/../none"])
def test_what_is_not_there_is_told(peer, box, path):
    refused(peer, "resources/read", uri_of(box, path))


def test_an_address_that_names_nothing_is_told(peer, box):
    for uri in ("sandbox://", f"sandbox://{box.id}", f"sandbox://{box.id}/files", f"sandbox://{box.id}/etc/passwd",
                "sandbox://aaaaaaaaaaaaaaaaaaaa/files/etc/passwd", f"sandbox://{box.id}/files/%00",
                f"sandbox://{box.id}/files/%zz", "sandbox:///files/x", f"sandbox://{'a' * 100}/files/x",
                f"sandbox://{box.id}/files/{'x/' * 3000}", "file:///etc/passwd", "nothing"):
        refused(peer, "resources/read", uri)
    with pytest.raises(RpcError) as caught:
        peer.call("resources/read", {})
    assert caught.value.code == -32602


def test_a_link_leads_to_what_is_in_the_box_and_nowhere_else(peer, box, daemon):
    run(box, f"ln -sfn {daemon.key_file} /workspace/key; ln -sfn /etc/hostname /workspace/host;"
             " ln -sfn loop /workspace/loop; mkfifo /workspace/fifo 2>/dev/null; true")
    refused(peer, "resources/read", uri_of(box, "/workspace/key"))
    for path in ("/workspace/loop", "/workspace/fifo", "/dev/tcp"):
        with pytest.raises(RpcError):
            read(peer, uri_of(box, path))
    with pytest.raises(RpcError):
        read(peer, uri_of(box, "/../../../../../.." + str(daemon.key_file)))
    run(box, "rm -f /workspace/fifo /workspace/loop")


def test_another_owners_files_are_not_there(daemon, box):
    key = daemon.api.post("/keys", {"name": "stranger", "role": "user", "owner": "stranger"}).must(201).json
    stranger = Modern(daemon, key=key["key"])
    run(box, "echo secret > /workspace/secret")
    refused(stranger, "resources/read", uri_of(box, "/workspace/secret"))
    refused(stranger, "resources/directory/read", uri_of(box, "/workspace"), -32602)
    assert box.id not in str(stranger.call("resources/list"))
    assert box.id not in str(stranger.call("completion/complete", {
        "ref": {"type": "ref/resource", "uri": "sandbox://{sandbox_id}/files/{+path}"},
        "argument": {"name": "sandbox_id", "value": ""}}))
    daemon.api.delete(f"/keys/{key['id']}").must(204)


def test_an_endpoint_of_one_sandbox_knows_no_other(daemon, box):
    other = daemon.api.sandbox()
    bound = Modern(daemon, path=f"/sandboxes/{other.id}/mcp")
    run(box, "echo mine > /workspace/mine")
    run(other, "echo here > /workspace/here")
    assert read(bound, uri_of(other, "/workspace/here"))["text"] == "here\n"
    refused(bound, "resources/read", uri_of(box, "/workspace/mine"))
    assert [row["uri"] for row in bound.call("resources/list")["resources"]
            if row["uri"].startswith("sandbox://")] == [uri_of(other, "/workspace")]
    other.delete().must(204)


def heard_until(messages, wanted):
    """Addresses that were told, until all of `wanted` were; a slow change may be told twice."""
    told = []
    while not set(wanted) <= set(told):
        message = next(messages)
        assert message["method"] == "notifications/resources/updated"
        told.append(message["params"]["uri"])
    return told


def test_a_change_is_told_to_who_listens(daemon, box):
    peer = Modern(daemon)
    uris = [uri_of(box, f"/workspace/{name}") for name in ("watched", "later", "dir%20watched")]
    run(box, "mkdir -p '/workspace/dir watched'; rm -f /workspace/later; echo 1 > /workspace/watched")
    _, reply = peer.begin("subscriptions/listen", {"notifications": {
        "resourceSubscriptions": uris + ["sandbox://nobody/files/x", "nothing", uri_of(box, "/none/at/all")]}})
    messages = reply.messages()
    assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
    for uri, command in zip(uris, ["echo 2 > /workspace/new; mv /workspace/new /workspace/watched",
                                   "echo 1 > /workspace/unrelated; echo 1 > /workspace/later",
                                   "touch '/workspace/dir watched/file'"]):
        run(box, command)
        assert set(heard_until(messages, [uri])) <= set(uris[:uris.index(uri) + 1])
    reply.close()


def test_a_change_is_told_to_a_session_that_subscribed(daemon, box):
    peer = Legacy(daemon).initialize()
    stream = peer.ask("GET", headers={**peer.headers(), "Accept": "text/event-stream"})
    messages = stream.messages()
    uris = [uri_of(box, f"/workspace/s{i}") for i in range(64)]
    for uri in uris:
        assert peer.call("resources/subscribe", {"uri": uri}) == {}
    run(box, "cd /workspace; for i in $(seq 2 63); do echo $i > s$i; done")
    assert set(heard_until(messages, uris[2:])) == set(uris[2:])
    assert peer.call("resources/unsubscribe", {"uri": uris[0]}) == {}
    run(box, "cd /workspace; echo 1 > s0; echo 1 > s1")
    assert uris[0] not in heard_until(messages, [uris[1]])
    stream.close()
    peer.end()


def test_an_endpoint_of_one_sandbox_hears_of_no_other(daemon, box):
    other = daemon.api.sandbox()
    hidden, own = uri_of(box, "/workspace/hidden"), uri_of(other, "/workspace/own")
    listen = {"notifications": {"resourceSubscriptions": [hidden, own]}}
    _, free = Modern(daemon).begin("subscriptions/listen", listen)
    _, bound = Modern(daemon, path=f"/sandboxes/{other.id}/mcp").begin("subscriptions/listen", listen)
    heard, bound_heard = free.messages(), bound.messages()
    assert sorted(next(heard)["params"]["notifications"]["resourceSubscriptions"]) == sorted([hidden, own])
    assert next(bound_heard)["params"]["notifications"]["resourceSubscriptions"] == [own]
    run(box, "echo 1 > /workspace/hidden")
    heard_until(heard, [hidden])
    run(other, "echo 1 > /workspace/own")
    assert set(heard_until(bound_heard, [own])) == {own}
    refused(Legacy(daemon, path=f"/sandboxes/{other.id}/mcp").initialize(), "resources/subscribe", hidden)
    free.close()
    bound.close()
    other.delete().must(204)


def test_what_is_watched_ends_with_its_sandbox(daemon):
    other = daemon.api.sandbox()
    peer = Modern(daemon)
    uri = uri_of(other, "/workspace/x")
    _, reply = peer.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
    messages = reply.messages()
    next(messages)
    other.delete().must(204)
    assert heard_until(messages, [uri]) == [uri]
    refused(peer, "resources/read", uri)
    reply.close()


def test_subscriptions_are_bounded_and_to_what_is_there(daemon, box):
    peer = Legacy(daemon).initialize()
    for uri in ("nothing://x", "sandbox://nobody/files/x", uri_of(box, "/none/at/all"), "sandbox://x"):
        refused(peer, "resources/subscribe", uri)
    for i in range(64):
        peer.call("resources/subscribe", {"uri": uri_of(box, f"/workspace/n{i}")})
    with pytest.raises(RpcError) as caught:
        peer.call("resources/subscribe", {"uri": uri_of(box, "/workspace/one-more")})
    assert caught.value.code == -32602
    assert peer.end() in (200, 202, 204)


def test_directories_that_are_watched_are_bounded(daemon):
    other = daemon.api.sandbox()
    peer = Legacy(daemon).initialize()
    run(other, "cd /workspace; mkdir $(seq 30)")
    codes = []
    for i in range(1, 31):
        try:
            codes.append(peer.call("resources/subscribe", {"uri": uri_of(other, f"/workspace/{i}")}))
        except RpcError as error:
            codes.append(error.code)
    assert codes[:20] == [{}] * 20 and codes[-1] == -32602
    peer.end()
    other.delete().must(204)


def test_subscriptions_of_all_clients_of_an_owner_are_bounded(daemon, api):
    keys = [api.post("/keys", {"name": owner, "role": "user", "owner": owner}).must(201).json["key"]
            for owner in ("many-wishes", "few-wishes")]
    peer, other = (Modern(daemon, key=key) for key in keys)
    wishes = {"notifications": {"resourceSubscriptions": [f"skill://s{i}/SKILL.md" for i in range(64)]}}
    open_ones = []
    for _ in range(16):
        _, reply = peer.begin("subscriptions/listen", wishes)
        assert next(reply.messages())["method"] == "notifications/subscriptions/acknowledged"
        open_ones.append(reply)
    with pytest.raises(RpcError) as caught:
        peer.call("subscriptions/listen", wishes)
    assert caught.value.code == -32602
    _, reply = other.begin("subscriptions/listen", wishes)
    assert next(reply.messages())["method"] == "notifications/subscriptions/acknowledged"
    for one in [*open_ones, reply]:
        one.close()
