"""What one sandbox, one owner and all of them together may have, when nobody has set anything."""
import json
import os
import pathlib
import subprocess

import pytest

from support import machine
from support.daemon import Daemon, HOLT

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
CORES = len(os.sched_getaffinity(0))
TOO_MUCH = [("memory", "900Gi"), ("cpu", 512), ("pids", 32768)]


def too_large(answer, name):
    """Refused by the maximum: the message has the limit, the value and the setting."""
    error = answer.must(400).json["error"]
    assert f"{name} of " in error["message"] and f"limits_{name}_max" in error["message"], error
    return error


@pytest.mark.parametrize("name, value", TOO_MUCH)
def test_nobody_gets_more_than_the_machine_has(api, key_for, name, value):
    for who in (api, key_for("user", owner="fresh")):
        error = too_large(who.post("/sandboxes", {"resources": {name: value}}), name)
        assert error["details"] == {"field": "resources"}
        too_large(who.post("/api/sessions", {"workspace": {"resources": {name: value}}}), name)
        too_large(who.post("/templates", {"name": "large", "from": "bash", "resources": {name: value}}), name)


def test_a_sandbox_that_names_no_size_fits_everywhere():
    """Defaults above the maximum are lowered to it."""
    with Daemon("--limits-memory-max", "64M", "--limits-cpu-max", "0.25", "--limits-pids-max", "32") as daemon:
        box = daemon.api.sandbox()
        shown = daemon.api.get(box.path).must(200).json["resources"]
        assert (shown["memory"], shown["cpu"], shown["pids"]) == (64 << 20, 0.25, 32)
        assert box.run("echo in")["stdout"] == "in\n"
        too_large(daemon.api.post("/sandboxes", {"resources": {"memory": "65M"}}), "memory")


def test_what_a_template_asks_for_is_lowered_when_the_maximum_is():
    with Daemon() as daemon:
        daemon.api.post("/templates", {"name": "t", "from": "bash", "resources": {"memory": "512M"}}).must(201)
        stopped = daemon.api.sandbox(resources={"memory": "512M"})
        can_stop = daemon.api.post(f"{stopped.path}/stop").status == 200
        daemon.stop()
        daemon.flags += ["--limits-memory-max", "128M"]
        daemon.start()
        box = daemon.api.sandbox("t")
        assert daemon.api.get(box.path).must(200).json["resources"]["memory"] == 128 << 20
        if can_stop:
            shown = daemon.api.post(f"{stopped.path}/start").must(200).json
            assert shown["resources"]["memory"] == 128 << 20


