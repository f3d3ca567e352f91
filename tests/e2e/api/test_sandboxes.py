"""Sandboxes: every field, every way to find one, and every way one ends."""
import concurrent.futures
import datetime
import re
import time
import uuid

import pytest

from support.daemon import IS_ROOT, Daemon, until

ID = re.compile(r"^[a-z0-9]{20}$")
FIELDS = ["id", "name", "status", "reason", "template", "runtime", "securityLevel", "networkAccess",
          "tools", "owner", "createdAt", "expiresAt", "endedAt", "timeout", "idleTimeout", "remaining",
          "onTimeout", "autoResume", "resources", "metadata", "envNames", "volumes", "runningExecutions", "start", "timings",
          "endpoints"]
STEPS = ["claimMs", "stockMs", "cloneMs", "readyMs", "limitsMs", "storeMs", "totalMs"]


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").timestamp()


def some_name():
    return "n" + uuid.uuid4().hex[:12]


# --- making --------------------------------------------------------------------------------------


def test_a_sandbox_made_of_nothing_has_every_documented_field(api):
    answer = api.post("/sandboxes").must(201)
    value = answer.json
    assert list(value) == FIELDS
    assert ID.match(value["id"])
    assert answer.headers["Location"] == f"/api/v1/sandboxes/{value['id']}"
    assert {name: value[name] for name in FIELDS[1:10]} == {
        "name": None, "status": "running", "reason": None, "template": "python", "runtime": "python",
        "securityLevel": "standard", "networkAccess": "none", "tools": False, "owner": "admin"}
    assert (value["timeout"], value["idleTimeout"], value["remaining"]) == (3600, None, None)
    assert (value["onTimeout"], value["autoResume"]) == ("delete", False)
    assert value["endedAt"] is None
    assert 3599 <= moment(value["expiresAt"]) - moment(value["createdAt"]) <= 3601
    assert value["resources"] == {"cpu": 0.5, "memory": 256 << 20, "disk": 128 << 20, "pids": 64}
    assert (value["metadata"], value["envNames"], value["runningExecutions"]) == ({}, [], 0)
    assert value["start"] in ("warm", "cold")
    assert list(value["timings"]) == STEPS
    assert value["timings"]["totalMs"] >= value["timings"]["claimMs"] > 0
    base = f"/api/v1/sandboxes/{value['id']}"
    assert value["endpoints"] == {word: f"{base}/{word}" for word in
                                  ("execute", "executions", "files", "stream", "pty")}
    api.delete(f"/sandboxes/{value['id']}").must(204)


def test_an_empty_object_is_as_good_as_no_body(api):
    api.delete("/sandboxes/" + api.post("/sandboxes", {}).must(201).json["id"]).must(204)


def test_every_field_comes_back_as_it_was_asked_for(api):
    name = some_name()
    box = api.sandbox("node", name=name, timeout="10m", idleTimeout="90s",
                      resources={"cpu": "750m", "memory": "128Mi", "disk": "32Mi", "pids": 40},
                      env={"TOKEN": "very secret", "B": ""}, metadata={"team": "red", "ünï": "☃"},
                      securityLevel="standard", networkAccess="none", useWarmPool=False)
    value = box.get()
    assert {word: value[word] for word in ("name", "template", "runtime", "timeout", "idleTimeout")} == {
        "name": name, "template": "node", "runtime": "node", "timeout": 600, "idleTimeout": 90}
    assert value["resources"] == {"cpu": 0.75, "memory": 128 << 20, "disk": 32 << 20, "pids": 40}
    assert value["metadata"] == {"team": "red", "ünï": "☃"}
    assert sorted(value["envNames"]) == ["B", "TOKEN"]
    assert value["start"] == "cold"
    assert "very secret" not in str(value)
    assert box.run("echo $TOKEN")["stdout"] == "very secret\n"
    box.delete().must(204)


@pytest.mark.parametrize("asked, given", [
    ("python", "python"), ("python:3.11", "python"), ("node", "node"), ("nodejs", "node"),
    ("bash", "bash"), ("base", "base")])
def test_templates_have_the_documented_names(api, asked, given):
    for field in ("template", "runtime"):
        value = api.post("/sandboxes", {field: asked}).must(201).json
        assert (value["template"], value["runtime"]) == (given, given)
        api.delete(f"/sandboxes/{value['id']}").must(204)


