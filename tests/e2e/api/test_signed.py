"""Addresses of one file that need no key: for one sandbox, path, method and time, and no more than was signed."""
import hashlib
import hmac
import itertools
import subprocess
import time
import urllib.parse

import pytest

from support.daemon import Daemon, until
from support.mcp import Modern

PEERS = (f"127.77.{n}.1" for n in itertools.count(1))


@pytest.fixture
def sign(daemon):
    """As the daemon does it, by the secret that it keeps."""
    secret = (daemon.state_dir / "data" / "secret").read_bytes()

    def make(box, path, write=False, seconds=60, name=None):
        expires = int(time.time()) + seconds
        text = f"file:{box}:{'write' if write else 'read'}:{expires}::{path}"
        mac = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
        return (f"/api/v1/sandboxes/{name or box}/files{urllib.parse.quote(path)}?expires={expires}&signature={mac}")

    return make


@pytest.fixture
def stranger(api):
    """Somebody without a key; each refusal comes from another address, so that none is for their number."""
    class Stranger:
        def ask(self, method, path, **more):
            return api.coming_from(next(PEERS)).using(None).ask(method, path, **more)
    return Stranger()


def test_curl_reads_and_writes_by_an_address(daemon, box, sign, tmp_path):
    base = f"http://127.0.0.1:{daemon.port}"
    (tmp_path / "a").write_bytes(b"hello\0")
    path = "/workspace/new dir/ü?#%.txt"
    subprocess.run(["curl", "-sSf", "-T", tmp_path / "a", base + sign(box.id, path, write=True)], check=True,
                   stdout=subprocess.DEVNULL)
    got = subprocess.run(["curl", "-sSf", base + sign(box.id, path)], check=True, stdout=subprocess.PIPE)
    assert got.stdout == b"hello\0"


def test_an_address_is_good_for_its_path_and_sandbox_alone(api, box, sign, stranger):
    box.run("echo one > /workspace/a; echo two > /workspace/b")
    good = sign(box.id, "/workspace/a")
    assert stranger.ask("GET", good).must(200).body == b"one\n"
    stranger.ask("HEAD", good).must(200)
    other = api.sandbox(name="signed-other")
    other.run("echo hers > /workspace/a")
    try:
        for bad in (good.replace("/a?", "/b?"), good.replace("/a?", "/../workspace/a?"), good.replace("/a?", "//a?"),
                    good.replace(box.id, other.id), sign(other.id, "/workspace/a", name="signed-other"),
                    good.replace("signature=", "signature=0"), good[:-1], good.replace("expires=", "expires=1"),
                    good.partition("&")[0] + "&signature=", good.replace("expires=", "other="),
                    good + "&expires=99999999999", good.replace("?", "?expires=99999999999&")):
            answer = stranger.ask("GET", bad)
            assert answer.status in (400, 401), (bad, answer)
    finally:
        other.delete().must(204)


def test_an_address_is_good_for_its_method_alone(box, sign, stranger):
    read, write = sign(box.id, "/workspace/a"), sign(box.id, "/workspace/a", write=True)
    stranger.ask("PUT", read, body=b"x").error(401)
    stranger.ask("PUT", write, body=b"x").must(201)
    stranger.ask("GET", write).error(401)
    for method in ("DELETE", "POST"):
        for path in (read, write):
            stranger.ask(method, path).error(401)
    assert stranger.ask("GET", read).must(200).body == b"x"
    stranger.ask("GET", read.replace("/files/workspace/a", "/archive")).error(401)
    stranger.ask("GET", read.replace("/files/workspace/a", "")).error(401)


@pytest.mark.parametrize("more", ["user=root", "mode=4777", "parents=0", "stat=1", "x=1", "signature=1"])
def test_what_was_not_signed_cannot_be_added(box, sign, stranger, more):
    stranger.ask("PUT", sign(box.id, "/workspace/a", write=True) + "&" + more, body=b"x").error(401)
    stranger.ask("GET", sign(box.id, "/workspace/a") + "&" + more).error(401)