def test_users_have_quotas_that_nobody_set_and_admins_have_the_machine(api, key_for):
    ann = key_for("user", owner="somebody").get("/user").must(200).json["quota"]
    assert all(ann.values()), f"no quota is open: {ann}"
    assert ann["memory"] <= max(MACHINE // 2, 1 << 30) and ann["cpu"] == 16 * CORES
    admin = api.get("/user").must(200).json["quota"]
    assert not any(admin.values()), "an admin is held by the maxima and by what the machine has"


def test_an_operator_may_set_none():
    with Daemon("--quota-memory", "none", "--quota-sandboxes", "3") as daemon:
        key = daemon.api.post("/keys", {"name": "k", "owner": "ann", "role": "user"}).must(201).json["key"]
        quota = daemon.api.using(key).get("/user").must(200).json["quota"]
        assert quota["memory"] is None and quota["sandboxes"] == 3


@pytest.mark.parametrize("setting, value, resources", [
    ("commit_memory", "300M", {"memory": "128M"}), ("commit_cpu", "0.8", {"cpu": 0.5}), ("commit_pids", "70", {"pids": 40}),
])
def test_what_is_promised_to_all_has_an_end(setting, value, resources):
    with Daemon(f"--{setting.replace('_', '-')}", value, "--pool-min", "0", "--pool-max", "0") as daemon:
        made = []
        for _ in range(3):
            answer = daemon.api.post("/sandboxes", {"resources": resources})
            if answer.status != 201:
                break
            made.append(answer.json["id"])
        error = answer.must(503).json["error"]
        assert 1 <= len(made) <= 2 and error["code"] == "service_unavailable" and setting in error["message"]
        assert int(answer.headers["Retry-After"]) > 0
        daemon.api.delete(f"/sandboxes/{made[0]}").must(204)
        daemon.api.post("/sandboxes", {"resources": resources}).must(201)
        assert 'holt_sandbox_create_failures_total{reason="capacity"} 1' in daemon.api.get("/metrics").must(200).body.decode()


def test_what_is_left_of_the_memory_decides():
    """The machine keeps all but nothing: then no sandbox fits beside it."""
    with Daemon("--memory-reserve", f"{MACHINE}") as daemon:
        answer = daemon.api.post("/sandboxes", {})
        assert "memory_reserve" in answer.must(503).json["error"]["message"]
        assert int(answer.headers["Retry-After"]) > 0


def test_a_pool_counts_as_if_all_of_it_waited():
    with Daemon("--commit-memory", "2G", "--pool-min", "0", "--pool-max", "0") as daemon:
        pool = {"name": "p", "runtime": "bash", "minSize": 0, "maxSize": 9}
        assert "commit_memory" in daemon.api.post("/warmpools", pool).must(503).json["error"]["message"]
        pool["maxSize"] = 7
        ident = daemon.api.post("/warmpools", pool).must(201).json["id"]
        daemon.api.patch(f"/warmpools/{ident}", {"maxSize": 9}).must(503)
        daemon.api.sandbox()
        assert "commit_memory" in daemon.api.post("/sandboxes", {}).must(503).json["error"]["message"]


# ---- places ----

def test_a_stopped_sandbox_keeps_its_owners_place(api, key_for):
    api.post("/users", {"name": "hoarder", "quota": {"sandboxes": 3}}).must(201)
    ann = key_for("user", owner="hoarder")
    made = []
    try:
        for _ in range(8):
            answer = ann.post("/sandboxes", {})
            if answer.status == 403:
                break
            made.append(answer.must(201).json["id"])
            stopped = ann.post(f"/sandboxes/{made[-1]}/stop")
            if stopped.status == 409:
                pytest.skip(stopped.json["error"]["message"])
            stopped.must(200)
        assert answer.must(403).json["error"]["details"] == {"quota": "sandboxes", "limit": 3, "used": 3}
        assert len(made) == 3
        use = ann.get("/user").must(200).json["use"]
        assert use["sandboxes"] == 3 and use["memory"] == 0 and use["pids"] == 0
        ann.post(f"/sandboxes/{made[0]}/start").must(200)
        assert ann.get("/user").must(200).json["use"]["sandboxes"] == 3
    finally:
        for ident in made:
            ann.delete(f"/sandboxes/{ident}").must(204)
        api.delete("/users/hoarder").must(204)


# ---- without a daemon ----

@pytest.mark.parametrize("option, value", [("--memory", "900G"), ("--cpu", "512"), ("--pids", "32768")])
def test_a_command_of_ones_own_is_held_to_the_machine_too(option, value):
    run = subprocess.run([HOLT, "exec", option, value, "--", "true"], capture_output=True, text=True, timeout=60)
    if option == "--pids" and int(open("/proc/sys/kernel/pid_max").read()) > 40000:
        pytest.skip("the machine can have that many processes")
    assert run.returncode != 0 and "is more than a sandbox may have here: at most" in run.stderr, run


def test_the_configuration_shows_what_was_derived():
    shown = json.loads(subprocess.run([HOLT, "config", "show", "--json"], capture_output=True, text=True, check=True).stdout)
    assert 0 < shown["limits_memory_max"]["value"] < MACHINE and shown["limits_cpu_max"]["value"] == CORES
    assert 0 < shown["memory_reserve"]["value"] < MACHINE
    for name in ("quota_sandboxes", "quota_cpu", "quota_memory", "quota_disk", "quota_executions", "quota_pids"):
        assert shown[name]["value"] > 0, name


def test_boxes_together_leave_the_machine_its_reserve(needs_root):
    """The group above all boxes has a bound of its own, less than the machine."""
    with Daemon() as daemon:
        daemon.api.sandbox()
        bounds = [int((path / name).read_text()) for path in map(pathlib.Path, machine.groups_named(daemon.instance()))
                  for name in ("memory.max", "memory.limit_in_bytes") if (path / name).exists()
                  and path.name == f"holtd.{daemon.instance()}"]
        if not bounds:
            pytest.skip("no memory controller")
        assert all(bound < MACHINE for bound in bounds)