@pytest.mark.parametrize("body, field", [
    ({"template": "cobol"}, "template"),
    ({"runtime": "cobol"}, "runtime"),
    ({"template": 7}, "template"),
    ({"name": "Upper"}, "name"),
    ({"name": "-x"}, "name"),
    ({"name": ""}, "name"),
    ({"name": "a" * 64}, "name"),
    ({"name": "a/b"}, "name"),
    ({"timeout": "soon"}, "timeout"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": "25h"}, "timeout"),
    ({"idleTimeout": []}, "idleTimeout"),
    ({"resources": {"memory": "lots"}}, "resources.memory"),
    ({"resources": {"memory": 1}}, "resources.memory"),
    ({"resources": {"cpu": 0}}, "resources.cpu"),
    ({"resources": {"cpu": 100000}}, "resources.cpu"),
    ({"resources": {"pids": 0}}, "resources.pids"),
    ({"resources": {"pids": 2.5}}, "resources.pids"),
    ({"resources": {"gpu": 1}}, "resources.gpu"),
    ({"resources": 3}, "resources"),
    ({"env": {"A": 1}}, "env.A"),
    ({"env": ["A=1"]}, "env"),
    ({"env": {f"V{n}": "" for n in range(257)}}, "env"),
    ({"metadata": {"a": {}}}, "metadata.a"),
    ({"metadata": {f"m{n}": "" for n in range(65)}}, "metadata"),
    ({"securityLevel": "high"}, "securityLevel"),
    ({"securityLevel": "none"}, "securityLevel"),
    ({"networkAccess": "full"}, "networkAccess"),
    ({"tools": 1}, "tools"),
    ({"tools": []}, "tools"),
    ({"tools": [""]}, "tools"),
    ({"tools": ["a" * 65]}, "tools"),
    ({"tools": [str(i) for i in range(65)]}, "tools"),
    ({"tools": {"a": 1}}, "tools"),
    ({"networkAccess": {"allow": ["example.org"]}}, "networkAccess"),
    ({"useWarmPool": "maybe"}, "useWarmPool"),
    ({"getOrCreate": 1}, "getOrCreate"),
    ({"colour": "red"}, "colour"),
])
def test_a_bad_field_is_named(api, body, field):
    api.post("/sandboxes", body).error(400, field=field)


@pytest.mark.parametrize("name", ["", "A=B", "1A", "A B"])
def test_a_variable_that_no_shell_could_name_is_refused(api, name):
    answer = api.post("/sandboxes", {"env": {name: "x"}})
    assert answer.status == 400 and answer.json["error"]["details"]["field"].startswith("env")


def test_nothing_of_a_refused_sandbox_is_left(api):
    name = some_name()
    api.post("/sandboxes", {"name": name, "resources": {"memory": 1}}).must(400)
    assert api.get(f"/sandboxes?name={name}&status=all").json["items"] == []


def test_null_means_the_default(api):
    value = api.post("/sandboxes", {"name": None, "timeout": None, "idleTimeout": None, "resources": None,
                                    "env": None, "metadata": None, "networkAccess": None,
                                    "tools": None}).must(201).json
    assert (value["name"], value["timeout"], value["resources"]["pids"]) == (None, 3600, 64)
    api.delete(f"/sandboxes/{value['id']}").must(204)


# --- names ---------------------------------------------------------------------------------------


def test_a_name_finds_a_live_sandbox_on_every_route(api):
    name = some_name()
    box = api.sandbox(name=name)
    assert api.get(f"/sandboxes/{name}").must(200).json["id"] == box.id
    assert api.get(f"/sandboxes/{name}/status").must(200).json["id"] == box.id
    assert api.post(f"/sandboxes/{name}/execute", {"type": "command", "content": "true"}).status == 200
    assert api.get(f"/sandboxes/{name}/files").status == 200
    api.delete(f"/sandboxes/{name}").must(204)
    api.get(f"/sandboxes/{name}").error(404)
    api.get(f"/sandboxes/{box.id}").must(200)


def test_a_name_is_unique_among_an_owner_s_live_sandboxes(api, key_for):
    name = some_name()
    box = api.sandbox(name=name)
    api.post("/sandboxes", {"name": name}).error(409)
    other = key_for("user", owner="somebody-else").sandbox(name=name)
    box.delete().must(204)
    again = api.sandbox(name=name)
    assert len({box.id, other.id, again.id}) == 3
    again.delete().must(204)
    other.delete().must(204)


def test_get_or_create_makes_one_and_then_finds_it(api):
    name = some_name()
    first = api.post("/sandboxes", {"name": name, "getOrCreate": True}).must(201).json
    second = api.post("/sandboxes", {"name": name, "getOrCreate": True}).must(200).json
    assert first["id"] == second["id"]
    api.delete(f"/sandboxes/{name}").must(204)


def test_get_or_create_by_a_hundred_callers_makes_one(api):
    name = some_name()

    def ask(_):
        return api.post("/sandboxes", {"template": "bash", "name": name, "getOrCreate": True})

    with concurrent.futures.ThreadPoolExecutor(100) as crowd:
        answers = list(crowd.map(ask, range(100)))
    assert len({answer.json["id"] for answer in answers}) == 1
    assert sorted(answer.status for answer in answers) == [200] * 99 + [201]
    api.delete(f"/sandboxes/{name}").must(204)


# --- finding -------------------------------------------------------------------------------------


def test_status_is_the_short_form(box):
    value = box.api.get(f"{box.path}/status").must(200).json
    assert list(value) == ["id", "status", "reason", "expiresAt", "runningExecutions"]
    assert (value["id"], value["status"], value["runningExecutions"]) == (box.id, "running", 0)
    running = box.begin("sleep 60")
    assert box.api.get(f"{box.path}/status").json["runningExecutions"] == 1
    running.cancel().must(204)


def test_lists_filter_by_status_template_name_and_metadata(api):
    mark = uuid.uuid4().hex
    one = api.sandbox("bash", metadata={"mark": mark, "n": "1"})
    two = api.sandbox("python", metadata={"mark": mark, "n": "2"}, name=some_name())
    gone = api.sandbox("bash", metadata={"mark": mark, "n": "1"})
    gone.delete().must(204)

    def ids(query):
        return [item["id"] for item in api.get(f"/sandboxes?metadata.mark={mark}&{query}").must(200).json["items"]]

    assert ids("") == [two.id, one.id]
    assert ids("status=all") == [gone.id, two.id, one.id]
    assert ids("status=stopped") == [gone.id]
    assert ids("status=running,stopped") == [gone.id, two.id, one.id]
    assert ids("status=paused") == []
    assert ids("template=python") == [two.id]
    assert ids("metadata.n=1") == [one.id]
    assert ids(f"name={two.value['name']}") == [two.id]
    assert ids("metadata.n=3") == []
    api.post(f"{one.path}/pause").must(200)
    assert ids("status=paused") == [one.id]
    one.delete().must(204)
    two.delete().must(204)


@pytest.mark.parametrize("query, field", [
    ("status=asleep", "status"), ("limit=0", "limit"), ("limit=501", "limit"), ("limit=x", "limit"),
    ("cursor=!!", "cursor"), ("cursor=YWJj", "cursor"),
    ("&".join(f"metadata.k{n}=v" for n in range(17)), "metadata")])
def test_a_bad_filter_is_named(api, query, field):
    answer = api.get(f"/sandboxes?{query}").must(400)
    assert answer.json["error"]["details"]["field"].startswith(field), answer


def test_unknown_query_parameters_are_ignored(api):
    api.get("/sandboxes?colour=red").must(200)


def test_pages_hold_every_sandbox_once_newest_first_while_others_come(api):
    mark = uuid.uuid4().hex
    made = [api.sandbox(metadata={"mark": mark}) for _ in range(7)]
    ended = made[3]
    ended.delete().must(204)
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        page = api.get(f"/sandboxes?metadata.mark={mark}&status=all&limit=2" +
                       (f"&cursor={cursor}" if cursor else "")).must(200).json
        assert list(page) == ["items", "nextCursor"] and 0 < len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"]]
        cursor, pages = page["nextCursor"], pages + 1
        if pages == 1:  # newer than all: on no later page
            made.append(api.sandbox(metadata={"mark": mark}))
    assert sorted(seen) == sorted(box.id for box in made[:7])
    times = [api.get(f"/sandboxes/{ident}").json["createdAt"] for ident in seen]
    assert times == sorted(times, reverse=True)
    for box in made:
        box.delete()


# --- changing ------------------------------------------------------------------------------------


def test_a_patch_sets_the_time_to_live_from_now_and_replaces_the_metadata(api):
    box = api.sandbox(timeout=600, metadata={"a": "1", "b": "2"})
    before = time.time()
    value = api.patch(box.path, {"timeout": 60, "metadata": {"c": "3"}}).must(200).json
    assert value["metadata"] == {"c": "3"} and value["timeout"] == 60
    assert 58 <= moment(value["expiresAt"]) + datetime_offset() - before <= 63
    value = api.patch(box.path, {"metadata": {}}).must(200).json
    assert value["metadata"] == {} and value["timeout"] == 60
    assert list(box.get()) == FIELDS and box.get()["metadata"] == {}
    box.delete().must(204)


def datetime_offset():
    """moment() reads UTC as local time."""
    now = time.time()
    return now - datetime.datetime.utcfromtimestamp(now).timestamp()


@pytest.mark.parametrize("body, field", [
    ({"timeout": "25h"}, "timeout"), ({"timeout": 0}, "timeout"), ({"name": "x"}, "name"),
    ({"metadata": "x"}, "metadata"), ({"metadata": {"a": 1}}, "metadata.a")])
def test_a_bad_patch_is_refused(box, body, field):
    box.api.patch(box.path, body).error(400, field=field)


def test_a_paused_sandbox_stands_still_and_goes_on(api):
    box = api.sandbox(timeout=600)
    counter = box.begin("i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done")
    counter.wait_for_output("3\n")
    value = api.post(f"{box.path}/pause").must(200).json
    assert (value["status"], value["expiresAt"]) == ("paused", None)
    assert 590 < value["remaining"] <= 600
    assert api.post(f"{box.path}/pause").must(200).json["status"] == "paused"
    time.sleep(0.2)  # what was on its way is here now
    still = counter.get()["outputBytes"]
    time.sleep(0.5)
    assert counter.get()["outputBytes"] == still
    box.execute("true").error(409)
    box.put("/workspace/x", b"x").error(409)
    box.read("/etc/hostname").error(409)
    box.listing().error(409)
    value = api.post(f"{box.path}/resume").must(200).json
    assert (value["status"], value["remaining"]) == ("running", None)
    assert api.post(f"{box.path}/resume").must(200).json["status"] == "running"
    until(lambda: counter.get()["outputBytes"] > still)
    box.delete().must(204)


def test_time_in_a_pause_counts_against_no_deadline(api):
    boxes = [api.sandbox(), api.sandbox()]
    start = time.monotonic()
    executions = [box.begin(command, timeout=3)  # the guest is idle, or has much to do
                  for box, command in zip(boxes, ("sleep 100", "exec yes"))]
    for box in boxes:
        api.post(f"{box.path}/pause").must(200)
    time.sleep(3.2)
    for box in boxes:
        api.post(f"{box.path}/resume").must(200)
    states = [execution.get()["status"] for execution in executions]
    if time.monotonic() - start - 3.2 < 3:  # else this machine took all of their time for itself
        assert states == ["running"] * 2
    for box, execution in zip(boxes, executions):
        assert execution.wait()["timedOut"]
        box.delete().must(204)


def test_a_paused_sandbox_can_be_deleted(api):
    box = api.sandbox()
    api.post(f"{box.path}/pause").must(200)
    box.delete().must(204)
    assert box.get()["status"] == "stopped"


# --- the end -------------------------------------------------------------------------------------


def test_a_deleted_sandbox_is_remembered_but_not_there_any_more(box):
    done = box.run("echo kept")
    box.delete().must(204)
    value = box.get()
    assert (value["status"], value["reason"]) == ("stopped", "deleted")
    assert value["endedAt"] >= value["createdAt"]
    box.delete().error(404)
    for path in ("/pause", "/resume"):
        assert box.api.post(box.path + path).status in (404, 409)
    assert box.execute("true").status in (404, 409)
    kept = box.api.get(f"{box.path}/executions/{done['executionId']}").must(200).json
    assert kept["stdout"] == "kept\n"
    assert len(box.api.get(f"{box.path}/executions").must(200).json["items"]) == 1


def test_several_deletes_at_once_all_succeed(api):
    box = api.sandbox()
    box.begin("sleep 60")
    with concurrent.futures.ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda _: box.delete().status, range(8)))
    assert 204 in answers and set(answers) <= {204, 404}


