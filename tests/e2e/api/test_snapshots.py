"""Snapshots, forks, stop and start: the same files in another box, or in another life."""
import pytest

from support.daemon import Daemon, until


@pytest.fixture
def can(api):
    """Skips where the machine cannot take layers, and insists that it says so."""
    made = api.sandbox()
    answer = api.post(f"{made.path}/snapshots", {})
    made.delete().must(204)
    if answer.status == 409:
        assert answer.json["error"]["message"]
        pytest.skip(answer.json["error"]["message"])
    api.delete(f"/snapshots/{answer.must(201).json['id']}").must(204)


def text(box, command):
    return box.run(command)["stdout"]


def test_a_snapshot_is_taken_listed_used_and_removed(api, box, can):
    text(box, "echo one > /workspace/a; mkdir -p /workspace/d; ln -s ../a /workspace/d/l; echo h > ~/h")
    value = api.post(f"{box.path}/snapshots", {"name": "first"}).must(201).json
    assert value["name"] == "first" and value["sandboxId"] == box.id and value["files"] >= 4
    assert api.get("/snapshots/first").must(200).json == value
    assert api.get("/snapshots").must(200).json["items"][0] == value
    text(box, "echo two > /workspace/a")
    made = api.post("/sandboxes", {"snapshot": "first"}).must(201).json
    other = type(box)(api, made)
    assert made["template"] == "bash"
    assert text(other, "cat /workspace/d/l ~/h") == "one\nh\n"
    text(other, "echo three > /workspace/a; rm ~/h")
    assert text(box, "cat /workspace/a ~/h") == "two\nh\n"
    again = type(box)(api, api.post("/sandboxes", {"snapshot": value["id"]}).must(201).json)
    assert text(again, "cat /workspace/a ~/h") == "one\nh\n"
    api.delete("/snapshots/first").must(204)
    api.get("/snapshots/first").error(404)
    api.post("/sandboxes", {"snapshot": "first"}).must(400)
    assert text(again, "cat /workspace/a") == "one\n"  # who has it keeps it
    for one in (other, again):
        one.delete().must(204)


def test_snapshots_of_snapshots_keep_all_of_it(api, box, can):
    ids, current = [], box
    for i in range(4):
        text(current, f"echo {i} > /workspace/f{i}")
        ids.append(api.post(f"{current.path}/snapshots", {}).must(201).json["id"])
        if current is not box:
            current.delete().must(204)
        current = type(box)(api, api.post("/sandboxes", {"snapshot": ids[-1]}).must(201).json)
    for ident in ids[:-1]:
        api.delete(f"/snapshots/{ident}").must(204)
    assert text(current, "cat /workspace/f*") == "0\n1\n2\n3\n"
    current.delete().must(204)
    again = type(box)(api, api.post("/sandboxes", {"snapshot": ids[-1]}).must(201).json)
    assert text(again, "cat /workspace/f*") == "0\n1\n2\n3\n"
    again.delete().must(204)
    api.delete(f"/snapshots/{ids[-1]}").must(204)


def test_names_and_owners_are_kept_apart(api, box, key_for, can):
    api.post(f"{box.path}/snapshots", {"name": "mine"}).must(201)
    api.post(f"{box.path}/snapshots", {"name": "mine"}).error(409)
    api.post(f"{box.path}/snapshots", {"name": "No Good"}).must(400)
    stranger = key_for("user", owner="stranger")
    stranger.get("/snapshots/mine").error(404)
    stranger.delete("/snapshots/mine").error(404)
    stranger.post("/sandboxes", {"snapshot": "mine"}).must(400)
    assert stranger.get("/snapshots").must(200).json["items"] == []
    api.post("/sandboxes", {"snapshot": "mine", "template": "bash"}).must(400)
    api.delete("/snapshots/mine").must(204)


def test_forks_have_the_files_of_then_and_their_own_from_then_on(api, box, can):
    text(box, "echo shared > /workspace/a")
    made = api.post(f"{box.path}/fork", {"count": 3, "name": "kid"}).must(201).json["items"]
    assert sorted(one["name"] for one in made) == ["kid-1", "kid-2", "kid-3"]
    kids = [type(box)(api, one) for one in made]
    for i, kid in enumerate(kids):
        assert text(kid, f"cat /workspace/a; echo {i} > /workspace/a") == "shared\n"
    assert [text(kid, "cat /workspace/a") for kid in kids] == ["0\n", "1\n", "2\n"]
    assert text(box, "cat /workspace/a") == "shared\n"
    for kid in kids:
        kid.delete().must(204)


