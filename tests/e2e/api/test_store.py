"""A disk that is full or cannot be written to: said clearly, survived, and healed by itself."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support.chain import all_lines, first_bad
from support.daemon import Daemon, until


@contextlib.contextmanager
def mounted(*mount):
    """A file system of its own, which goes with everything on it."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="holt-disk."))
    try:
        subprocess.run(["mount", *mount, str(place)], check=True, capture_output=True)
        place.chmod(0o755)
        yield place
    finally:
        subprocess.run(["umount", str(place)], capture_output=True)
        place.rmdir()


def fill(place):
    """To the last byte."""
    with open(place / "filling", "wb", buffering=0) as file:
        for size in (1 << 16, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass


def insist_on_reads(api, box, done):
    """All that needs no store goes on."""
    assert box.get()["status"] == "running"
    assert box.id in [item["id"] for item in api.get("/sandboxes").must(200).json["items"]]
    assert box.read("/workspace/f").must(200).body == b"kept"
    assert api.get(f"{box.path}/executions/{done}").must(200).json["stdout"] == "before\n"
    assert box.run("cat f")["stdout"] == "kept"
    api.get("/user").must(200)
    api.get("/healthz").must(200)


def insist_on_refusal(api, box):
    """The store may have room of its own for a while; then it says that it has none."""
    big = {"metadata": {f"m{n}": "x" * 1000 for n in range(15)}}
    api.patch(box.path, big).must(200, 503)
    until(lambda: api.patch(box.path, big).status == 503, what="a refusal")
    refused = [api.patch(box.path, big), api.post("/sandboxes", {"template": "bash"})]
    assert "store" in refused[0].error(503)
    # A new box is written down by the launcher before the store hears of it.
    message = refused[1].error(503)
    assert any(part in message for part in ("No space left", "Read-only")), message
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    until(lambda: api.get("/readyz").status == 503, what="unreadiness")
    assert api.get("/readyz").json["checks"]["store"] != "ok"


def test_a_full_disk_is_told_survived_and_healed(needs_root):
    with mounted("-t", "tmpfs", "-o", "size=8M", "holt-test") as disk, Daemon(state_dir=disk / "state") as daemon:
        api = daemon.api
        box = api.sandbox()
        box.put("/workspace/f", b"kept").must(201)
        done = box.run("echo before")["executionId"]
        running = box.begin("sleep 2; echo after; exit 9")
        fill(disk)
        insist_on_refusal(api, box)
        insist_on_reads(api, box, done)
        box.put("/workspace/more", b"the box's disk is another").must(201)
        meanwhile = box.run("echo meanwhile")["executionId"]
        assert running.wait()["exitCode"] == 9
        before = len(api.get("/sandboxes?status=all&limit=500").json["items"])
        os.unlink(disk / "filling")
        until(lambda: api.get("/readyz").status == 200, 30, "healing")
        fresh = api.sandbox()
        assert fresh.run("echo healed")["stdout"] == "healed\n"
        fresh.delete().must(204)
        assert len(api.get("/sandboxes?status=all&limit=500").json["items"]) == before + 1
        # What ended while nothing could be written is written now, and outlives the daemon.
        assert api.get(f"{box.path}/executions/{meanwhile}").must(200).json["stdout"] == "meanwhile\n"
        daemon.stop()
        daemon.start()
        lines, head = all_lines(api)
        assert first_bad(lines) is None and head["isIntact"]
        assert meanwhile in [line["data"].get("subject") for line in lines], "what was done meanwhile has its line"
        assert [line for line in lines if line["data"].get("method") == "PATCH" and line["data"]["status"] == 503]
        assert box.get()["status"] == "running" and box.read("/workspace/f").body == b"kept"
        for ident, text in ((done, "before\n"), (meanwhile, "meanwhile\n"), (running.id, "after\n")):
            assert api.get(f"{box.path}/executions/{ident}").must(200).json["stdout"] == text


@contextlib.contextmanager
def failing_disk():
    """An ext4 that turns read-only when its first error is found, and a way to find one."""
    if not shutil.which("mkfs.ext4") or not os.path.exists("/dev/loop-control"):
        pytest.skip("no ext4 or no loop devices here")
    with tempfile.NamedTemporaryFile(prefix="holt-disk.") as image:
        image.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image.name], check=True)
        with mounted("-o", "loop,errors=remount-ro", image.name) as disk:
            source = subprocess.run(["findmnt", "-no", "SOURCE", str(disk)], capture_output=True, text=True).stdout
            trigger = pathlib.Path("/sys/fs/ext4") / os.path.basename(source.strip()) / "trigger_fs_error"
            if not trigger.exists():
                pytest.skip("this kernel's ext4 finds no errors on demand")
            yield disk, lambda: trigger.write_text("1")


def test_a_disk_that_turns_read_only_is_told_and_survived(needs_root):
    """Such a disk does not heal while it is mounted; the box and its files outlive it all the same."""
    with failing_disk() as (disk, fail):
        daemon = Daemon(state_dir=disk / "state").start()
        try:
            api = daemon.api
            box = api.sandbox()
            box.put("/workspace/f", b"kept").must(201)
            done = box.run("echo before")["executionId"]
            fail()
            insist_on_refusal(api, box)
            insist_on_reads(api, box, done)
            assert box.run("echo meanwhile")["stdout"] == "meanwhile\n"
            daemon.stop()
            daemon.start(wait=False)
            assert daemon.process.wait(30) != 0
            assert "read-only" in daemon.log().lower(), daemon.log()
            assert daemon.complaints() == []
        finally:
            daemon.discard()


def test_what_waits_for_room_in_the_audit_log_outlives_a_kill(needs_root):
    """While the store is full as much may be done as can be kept elsewhere; then nothing that changes something."""
    with mounted("-t", "tmpfs", "-o", "size=8M", "holt-test") as disk, Daemon(state_dir=disk / "state") as daemon:
        api = daemon.api
        box = api.sandbox()
        fill(disk)
        insist_on_refusal(api, box)
        done = []
        while len(done) < 600 and (not done or done[-1].status != 503):
            done.append(api.delete("/snapshots/none"))
        assert "audit" in done[-1].error(503) and len(done) <= 513
        assert box.get()["status"] == "running", "what changes nothing goes on"
        daemon.kill("keeper", "daemon")
        daemon.wait_ended()
        os.unlink(disk / "filling")
        daemon.start()
        gone = lambda: [line for line in all_lines(api)[0] if line["data"].get("method") == "DELETE" and line["data"]["status"] == 404]
        until(lambda: len(gone()) == len(done) - 1, 20, "all lines")
        lines, head = all_lines(api)
        assert first_bad(lines) is None and head["isIntact"]


def test_a_first_start_on_a_full_disk_says_why_and_the_next_one_is_the_first(needs_root):
    with mounted("-t", "tmpfs", "-o", "size=8M", "holt-test") as disk:
        daemon = Daemon(state_dir=disk / "state")
        try:
            fill(disk)
            daemon.start(wait=False)
            assert daemon.process.wait(30) != 0
            assert "full" in daemon.log() or "No space" in daemon.log(), daemon.log()
            assert not daemon.complaints()
            os.unlink(disk / "filling")
            daemon.start()
            daemon.api.sandbox().delete().must(204)
        finally:
            daemon.discard()