def test_what_is_asked_of_a_sandbox_that_ends_is_no_failure_of_the_server(api):
    for _ in range(5):
        box = api.sandbox()
        with concurrent.futures.ThreadPoolExecutor(12) as crowd:
            answers = [crowd.submit(box.execute, "sleep 0.1") for _ in range(8)]
            answers += [crowd.submit(api.post, f"{box.path}/pause"), crowd.submit(box.read, "/etc/hostname")]
            box.delete().must(204)
        statuses = {answer.result().status for answer in answers}
        assert statuses <= {200, 404, 409}, statuses


@pytest.mark.parametrize("ident", ["nosuchsandbox", "a" * 20, "x" * 300, "%2e%2e", "%00", "☃"])
def test_what_is_not_there_is_not_found(api, ident):
    from urllib.parse import quote
    answer = api.get("/sandboxes/" + (ident if "%" in ident else quote(ident)))
    assert answer.status in (400, 404) and answer.json["error"]["code"] in ("not_found", "invalid_request")


def test_the_time_to_live_ends_a_sandbox_but_not_while_it_is_paused(api):
    short = api.sandbox(timeout=3)
    paused = api.sandbox(timeout=3)
    api.post(f"{paused.path}/pause").must(200)
    until(lambda: short.get()["status"] == "stopped", what="the timeout")
    assert short.get()["reason"] == "timeout"
    after = api.sandbox(timeout=1)  # and by now the other's time would be over as well
    until(lambda: after.get()["status"] == "stopped", what="the timeout")
    assert paused.get()["status"] == "paused"
    value = api.post(f"{paused.path}/resume").must(200).json
    assert value["status"] == "running" and value["remaining"] is None
    until(lambda: paused.get()["status"] == "stopped", what="the timeout")
    assert paused.get()["reason"] == "timeout"


