"""What boxes do to the disk that is kept of them: bombs, planted marks of layers, a disk that ends, an image after a
power cut."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support.daemon import IS_ROOT, Daemon, until


@pytest.fixture
def can(api):
    """Some machines keep no layers for who is not root."""
    made = api.sandbox()
    answer = api.post(f"{made.path}/snapshots", {})
    made.delete().must(204)
    if answer.status == 409 and not IS_ROOT:
        pytest.skip(answer.json["error"]["message"])
    api.delete(f"/snapshots/{answer.must(201).json['id']}").must(204)


@contextlib.contextmanager
def small_disk(size):
    place = pathlib.Path(tempfile.mkdtemp(prefix="holt-disk."))
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], check=True)
        place.chmod(0o755)
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True)
        place.rmdir()


PLANT = r"""
import os, socket
os.makedirs("d/sub"); open("d/old", "w").write("old"); open("d/sub/x", "w").write("x")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("sock")
os.symlink("/etc/shadow", "link"); os.symlink("loop", "loop")
open("holes", "wb").truncate(1 << 40)
os.link("d/old", "hard")
for name in (".wh.old", ".wh..wh..opq", ".wh..wh.plnk", "a\nb", "\xff", "x" * 255):
    open("d/" + name, "w").write(name)
os.chdir("/workspace"); depth = 0
while depth < 600:
    os.mkdir("deep"); os.chdir("deep"); depth += 1
open("bottom", "w").write("here")
os.chdir("/workspace")
said = []
for path, name in (("d", "user.overlay.opaque"), ("d", "trusted.overlay.opaque"), ("d/old", "user.overlay.metacopy"),
                   ("d", "user.overlay.redirect"), ("d", "security.capability"), ("d/old", "user.fine")):
    try:
        os.setxattr(path, name, b"y"); said.append(name)
    except OSError as e:
        pass
try:
    os.mknod("d/whiteout", 0o20000, 0); said.append("whiteout")
except OSError:
    pass
print(said)
"""
LOOK = r"""
import os
print(sorted(set(os.listdir("d")) - {"whiteout"}) == sorted(["old", "sub", ".wh.old", ".wh..wh..opq", ".wh..wh.plnk", "a\nb", "\xff", "x" * 255]))
print(open("d/old").read(), open("d/sub/x").read(), os.listdir("d/sub"))
print(os.stat("fifo").st_mode >> 12, os.readlink("link"), os.stat("holes").st_size, os.stat("holes").st_blocks < 100)
n = 0
while os.path.isdir("deep"):
    os.chdir("deep"); n += 1
