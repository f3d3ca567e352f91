"""Events: as a page, as a stream, and again after a reader or the daemon was gone."""
from support.daemon import Daemon, until


def all_of(api, path):
    """Every page: the daemon has been used by many tests before."""
    items, cursor = [], ""
    while True:
        page = api.get(f"{path}?limit=1000{cursor}").must(200).json
        items += page["items"]
        if not page["nextCursor"]:
            return items
        cursor = "&cursor=" + page["nextCursor"]


def kinds(api, subject):
    return [item["kind"] for item in all_of(api, "/events")
            if subject in (item["data"]["subject"], item["data"].get("sandbox"))]


def test_a_life_is_told_in_order(api, key_for):
    anna, bob = key_for("user", owner="events-anna"), key_for("user", owner="events-bob")
    with anna.events("GET", "/events") as stream:
        box = anna.sandbox()
        box.run("exit 3")
        anna.post(box.path + "/pause").must(200)
        anna.post(box.path + "/resume").must(200)
        box.delete().must(204)
        seen = []
        while not seen or seen[-1].name != "sandbox.stopped":
            seen.append(next(stream))
    assert [event.name for event in seen] == [
        "sandbox.created", "sandbox.running", "execution.started", "execution.ended", "sandbox.paused",
        "sandbox.resumed", "sandbox.stopped"]
    ended = seen[3].data
    assert ended["owner"] == "events-anna" and ended["data"]["exitCode"] == 3 and ended["data"]["sandbox"] == box.id
    assert [int(event.id) for event in seen] == [event.data["seq"] for event in seen]
    assert {item["kind"] for item in bob.get("/events").must(200).json["items"]} <= {"key.created"}
    assert kinds(api, box.id) == [event.name for event in seen]
    # a reader that was away gets what it missed, and only that
    with anna.events("GET", "/events?kind=sandbox.*", headers={"Last-Event-ID": seen[2].id}) as again:
        assert [next(again).name for _ in range(3)] == ["sandbox.paused", "sandbox.resumed", "sandbox.stopped"]
    anna.get("/events", headers={"Accept": "text/event-stream", "Last-Event-ID": "x"}).error(400)


def test_stop_and_start_are_told(api):
    box = api.sandbox()
    api.post(box.path + "/stop").must(200)
    api.post(box.path + "/start").must(200)
    box.delete().must(204)
    until(lambda: "sandbox.stopped" in kinds(api, box.id), 10, "the end")
    assert kinds(api, box.id) == ["sandbox.created", "sandbox.running", "sandbox.suspended", "sandbox.started",
                                  "sandbox.stopped"]


def test_a_stream_goes_on_behind_a_killed_daemon():
    with Daemon() as daemon:
        with daemon.api.events("GET", "/events") as stream:
            box = daemon.api.sandbox()
            while (last := next(stream)).name != "sandbox.running":
                pass
            daemon.kill("keeper", "daemon", "launcher")
        daemon.wait_ended()
        daemon.start()
        with daemon.api.events("GET", "/events", headers={"Last-Event-ID": last.id}) as stream:
            box.delete().must(204)
            assert next(stream).name == "sandbox.stopped"


def test_refusals_and_limits_are_security_events(api, key_for):
    eve = key_for("user", owner="events-eve")
    box = eve.sandbox()
    box.execute("sleep 60", timeout=1)
    box.execute("kill -SYS $$")
    api.using("holt_" + 40 * "2").get("/user").error(401)
    eve.post("/warmpools", {}).must(400, 403)
    until(lambda: len(eve.get("/security-events").must(200).json["items"]) >= 2, 10, "two of them")
    mine = {item["kind"] for item in eve.get("/security-events").must(200).json["items"]}
    assert {"security.timed_out", "security.seccomp_killed"} <= mine
    until(lambda: {"security.auth_failed", "security.timed_out"} <= {
        item["kind"] for item in all_of(api, "/security-events")}, 10, "everybody's")
    metrics = api.get("/metrics").must(200).body.decode()
    assert 'holt_security_events_total{kind="auth_failed"}' in metrics
    box.delete().must(204)


