"""Warm pools: made, changed, told to the launcher, kept across restarts."""
import pytest

from support.daemon import Daemon, until


@pytest.fixture
def pool(api):
    made = []

    def make(**fields):
        value = api.post("/warmpools", {"name": "web", "runtime": "node", **fields}).must(201).json
        made.append(value["id"])
        return value

    yield make
    for ident in made:
        api.delete(f"/warmpools/{ident}").must(204, 404)


def status(api, name):
    return api.get(f"/warmpools/{name}/status").must(200).json


def test_a_pool_is_made_shown_listed_and_removed(api, pool):
    value = pool(minSize=2, maxSize=4, autoScaling={"targetUtilization": 50, "scaleDownDelay": "1m"})
    assert value["runtime"] == value["template"] == "node" and value["securityLevel"] == "standard"
    assert value["autoScaling"] == {"enabled": True, "targetUtilization": 50, "scaleDownDelay": 60}
    assert api.get("/warmpools/web").must(200).json == value
    assert api.get(f"/warmpools/{value['id']}").must(200).json == value
    assert value in api.get("/warmpools").must(200).json["items"]
    until(lambda: status(api, "web")["ready"] >= 2, what="boxes that wait")
    assert status(api, "web")["timeToReadyMs"] > 0
    api.delete("/warmpools/web").must(204)
    api.get("/warmpools/web").error(404)
    api.delete("/warmpools/web").error(404)


@pytest.mark.parametrize("role, scopes", [("user", None), ("viewer", None), ("user", ["sandbox:read", "metrics"]),
                                          ("admin", ["sandbox:read"])])
def test_figures_of_the_machine_are_for_admins_who_may_see_metrics(api, pool, key_for, role, scopes):
    pool(minSize=1, maxSize=1)
    until(lambda: status(api, "web")["ready"] >= 1, what="a box that waits")
    assert status(api, "web")["available"] and "problem" in status(api, "web")
    key = key_for(role, **({"scopes": scopes} if scopes else {}))
    assert set(status(key, "web")) == {"available"}
    assert set(status(key_for("admin", scopes=["sandbox:read", "metrics"]), "web")) == set(status(api, "web"))


def test_a_sandbox_comes_from_the_pool_and_is_counted(api, pool):
    pool(minSize=2, maxSize=4)
    until(lambda: status(api, "web")["ready"] >= 2, what="boxes that wait")
    before = status(api, "web")
    value = api.post("/sandboxes", {"runtime": "node"}).must(201).json
    assert value["start"] == "warm"
    after = status(api, "web")
    assert after["hits"] == before["hits"] + 1 and after["claimed"] == before["claimed"] + 1
    assert after["assignedPods"] == after["claimed"] and 0 < after["hitRate"] <= 1
    api.delete(f"/sandboxes/{value['id']}").must(204)


def test_modules_are_imported_before_anybody_comes(api, pool):
    pool(name="science", runtime="python", minSize=1, maxSize=2, preloadPackages=["fractions", "sqlite3"])
    until(lambda: status(api, "science")["ready"] >= 1, what="a box that waits")
    box = api.sandbox("python")
    answer = box.code("python", "import sys; print('fractions' in sys.modules, 'sqlite3' in sys.modules)")
    assert answer["stdout"] == "True True\n"
    box.delete().must(204)


def test_a_pool_is_changed_field_by_field(api, pool):
    pool(minSize=1, maxSize=3)
    value = api.patch("/warmpools/web", {"minSize": 2, "autoScaling": {"enabled": False}}).must(200).json
    assert (value["minSize"], value["maxSize"]) == (2, 3)
    assert value["autoScaling"] == {"enabled": False, "targetUtilization": 80, "scaleDownDelay": 300}
    until(lambda: status(api, "web")["target"] == 2, what="the target")
    assert api.get("/warmpools/web").must(200).json == value
    api.patch("/warmpools/web", {"maxSize": 1}).must(400)
    api.patch("/warmpools/web", {"autoScaling": {"targetUtilization": 0}}).must(400)
    api.patch("/warmpools/web", {"name": "other"}).must(400)
    assert api.get("/warmpools/web").must(200).json == value


@pytest.mark.parametrize("fields", [
    {"name": ""}, {"name": "A b"}, {"runtime": "cobol"}, {"minSize": 5, "maxSize": 4}, {"minSize": -1}, {"minSize": 1001},
    {"securityLevel": "high"}, {"preloadPackages": ["os; rm"]}, {"preloadPackages": ["json"], "runtime": "bash"},
    {"preloadPackages": ["a" * 129]}, {"preloadPackages": ["a"] * 33}, {"autoScaling": {"targetUtilization": 101}},
    {"unknown": 1}])
def test_what_cannot_be_is_refused(api, fields):
    api.post("/warmpools", {"name": "bad", "runtime": "node", **fields}).must(400)
    api.get("/warmpools/bad").error(404)


def test_there_is_one_pool_for_a_template_and_one_of_a_name(api, pool):
    pool()
    api.post("/warmpools", {"name": "web", "runtime": "bash"}).error(409)
    api.post("/warmpools", {"name": "second", "runtime": "nodejs"}).error(409)