def test_an_idle_sandbox_ends_but_not_one_that_is_used(api):
    busy = api.sandbox(idleTimeout=1)
    running = busy.begin("sleep 100")
    used = api.sandbox(idleTimeout=2)
    idle = api.sandbox(idleTimeout=1)
    last = time.monotonic()
    while idle.get()["status"] != "stopped" and used.get()["status"] == "running":
        last = time.monotonic()
        used.execute("true")
    until(lambda: idle.get()["status"] == "stopped", what="the idle timeout")
    assert idle.get()["reason"] == "idle"
    assert busy.get()["status"] == "running"
    running.cancel().must(204)
    until(lambda: busy.get()["status"] == "stopped", what="the idle timeout")
    assert busy.get()["reason"] == "idle"
    until(lambda: used.get()["status"] == "stopped", what="its end, too")
    assert time.monotonic() - last > 1.9 and used.get()["reason"] == "idle"


@pytest.mark.parametrize("what, status", [("pause", "paused"), ("stop", "suspended")])
def test_a_timeout_may_keep_a_sandbox(api, what, status):
    box = api.sandbox(timeout=1, onTimeout=what)
    assert box.get()["onTimeout"] == what
    until(lambda: box.get()["status"] == status, what="the timeout")
    assert box.get()["remaining"] == 1 and box.get()["reason"] is None
    api.post(f"{box.path}/execute", {"type": "command", "content": "true"}).error(409)
    value = api.patch(box.path, {"timeout": 600, "autoResume": True}).must(200).json
    assert (value["onTimeout"], value["autoResume"], value["status"]) == (what, True, status)
    assert box.run("echo awake")["stdout"] == "awake\n"
    value = box.get()
    assert value["status"] == "running" and moment(value["expiresAt"]) - time.time() > 500
    api.patch(box.path, {"onTimeout": "delete", "timeout": 1}).must(200)
    until(lambda: box.get()["status"] == "stopped", what="the end")
    assert box.get()["reason"] == "timeout"


