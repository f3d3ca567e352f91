"""Users, tokens of one sandbox, quotas and rates: against a real daemon, also across its restarts."""
import threading

import pytest

from support.daemon import Daemon, IS_ROOT, until

GRANT = ["sandbox:read", "exec", "file:read", "file:write", "port"]


@pytest.fixture
def user(api):
    """Makes users: `user("ann", quota={...})` is a client with a key of theirs."""
    made = []

    def make(name, role="user", **fields):
        api.post("/users", {"name": name, "role": role, **fields}).must(201)
        made.append(name)
        return api.using(api.post("/keys", {"name": "test", "owner": name, "role": role}).must(201).json["key"])

    yield make
    for name in made:
        api.delete(f"/users/{name}").must(204, 404)


def everybodys(api):
    """The quota of who has no record: what the settings say."""
    key = api.post("/keys", {"name": "test", "owner": "nobody-special", "role": "user"}).must(201).json
    quota = api.using(key["key"]).get("/user").must(200).json["quota"]
    api.delete(f"/keys/{key['id']}").must(204)
    assert all(quota.values()) and sorted(quota) == ["cpu", "disk", "executions", "memory", "pids", "sandboxes"]
    return quota


def quota_error(answer, quota, limit, used):
    error = answer.must(403).json["error"]
    assert error["code"] == "quota_exceeded"
    assert error["details"] == {"quota": quota, "limit": limit, "used": used}


# ---- users ----

def test_a_user_is_made_shown_changed_and_ended(api, user):
    ann = user("ann-1", quota={"sandboxes": 3, "memory": "1G", "cpu": 2}, rateLimits={"exec": "600/m"})
    shown = api.get("/users/ann-1").must(200).json
    assert shown["name"] == "ann-1" and shown["role"] == "user" and shown["status"] == "active"
    fresh = everybodys(api)
    assert shown["quota"] == {**fresh, "sandboxes": 3, "cpu": 2.0, "memory": 1 << 30}
    assert shown["use"] == {"sandboxes": 0, "cpu": 0.0, "memory": 0, "disk": 0, "executions": 0, "pids": 0}
    assert shown["rateLimits"]["exec"] == "600/m" and shown["rateLimits"]["create"] is None
    mine = ann.get("/user").must(200).json
    assert mine["owner"] == "ann-1" and mine["quota"] == shown["quota"]
    changed = api.patch("/users/ann-1", {"quota": {"memory": 0, "disk": "64M"}}).must(200).json
    assert changed["quota"]["memory"] is None and changed["quota"]["disk"] == 64 << 20
    assert changed["quota"]["sandboxes"] == 3, "what is not in the body stays"
    changed = api.patch("/users/ann-1", {"resetLimits": True, "rateLimits": {"read": "10/s"}}).must(200).json
    assert changed["quota"] == fresh and changed["rateLimits"]["read"] == "10/s"
    assert changed["rateLimits"]["exec"] is None
    assert "ann-1" in [one["name"] for one in api.get("/users").must(200).json["items"]]
    api.delete("/users/ann-1").must(204)
    api.get("/users/ann-1").error(404, "not_found")
    ann.get("/user").error(401, "unauthorized")


@pytest.mark.parametrize("body, field", [
    ({}, "name"), ({"name": ""}, "name"), ({"name": "a b"}, "name"), ({"name": "x" * 64}, "name"),
    ({"name": "a", "role": "king"}, "role"), ({"name": "a", "quota": {"cpu": "x"}}, "quota.cpu"),
    ({"name": "a", "quota": {"gpu": 1}}, "quota.gpu"), ({"name": "a", "rateLimits": {"exec": "5"}}, "rateLimits.exec"),
])
def test_what_is_no_user_is_refused_by_its_field(api, body, field):
    api.post("/users", body).error(400, "invalid_request", field)


def test_only_admins_look_after_users(api, user, key_for):
    ann = user("ann-2")
    for answer in (ann.get("/users"), ann.post("/users", {"name": "x"}), ann.get("/users/ann-2"),
                   ann.patch("/users/ann-2", {"role": "admin"}), ann.delete("/users/ann-2")):
        answer.error(403, "forbidden")
    api.post("/users", {"name": "ann-2"}).error(409, "conflict")
    api.get("/users/nobody").error(404, "not_found")
    api.patch("/users/nobody", {}).error(404, "not_found")
    api.delete("/users/nobody").error(404, "not_found")


