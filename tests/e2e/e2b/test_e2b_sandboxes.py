"""E2B's control plane: sandboxes, with plain requests as its SDKs send them."""
import concurrent.futures
import datetime
import json
import time
import urllib.parse

import pytest

from support.client import Answer
from support.connect import Envd
from support.daemon import Daemon, until
from support.e2b import e2b_key

TIME = "%Y-%m-%dT%H:%M:%S.%f%z"


class Control:
    """The control plane with one key."""

    def __init__(self, api, key=None):
        self.api, self.key = api, e2b_key(key or api.key)

    def ask(self, method, path, value=None, headers=None, chunked=False):
        body = json.dumps(value).encode() if value is not None else None
        headers = {"X-API-KEY": self.key, **({"Content-Type": "application/json"} if body else {}), **(headers or {})}
        connection = self.api.connect()
        try:
            connection.request(method, path, body=iter([body]) if chunked else body, headers=headers,
                               encode_chunked=chunked)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def create(self, **more):
        return self.ask("POST", "/v2/sandboxes", {"templateID": "base", **more}).must(201).json

    def info(self, ident):
        return self.ask("GET", f"/sandboxes/{ident}").must(200).json

    def kill(self, ident):
        return self.ask("DELETE", f"/sandboxes/{ident}").must(204, 404).status == 204

    def ids(self, **query):
        answer = self.ask("GET", "/v2/sandboxes?" + urllib.parse.urlencode(query)).must(200)
        return [box["sandboxID"] for box in answer.json]

    def envd(self, made):
        return Envd(self.api, made["sandboxID"], made["envdAccessToken"])


def moment(text):
    return datetime.datetime.strptime(text, TIME).timestamp()


def lasts(info):
    return moment(info["endAt"]) - moment(info["startedAt"])


def error(answer, status, word):
    """An error of theirs: the status again in the body, and a message that names what is wrong."""
    assert answer.status == status, answer
    assert answer.json["code"] == status and word in answer.json["message"], answer
    return answer.json["message"]


def is_up(control, made):
    return control.envd(made).request("GET", "/health").must(204, 502).status == 204


@pytest.fixture
def control(api):
    return Control(api)


@pytest.fixture
def box(control):
    made = control.create(timeout=300)
    yield made
    control.kill(made["sandboxID"])


@pytest.fixture
def made(control):
    """Makes sandboxes that are gone when the test is over."""
    boxes = []

    def make(**more):
        boxes.append(control.create(**more))
        time.sleep(0.002)  # no two are of one moment, so that their order is known
        return boxes[-1]

    yield make
    for box in boxes:
        control.kill(box["sandboxID"])


# --- making ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/sandboxes", "/v2/sandboxes"])
def test_both_generations_make_a_sandbox(control, path):
    value = {"templateID": "base", "allow_internet_access": True, "autoPause": False, "autoResume": {"enabled": False},
             "envVars": {}, "metadata": {}, "secure": True, "timeout": 60, "somethingNew": [1, {"a": None}]}
    made = control.ask("POST", path, value, chunked=True).must(201).json
    assert made["templateID"] == "base" and made["clientID"] and made["envdVersion"] == "0.6.13"
    assert made["sandboxID"].isalnum() and made["envdAccessToken"] and made["trafficAccessToken"]
    assert is_up(control, made)
    assert control.kill(made["sandboxID"])


def test_what_was_asked_for_is_what_info_shows(control, made):
    network = {"allowOut": ["10.0.0.0/8"], "denyOut": ["0.0.0.0/0"], "allowPublicTraffic": False,
               "maskRequestHost": "localhost:${PORT}"}
    began = time.time()
    box = made(timeout=120, metadata={"a": "b"}, network=network, allow_internet_access=False,
               autoPause=True, autoResume={"enabled": True})
    info = control.info(box["sandboxID"])
    assert info["state"] == "running" and info["metadata"] == {"a": "b"} and info["templateID"] == "base"
    assert info["lifecycle"] == {"onTimeout": "pause", "autoResume": True} and info["allowInternetAccess"] is False
    assert info["network"] == network
    assert info["cpuCount"] >= 1 and info["memoryMB"] >= 1 and info["diskSizeMB"] >= 1 and info["volumeMounts"] == []
    assert info["envdAccessToken"] == box["envdAccessToken"]
    assert 119 < lasts(info) < 220  # its time begins when it is there
    assert abs(moment(info["startedAt"]) - began) < 60


