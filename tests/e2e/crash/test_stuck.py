"""Boxes cannot be built: in the place of holt-init lies a program that never says that a box is ready. Every request
has an end, and who looks after the machine can see it."""
import pathlib
import re
import shutil
import tempfile

import pytest

from support.daemon import BUILD, Daemon, until

HANG = BUILD / "tests" / "engine" / "hang_init"
PROGRAMS = ("holt", "holt-launch", "holt-warm.so")


@pytest.fixture
def stuck():
    if not HANG.exists():
        pytest.skip("hang_init was not built")
    programs = pathlib.Path(tempfile.mkdtemp(prefix="holt-stuck."))
    programs.chmod(0o755)  # the daemon is another account when root starts it
    for name in PROGRAMS:
        shutil.copy(BUILD / name, programs / name)
    shutil.copy(HANG, programs / "holt-init")
    with Daemon("--launcher-timeout", "2s", "--pool-min", "0", "--pool-max", "0", program=programs / "holt") as running:
        running.programs = programs
        yield running
    shutil.rmtree(programs)


def metric(api, name):
    found = re.search(rf"^{name} (\S+)$", api.get("/metrics").body.decode(), re.M)
    return float(found.group(1)) if found else 0


def test_a_build_that_hangs_is_given_up_told_and_tried_again(stuck):
    api = stuck.api
    assert api.get("/readyz").status == 200, "nothing has been built yet"
    refused = api.post("/sandboxes", {}, seconds=60)
    assert refused.status == 503, "the request has an end"
    assert "not ready after 2000 ms" in refused.json["error"]["message"]
    ready = api.get("/readyz")
    assert ready.status == 503
    assert ready.json["checks"]["launcher"] == "no box can be built at present"
    row = next(row for row in api.get("/pool").must(200).json["items"] if row["givenUp"])
    assert row["problem"]
    assert metric(api, "holt_box_builds_given_up_total") >= 1
    log = stuck.log()
    assert re.search(r"box \w+ of template \d+ is given up: .* step 'ready' .* system call ", log), log
    again = api.post("/sandboxes", {}, seconds=60)
    assert again.status == 503 and "no box can be built at present" in again.json["error"]["message"]

    # Another launcher finds the real one.
    shutil.copy(BUILD / "holt-init", stuck.programs / "holt-init.new")
    (stuck.programs / "holt-init.new").rename(stuck.programs / "holt-init")
    stuck.kill("launcher")
    until(lambda: api.get("/readyz").status == 200, what="readiness")
    box = api.sandbox()
    assert box.run("echo on")["stdout"] == "on\n"
    box.delete().must(204)