def test_idleness_may_pause_a_sandbox_and_use_wakes_it(api):
    box = api.sandbox(idleTimeout=1, onTimeout="pause", autoResume=True)
    box.put("/workspace/kept", b"kept").must(200, 201, 204)
    for _ in range(2):
        until(lambda: box.get()["status"] == "paused", what="the pause")
        assert api.get(f"{box.path}/status").must(200).json["status"] == "paused"  # a look wakes nobody
        assert api.get(f"{box.path}/files/workspace/kept").must(200).body == b"kept"
    box.delete().must(204)


@pytest.mark.parametrize("field, value", [("onTimeout", "keep"), ("onTimeout", 1), ("autoResume", "yes"), ("onTimeout", None)])
def test_what_a_timeout_cannot_do_is_refused_by_name(api, box, field, value):
    api.post("/sandboxes", {field: value}).error(400, field=field)
    api.patch(box.path, {field: value}).error(400, field=field)


def test_a_client_that_leaves_before_the_answer_does_not_undo_it(api):
    name = some_name()
    connection = api.connect()
    connection.request("POST", "/api/v1/sandboxes", body=b'{"name":"%s"}' % name.encode(),
                       headers={"Authorization": f"Bearer {api.key}", "Content-Type": "application/json"})
    connection.close()
    until(lambda: api.get(f"/sandboxes/{name}").status == 200, what="the sandbox")
    api.delete(f"/sandboxes/{name}").must(204)