def test_an_address_ends_with_its_time_and_with_its_sandbox(api, sign, stranger):
    box = api.sandbox()
    box.run("echo one > /workspace/a")
    assert "any more" in stranger.ask("GET", sign(box.id, "/workspace/a", seconds=-1)).error(401)
    good = sign(box.id, "/workspace/a", seconds=3600)
    stranger.ask("GET", good).must(200)
    box.delete().must(204)
    until(lambda: stranger.ask("GET", good).status == 401, what="the end")


def test_who_brings_a_key_is_judged_by_the_key(api, box, sign, key_for):
    good = sign(box.id, "/workspace/a")
    api.coming_from(next(PEERS)).using("holt_" + "0" * 40).get(good).error(401)
    key_for("user", owner="signed-stranger").get(good).error(404)


# --- where they come from --------------------------------------------------------------------------


def given_by(daemon, tool, key=None, **arguments):
    return Modern(daemon, key=key).tool(tool, **arguments)


def test_tools_give_out_addresses_that_curl_can_use(daemon, box, tmp_path):
    (tmp_path / "a").write_bytes(b"hello\0")
    for path in ("made/a b.txt", "/workspace/made/\u00fc?#%&=+.txt"):
        to = given_by(daemon, "upload_url", path=path, sandbox_id=box.id)["structuredContent"]
        assert to["method"] == "PUT" and to["sandbox_id"] == box.id and to["path"].startswith("/workspace/made/")
        subprocess.run(["curl", "-sSf", "-T", tmp_path / "a", to["url"]], check=True, stdout=subprocess.DEVNULL)
        back = given_by(daemon, "download_url", path=path, sandbox_id=box.id, expires_in=60)["structuredContent"]
        got = subprocess.run(["curl", "-sSf", back["url"]], check=True, stdout=subprocess.PIPE)
        assert back["method"] == "GET" and back["path"] == to["path"] and got.stdout == b"hello\0"
        assert subprocess.run(["curl", "-sf", "-T", tmp_path / "a", back["url"]], stdout=subprocess.DEVNULL,
                              check=False).returncode == 22


@pytest.mark.parametrize("arguments", [{"path": "a/../b"}, {"path": "./a"}, {"path": "a//b"}, {"path": "dir/"}, {"path": "/"},
                                       {"path": ""}, {"path": "a", "expires_in": 86401}, {"path": "a", "expires_in": 0}])
def test_what_cannot_be_signed_is_said_in_words(daemon, box, arguments):
    for tool in ("upload_url", "download_url"):
        answer = given_by(daemon, tool, sandbox_id=box.id, **arguments)
        assert answer["isError"] and answer["content"][0]["text"], answer


def test_nobody_is_given_more_than_they_have(daemon, box, key_for):
    looks = key_for("viewer", owner="root")
    assert given_by(daemon, "upload_url", key=looks.key, path="a", sandbox_id=box.id)["isError"]
    other = key_for("user", owner="signed-other")
    assert given_by(daemon, "download_url", key=other.key, path="a", sandbox_id=box.id)["isError"]


def test_an_address_ends_with_the_key_that_asked_for_it(api, daemon, box):
    made = api.post("/keys", {"name": "x", "role": "admin"}).must(201).json
    box.put("/workspace/a", b"text").must(201)
    mine, other = (given_by(daemon, "download_url", key=key, path="a", sandbox_id=box.id)["structuredContent"]["url"]
                   for key in (made["key"], api.key))
    stranger = api.using(None)
    paths = [url.partition(str(daemon.port))[2] for url in (mine, other)]
    for path in paths:
        assert stranger.get(path).must(200).body == b"text"
    of_mine, of_other = (urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)["by"][0] for path in paths)
    api.delete(f"/keys/{made['id']}").must(204)
    stranger.get(paths[0]).error(401)
    stranger.get(paths[0].replace(of_mine, of_other)).error(401)
    stranger.get(paths[0].replace(f"by={of_mine}&", "")).error(401)
    stranger.get(paths[1]).must(200)


def test_addresses_begin_as_the_operator_says():
    with Daemon("--public-url", "https://holt.example/sub") as daemon:
        to = given_by(daemon, "upload_url", path="a")["structuredContent"]
        assert to["url"].startswith(f"https://holt.example/sub/api/v1/sandboxes/{to['sandbox_id']}/files/workspace/a?")