def test_only_an_admin_changes_pools(api, key_for, pool):
    pool()
    user = key_for("user", owner="team-a")
    user.post("/warmpools", {"name": "mine", "runtime": "bash"}).error(403)
    user.patch("/warmpools/web", {"minSize": 0}).error(403)
    user.delete("/warmpools/web").error(403)
    assert user.get("/warmpools/web").must(200).json["name"] == "web"


def test_pools_outlive_the_daemon_and_the_launcher():
    with Daemon() as daemon:
        daemon.api.post("/warmpools", {"name": "kept", "runtime": "bash", "minSize": 3, "maxSize": 3}).must(201)
        until(lambda: status(daemon.api, "kept")["ready"] == 3, what="boxes that wait")
        daemon.kill("launcher")
        until(lambda: daemon.api.get("/readyz").status == 200 and
              daemon.api.get("/warmpools/kept/status").status == 200 and status(daemon.api, "kept")["ready"] == 3,
              what="boxes that wait again")
        daemon.stop()
        daemon.start()
        until(lambda: status(daemon.api, "kept")["ready"] == 3, what="boxes that wait once more")
        daemon.api.delete("/warmpools/kept").must(204)


@pytest.fixture
def own(api):
    """Makes versions of a template, bash with a file."""
    made = []

    def make(text, **fields):
        box = api.sandbox()
        box.run(f"mkdir -p /workspace/tool; echo {text} > /workspace/tool/a")
        taken = api.post(f"{box.path}/snapshots", {})
        box.delete().must(204)
        if taken.status == 409:
            pytest.skip(taken.json["error"]["message"])
        ident = taken.must(201).json["id"]
        made.append(api.post("/templates", {"name": "pooled", "snapshot": ident, **fields}).must(201).json["name"])
        api.delete(f"/snapshots/{ident}").must(204)
        return made[-1]

    yield make
    for name in made:
        api.delete(f"/templates/{name}").must(204, 404)


def wait_ready(api, name, count):
    return until(lambda: (lambda s: s if s["ready"] == count else None)(api.get(f"/warmpools/{name}/status").must(200).json),
                 60, f"{count} boxes that wait")


def take(api, box, template, **fields):
    made = api.post("/sandboxes", {"template": template, **fields}).must(201).json
    one = type(box)(api, made)
    text = one.run("cat /workspace/tool/a")["stdout"]
    one.delete().must(204)
    return made["start"], text


def test_boxes_of_ones_own_template_wait_with_its_files(api, box, own, daemon):
    own("first")
    pool = api.post("/warmpools", {"name": "mine", "runtime": "pooled", "minSize": 1, "maxSize": 1}).must(201).json
    assert pool["template"] == "pooled" and pool["owner"]
    wait_ready(api, "mine", 1)
    assert take(api, box, "pooled") == ("warm", "first\n")
    wait_ready(api, "mine", 1)
    # Other limits are set when it is taken.
    assert take(api, box, "pooled", resources={"memory": "300Mi"}) == ("warm", "first\n")
    wait_ready(api, "mine", 1)
    assert take(api, box, "pooled", resources={"disk": "16Mi"}) == ("warm", "first\n")
    wait_ready(api, "mine", 1)
    assert take(api, box, "pooled", resources={"memory": "1Gi", "disk": "400Mi"}) == ("warm", "first\n")
    status = wait_ready(api, "mine", 1)
    assert status["hits"] == 4 and status["misses"] == 0 and status["hitRate"] == 1
    assert status["missed"] == {"empty": 0, "limits": 0, "failed": 0, "ownFiles": 0}
    assert "pooled" in api.post("/warmpools", {"name": "more", "runtime": "pooled:1"}).error(409)
    assert "preload" in api.ask("PATCH", "/warmpools/mine", {"preloadPackages": ["json"]}).error(400, field="preloadPackages")

    # It is there again after a restart of both, and follows the newest version.
    daemon.kill("daemon", "launcher")
    daemon.start()
    wait_ready(api, "mine", 1)
    assert take(api, box, "pooled") == ("warm", "first\n")
    own("second")
    wait_ready(api, "mine", 1)
    until(lambda: take(api, box, "pooled") == ("warm", "second\n"), 60, "a warm box of the second version")

    # Without its template there is nothing to wait for; with a new one there is.
    api.delete("/templates/pooled:1").must(204)
    api.delete("/templates/pooled:2").must(204)
    wait_ready(api, "mine", 0)
    own("third")
    wait_ready(api, "mine", 1)
    assert take(api, box, "pooled") == ("warm", "third\n")
    api.delete("/warmpools/mine").must(204)


def test_boxes_of_a_template_that_names_a_disk_are_taken(api, box, own):
    own("sized", resources={"disk": "300Mi", "memory": "700Mi"})
    api.post("/warmpools", {"name": "sized", "runtime": "pooled", "minSize": 1, "maxSize": 1}).must(201)
    before = wait_ready(api, "sized", 1)
    for _ in range(2):
        wait_ready(api, "sized", 1)
        assert take(api, box, "pooled") == ("warm", "sized\n")
    status = wait_ready(api, "sized", 1)
    assert (status["hits"] - before["hits"], status["misses"] - before["misses"]) == (2, 0)
    api.delete("/warmpools/sized").must(204)


def test_a_pool_is_of_a_template_that_is_there(api):
    assert "nosuch" in api.post("/warmpools", {"name": "none", "runtime": "nosuch"}).error(400, field="runtime")
