"""Keys, roles, scopes and owners: who may do what, on every route."""
import hashlib
import itertools
import os
import re
import sqlite3
import subprocess
import time

import pytest

from support import contract
from support.daemon import HOLT, Daemon, until

PEERS = (f"127.0.{a}.{b}" for a, b in itertools.product(range(1, 255), range(1, 255)))

# The least role that has a scope.
LEAST = {"sandbox:read": "viewer", "file:read": "viewer", "metrics": "viewer", "usage": "viewer",
         "sandbox:write": "user", "exec": "user", "file:write": "user", "key": "user", "port": "user", "webhook": "user", "image": "user",
         "template": "user", "admin": "admin", "audit": "admin"}
# All that needs no key, and what any key may; a look by a body changes nothing.
OPEN = {"/healthz", "/readyz", "/health", "/api/v1/openapi.json"}
ANYBODYS = {"/api/v1/user", "/api/v1/profiles", "/api/v1/profiles/{name}"}
LOOKS = {"find", "grep", "bundle"}
ROLES = ["viewer", "user", "admin"]
SCOPES = {"viewer": {"sandbox:read", "file:read"},
          "user": {"sandbox:read", "file:read", "sandbox:write", "exec", "file:write", "key"},
          "admin": set(LEAST)}


@pytest.fixture
def stranger(api):
    """A client of an address that has not failed yet, without a key."""
    return api.coming_from(next(PEERS)).using(None)


def filled(path):
    """A path to things that are not there, so that whoever is let in changes nothing."""
    return re.sub(r"{\w+}", "a" * 20, path.replace("{port}", "8080"))


def routes():
    """Every operation of the contract and the least role that may use it; None: no key is needed."""
    for method, _, template, operation in contract.operations():
        scope = operation.get("x-scope")
        if template in OPEN:
            yield method.upper(), template, None
        else:
            assert scope or template in ANYBODYS, (method, template)
            yield method.upper(), template, LEAST[scope] if scope else "viewer"


# --- every route ---------------------------------------------------------------------------------


def test_no_viewer_may_change_anything():
    for method, path, least in routes():
        assert method in ("GET", "HEAD") or least != "viewer" or path.rsplit("/", 1)[1] in LOOKS, (method, path)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_its_scopes_say_and_nothing_else(key_for, role):
    client = key_for(role, owner="matrix")
    for method, path, least in routes():
        if (method, path) == ("POST", "/api/v1/sandboxes"):
            answer = client.ask(method, path, {"template": "no such"})
        else:
            answer = client.ask(method, filled(path))
        if least is None or ROLES.index(role) >= ROLES.index(least):
            assert answer.status not in (401, 403), (method, path, answer)
        else:
            answer.error(403)


def test_no_route_but_health_answers_without_a_key(api):
    for method, path, least in routes():
        answer = api.coming_from(next(PEERS)).using(None).ask(method, filled(path))
        if least is None:
            assert answer.status == 200
        else:
            answer.error(401)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_what_is_there_is_hidden_from_nobody_but_methods_are_told(api, stranger):
    answer = api.ask("DELETE", "/api/v1/sandboxes")
    answer.error(405)
    assert sorted(answer.headers["Allow"].replace(",", " ").split()) == ["GET", "HEAD", "POST"]
    api.get("/api/v1/nothing").error(404)
    api.get("/api/v2/sandboxes").error(404)
    stranger.get("/api/v1/nothing").error(404)


# --- forms of a key ------------------------------------------------------------------------------


def test_every_documented_form_of_a_key_is_let_in(api, stranger):
    digits = api.key.removeprefix("holt_")
    for headers in ({"Authorization": f"Bearer holt_{digits}"}, {"Authorization": f"bearer holt_{digits}"},
                    {"X-API-Key": f"holt_{digits}"}, {"X-API-Key": f"e2b_{digits}"},
                    {"Authorization": f"Bearer e2b_{digits}"},
                    {"Authorization": f"Bearer holt_{digits}", "X-API-Key": f"e2b_{digits}"}):
        assert stranger.get("/user", headers=headers).status == 200, headers


