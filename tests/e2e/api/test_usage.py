"""Usage: what boxes and executions took, summed, whatever happened to the daemon on the way."""
import csv
import io
from datetime import datetime

import pytest
from support.daemon import Daemon, until

BURN = "python3 -c 'for i in range(3000000): pass' 2>/dev/null || i=0; while [ $((i=i+1)) -lt 20000 ]; do :; done"


def total(api, query=""):
    items = api.get(f"/usage?group=user{query}").must(200).json["items"]
    return items[0] if items else {"executions": 0, "cpuSeconds": 0, "wallSeconds": 0}


def seconds(begin, end):
    return (datetime.fromisoformat(end[:-1]) - datetime.fromisoformat(begin[:-1])).total_seconds()


def test_sums_are_what_executions_said_also_after_a_kill():
    with Daemon() as daemon:
        api = daemon.api
        box, said = api.sandbox(), []
        for _ in range(3):
            said.append(box.run(BURN))
        until(lambda: total(api)["executions"] == 3, 10, "three")
        running = box.begin("sleep 3; " + BURN)
        daemon.kill("keeper", "daemon", "launcher")
        daemon.wait_ended()
        daemon.start()
        said.append(running.wait())
        said.append(box.run(BURN))
        until(lambda: total(api)["executions"] == 5, 20, "all five")
        used = total(api)
        cpu = sum(one["cpuMs"] for one in said) / 1000
        metered = api.get("/usage").must(200).json["cpuFrom"] == "boxes"
        # A box has an init, and programs that no execution has waited for.
        assert cpu > 0 and used["cpuSeconds"] >= cpu - 0.02
        assert metered or used["cpuSeconds"] == pytest.approx(cpu, abs=0.02)
        now = api.get(f"/sandboxes/{box.id}/usage").must(200).json["cpuSeconds"]
        box.delete().must(204)
        daemon.stop()
        daemon.start()
        after = total(api)
        assert after["executions"] == 5 and after["cpuSeconds"] >= max(used["cpuSeconds"], now)
        # The box lived while the daemon did not: no time is missing.
        lived = api.get(f"/sandboxes/{box.id}").must(200).json
        least = seconds(said[0]["startedAt"], said[-1]["completedAt"])
        assert least - 0.01 <= after["wallSeconds"] <= seconds(lived["createdAt"], lived["endedAt"]) + 0.01
        assert after["memoryGiBHours"] > 0


def reach(api, path):
    connection = api.connect(30)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {api.key}"})
        answer = connection.getresponse()
        return answer.status, len(answer.read())
    finally:
        connection.close()


def test_what_goes_over_an_exposed_port_is_network_use(api, key_for):
    anna = key_for("user", owner="usage-net")
    box = anna.sandbox()
    anna.put(f"{box.path}/files/workspace/big", b"x" * 300000).must(200, 201)
    box.begin("cd /workspace; exec python3 -m http.server 3000")
    anna.post(f"{box.path}/ports", {"port": 3000}).must(201)
    path = f"/api/v1{box.path}/ports/3000/big"
    until(lambda: reach(anna, path)[0] == 200, 20, "the server inside")
    assert reach(anna, path) == (200, 300000)
    box.delete().must(204)
    used = until(lambda: total(anna)["networkBytes"], 10, "the bytes")
    assert 600000 < used < 700000


def test_usage_by_user_key_and_day_as_json_and_csv(api, key_for):
    anna = key_for("user", owner="usage-anna")
    box = anna.sandbox()
    box.run("true")
    box.delete().must(204)
    until(lambda: anna.get("/usage").must(200).json["items"], 10, "a row")
    by_day = anna.get("/usage").must(200).json["items"]
    assert len(by_day) == 1 and by_day[0]["executions"] == 1
    assert anna.get("/usage?group=key,day").must(200).json["items"][0]["keyId"]
    assert {row["user"] for row in anna.get("/usage?group=user").json["items"]} == {"usage-anna"}
    assert "usage-anna" in {row["user"] for row in api.get("/usage?group=user").json["items"]}
    assert [row["user"] for row in api.get("/usage?group=user&user=usage-anna").json["items"]] == ["usage-anna"]
    answer = anna.get("/usage?group=day,user&format=csv").must(200)
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    assert rows[0]["user"] == "usage-anna" and rows[0]["executions"] == "1"
    same = anna.get("/usage?group=day,user").must(200).json["items"][0]
    for column, field in (("cpu_seconds", "cpuSeconds"), ("wall_seconds", "wallSeconds"), ("disk_gib_hours", "diskGiBHours"),
                          ("memory_gib_hours", "memoryGiBHours"), ("network_bytes", "networkBytes")):
        assert float(rows[0][column]) == same[field], column
    assert anna.get("/usage?to=2001-01-01").json["items"] == []
    anna.get("/usage?group=moon").error(400, field="group")