def test_a_disabled_user_is_refused_at_once_and_let_in_again(api, user):
    ann = user("ann-3")
    box = ann.sandbox()
    with box.begin("sleep 60").events() as events:
        api.patch("/users/ann-3", {"status": "disabled"}).must(200)
        ann.get("/user").error(401, "unauthorized")
        until(lambda: next(events, None) is None, what="the stream is cut")
    api.get(f"/sandboxes/{box.id}").must(200)
    api.patch("/users/ann-3", {"status": "active"}).must(200)
    ann.get("/user").must(200)
    box.delete().must(204)


def test_a_deleted_user_takes_keys_and_sandboxes_along(api, user):
    ann = user("ann-4")
    box = ann.sandbox()
    api.delete("/users/ann-4").must(204)
    ann.get("/user").error(401)
    until(lambda: api.get(f"/sandboxes/{box.id}").must(200).json["status"] == "stopped", what="it has ended")
    assert not [key for key in api.get("/keys?limit=1000").must(200).json["items"] if key["owner"] == "ann-4"]
    user("ann-4")  # the name is free
    ann.get("/user").error(401)


def test_no_key_reaches_above_its_users_role(api, user):
    boss = user("boss-1", role="admin")
    boss.get("/users").must(200)
    api.patch("/users/boss-1", {"role": "viewer"}).must(200)
    boss.get("/users").error(403, "forbidden")
    boss.post("/sandboxes", {}).error(403, "forbidden")
    boss.get("/sandboxes").must(200)


def test_nobody_shuts_themselves_out(api, user):
    boss = user("boss-2", role="admin")
    boss.delete("/users/boss-2").error(409, "conflict")
    boss.patch("/users/boss-2", {"status": "disabled"}).error(409, "conflict")
    boss.patch("/users/boss-2", {"role": "user"}).error(409, "conflict")
    boss.patch("/users/boss-2", {"quota": {"sandboxes": 1}}).must(200)


# ---- keys ----

def test_a_key_of_some_scopes_does_no_more(api, key_for):
    key = key_for("user", scopes=["sandbox:read", "key"])
    assert sorted(key.get("/user").must(200).json["scopes"]) == ["key", "sandbox:read"]
    key.get("/sandboxes").must(200)
    key.post("/sandboxes", {}).error(403, "forbidden")
    api.post("/keys", {"name": "x", "role": "user", "scopes": ["admin"]}).error(400, field="scopes")
    api.post("/keys", {"name": "x", "scopes": ["everything"]}).error(400, field="scopes")
    key.post("/keys", {"name": "x", "scopes": ["exec"]}).error(403, "forbidden")
    wider = key.post("/keys", {"name": "x"}).must(201).json  # no wider than who makes it
    assert sorted(wider["scopes"]) == ["key", "sandbox:read"]
    api.delete(f"/keys/{wider['id']}").must(204)


def test_ones_own_keys_are_apart_from_others(api, user):
    ann = user("ann-5")
    mine = ann.post("/user/apikeys", {"name": "second"}).must(201).json
    assert {key["name"] for key in ann.get("/user/apikeys").must(200).json["items"]} == {"test", "second"}
    assert all(key["owner"] == "admin" or key["owner"] == api.get("/user").json["owner"]
               for key in api.get("/user/apikeys?limit=1000").must(200).json["items"])
    api.delete(f"/user/apikeys/{mine['id']}").error(404, "not_found")
    ann.post("/user/apikeys", {"name": "x", "owner": "bob"}).error(400, field="owner")
    ann.delete(f"/user/apikeys/{mine['id']}").must(204)
    api.using(mine["key"]).get("/user").error(401)


# ---- tokens ----

def test_a_token_is_good_for_one_sandbox_and_dies_with_it(api, user):
    ann = user("ann-6")
    box, other = ann.sandbox(name="mine"), ann.sandbox()
    made = ann.post(f"/sandboxes/{box.id}/tokens", {}).must(201).json
    assert made["sandboxId"] == box.id and sorted(made["scopes"]) == sorted(GRANT)
    assert made["expiresAt"] == box.get()["expiresAt"], "for no longer than the sandbox"
    token = api.using(made["key"])
    assert token.get("/user").must(200).json["sandboxId"] == box.id
    token.get(f"/sandboxes/{box.id}").must(200)
    token.get("/sandboxes/mine").must(200)
    run = token.post(f"/sandboxes/{box.id}/execute", {"type": "command", "content": "echo hi"}).must(200).json
    assert run["stdout"] == "hi\n"
    token.get(f"/sandboxes/{box.id}/files").must(200)
    for path in (f"/sandboxes/{other.id}", f"/sandboxes/{other.id}/files", f"/sandboxes/{other.id}/executions"):
        token.get(path).error(404, "not_found")
    token.post(f"/sandboxes/{other.id}/execute", {"type": "command", "content": "true"}).error(404, "not_found")
    for answer in (token.post("/sandboxes", {}), token.post("/keys", {"name": "x"}), token.get("/sandboxes"),
                   token.post(f"/sandboxes/{box.id}/tokens", {}), token.delete(f"/sandboxes/{box.id}"),
                   token.post(f"/sandboxes/{box.id}/pause"), token.patch(f"/sandboxes/{box.id}", {"timeout": 60})):
        answer.error(403, "forbidden")
    box.delete().must(204)
    token.get(f"/sandboxes/{box.id}").error(401, "unauthorized")
    other.delete().must(204)


