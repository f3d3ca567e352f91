"""Events: as a page, as a stream, and again after a reader or the daemon was gone."""
from support.daemon import Daemon, until


def kinds(api, subject):
    page = api.get("/events?limit=1000").must(200).json
    return [item["kind"] for item in page["items"] if subject in (item["data"]["subject"], item["data"].get("sandbox"))]


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
    assert bob.get("/events").must(200).json["items"] == []
    assert kinds(api, box.id) == [event.name for event in seen]
    # a reader that was away gets what it missed, and only that
    with anna.events("GET", "/events?kind=sandbox.*", headers={"Last-Event-ID": seen[2].id}) as again:
        assert [next(again).name for _ in range(3)] == ["sandbox.paused", "sandbox.resumed", "sandbox.stopped"]
    anna.get("/events", headers={"Accept": "text/event-stream", "Last-Event-ID": "x"}).error(400)


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
    everybody = {item["kind"] for item in api.get("/security-events?limit=1000").must(200).json["items"]}
    assert {"security.auth_failed", "security.timed_out"} <= everybody
    metrics = api.get("/metrics").must(200).body.decode()
    assert 'holt_security_events_total{kind="auth_failed"}' in metrics
    box.delete().must(204)
