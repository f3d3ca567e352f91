"""Making, finding, pausing, copying and ending sandboxes."""
import e2b
from e2b import Sandbox
from world import failure, feature, takes, until


@feature("create")
def create(w):
    box = w.create(envs={"HELLO": "there"})
    assert box.commands.run("echo $HELLO").stdout == "there\n"
    assert box.is_running()


@feature("connect")
def connect(w):
    assert Sandbox.connect(w.box.sandbox_id).commands.run("echo again").stdout == "again\n"


@feature("info")
def info(w):
    box = w.create(metadata={"who": w.mark})
    found = box.get_info()
    assert (found.sandbox_id, found.metadata["who"]) == (box.sandbox_id, w.mark)
    assert found.end_at > found.started_at


@feature("list, filter, pages")
def list_(w):
    metadata = {"group": f"a b&c={w.mark}"}
    made = sorted(w.create(metadata=metadata).sandbox_id for _ in range(2))
    paginator = Sandbox.list(query=e2b.SandboxQuery(metadata=metadata), limit=1)
    found = []
    while paginator.has_next:
        found += [item.sandbox_id for item in paginator.next_items()]
    assert sorted(found) == made, found


@feature("timeout")
def timeout(w):
    box = w.create(timeout=60)
    before = box.get_info().end_at
    box.set_timeout(600)
    assert box.get_info().end_at > before
    box.set_timeout(1)
    until(lambda: not box.is_running(), "the end of its time")


@feature("kill")
def kill(w):
    box = w.create()
    assert box.kill() is True
    assert Sandbox.kill(box.sandbox_id) is False
    failure(e2b.NotFoundException, Sandbox.connect, box.sandbox_id)


@feature("pause, resume")
def pause(w):
    box = w.create()
    box.files.write("kept.txt", "kept")
    running = box.commands.run("sleep 600", background=True, timeout=0)
    box.pause()
    assert "paused" in str(Sandbox.get_info(box.sandbox_id).state).lower()
    again = Sandbox.connect(box.sandbox_id, timeout=120)
    assert again.files.read("kept.txt") == "kept"
    assert running.pid in [item.pid for item in again.commands.list()]


@feature("pause without memory", lambda: takes("Sandbox.pause", "keep_memory"))
def pause_without_memory(w):
    box = w.create()
    box.files.write("kept.txt", "kept")
    box.pause(keep_memory=False)
    assert Sandbox.connect(box.sandbox_id).files.read("kept.txt") == "kept"


def pausing(w, **more):
    """Its time is cut short when all is written: however slow the machine is, it is not over before."""
    box = w.create(lifecycle={"on_timeout": "pause", **more})
    box.files.write("kept.txt", "kept")
    box.set_timeout(1)
    until(lambda: "paused" in str(Sandbox.get_info(box.sandbox_id).state).lower(), "its being paused")
    return box


@feature("auto-pause", lambda: takes("Sandbox.create", "lifecycle"))
def auto_pause(w):
    assert Sandbox.connect(pausing(w).sandbox_id).files.read("kept.txt") == "kept"


@feature("auto-resume", lambda: takes("Sandbox.create", "lifecycle"))
def auto_resume(w):
    assert pausing(w, auto_resume=True).files.read("kept.txt") == "kept"


@feature("snapshot", lambda: takes("Sandbox.create_snapshot"))
def snapshot(w):
    box = w.create()
    box.files.write("made.txt", "before")
    made = box.create_snapshot()
    box.files.write("made.txt", "after")
    other = w.keep(Sandbox.create(made.snapshot_id, timeout=120))
    assert other.files.read("made.txt") == "before"
    other.kill()
    assert Sandbox.delete_snapshot(made.snapshot_id) is True


@feature("fork", lambda: takes("Sandbox.fork"))
def fork(w):
    box = w.create()
    box.files.write("made.txt", "before")
    for copy in box.fork(count=2):
        assert not isinstance(copy, Exception), copy
        assert w.keep(copy).files.read("made.txt") == "before"


@feature("metrics")
def metrics(w):
    found = until(w.box.get_metrics, "a first sample")
    assert found[0].mem_total > 0 and found[0].cpu_count > 0
