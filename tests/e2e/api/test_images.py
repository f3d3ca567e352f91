"""Templates of images: archives as docker and skopeo write them, tars, directories, and what is none of these."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile
import tempfile

import pytest

from support.daemon import HOLT, ROOT, Daemon, until
from support.e2b_plain import Sandbox

BUSYBOX = pathlib.Path("/bin/busybox")
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
pytestmark = pytest.mark.skipif(not BUSYBOX.exists(), reason="needs a static busybox")


@pytest.fixture(scope="module")
def images():
    made = pathlib.Path(tempfile.mkdtemp(prefix="holt-images."))
    made.chmod(0o755)  # the daemon is another account when root starts it
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def daemon(images):
    with Daemon("--images-dir", str(images), "--image-max", "64M") as running:
        yield running
        running.api.delete("/templates/cache")
        for one in running.api.get("/sandboxes").json["items"]:  # of a test that failed
            running.api.delete(f"/sandboxes/{one['id']}")
        for one in running.api.get("/templates").json["items"]:
            running.api.delete(f"/templates/{one['id']}")


def layer(*members):
    """A tar of (name, contents, fields): bytes are a file, None a directory, a text a link's target."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, value, *fields in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            for key, field in (fields[0] if fields else {}).items():
                setattr(info, key, field)
            if value is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(value, str):
                info.linkname = value
                info.type = info.type if info.type == tarfile.LNKTYPE else tarfile.SYMTYPE
            else:
                info.size = len(value)
            tar.addfile(info, io.BytesIO(value) if isinstance(value, bytes) else None)
    return out.getvalue()