def test_everything_else_is_refused(api):
    digits, other = api.key.removeprefix("holt_"), "0" * 40
    for headers in ({}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": f"Basic {api.key}"},
                    {"Authorization": f"Bearer {other}"}, {"Authorization": f"Bearer holt_{other}"},
                    {"Authorization": f"Bearer {api.key}x"}, {"Authorization": f"Bearer {api.key[:-1]}"},
                    {"Authorization": f"Bearer holt_{digits[:-1]}g"}, {"X-API-Key": digits},
                    {"X-API-Key": f"e3b_{digits}"}, {"Authorization": f"Bearer  {api.key} {api.key}"},
                    {"Authorization": f"Bearer {api.key}", "X-API-Key": f"holt_{other}"},
                    {"X-API-Key": api.key, "Authorization": f"Bearer holt_{other}"},
                    {"X-API-Key": "x" * 5000}):
        answer = api.coming_from(next(PEERS)).using(None).get("/user", headers=headers)
        answer.error(401)
        assert other not in answer.body.decode()


def test_after_twenty_failures_a_peer_is_told_to_wait_but_a_good_key_is_let_in(api):
    peer = api.coming_from("127.0.0.99")
    bad = peer.using("holt_" + "1" * 40)
    assert [bad.get("/user").status for _ in range(20)] == [401] * 20
    answer = bad.get("/user")
    answer.error(429)
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    peer.get("/user").must(200)
    bad.get("/healthz").must(200)
    bad.get("/sandboxes").error(429)
    api.coming_from("127.0.0.98").using("holt_" + "1" * 40).get("/user").error(401)


# --- keys ----------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_works_until_it_is_revoked(api, stranger):
    made = api.post("/keys", {"name": "ci", "role": "user", "owner": "team-a", "expiresIn": "720h"}).must(201).json
    fields = ["id", "name", "role", "owner", "scopes", "sandboxId", "createdAt", "expiresAt", "lastUsedAt"]
    assert list(made) == fields + ["key"]
    assert re.match(r"^holt_[0-9a-f]{40}$", made["key"])
    assert (made["name"], made["role"], made["owner"], made["lastUsedAt"]) == ("ci", "user", "team-a", None)
    client = stranger.using(made["key"])
    me = client.get("/user").must(200).json
    assert (me["owner"], me["role"], me["keyId"], me["sandboxId"]) == ("team-a", "user", made["id"], None)
    assert me["scopes"] == made["scopes"]
    listed = api.get("/keys?limit=1000").must(200)
    assert made["key"] not in listed.body.decode() and made["key"][5:] not in listed.body.decode()
    row = next(item for item in listed.json["items"] if item["id"] == made["id"])
    assert list(row) == fields
    api.delete(f"/keys/{made['id']}").must(204)
    client.get("/user").error(401)
    api.delete(f"/keys/{made['id']}").must(204, 404)


def test_a_key_is_a_user_s_of_the_same_owner_unless_it_says_more(api, key_for):
    for maker in (api, key_for("user", owner="me")):
        made = maker.post("/keys", {"name": "plain"}).must(201).json
        assert (made["role"], made["owner"]) == ("user", maker.get("/user").json["owner"])
        assert made["expiresAt"] is None
        maker.delete(f"/keys/{made['id']}").must(204)


@pytest.mark.parametrize("role", ROLES)
def test_user_tells_who_a_key_is(key_for, role):
    value = key_for(role, owner="me").get("/user").must(200).json
    assert (value["role"], value["owner"]) == (role, "me")
    assert SCOPES[role] <= set(value["scopes"]) <= SCOPES["admin"]
    assert ("admin" in value["scopes"]) == (role == "admin")


def test_an_expired_key_is_refused(api, stranger):
    made = api.post("/keys", {"name": "short", "role": "admin", "expiresIn": 1}).must(201).json
    assert made["expiresAt"] > made["createdAt"]
    client = stranger.using(made["key"])
    client.get("/user").must(200)
    time.sleep(1.1)
    client.get("/user").error(401)
    api.delete(f"/keys/{made['id']}").must(204)


def test_nobody_gives_away_more_than_they_have(key_for):
    user = key_for("user", owner="me")
    user.post("/keys", {"name": "x", "role": "admin"}).error(403)
    user.post("/keys", {"name": "x", "owner": "you"}).error(403)
    mine = user.post("/keys", {"name": "x", "role": "viewer"}).must(201).json
    assert (mine["owner"], mine["role"]) == ("me", "viewer")
    other = key_for("user", owner="you")
    other.delete(f"/keys/{mine['id']}").error(404)
    assert mine["id"] not in [item["id"] for item in other.get("/keys").json["items"]]
    assert mine["id"] in [item["id"] for item in user.get("/keys").json["items"]]
    user.delete(f"/keys/{mine['id']}").must(204)
    user.delete("/keys/" + "a" * 20).error(404)


def test_a_user_cannot_revoke_an_admin_s_key(api, key_for):
    admin = api.post("/keys", {"name": "second admin", "role": "admin", "owner": "me"}).must(201).json
    key_for("user", owner="me").delete(f"/keys/{admin['id']}").error(403)
    api.delete(f"/keys/{admin['id']}").must(204)