def test_tokens_are_listed_and_revoked_by_sandbox(api, user, key_for):
    ann = user("ann-7")
    box, other = ann.sandbox(), ann.sandbox()
    path = f"/sandboxes/{box.id}/tokens"
    made = ann.post(path, {"name": "ci", "scopes": ["exec"], "expiresIn": 60}).must(201).json
    ann.post(f"/sandboxes/{other.id}/tokens", {}).must(201)
    assert [key["name"] for key in ann.get(path).must(200).json["items"]] == ["ci"]
    token = api.using(made["key"])
    token.get(f"/sandboxes/{box.id}").error(403, "forbidden")
    token.post(f"/sandboxes/{box.id}/execute", {"type": "command", "content": "true"}).must(200)
    ann.post(path, {"scopes": ["sandbox:write"]}).error(400, field="scopes")
    ann.post(path, {"scopes": []}).error(400, field="scopes")
    ann.delete(f"/sandboxes/{other.id}/tokens/{made['id']}").error(404, "not_found")
    user("bob-7").get(path).error(404, "not_found")
    ann.delete(f"{path}/{made['id']}").must(204)
    token.get("/user").error(401)
    box.delete().must(204)
    other.delete().must(204)


# ---- quotas ----

LIMITS = {"cpu": 0.25, "memory": 32 << 20, "disk": 8 << 20}


@pytest.mark.parametrize("quota, limit, shown, used", [
    ("sandboxes", 2, 2, 2), ("cpu", 0.6, 600, 500), ("memory", 64 << 20, 64 << 20, 64 << 20),
    ("disk", 20 << 20, 20 << 20, 16 << 20), ("pids", 150, 150, 128),
])
def test_every_quota_on_sandboxes_is_reached_and_given_back(api, user, quota, limit, shown, used):
    ann = user(f"quota-{quota}", quota={quota: limit})
    boxes = [ann.sandbox(resources=LIMITS) for _ in range(2)]
    quota_error(ann.post("/sandboxes", {"resources": LIMITS}), quota, shown, used)
    assert ann.get("/user").json["use"]["sandboxes"] == 2
    boxes[0].delete().must(204)
    boxes[0] = ann.sandbox(resources=LIMITS)
    for box in boxes:
        box.delete().must(204)
    assert ann.get("/user").json["use"] == {"sandboxes": 0, "cpu": 0, "memory": 0, "disk": 0, "executions": 0, "pids": 0}


def test_snapshots_templates_and_volumes_count_on_the_disk(api, user):
    ann = user("quota-kept", quota={"disk": 16 << 20})
    box = ann.sandbox(resources=LIMITS)
    box.run("head -c 3000000 /dev/urandom > /workspace/a")
    answer = ann.post(f"{box.path}/snapshots", {"name": "one"})
    if answer.status == 409:
        pytest.skip(answer.json["error"]["message"])
    size = answer.must(201).json["size"]
    assert size >= 3000000 and ann.get("/user").json["use"]["disk"] == (8 << 20) + size
    ann.post("/templates", {"name": "t", "snapshot": "one"}).must(201)
    use = (8 << 20) + 2 * size
    assert ann.get("/user").json["use"]["disk"] == use
    quota_error(ann.post(f"{box.path}/snapshots", {"name": "two"}), "disk", 16 << 20, use)
    assert [one["name"] for one in ann.get("/snapshots").json["items"]] == ["one"]
    quota_error(ann.post("/templates", {"name": "t", "snapshot": "one"}), "disk", 16 << 20, use)
    if IS_ROOT:
        quota_error(ann.post("/volumes", {"name": "v", "size": 4 << 20}), "disk", 16 << 20, use)
    ann.delete("/templates/t:1").must(204)
    ann.delete("/snapshots/one").must(204)
    if IS_ROOT:
        ann.post("/volumes", {"name": "v", "size": 8 << 20}).must(201)
        quota_error(ann.post(f"{box.path}/snapshots", {}), "disk", 16 << 20, 16 << 20)
        ann.delete("/volumes/v").must(204)
    box.delete().must(204)
    assert ann.get("/user").json["use"]["disk"] == 0
    kept = [row for row in ann.get("/usage?group=sandbox").json["items"] if row["sandboxId"] == "kept"]
    assert kept and kept[0]["diskGiBHours"] > 0