def test_a_time_that_is_not_said_is_each_generations_own(control, made):
    old = control.ask("POST", "/sandboxes", {"templateID": "base"}).must(201).json
    info = control.info(old["sandboxID"])
    assert 14 < lasts(info) < 115
    control.kill(old["sandboxID"])
    info = control.info(made()["sandboxID"])
    assert 299 < lasts(info) < 400


def test_an_unknown_template_is_named(control):
    for name in ("no-such-template", "team/no-such-template:v1"):
        error(control.ask("POST", "/v2/sandboxes", {"templateID": name}), 404, name)


@pytest.mark.parametrize("value, field", [
    ({}, "templateID"),
    ({"templateID": 7}, "templateID"),
    ({"templateID": "base", "timeout": 10 ** 9}, "timeout"),
    ({"templateID": "base", "timeout": -1}, "timeout"),
    ({"templateID": "base", "timeout": 31622400}, "timeout"),
    ({"templateID": "base", "metadata": {"a": 1}}, "metadata"),
    ({"templateID": "base", "envVars": {"A=B": "c"}}, "env"),
    ({"templateID": "base", "envVars": [1]}, "envVars"),
    ({"templateID": "base", "metadata": {str(i): "x" for i in range(65)}}, "metadata"),
    ({"templateID": "base", "network": {"allowOut": "all"}}, "network.allowOut"),
    ({"templateID": "base", "network": {"rules": []}}, "network.rules"),
    ({"templateID": "base", "network": {"rules": {"a.test": [{"transform": {"headers": {"x": "y"}}}]}}}, "network.rules"),
    ({"templateID": "base", "network": {"egressProxy": {"address": "p.test:1", "password": "x"}}}, "network.egressProxy"),
    ({"templateID": "base", "network": {"allowOut": ["x" * 200] * 200}}, "network"),
    ({"templateID": "base", "autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}}, "autoResume"),
    ({"templateID": "base", "iam": {"tokens": {"a": {"audience": "b", "tokenType": "c"}}}}, "iam"),
    ({"templateID": "base", "volumeMounts": [{"name": "no-such-volume", "path": "/data"}]}, "no-such-volume"),
])
def test_what_cannot_be_had_is_named(control, value, field):
    error(control.ask("POST", "/v2/sandboxes", value), 400, field)


def test_the_environment_of_the_sandbox_is_there(control, made):
    box = control.envd(made(envVars={"WHO": "me"}))
    with box.stream("process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", 'test "$WHO" = me']}}) as all_:
        ended = [message["event"]["end"] for message in all_ if "end" in message["event"]]
    assert ended[0].get("exitCode", 0) == 0


def test_a_key_is_needed_and_a_bad_one_is_not_enough(control, api):
    for headers in ({}, {"X-API-KEY": "e2b_" + "0" * 40}):
        connection = api.connect()
        connection.request("GET", "/v2/sandboxes", headers=headers)
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        connection.close()
        assert answer.status == 401 and answer.json["code"] == 401 and answer.json["message"]


def test_an_sdk_of_an_unknown_generation_is_told_so(control):
    for agent in ("e2b-js-sdk/3.0.1", "e2b-python-sdk/0.17.2"):
        message = error(control.ask("POST", "/v2/sandboxes", {"templateID": "base"}, {"User-Agent": agent}), 400, "SDK")
        assert agent.split("/")[1] in message
    assert control.ask("GET", "/v2/sandboxes", headers={"User-Agent": "e2b-js-sdk/2.99.0 e2b-cli/9.1"}).status == 200