def test_the_last_admin_key_stays(api):
    own = api.get("/user").json["keyId"]
    api.delete(f"/keys/{own}").error(409)
    api.get("/user").must(200)


@pytest.mark.parametrize("body, field", [
    ({}, "name"), ({"name": ""}, "name"), ({"name": "x" * 65}, "name"), ({"name": "x", "role": "king"}, "role"),
    ({"name": "x", "owner": ""}, "owner"), ({"name": "x", "owner": "y" * 64}, "owner"),
    ({"name": "x", "expiresIn": "never"}, "expiresIn"), ({"name": "x", "scopes": []}, "scopes")])
def test_a_bad_key_request_is_named(api, body, field):
    api.post("/keys", body).error(400, field=field)


def test_lists_of_keys_have_pages(api, key_for):
    for _ in range(5):
        key_for("viewer", owner="pages")
    seen, cursor = [], ""
    while cursor is not None:
        page = api.get("/keys?limit=2" + (f"&cursor={cursor}" if cursor else "")).must(200).json
        seen += [item["id"] for item in page["items"]]
        cursor = page["nextCursor"]
    assert len(seen) == len(set(seen)) >= 6
    api.get("/keys?limit=1001").error(400, field="limit")


# --- owners --------------------------------------------------------------------------------------


def test_another_owner_s_things_are_as_if_they_were_not_there(api, key_for):
    mine, other = key_for("user", owner="mine"), key_for("user", owner="other")
    box = mine.sandbox(name="shared-name")
    done = box.run("echo x")["executionId"]
    running = box.begin("sleep 100")
    for method, path, value in [
            ("GET", "", None), ("GET", "/status", None), ("PATCH", "", {"timeout": 5}), ("DELETE", "", None),
            ("POST", "/pause", None), ("POST", "/resume", None), ("POST", "/execute", {"type": "command", "content": "id"}),
            ("POST", "/executions", {"command": "id"}), ("GET", "/executions", None),
            ("GET", f"/executions/{done}", None), ("GET", f"/executions/{done}/output", None),
            ("GET", f"/executions/{running.id}/wait?timeout=0", None), ("DELETE", f"/executions/{running.id}", None),
            ("POST", f"/executions/{running.id}/cancel", None), ("POST", f"/executions/{running.id}/stdin", None),
            ("POST", f"/executions/{running.id}/signal", {"signal": 9}),
            ("POST", f"/executions/{running.id}/resize", {"rows": 1, "cols": 1}),
            ("GET", "/files", None), ("GET", "/files/etc/hostname", None), ("PUT", "/files/workspace/x", None),
            ("POST", "/files/workspace/x", {"op": "mkdir"}), ("DELETE", "/files/workspace/x", None),
            ("GET", "/watch", None), ("GET", "/archive", None), ("PUT", "/archive", None)]:
        strange = other.ask(method, box.path + path, value)
        missing = other.ask(method, f"/sandboxes/{'z' * 20}{path}", value)
        assert strange.status == missing.status == 404, (method, path, strange, missing)
        assert strange.json["error"]["code"] == missing.json["error"]["code"] == "not_found"
        other.ask(method, f"/sandboxes/shared-name{path}", value).error(404)
    assert other.get("/sandboxes?status=all").json["items"] == []
    assert box.get()["status"] == "running" and running.get()["status"] == "running"
    assert api.get(box.path).must(200).json["owner"] == "mine"  # an admin sees everybody's
    assert box.id in [item["id"] for item in api.get("/sandboxes").json["items"]]
    viewer = key_for("viewer", owner="mine")
    viewer.get(box.path).must(200)
    viewer.delete(box.path).error(403)
    box.delete().must(204)
    other.get(box.path).error(404)


def test_an_owner_s_name_gives_no_way_to_another_s_sandbox(key_for):
    team, ann = key_for("user", owner="team"), key_for("user", owner="team/ann")
    box = ann.sandbox(name="build")
    box.put("/workspace/secret", b"ann's").must(201)
    assert ann.get("/sandboxes/build").must(200).json["id"] == box.id
    for path in ("", "/status", "/files/workspace/secret", "/executions"):
        team.get(f"/sandboxes/ann%2Fbuild{path}").error(404)
    team.post("/sandboxes/ann%2Fbuild/execute", {"type": "command", "content": "id"}).error(404)
    team.delete("/sandboxes/ann%2Fbuild").error(404)
    box.delete().must(204)