# --- settings ------------------------------------------------------------------------------------


def test_the_server_s_limits_and_defaults_are_kept():
    flags = ("--max-sandboxes", "3", "--sandbox-timeout", "30m", "--sandbox-timeout-max", "1h",
             "--sandbox-idle-timeout", "20m", "--limits-memory", "128M", "--limits-cpu", "0.25",
             "--limits-pids", "32", "--pool-min", "0", "--exec-timeout", "1s", "--exec-timeout-max", "2s",
             "--output-keep", "4K")
    with Daemon(*flags) as daemon:
        api = daemon.api
        box = api.sandbox()
        value = box.get()
        assert (value["timeout"], value["idleTimeout"]) == (1800, 1200)
        assert value["resources"] == {"cpu": 0.25, "memory": 128 << 20, "disk": 64 << 20, "pids": 32}
        api.post("/sandboxes", {"timeout": "61m"}).error(400, field="timeout")
        others = [api.sandbox(), api.sandbox()]
        answer = api.post("/sandboxes")
        answer.error(429)
        assert int(answer.headers["Retry-After"]) > 0
        others.pop().delete().must(204)
        others.append(api.sandbox())

        value = box.run("sleep 30")
        assert (value["status"], value["timedOut"]) == ("timeout", True)
        assert 1000 <= value["durationMs"] < 10000
        box.execute("true", timeout="3s").error(400, field="timeout")
        value = box.run("head -c 100000 /dev/zero | tr '\\0' x; echo end")
        assert value["truncated"] and value["outputBytes"] == 100004
        assert value["stdout"].endswith("xend\n") and len(value["stdout"]) <= 4096
        assert value["omittedBytes"] == 100004 - len(value["stdout"])


def test_a_page_of_large_sandboxes_ends_early_and_the_next_goes_on(api):
    heavy = {f"k{i}": chr(1) * 1000 for i in range(16)}  # a hundred KiB in JSON
    with Daemon("--max-sandboxes", "60") as daemon:
        made = {daemon.api.sandbox(metadata=heavy).id for _ in range(50)}
        seen, cursor, pages = [], "", 0
        while cursor is not None:
            answer = daemon.api.get(f"/sandboxes?limit=50{cursor and '&cursor=' + cursor}").must(200)
            assert len(answer.body) < 5 << 20
            seen += [item["id"] for item in answer.json["items"]]
            cursor, pages = answer.json["nextCursor"], pages + 1
        assert pages == 2 and len(seen) == 50 and set(seen) == made


def test_what_a_sandbox_takes_is_told(box):
    before = box.api.get(f"{box.path}/usage").must(200).json
    assert list(before) == ["cpuSeconds", "memory", "memoryPeak", "processes", "outOfMemoryKills"]
    box.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    box.execute("sleep 100", background=True).must(202)
    after = box.api.get(f"{box.path}/usage").must(200).json
    assert after["cpuSeconds"] >= before["cpuSeconds"] and after["outOfMemoryKills"] == 0
    if IS_ROOT:
        assert after["cpuSeconds"] > before["cpuSeconds"] and after["processes"] >= 2 and after["memory"] > 0