def test_a_quota_is_429_with_seconds_to_wait():
    with Daemon("--quota-sandboxes", "1") as own:
        control = Control(own.api)
        first = control.create()
        answer = control.ask("POST", "/v2/sandboxes", {"templateID": "base"})
        error(answer, 429, "sandboxes")
        assert int(answer.headers["Retry-After"]) >= 1
        control.kill(first["sandboxID"])


# --- looking ---------------------------------------------------------------------------------------


def test_lists_are_in_pages_by_time_of_start(control, made):
    tag = {"metadata": {"test": "pages"}}
    boxes = [made(**tag)["sandboxID"] for _ in range(3)]
    for order, want in (("desc", boxes[::-1]), ("asc", boxes)):
        found, token = [], None
        while True:
            query = {"metadata": "test=pages", "limit": 1, "order": order, **({"nextToken": token} if token else {})}
            answer = control.ask("GET", "/v2/sandboxes?" + urllib.parse.urlencode(query)).must(200)
            assert len(answer.json) == 1
            found.append(answer.json[0]["sandboxID"])
            token = answer.headers["X-Next-Token"]
            if not token:
                break
        assert found == want
    error(control.ask("GET", "/v2/sandboxes?nextToken=nonsense"), 400, "nextToken")
    error(control.ask("GET", "/v2/sandboxes?limit=101"), 400, "limit")
    error(control.ask("GET", "/v2/sandboxes?order=up"), 400, "")


def test_metadata_is_encoded_twice(control, made):
    names = {"a b": "c&d=e", "ü": "%25+"}
    one = made(metadata=names)["sandboxID"]
    made(metadata={"a b": "c"})
    pairs = {urllib.parse.quote(k, safe=""): urllib.parse.quote(v, safe="") for k, v in names.items()}
    assert control.ids(metadata=urllib.parse.urlencode(pairs)) == [one]
    assert [box["sandboxID"] for box in control.ask(
        "GET", "/sandboxes?" + urllib.parse.urlencode({"metadata": urllib.parse.urlencode(pairs)})).json] == [one]
    error(control.ask("GET", "/v2/sandboxes?metadata=%25zz"), 400, "metadata")
    error(control.ask("GET", "/v2/sandboxes?metadata=name"), 400, "metadata")
    many = "&".join(f"k{i}=v" for i in range(65))
    error(control.ask("GET", "/v2/sandboxes?" + urllib.parse.urlencode({"metadata": many})), 400, "metadata")


def test_lists_know_states_templates_and_times(control, made):
    tag = {"metadata": {"test": "states"}}
    running, paused = made(**tag)["sandboxID"], made(**tag)["sandboxID"]
    control.ask("POST", f"/sandboxes/{paused}/pause", {}).must(204)
    look = {"metadata": "test=states"}
    assert control.ids(state="running", **look) == [running]
    assert control.ids(state="paused", **look) == [paused]
    assert control.ids(state="running,paused", **look) == control.ids(**look) == [paused, running]
    error(control.ask("GET", "/v2/sandboxes?state=dead"), 400, "state")
    assert control.ids(template="base", **look) == [paused, running]
    assert control.ids(template="code-interpreter-v1", **look) == []
    began = control.info(paused)["startedAt"]
    assert control.ids(startedAfter=began, **look) == [paused]
    error(control.ask("GET", "/v2/sandboxes?startedAfter=yesterday"), 400, "startedAfter")
    assert [box["sandboxID"] for box in control.ask("GET", "/sandboxes?metadata=test%3Dstates").json] == [running]


def test_one_that_was_killed_is_not_found(control, made):
    ident = made()["sandboxID"]
    assert control.kill(ident) and not control.kill(ident)
    assert ident not in control.ids()
    for method, path, value in (("GET", "", None), ("POST", "/pause", {}), ("POST", "/timeout", {"timeout": 5}),
                                ("POST", "/connect", {"timeout": 5}), ("POST", "/resume", {}), ("GET", "/metrics", None),
                                ("POST", "/fork", {}), ("POST", "/snapshots", {}), ("PUT", "/network", {}),
                                ("POST", "/refreshes", {}), ("GET", "/logs", None)):
        error(control.ask(method, f"/sandboxes/{ident}{path}", value), 404, ident)


