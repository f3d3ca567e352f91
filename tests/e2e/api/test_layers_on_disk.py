"""Sandboxes that write to disk (layers_on: disk): the same life, and forks that share their files."""
import pathlib
import subprocess

import pytest

from support import machine
from support.daemon import HOLT, IS_ROOT, Daemon, until

DISK = ("--layers-on", "disk", "--layers-size", "1G")


def lack():
    """What this machine has not; the launcher's own tests say the same."""
    if "btrfs" not in pathlib.Path("/proc/filesystems").read_text():
        return "a kernel with btrfs"
    if not pathlib.Path("/dev/loop-control").exists():
        return "loop devices"
    if not any(pathlib.Path(where, "mkfs.btrfs").exists() for where in ("/usr/sbin", "/sbin")):
        return "btrfs-progs"
    return None


@pytest.fixture(scope="module")
def on_disk():
    if not IS_ROOT:
        pytest.skip("only root can mount a loop device")
    if lack():
        pytest.skip(f"layers on disk need {lack()}")
    with Daemon(*DISK) as running:
        yield running


def text(box, command):
    return box.run(command)["stdout"]


def test_a_fork_has_a_large_file_and_neither_sees_the_other_change_it(on_disk):
    api = on_disk.api
    box = api.sandbox(resources={"memory": "256Mi", "disk": "128Mi"})
    before = text(box, "head -c 50M /dev/urandom > /workspace/f; sha256sum < /workspace/f")
    kid = type(box)(api, api.post(f"{box.path}/fork").must(201).json["items"][0])
    assert text(kid, "sha256sum < /workspace/f") == before
    text(kid, "printf x | dd of=/workspace/f conv=notrunc bs=1 seek=1000 2>/dev/null")
    assert text(kid, "sha256sum < /workspace/f") != before
    assert text(box, "sha256sum < /workspace/f") == before
    for one in (kid, box):
        one.delete().must(204)


def test_what_it_has_on_disk_takes_no_memory_and_ends_where_it_was_said(on_disk):
    box = on_disk.api.sandbox(resources={"memory": "64Mi", "disk": "64Mi"})
    assert text(box, "head -c 60M /dev/zero > /workspace/f && echo fits") == "fits\n"
    assert text(box, "python3 -c 'print(len(bytearray(30 << 20)))'") == f"{30 << 20}\n"
    assert text(box, "head -c 60M /dev/zero > /workspace/g 2>/dev/null || echo full") == "full\n"
    # What is memory still is bounded by half of it: who fills it is told, not killed.
    assert text(box, "head -c 100M /dev/zero > /tmp/g 2>/dev/null || echo full; rm /tmp/g") == "full\n"
    assert text(box, "rm /workspace/*; head -c 20M /dev/zero > /workspace/h && echo again") == "again\n"
    box.delete().must(204)


def test_a_sandbox_of_the_pool_has_its_interpreter_waiting(on_disk):
    api = on_disk.api
    box = api.sandbox("python")
    assert box.code("python", "open('/workspace/a', 'w').write('b'); print(open('/workspace/a').read())")["stdout"] == "b\n"
    api.post(f"{box.path}/stop").must(200)
    api.post(f"{box.path}/start").must(200)
    assert text(box, "cat /workspace/a") == "b"
    box.delete().must(204)


def test_all_of_it_outlives_every_kill(on_disk):
    api = on_disk.api
    box, stopped = api.sandbox(), api.sandbox()
    text(box, "echo lives > /workspace/a")
    text(stopped, "echo safe > /workspace/a")
    snapshot = api.post(f"{box.path}/snapshots", {}).must(201).json["id"]
    api.post(f"{stopped.path}/stop").must(200)
    for killed in (("launcher",), ("daemon", "launcher", "keeper")):
        on_disk.kill(*killed)
        if "keeper" in killed:
            on_disk.wait_ended()
            on_disk.start()
        until(lambda: api.get("/readyz").status == 200, what="another launcher")
        assert text(box, "cat /workspace/a; echo more >> /workspace/b; echo $?") == "lives\n0\n"
    images = [image for image in machine.loop_images() if str(on_disk.state_dir) in image]
    assert len(images) == 1  # the one of the boxes that live, found again
    assert api.post(f"{stopped.path}/start").must(200).json["status"] == "running"
    assert text(stopped, "cat /workspace/a") == "safe\n"
    other = type(box)(api, api.post("/sandboxes", {"snapshot": snapshot}).must(201).json)
    assert text(other, "cat /workspace/a") == "lives\n"
    for one in (box, stopped, other):
        one.delete().must(204)
    api.delete(f"/snapshots/{snapshot}").must(204)


def test_where_it_cannot_be_the_daemon_says_why_and_does_not_start():
    daemon = Daemon("--layers-on", "disk", "--layers-size", "512T")
    daemon.start(wait=False)
    assert daemon.process.wait(60) != 0
    assert "layers on disk" in daemon.log()
    assert ("space" in daemon.log() or "File too large" in daemon.log() or lack()) if IS_ROOT else "root's rights" in daemon.log()
    daemon.discard()


def test_the_doctor_says_whether_it_can_be():
    said = subprocess.run([HOLT, "doctor"], capture_output=True, text=True, check=False).stdout
    row = next(line for line in said.splitlines() if "layers_on: disk" in line)
    assert ("is possible" in row) == (IS_ROOT and lack() in (None, "a kernel with btrfs"))