def base(*more):
    return layer(("bin", None), ("bin/busybox", BUSYBOX.read_bytes()), ("bin/sh", "busybox"), ("bin/cat", "busybox"),
                 ("bin/ls", "bin/busybox", {"type": tarfile.LNKTYPE}), ("bin/stat", "busybox"), *more)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def config_of(layers, **config):
    return json.dumps({"architecture": MACHINE, "os": "linux", "config": config,
                       "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(one) for one in layers]}}).encode()


def docker(path, layers, **config):
    """As `docker save` did it for years."""
    text = config_of(layers, **config)
    names = [f"{sha(one)}/layer.tar" for one in layers]
    manifest = [{"Config": sha(text) + ".json", "RepoTags": ["image:1"], "Layers": names}]
    path.write_bytes(layer(*zip(names, layers), (sha(text) + ".json", text), ("manifest.json", json.dumps(manifest).encode())))


def oci(path, layers, **config):
    """As `skopeo copy ... oci-archive:` does it: blobs by their digests, layers compressed."""
    packed = [gzip.compress(one, 1) for one in layers]
    text = config_of(layers, **config)

    def descriptor(blob):
        return {"mediaType": "application/vnd.oci.image", "digest": "sha256:" + sha(blob), "size": len(blob)}

    manifest = json.dumps({"schemaVersion": 2, "config": descriptor(text), "layers": list(map(descriptor, packed))}).encode()
    index = {"schemaVersion": 2, "manifests": [descriptor(manifest)]}
    path.write_bytes(layer(*((f"blobs/sha256/{sha(blob)}", blob) for blob in (*packed, text, manifest)),
                           ("index.json", json.dumps(index).encode()), ("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')))


def build(api, kind, path, name="image", **more):
    made = api.post("/templates/builds", {"name": name, "root": {"kind": kind, "path": path}, **more}).must(202).json
    with api.events("GET", f"/templates/builds/{made['id']}/events") as events:
        list(events)
    return api.get(f"/templates/builds/{made['id']}").must(200).json


def test_the_interpreters_template_is_taken_for_e2bs_names(daemon, images):
    """Its recipe, with a root that is smaller than what make-root makes."""
    root = images / "code-interpreter"
    with tarfile.open(fileobj=io.BytesIO(base(("etc", None), ("mark", b"interpreter")))) as tar:
        tar.extractall(root)
    root.chmod(0o755)
    recipe = ROOT / "deploy/code-interpreter"
    assert {"python3-numpy", "python3-pandas", "python3-matplotlib", "python3-sklearn", "r-base-core", "default-jdk-headless"} <= set(
        (recipe / "packages").read_text().split())
    env = {**os.environ, "HOLT_API_KEY": daemon.key, "HOLT_URL": f"http://127.0.0.1:{daemon.port}"}
    subprocess.run([HOLT, "template", "build", "-q", str(recipe / "code-interpreter.yaml")], env=env, check=True, cwd=images)
    for name in ("code-interpreter-v1", "code-interpreter"):
        with Sandbox(daemon.api, name) as box:
            made = daemon.api.get(f"/sandboxes/{box.id}").must(200).json
            assert made["template"] == "code-interpreter:1", made


def ready(api, kind, path, **more):
    made = build(api, kind, path, **more)
    assert made["status"] == "ready", made
    return made["template"]


def text(box, command):
    done = box.run(command)
    assert done["stdout"], (done["exitCode"], done["stderr"])
    return done["stdout"]


LAYERS = (base(("etc", None), ("etc/old", b"old\n"), ("etc/issue", b"first\n"), ("opt", None), ("opt/old", b""),
               ("var/www", None, {"uid": 33, "gid": 33, "mode": 0o750}), ("su", b"x", {"mode": 0o4755})),
          layer(("etc/issue", b"second\n"), ("etc/.wh.old", b""), ("opt/.wh..wh..opq", b""), ("opt/new", b"new\n")))


@pytest.mark.parametrize("save", [docker, oci], ids=["docker", "oci"])
def test_an_archive_becomes_the_root_of_sandboxes(api, images, save):
    save(images / "image.tar", LAYERS, Env=["GREETING=hello", "BAD NAME=x"], WorkingDir="/opt")
    made = ready(api, "oci", "image.tar")
    assert api.get(f"/templates/{made}").must(200).json["source"] == "image.tar"
    box = api.sandbox(made)
    assert text(box, "cat /etc/issue; ls /opt; ls /etc/old || echo gone; echo $GREETING; pwd; ls /usr/bin || echo nothing") == (
        "second\nnew\ngone\nhello\n/opt\nnothing\n")
    assert text(box, "stat -c %a /su") == "755\n"
    if os.geteuid() == 0:  # else a box has one user alone
        assert text(box, "stat -c '%u %g %a' /var/www") == "33 33 750\n"
    box.delete().must(204)
    api.delete(f"/templates/{made}").must(204)


@pytest.mark.skipif(not shutil.which("skopeo"), reason="needs skopeo")
@pytest.mark.parametrize("transport", ["oci-archive", "docker-archive"])
def test_what_skopeo_writes_is_read(api, images, transport):
    docker(images / "in.tar", LAYERS, Env=["GREETING=hello"])
    policy = images / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    (images / "out.tar").unlink(missing_ok=True)
    subprocess.run(["skopeo", "--policy", str(policy), "copy", f"docker-archive:{images}/in.tar",
                    f"{transport}:{images}/out.tar:image:1"], check=True, stdout=subprocess.DEVNULL)
    (images / "out.tar").chmod(0o644)
    made = ready(api, "oci", "out.tar")
    box = api.sandbox(made)
    assert text(box, "cat /etc/issue; ls /opt; echo $GREETING") == "second\nnew\nhello\n"
    box.delete().must(204)
    api.delete(f"/templates/{made}").must(204)


def test_steps_go_on_from_an_image(api, images):
    docker(images / "image.tar", LAYERS)
    made = build(api, "oci", "image.tar", steps=[{"type": "RUN", "args": ["echo more > /workspace/more"]}])
    if made["reason"] and "freezer" in made["reason"]:
        pytest.skip(made["reason"])
    assert made["status"] == "ready", made
    box = api.sandbox(made["template"])
    assert text(box, "cat /workspace/more /etc/issue") == "more\nsecond\n"
    box.delete().must(204)
    api.delete(f"/templates/{made['template']}").must(204)


def test_tars_and_directories_become_roots(api, images):
    (images / "root.tgz").write_bytes(gzip.compress(base(("hello", b"tar\n")), 1))
    root = images / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, root / "bin/busybox")
    for name in ("sh", "cat"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "hello").write_text("dir\n")
    (root / "out").symlink_to("/etc/passwd")
    subprocess.run(["chmod", "-R", "a+rX", str(images)], check=True)
    for kind, path, word in (("tar", "root.tgz", "tar"), ("dir", "root", "dir")):
        made = ready(api, kind, path)
        box = api.sandbox(made)
        assert text(box, "cat /hello") == word + "\n"
        box.delete().must(204)
        api.delete(f"/templates/{made}").must(204)


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def hostile(images):
    """What is asked for, and what the answer must name."""
    docker(images / "good.tar", [base()])
    data = (images / "good.tar").read_bytes()
    (images / "up.tar").write_bytes(layer(("../../../etc/cron.d/x", b"x")))
    (images / "link.tar").write_bytes(layer(("a", "../../../etc/shadow", {"type": tarfile.LNKTYPE})))
    (images / "bomb.tgz").write_bytes(gzip.compress(layer(("zeros", bytes(65 << 20))), 1))
    (images / "zstd.tar").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    (images / "cut.tar").write_bytes(data[:len(data) // 2])
    (images / "lie.tar").write_bytes(flipped(data, len(data) // 2))
    (images / "away").unlink(missing_ok=True)
    (images / "away").symlink_to("/etc/passwd")
    return [("tar", "up.tar", "leads out"), ("tar", "link.tar", "leads out"), ("tar", "bomb.tgz", "more than"),
            ("tar", "zstd.tar", "zstd"), ("oci", "cut.tar", ""), ("oci", "lie.tar", "digest"), ("oci", "none", "none"),
            ("tar", "../state/holt.db", "leads out"), ("tar", "away", "leads out"), ("dir", "good.tar", "good.tar"),
            ("oci", "up.tar", "docker save")]


def test_what_is_no_good_image_is_refused_with_a_reason_and_leaves_nothing(api, images):
    for kind, path, why in hostile(images):
        made = build(api, kind, path)
        assert made["status"] == "failed" and why in made["reason"], (path, made["reason"])
    until(lambda: api.get("/sandboxes").must(200).json["items"] == [], what="the end of sandboxes")



def test_bodies_that_ask_for_too_much_are_refused(api, key_for):
    for root, more in (({"kind": "oci"}, {}), ({"kind": "iso", "path": "x"}, {}), ({"kind": "oci", "path": ""}, {}),
                       ({"kind": "oci", "path": "x" * 1024}, {}), ({"kind": "oci", "path": "x"}, {"from": "bash"})):
        api.post("/templates/builds", {"name": "x", "root": root, **more}).must(400)
    limited = key_for("user", scopes=["template", "sandbox:read"])
    limited.post("/templates/builds", {"name": "x", "root": {"kind": "oci", "path": "x"}}).error(403)
    failed = build(api, "oci", "/etc/passwd")
    assert failed["status"] == "failed" and "images_dir" in failed["reason"]


def test_without_a_directory_of_images_there_are_none():
    with Daemon() as plain:
        made = build(plain.api, "oci", "image.tar")
        assert made["status"] == "failed" and "images_dir" in made["reason"]


def test_killed_half_way_it_is_interrupted_and_nothing_is_left(images):
    docker(images / "image.tar", LAYERS)
    with Daemon("--images-dir", str(images)) as daemon:
        api = daemon.api
        made = api.post("/templates/builds", {"name": "x", "root": {"kind": "oci", "path": "image.tar"}}).must(202).json
        daemon.kill("daemon", "launcher")
        daemon.wait_ended()
        daemon.start()
        one = api.get(f"/templates/builds/{made['id']}").must(200).json
        assert one["status"] in ("failed", "ready"), one
        until(lambda: api.get("/sandboxes").must(200).json["items"] == [], what="the end of its sandbox")
        if one["status"] == "ready":
            api.delete(f"/templates/{one['template']}").must(204)