def test_another_owners_sandbox_is_not_found(control, box, api):
    key = api.post("/keys", {"name": "other", "role": "user", "owner": "e2b-other"}).must(201).json
    other = Control(api, key["key"])
    error(other.ask("GET", f"/sandboxes/{box['sandboxID']}"), 404, "not found")
    error(other.ask("DELETE", f"/sandboxes/{box['sandboxID']}"), 404, "not found")
    assert other.ids() == []
    api.delete(f"/keys/{key['id']}").must(204)


# --- time ------------------------------------------------------------------------------------------


def left(control, ident):
    return moment(control.info(ident)["endAt"]) - time.time()


def test_a_timeout_may_shorten_and_connect_never_does(control, made):
    ident = made(timeout=600)["sandboxID"]
    for path in ("/sandboxes", "/v2/sandboxes"):
        control.ask("POST", f"{path}/{ident}/connect", {"timeout": 60}).must(200)
        assert left(control, ident) > 500
    control.ask("POST", f"/sandboxes/{ident}/connect", {"timeout": 1200}).must(200)
    assert left(control, ident) > 1100
    control.ask("POST", f"/sandboxes/{ident}/timeout", {"timeout": 100}).must(204)
    assert left(control, ident) < 101
    control.ask("POST", f"/sandboxes/{ident}/refreshes", {"duration": 50}).must(204)
    assert 51 < left(control, ident) < 101
    control.ask("POST", f"/sandboxes/{ident}/refreshes", {"duration": 300}).must(204)
    assert left(control, ident) > 250
    error(control.ask("POST", f"/sandboxes/{ident}/timeout", {}), 400, "timeout")
    error(control.ask("POST", f"/sandboxes/{ident}/connect", {}), 400, "timeout")
    error(control.ask("POST", f"/sandboxes/{ident}/refreshes", {"duration": 3601}), 400, "duration")


def test_its_time_ends_it(control, made):
    box = made(timeout=300)
    control.ask("POST", f"/sandboxes/{box['sandboxID']}/timeout", {"timeout": 0}).must(204)
    until(lambda: control.ask("GET", f"/sandboxes/{box['sandboxID']}").status == 404, what="the end")
    assert not is_up(control, box)


@pytest.mark.parametrize("memory", [True, False])
def test_its_time_may_pause_it_instead(control, made, memory):
    box = made(timeout=300, autoPause=True, autoPauseMemory=memory)
    ident = box["sandboxID"]
    control.ask("POST", f"/sandboxes/{ident}/timeout", {"timeout": 0}).must(204)
    until(lambda: control.info(ident)["state"] == "paused", what="the pause")
    assert control.info(ident)["lifecycle"]["onTimeout"] == "pause"
    assert not is_up(control, box)
    control.ask("POST", f"/v2/sandboxes/{ident}/connect", {}).must(201)
    assert is_up(control, box) and left(control, ident) > 200


STILL_RUNS = 'test "$(cat /proc/$(cat pid)/comm)" = sleep'  # the number alone may be another's by now


# --- standing still --------------------------------------------------------------------------------


def run(envd, command):
    with envd.stream("process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", command]}}) as all_:
        return next(m["event"]["end"].get("exitCode", 0) for m in all_ if "end" in m["event"])


@pytest.mark.parametrize("memory", [True, False])
def test_a_pause_keeps_files_and_time(control, made, memory):
    box = made(timeout=500)
    ident = box["sandboxID"]
    assert run(control.envd(box), "echo kept > kept; sleep 1000 >/dev/null 2>&1 & echo $! > pid") == 0
    control.ask("POST", f"/sandboxes/{ident}/pause", {"memory": memory}).must(204)
    info = control.info(ident)
    assert info["state"] == "paused" and moment(info["endAt"]) - time.time() > 400
    assert not is_up(control, box)
    error(control.ask("POST", f"/sandboxes/{ident}/pause", {}), 409, "already paused")
    again = control.ask("POST", f"/sandboxes/{ident}/connect", {"timeout": 700}).must(201).json
    assert again["sandboxID"] == ident and again["envdAccessToken"] == box["envdAccessToken"]
    assert control.info(ident)["state"] == "running" and left(control, ident) > 600
    assert run(control.envd(box), "grep -q kept kept") == 0
    assert (run(control.envd(box), STILL_RUNS) == 0) == memory
    error(control.ask("POST", f"/sandboxes/{ident}/resume", {}), 409, "already running")