def test_a_paused_sandbox_is_forked_and_stays_paused(api, box, can):
    text(box, "echo x > /workspace/a")
    api.post(f"{box.path}/pause").must(200)
    made = api.post(f"{box.path}/fork").must(201).json["items"]
    kid = type(box)(api, made[0])
    assert len(made) == 1 and text(kid, "cat /workspace/a") == "x\n"
    assert box.get()["status"] == "paused"
    kid.delete().must(204)
    api.post(f"{box.path}/resume").must(200)


def test_forks_are_made_all_or_none(api, box, can):
    taken = api.sandbox(name="pair-2")
    before = len(api.get("/sandboxes?limit=500").must(200).json["items"])
    api.post(f"{box.path}/fork", {"count": 3, "name": "pair"}).error(409)
    until(lambda: len(api.get("/sandboxes?limit=500").must(200).json["items"]) == before, what="the undoing")
    taken.delete().must(204)
    for bad in ({"count": 0}, {"count": 65}, {"count": "x"}, {"name": "A"}, {"other": 1}):
        api.post(f"{box.path}/fork", bad).must(400)


def test_a_stopped_sandbox_starts_again_with_its_files(api, box, can):
    text(box, "echo kept > /workspace/a; echo home > ~/b")
    running = box.begin("sleep 1000")
    value = api.post(f"{box.path}/stop").must(200).json
    assert value["status"] == "suspended" and value["expiresAt"] is None and value["remaining"] > 0
    assert running.get()["status"] == "interrupted"
    box.execute("true").error(409)
    assert api.post(f"{box.path}/stop").must(200).json["status"] == "suspended"
    assert box.id in [one["id"] for one in api.get("/sandboxes").must(200).json["items"]]
    value = api.post(f"{box.path}/start").must(200).json
    assert value["status"] == "running" and value["id"] == box.id and value["expiresAt"]
    assert text(box, "cat /workspace/a ~/b") == "kept\nhome\n"
    for i in range(3):
        text(box, f"echo {i} >> /workspace/a")
        api.post(f"{box.path}/stop").must(200)
        api.post(f"{box.path}/start").must(200)
    assert text(box, "cat /workspace/a") == "kept\n0\n1\n2\n"
    assert api.post(f"{box.path}/start").must(200).json["status"] == "running"


def test_a_paused_one_is_stopped_and_a_stopped_one_forked_and_deleted(api, box, can):
    text(box, "echo p > /workspace/a")
    api.post(f"{box.path}/pause").must(200)
    api.post(f"{box.path}/stop").must(200)
    api.post(f"{box.path}/resume").error(409)
    api.post(f"{box.path}/pause").error(409)
    kid = type(box)(api, api.post(f"{box.path}/fork").must(201).json["items"][0])
    assert text(kid, "cat /workspace/a") == "p\n"
    kid.delete().must(204)
    box.delete().must(204)


def test_stopped_sandboxes_and_snapshots_outlive_every_kill(can):
    with Daemon() as daemon:
        api = daemon.api
        box = api.sandbox()
        text(box, "echo safe > /workspace/a; sync")
        snapshot = api.post(f"{box.path}/snapshots", {"name": "s"}).must(201).json["id"]
        api.post(f"{box.path}/stop").must(200)
        daemon.kill("daemon", "launcher", "keeper")
        daemon.wait_ended()
        daemon.start()
        assert box.get()["status"] == "suspended"
        assert api.post(f"{box.path}/start").must(200).json["status"] == "running"
        assert text(box, "cat /workspace/a") == "safe\n"
        other = type(box)(api, api.post("/sandboxes", {"snapshot": "s"}).must(201).json)
        assert text(other, "cat /workspace/a") == "safe\n"
        daemon.kill("launcher")
        until(lambda: api.get("/readyz").status == 200, what="another launcher")
        other.delete().must(204)
        api.delete(f"/snapshots/{snapshot}").must(204)