print(n, open("bottom").read())
"""


def test_what_is_planted_in_a_layer_is_a_file_like_others(api, box, can):
    python = api.sandbox("python", resources={"memory": "512Mi"})
    planted = python.code("python", PLANT)
    assert planted["exitCode"] == 0, planted["stderr"]
    assert "trusted" not in planted["stdout"]
    before = python.code("python", LOOK)
    assert before["exitCode"] == 0 and before["stdout"].startswith("True\nold x ['x']\n"), before
    forks = api.post(f"{python.path}/fork", {"count": 2}).must(201).json["items"]
    for item in forks:
        fork = type(box)(api, item)
        assert fork.code("python", LOOK)["stdout"] == before["stdout"]
        # And what is removed in a fork is gone there, layer upon layer, whatever it is called.
        assert fork.run("rm -rf d/old d/.wh.old d/sub; mkdir d/sub; ls d/sub")["stdout"] == ""
    again = type(box)(api, api.post(f"/sandboxes/{forks[0]['id']}/fork", {}).must(201).json["items"][0])
    assert again.run("ls d/sub; test ! -e d/old -a ! -e d/.wh.old && ls d/.wh..wh..opq")["stdout"] == "d/.wh..wh..opq\n"
    assert python.code("python", LOOK)["stdout"] == before["stdout"]
    for ident in [python.id, again.id] + [item["id"] for item in forks]:
        api.delete(f"/sandboxes/{ident}").must(204)


def test_files_without_number_are_bounded_by_the_box_and_forked_whole(api, box, can):
    many = api.sandbox("python", resources={"memory": "512Mi"})
    made = many.code("python", "import os\nn = 0\nos.mkdir('many')\ntry:\n    while n < 1500:\n"
                               "        os.mkdir(f'many/{n}'); n += 1\nexcept OSError as e:\n    print(e.errno)\nprint(n)",
                     timeout=120)
    count = int(made["stdout"].split()[-1])
    assert count == 1500
    fork = type(box)(api, api.post(f"{many.path}/fork", {}, seconds=300).must(201).json["items"][0])
    assert int(fork.run("ls many | wc -l")["stdout"]) == count
    fork.delete().must(204)
    many.delete().must(204)


def test_forks_stop_at_the_quota_and_leave_nothing():
    with Daemon("--quota-sandboxes", "3") as daemon:
        made = daemon.api.post("/keys", {"name": "k", "role": "user", "owner": "forker"}).must(201).json
        user = daemon.api.using(made["key"])
        box = user.sandbox()
        answer = user.post(f"{box.path}/fork", {"count": 64})
        if answer.status == 409 and not IS_ROOT:
            pytest.skip(answer.json["error"]["message"])
        assert answer.status == 403 and answer.json["error"]["code"] == "quota_exceeded", answer
        user.post(f"{box.path}/fork", {"count": 65}).must(400)
        until(lambda: len(user.get("/sandboxes?status=running").must(200).json["items"]) == 1, what="the end of the forks")
        assert len(user.post(f"{box.path}/fork", {"count": 2}).must(201).json["items"]) == 2
        user.post(f"{box.path}/fork", {}).must(403)


def test_a_disk_that_ends_under_a_snapshot_leaves_nothing_half_made(needs_root):
    with small_disk("64m") as place, Daemon(state_dir=place / "state") as daemon:
        box = daemon.api.sandbox("bash", resources={"memory": "512Mi"})
        layers = place / "state" / "boxes" / "layers"
        before = sorted(os.listdir(layers)) if layers.is_dir() else []
        box.run("echo small > small; head -c 100M /dev/urandom > large", timeout=120)
        for _ in range(2):
            answer = daemon.api.post(f"{box.path}/snapshots", {"name": "s"})
            assert answer.status in (409, 503), answer
            assert "space" in answer.json["error"]["message"], answer
            assert box.run("wc -c < large")["stdout"] == f"{100 << 20}\n"  # and the box goes on
        assert daemon.api.get("/snapshots").must(200).json["items"] == []
        until(lambda: sorted(os.listdir(layers)) == before, what="the removal of what was begun")
        box.run("rm large")
        made = daemon.api.post(f"{box.path}/snapshots", {"name": "s"}).must(201).json
        two = type(box)(daemon.api, daemon.api.post("/sandboxes", {"snapshot": "s"}).must(201).json)
        assert two.run("cat small; ls")["stdout"] == "small\nsmall\n"
        two.delete().must(204)
        daemon.api.delete(f"/snapshots/{made['id']}").must(204)


def test_a_volume_has_an_end_of_names_too(needs_root, api, box):
    api.post("/volumes", {"name": "names", "size": "4Mi"}).must(201)
    one = api.sandbox("bash", volumes=[{"name": "names", "path": "/mnt/names"}])
    done = one.run("cd /mnt/names; i=0; while : > f$i; do i=$((i+1)); done; echo $i; ls | wc -l", timeout=120)
    made = [int(n) for n in done["stdout"].split()]
    assert "No space left" in done["stderr"] and 10 < made[0] < 100000 and made[1] in (made[0], made[0] + 1), done
    assert one.run("cd /mnt/names; rm -rf f*; echo again > f; cat f")["stdout"] == "again\n"
    one.delete().must(204)
    api.delete("/volumes/names").must(204)


def test_a_volume_after_a_power_cut_is_mended_and_one_that_cannot_be_is_said(needs_root):
    with Daemon() as daemon:
        api = daemon.api
        api.post("/volumes", {"name": "data", "size": "16Mi"}).must(201)
        box = api.sandbox("bash", volumes=[{"name": "data", "path": "/mnt/data"}])
        box.run("cd /mnt/data; echo safe > a; sync; (while :; do mkdir -p x/$RANDOM; echo y > z$RANDOM; done) &"
                " sleep 0.3; sync -f .; echo on", timeout=60)
        image = next(pathlib.Path(daemon.state_dir, "boxes", "volumes").rglob("*.img"), None) or next(
            path for path in pathlib.Path(daemon.state_dir, "boxes", "volumes").rglob("*") if path.is_file()
            and path.stat().st_size == 16 << 20)
        cut = daemon.dir / "cut"
        shutil.copyfile(image, cut)  # as it lay there when the power went
        box.delete().must(204)
        with open(image, "r+b") as file:
            file.write(cut.read_bytes())
        box = api.sandbox("bash", volumes=[{"name": "data", "path": "/mnt/data"}])
        assert box.run("cat /mnt/data/a; echo b > /mnt/data/b; cat /mnt/data/b")["stdout"] == "safe\nb\n"
        box.delete().must(204)
        with open(image, "r+b") as file:
            file.write(os.urandom(1 << 20))
        answer = api.post("/sandboxes", {"volumes": [{"name": "data", "path": "/mnt/data"}]})
        assert answer.status in (409, 503) and "volume" in answer.json["error"]["message"], answer
        api.delete("/volumes/data").must(204)