def test_what_was_paused_with_its_memory_may_be_had_without(control, made):
    box = made()
    assert run(control.envd(box), "echo kept > kept; sleep 1000 >/dev/null 2>&1 & echo $! > pid") == 0
    control.ask("POST", f"/sandboxes/{box['sandboxID']}/pause", {}).must(204)
    control.ask("POST", f"/v2/sandboxes/{box['sandboxID']}/connect", {"memory": False}).must(201)
    assert run(control.envd(box), "grep -q kept kept") == 0
    assert run(control.envd(box), STILL_RUNS) != 0


def test_a_resume_says_what_its_time_does(control, made):
    ident = made()["sandboxID"]
    control.ask("POST", f"/sandboxes/{ident}/pause").must(204)
    control.ask("POST", f"/sandboxes/{ident}/resume", {"timeout": 200, "autoPause": True}).must(201)
    info = control.info(ident)
    assert info["state"] == "running" and info["lifecycle"]["onTimeout"] == "pause"
    assert 150 < left(control, ident) < 201


def test_traffic_wakes_one_that_may_be_woken(control, made):
    box = made(autoPause=True, autoResume={"enabled": True})
    envd = control.envd(box)
    control.ask("POST", f"/sandboxes/{box['sandboxID']}/pause", {}).must(204)
    assert envd.request("GET", "/health").status == 502  # a look wakes nobody
    stranger = Envd(envd.api, envd.id, "x" * len(envd.token))
    stranger.unary("process.Process/List", {}).must(401)
    assert control.info(box["sandboxID"])["state"] == "paused"
    with concurrent.futures.ThreadPoolExecutor(4) as several:
        assert {answer.status for answer in several.map(lambda _: envd.unary("process.Process/List", {}), range(4))} == {200}
    assert control.info(box["sandboxID"])["state"] == "running"


def test_traffic_does_not_wake_others(control, box):
    control.ask("POST", f"/sandboxes/{box['sandboxID']}/pause", {}).must(204)
    answer = control.envd(box).unary("process.Process/List", {})
    assert answer.status == 502 and answer.json["sandboxId"] == box["sandboxID"]
    assert control.info(box["sandboxID"])["state"] == "paused"


def test_all_of_it_survives_a_crash():
    with Daemon() as own:
        control = Control(own.api)
        network = {"allowOut": ["1.1.1.1"], "allowPublicTraffic": False}
        box = control.create(timeout=500, metadata={"a": "b"}, network=network, autoPause=True,
                             autoResume={"enabled": True})
        before = control.info(box["sandboxID"])
        control.ask("POST", f"/sandboxes/{box['sandboxID']}/pause", {}).must(204)
        own.kill("daemon")
        own.wait_ended()
        own.start()
        control = Control(own.api)
        after = control.info(box["sandboxID"])
        assert after["state"] == "paused"
        for key in ("metadata", "network", "lifecycle", "templateID", "envdAccessToken", "startedAt"):
            assert after[key] == before[key]
        control.envd(box).unary("process.Process/List", {}).must(200)
        assert control.info(box["sandboxID"])["state"] == "running"


# --- the rest --------------------------------------------------------------------------------------