def test_keys_survive_a_restart_and_only_their_hash_is_kept():
    with Daemon() as daemon:
        key = daemon.key
        made = daemon.api.post("/keys", {"name": "x", "role": "viewer"}).must(201).json["key"]
        gone = daemon.api.post("/keys", {"name": "y", "role": "viewer"}).must(201).json
        daemon.api.delete(f"/keys/{gone['id']}").must(204)
        daemon.stop()
        for path in daemon.state_dir.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                for secret in (key, made, gone["key"]):
                    assert secret[5:].encode() not in data and bytes.fromhex(secret[5:]) not in data, path
        daemon.start()
        assert daemon.key == key
        daemon.api.using(made).get("/user").must(200)
        daemon.api.using(gone["key"]).get("/user").error(401)
        assert (daemon.key_file.stat().st_mode & 0o777) == 0o600


def test_the_first_key_is_written_to_no_file_that_is_something_else():
    """The directory may be another's, who would like to have root write over what is not his."""
    for make in (os.link, os.symlink):
        daemon = Daemon()
        other = daemon.dir / "other"
        other.write_text("precious")
        other.chmod(0o644)
        make(other, daemon.key_file)
        try:
            assert daemon.start(wait=False).process.wait(30) == 125
            assert "admin key file" in daemon.log()
            assert other.read_text() == "precious" and other.stat().st_mode & 0o777 == 0o644
        finally:
            daemon.discard()
    daemon = Daemon()
    os.mkfifo(daemon.key_file)  # nobody reads it: this must not wait for one
    try:
        assert daemon.start(wait=False).process.wait(30) == 125
    finally:
        daemon.discard()


def test_another_daemons_key_file_is_not_written_over():
    """Only hashes are kept: a key that was written over is lost to everybody."""
    with Daemon() as first:
        second = Daemon()
        second.key_file = first.key_file
        try:
            assert second.start(wait=False).process.wait(30) == 125
            assert f"admin key file '{first.key_file}' is not empty" in second.log()
            assert not (second.state_dir / "data/holt.db").exists(), "what was refused has begun nothing"
            first.api.get("/user").must(200)
            assert first.api.key == first.key
        finally:
            second.discard()


def test_a_first_start_that_wrote_its_key_and_stored_none_begins_anew():
    daemon = Daemon().start()
    try:
        lost = daemon.key
        daemon.stop()
        with sqlite3.connect(daemon.state_dir / "data/holt.db") as database:  # as a crash between the two would leave it
            database.execute("DELETE FROM keys")
        assert daemon.start(wait=False).process.wait(30) == 125, "whose the key is cannot be known"
        note = daemon.state_dir / "data/first-key"
        note.write_text(hashlib.sha256(bytes.fromhex(lost[5:])).hexdigest())
        give_to_owner_of(daemon.state_dir / "data", *note.parent.iterdir())
        daemon.start()
        assert daemon.key != lost and not note.exists()
        daemon.api.get("/user").must(200)
    finally:
        daemon.discard()


def give_to_owner_of(directory, *paths):
    owner = directory.stat()
    for path in paths:
        os.chown(path, owner.st_uid, owner.st_gid)


def make_offline(state_dir, *flags):
    return subprocess.run([HOLT, "key", "create", "--state-dir", str(state_dir), *flags], capture_output=True, text=True, timeout=60)


def test_a_lost_admin_key_is_replaced_while_no_daemon_runs():
    with Daemon() as daemon:
        busy = make_offline(daemon.state_dir, "--admin")
        assert busy.returncode == 125 and "stop it first" in busy.stderr
        daemon.stop()
        made = make_offline(daemon.state_dir, "--admin", "--name", "again")
        assert made.returncode == 0, made
        owners = {path.stat().st_uid for path in (daemon.state_dir / "data").glob("holt.db*")}
        assert owners == {(daemon.state_dir / "data").stat().st_uid}, "the daemon can open all of it"
        daemon.start()
        who = daemon.api.using(made.stdout.strip()).get("/user").must(200).json
        assert who["role"] == "admin"
        assert "again" in [key["name"] for key in daemon.api.get("/keys").must(200).json["items"]]


def test_keys_without_a_daemon_are_admins_keys_of_a_directory_that_is_there(tmp_path):
    assert "--admin" in make_offline(tmp_path, "--role", "user").stderr
    assert "--scope" in make_offline(tmp_path, "--admin", "--scope", "exec").stderr
    nowhere = make_offline(tmp_path, "--admin")
    assert nowhere.returncode == 125 and str(tmp_path) in nowhere.stderr
    assert list(tmp_path.iterdir()) == []