def test_what_is_made_and_removed_is_told(api, key_for):
    cara = key_for("user", owner="events-cara")
    box = cara.sandbox()
    cara.post(box.path + "/contexts", {"language": "bash", "name": "c"}).must(201)
    cara.post(f"{box.path}/contexts/c/restart").must(200)
    cara.delete(f"{box.path}/contexts/c").must(204)
    cara.post(box.path + "/ports", {"port": 8000}).must(201)
    cara.delete(box.path + "/ports/8000").must(204)
    own = cara.post("/user/apikeys", {"name": "second"}).must(201).json
    cara.delete("/user/apikeys/" + own["id"]).must(204)
    expected = ["key.created", "sandbox.created", "sandbox.running", "execution.started", "context.created",
                "context.restarted", "context.deleted", "port.opened", "port.closed", "key.created", "key.revoked"]
    found = []

    def all_told():
        page = cara.get("/events?limit=1000").must(200).json
        found[:] = [item["kind"] for item in page["items"] if not item["kind"].startswith("execution.")]
        return "key.revoked" in found

    until(all_told, 10, "the last of them is told")
    assert found == [kind for kind in expected if not kind.startswith("execution.")]
    box.delete().must(204)


def test_objects_are_told(api, key_for):
    dan = key_for("user", owner="events-dan")
    box = dan.sandbox()
    snapshot = dan.post(box.path + "/snapshots", {"name": "s"}).must(201).json["id"]
    dan.delete(f"/snapshots/{snapshot}").must(204)
    dan.post("/templates", {"name": "events-t", "from": "bash"}).must(201)
    dan.delete("/templates/events-t:1").must(204)
    box.delete().must(204)
    pool = api.post("/warmpools", {"name": "events-pool", "runtime": "bash", "minSize": 0, "maxSize": 1}).must(201).json["id"]
    api.patch(f"/warmpools/{pool}", {"maxSize": 2}).must(200)
    api.delete(f"/warmpools/{pool}").must(204)
    until(lambda: kinds(api, pool) == ["pool.created", "pool.updated", "pool.deleted"], 10, "the pool's")
    mine = [item for item in dan.get("/events?limit=1000").must(200).json["items"]
            if item["kind"].startswith(("snapshot.", "template.", "pool."))]
    assert [item["kind"] for item in mine] == ["snapshot.created", "snapshot.deleted", "template.created", "template.deleted"]
    assert mine[0]["data"] == {"subject": snapshot, "name": "s"}


def test_users_and_quotas_are_told(api, key_for):
    api.post("/users", {"name": "events-dora", "quota": {"sandboxes": 1}}).must(201)
    dora = key_for("user", owner="events-dora")
    box = dora.sandbox()
    for _ in range(3):
        dora.post("/sandboxes", {}).must(403)
    api.patch("/users/events-dora", {"quota": {"sandboxes": 2}}).must(200)
    items = until(lambda: [item for item in dora.get("/events?limit=1000").must(200).json["items"]
                           if item["kind"].startswith(("user.", "quota."))][2:] or None, 10, "three of them")
    assert items[0]["kind"] == "user.updated"
    told = [item for item in dora.get("/events?limit=1000").must(200).json["items"] if item["kind"] == "quota.exceeded"]
    assert len(told) == 1 and told[0]["data"] == {"subject": "events-dora", "quota": "sandboxes", "limit": 1, "used": 1}
    box.delete().must(204)
    api.delete("/users/events-dora").must(204)


def test_the_end_of_a_sandboxs_time_is_told_before(api):
    box = api.sandbox("bash", timeout="10s")
    until(lambda: "sandbox.stopped" in kinds(api, box.id), what="its end")
    told = kinds(api, box.id)
    assert told.count("sandbox.expiring") == 1 and told.index("sandbox.expiring") < told.index("sandbox.stopped")