def test_a_network_is_said_anew(control, made):
    box = made(network={"allowOut": ["1.1.1.1"], "denyOut": ["0.0.0.0/0"], "maskRequestHost": "host.test"},
               allow_internet_access=True)
    ident = box["sandboxID"]
    control.ask("PUT", f"/sandboxes/{ident}/network", {"allowOut": ["8.8.8.8"]}).must(204)
    info = control.info(ident)
    assert info["network"] == {"allowOut": ["8.8.8.8"], "maskRequestHost": "host.test"}
    assert info["allowInternetAccess"] is False  # the operator lets nobody out
    control.ask("PUT", f"/sandboxes/{ident}/network", {"allow_internet_access": False}).must(204)
    info = control.info(ident)
    assert info["network"] == {"maskRequestHost": "host.test"} and info["allowInternetAccess"] is False
    error(control.ask("PUT", f"/sandboxes/{ident}/network", {"denyOut": 5}), 400, "network.denyOut")
    error(control.ask("PUT", f"/sandboxes/{ident}/network", []), 400, "object")


def test_metrics_are_a_series_and_none_before_its_start(control, box):
    ident = box["sandboxID"]
    series = control.ask("GET", f"/sandboxes/{ident}/metrics").must(200).json
    assert len(series) >= 1 and series[-1]["memTotal"] >= series[-1]["memUsed"] >= 0
    assert set(series[-1]) == {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal", "memCache",
                               "diskUsed", "diskTotal"}
    stamps = [sample["timestampUnix"] for sample in control.ask("GET", f"/sandboxes/{ident}/metrics").json]
    assert len(stamps) > len(series) and stamps == sorted(stamps)
    began = int(moment(control.info(ident)["startedAt"]))
    assert control.ask("GET", f"/sandboxes/{ident}/metrics?start={began - 100}&end={began - 50}").must(200).json == []
    error(control.ask("GET", f"/sandboxes/{ident}/metrics?start=5&end=4"), 400, "start")
    many = control.ask("GET", f"/sandboxes/metrics?sandbox_ids={ident},nobody").must(200).json
    assert list(many["sandboxes"]) == [ident] and many["sandboxes"][ident]["timestampUnix"] >= stamps[-1]
    error(control.ask("GET", "/sandboxes/metrics"), 400, "sandbox_ids")
    error(control.ask("GET", "/sandboxes/metrics?sandbox_ids=" + ",".join(["a"] * 101)), 400, "sandbox_ids")


def test_logs_tell_what_happened_to_it(control, box):
    ident = box["sandboxID"]
    control.ask("POST", f"/sandboxes/{ident}/pause", {}).must(204)

    def lines(query=""):
        return [entry["message"] for entry in control.ask("GET", f"/v2/sandboxes/{ident}/logs{query}").must(200).json["logs"]]

    until(lambda: any("sandbox.paused" in line for line in lines()), what="the log")
    forward = lines()
    assert lines("?direction=backward") == forward[::-1]
    assert lines("?limit=1") == forward[:1] and lines("?limit=0") == []
    assert lines("?search=sandbox.paused") == [line for line in forward if "sandbox.paused" in line]
    assert lines("?level=error") == []
    assert lines(f"?cursor={int((time.time() + 3600) * 1000)}") == []
    entry = control.ask("GET", f"/v2/sandboxes/{ident}/logs").json["logs"][0]
    assert set(entry) == {"timestamp", "level", "message", "fields"} and moment(entry["timestamp"]) > 0
    old = control.ask("GET", f"/sandboxes/{ident}/logs").must(200).json
    said = [json.loads(line["line"])["message"] for line in old["logs"]]  # a line is JSON in itself
    assert said == [entry["message"] for entry in old["logEntries"]] == forward