def test_many_at_once_do_not_slip_past_a_quota(api, user):
    ann = user("crowd", quota={"sandboxes": 3})
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ann.post("/sandboxes", {}))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [201] * 3 + [403] * 9


def test_a_paused_sandbox_frees_its_processor_and_needs_it_to_go_on(api, user):
    ann = user("pauser", quota={"cpu": 0.25})
    box = ann.sandbox(resources=LIMITS)
    ann.post(f"/sandboxes/{box.id}/pause").must(200)
    other = ann.sandbox(resources=LIMITS)
    quota_error(ann.post(f"/sandboxes/{box.id}/resume"), "cpu", 250, 250)
    other.delete().must(204)
    ann.post(f"/sandboxes/{box.id}/resume").must(200)
    box.delete().must(204)


def test_executions_of_a_day_have_a_quota(api, user):
    ann = user("runner", quota={"executions": 2})
    box = ann.sandbox()
    box.run("true")
    box.run("true")
    quota_error(box.execute("true"), "executions", 2, 2)
    api.patch("/users/runner", {"quota": {"executions": 3}}).must(200)
    box.run("true")
    box.delete().must(204)


def test_users_quotas_and_use_are_the_same_after_a_crash():
    with Daemon("--quota-sandboxes", "2") as daemon:
        api = daemon.api
        api.post("/users", {"name": "ann", "quota": {"sandboxes": 1, "executions": 3}}).must(201)
        api.post("/users", {"name": "eve", "status": "disabled"}).must(201)
        ann, eve, bob = (api.using(api.post("/keys", {"name": "k", "owner": name}).must(201).json["key"])
                         for name in ("ann", "eve", "bob"))
        box = ann.sandbox()
        token = api.using(ann.post(f"/sandboxes/{box.id}/tokens", {}).must(201).json["key"])
        box.run("true")
        before = ann.get("/user").must(200).json
        daemon.kill("daemon")
        daemon.wait_ended()
        daemon.start()
        api, ann, eve, bob, token = (daemon.api.using(one.key) for one in (api, ann, eve, bob, token))
        eve.get("/user").error(401)
        after = ann.get("/user").must(200).json
        for part in ("quota", "rateLimits", "use"):
            assert after[part] == before[part]
        quota_error(ann.post("/sandboxes", {}), "sandboxes", 1, 1)
        token.get(f"/sandboxes/{box.id}").must(200)
        bob.sandbox(), bob.sandbox()
        quota_error(bob.post("/sandboxes", {}), "sandboxes", 2, 2)


# ---- rates ----

def test_a_key_is_held_to_its_rate_and_told_when_to_come_again(api, user):
    ann = user("fast", rateLimits={"read": "5/h", "create": "1/h", "exec": "0"})
    seen = [ann.get("/sandboxes") for _ in range(6)]
    assert [answer.status for answer in seen] == [200] * 5 + [429]
    assert [answer.headers["X-RateLimit-Limit"] for answer in seen] == ["5"] * 6
    assert [answer.headers["X-RateLimit-Remaining"] for answer in seen] == ["4", "3", "2", "1", "0", "0"]
    seen[-1].error(429, "rate_limited")
    assert 0 < int(seen[-1].headers["Retry-After"]) <= 720
    assert 0 < int(seen[-1].headers["X-RateLimit-Reset"]) <= 3600
    second = api.using(ann.post("/keys", {"name": "second"}).must(201).json["key"])
    second.get("/sandboxes").must(200)  # each key has a bucket of its own
    box = ann.sandbox()
    ann.post("/sandboxes", {}).error(429, "rate_limited")
    for _ in range(3):
        assert "X-RateLimit-Limit" not in box.execute("true").must(200).headers
    box.delete().must(204)


def test_many_keys_do_not_multiply_a_rate(api, user):
    ann = user("many-keys", rateLimits={"exec": "2/h"})
    box = ann.sandbox()
    keys = [api.using(ann.post("/keys", {"name": f"k{i}"}).must(201).json["key"]) for i in range(6)]
    seen = [key.post(f"{box.path}/execute", {"type": "command", "content": "true"}) for key in keys for _ in range(2)]
    assert [answer.status for answer in seen] == [200] * 8 + [429] * 4
    assert "for a user" in seen[-1].error(429, "rate_limited") and int(seen[-1].headers["Retry-After"]) > 0
    box.delete().must(204)


def test_rates_of_everybody_are_settings():
    with Daemon("--rate-exec", "2/h") as daemon:
        box = daemon.api.sandbox()
        box.run("true")
        box.run("true")
        box.execute("true").error(429, "rate_limited")