def test_forks_have_its_files(control, made):
    box = made(timeout=500, metadata={"of": "fork"}, network={"allowPublicTraffic": False})
    assert run(control.envd(box), "echo before > state.txt") == 0
    forks = [result["sandbox"] for result in
             control.ask("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 2, "timeout": 100}).must(201).json]
    assert len({fork["sandboxID"] for fork in forks} | {box["sandboxID"]}) == 3
    for fork in forks:
        info = control.info(fork["sandboxID"])
        assert info["metadata"] == {"of": "fork"} and info["templateID"] == "base"
        assert info["network"] == {"allowPublicTraffic": False} and left(control, fork["sandboxID"]) < 101
        assert run(control.envd(fork), "grep -q before state.txt && echo after > state.txt") == 0
        control.kill(fork["sandboxID"])
    assert run(control.envd(box), "grep -q before state.txt") == 0
    error(control.ask("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 0}), 400, "count")
    error(control.ask("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 101}), 400, "count")


def test_snapshots_are_templates(control, made):
    box = made()
    assert run(control.envd(box), "echo kept > kept") == 0
    plain = control.ask("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {}).must(201).json
    time.sleep(0.002)  # as above
    named = control.ask("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": "Snap-One"}).must(201).json
    assert plain["names"] == [] and named["names"] == ["snap-one"]
    listed = control.ask("GET", "/snapshots").must(200).json
    assert [s["snapshotID"] for s in listed][:2] == [named["snapshotID"], plain["snapshotID"]]
    of = control.ask("GET", f"/snapshots?sandboxID={box['sandboxID']}&limit=1").must(200)
    assert len(of.json) == 1 and of.headers["X-Next-Token"]
    rest = control.ask("GET", f"/snapshots?sandboxID={box['sandboxID']}&limit=1&nextToken=" + of.headers["X-Next-Token"])
    assert len(rest.json) == 1 and rest.headers["X-Next-Token"] is None and rest.json != of.json
    for name in ("snap-one", "me/snap-one:default", named["snapshotID"]):
        assert control.ask("GET", "/snapshots?" + urllib.parse.urlencode({"name": name})).must(200).json == [named]
    assert control.ask("GET", "/snapshots?name=snap-one-not").must(200).json == []
    for template in (plain["snapshotID"], "snap-one"):
        again = made(templateID=template)
        assert run(control.envd(again), "grep -q kept kept") == 0
        control.kill(again["sandboxID"])
    assert run(control.envd(box), "echo newer > kept") == 0
    assert control.ask("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": "snap-one"}).must(201).json == named
    again = made(templateID="snap-one")
    assert run(control.envd(again), "grep -q newer kept") == 0
    for snapshot in (plain, named):
        control.ask("DELETE", f"/templates/{snapshot['snapshotID']}").must(204)
        error(control.ask("DELETE", f"/templates/{snapshot['snapshotID']}"), 404, "")
    error(control.ask("POST", "/v2/sandboxes", {"templateID": plain["snapshotID"]}), 404, plain["snapshotID"])


def test_volumes_are_those_of_holt(control, made):
    answer = control.ask("POST", "/volumes", {"name": "e2b-vol"})
    if answer.status == 409:
        pytest.skip(f"this machine cannot: {answer.json['message']}")
    volume = answer.must(201).json
    assert volume["name"] == "e2b-vol" and "token" in volume
    assert {"volumeID": volume["volumeID"], "name": "e2b-vol"} in control.ask("GET", "/volumes").must(200).json
    assert control.ask("GET", f"/volumes/{volume['volumeID']}").must(200).json["name"] == "e2b-vol"
    box = made(volumeMounts=[{"name": "e2b-vol", "path": "/mnt/data"}])
    assert control.info(box["sandboxID"])["volumeMounts"] == [{"name": "e2b-vol", "path": "/mnt/data"}]
    error(control.ask("DELETE", f"/volumes/{volume['volumeID']}"), 409, "")
    control.kill(box["sandboxID"])
    until(lambda: control.ask("DELETE", f"/volumes/{volume['volumeID']}").must(204, 409).status == 204,
          what="its release")  # the machine may hold its device a moment longer
    error(control.ask("GET", f"/volumes/{volume['volumeID']}"), 404, volume["volumeID"])
    error(control.ask("POST", "/volumes", {"name": "No Name"}), 400, "name")


def test_what_is_not_here_says_so(control):
    for method, path in (("GET", "/api-keys"), ("POST", "/api-keys")):
        error(control.ask(method, path, {} if method == "POST" else None), 501, path.split("/")[1])
    assert control.ask("GET", "/teams").must(200).json[0]["isDefault"] is True


def test_the_control_plane_is_healthy_for_anybody(api):
    connection = api.connect()
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
