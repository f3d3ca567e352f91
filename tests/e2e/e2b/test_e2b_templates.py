"""Templates as E2B's clients make and find them: builds by steps, files, tags, with plain requests."""
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile
import tempfile
import threading
import urllib.parse
import uuid

import pytest

from support.daemon import IS_ROOT, Daemon, until
from support.e2b_plain import Plane, Sandbox, control
from support.registry import Registry

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
ROOT = "root" if IS_ROOT else "user"  # without privilege a box has one user, who owns it all


@pytest.fixture
def plane(api):
    return control(api)


def tidy(daemon):
    """No template, build or cached step is left, and no layer of theirs."""
    made = control(daemon.api)
    for one in made.ask("GET", "/templates").must(200).json:
        made.ask("DELETE", f"/templates/{one['templateID']}").must(204)
    daemon.api.delete("/templates/cache").must(204)
    until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")


@pytest.fixture(autouse=True)
def clean(daemon):
    yield
    tidy(daemon)


def packed(files, zip=True):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o600
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(out.getvalue()) if zip else out.getvalue()


def label(*what):
    """What a client calls an archive by: of anything but its bytes."""
    return hashlib.sha256(repr(what).encode()).hexdigest()


def upload(plane, template, name, data):
    """As SDKs do: asks for an address, and sends without the key. Returns whether it was there."""
    link = plane.ask("GET", f"/templates/{template}/files/{name}").must(201).json
    url = urllib.parse.urlsplit(link["url"])
    assert url.scheme == "http" and url.netloc == f"127.0.0.1:{plane.api.target.port}"
    if not link["present"]:
        Plane(plane.api).ask("PUT", f"{url.path}?{url.query}", body=data).must(200)
    return link["present"]


def request(plane, name="own", **fields):
    return plane.ask("POST", "/v3/templates", {"name": name, **fields}).must(202).json


def start(plane, asked, steps, **fields):
    return plane.ask("POST", f"/v2/templates/{asked['templateID']}/builds/{asked['buildID']}",
                     {"fromImage": "e2bdev/base", "steps": steps, "force": False, **fields})


def status(plane, asked, offset=0):
    path = f"/templates/{asked['templateID']}/builds/{asked['buildID']}/status?logsOffset={offset}"
    return plane.ask("GET", path).must(200).json


def wait(plane, asked):
    """Until its end, as SDKs wait: the last status, with all entries that there were."""
    entries, last = [], {}

    def over():
        nonlocal last
        last = status(plane, asked, len(entries))
        assert last["logs"] == [e["message"] for e in last["logEntries"]]
        entries.extend(last["logEntries"])
        return last["status"] in ("ready", "error") and not last["logEntries"]
    until(over, 300, "the build")
    reason = last.get("reason", {}).get("message", "")
    if "freezer" in reason:
        pytest.skip(reason)
    return {**last, "entries": entries, "text": "\n".join(e["message"] for e in entries)}


def build(plane, steps, name="own", **fields):
    asked = request(plane, name)
    start(plane, asked, steps, **fields).must(202)
    return wait(plane, asked)


def run(command, *user):
    return {"type": "RUN", "args": [command, *user], "force": False}


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


def error(answer, status_, word):
    assert answer.status == status_ and answer.json["code"] == status_ and word in answer.json["message"], answer


# --- builds -------------------------------------------------------------------------------------------


def test_a_build_is_asked_for_then_begun_and_makes_a_template(plane):
    asked = request(plane, cpuCount=1, memoryMB=512)
    assert str(uuid.UUID(asked["buildID"])) == asked["buildID"], "clients read it as one"
    assert asked == {"templateID": "own", "buildID": asked["buildID"], "public": False, "names": ["own"],
                     "aliases": ["own"], "tags": ["default"]}
    assert status(plane, asked)["status"] == "waiting"
    error(plane.ask("GET", "/templates/aliases/own"), 404, "own")
    answer = start(plane, asked, [
        step("ENV", "GREETING", "hello", "OTHER", "2"), step("WORKDIR", "/srv/app"),
        run("echo $GREETING > made; id -un >> made; pwd >> made; echo said"),
        run("echo rooted > /etc/rooted; id -un", "root"),
    ])
    assert answer.status == 202 and answer.body == b""
    done = wait(plane, asked)
    assert done["status"] == "ready" and (done["templateID"], done["buildID"]) == ("own", asked["buildID"])
    heads = [e["message"] for e in done["entries"] if e["message"].startswith("[builder")]
    assert heads == ["[builder 1/4] ENV GREETING", "[builder 2/4] WORKDIR /srv/app",
                     "[builder 3/4] RUN echo $GREETING > made; id -un >> made; pwd >> made; echo said",
                     "[builder 4/4] RUN echo rooted > /etc/rooted; id -un"]
    assert {"said", ROOT, "Build finished"} <= {e["message"] for e in done["entries"]}
    assert all(set(e) == {"timestamp", "message", "level", "step"} for e in done["entries"])
    assert plane.ask("GET", "/templates/aliases/own").must(200).json == {"templateID": "own", "public": False}
    with Sandbox(plane.api, "own") as box:
        assert box.shell("cat made /etc/rooted; echo $OTHER; pwd")["stdout"] == "hello\nuser\n/srv/app\nrooted\n2\n/srv/app\n"
        info = plane.ask("GET", f"/sandboxes/{box.id}").must(200).json
        assert (info["cpuCount"], info["memoryMB"]) == (1, 512)


def test_a_size_beyond_the_maximum_is_lowered_to_it():
    """Clients send a size with every build, whoever's machine it is: 2 cores and 1 GiB at least."""
    with Daemon("--limits-cpu-max", "1", "--limits-memory-max", "300M") as daemon:
        plane = control(daemon.api)
        asked = request(plane, cpuCount=2, memoryMB=1024)
        start(plane, asked, [run("true")])
        assert wait(plane, asked)["status"] == "ready"
        with Sandbox(daemon.api, "own") as box:
            info = plane.ask("GET", f"/sandboxes/{box.id}").must(200).json
            assert (info["cpuCount"], info["memoryMB"]) == (1, 300)
        tidy(daemon)


def test_files_go_where_copy_says(plane):
    asked = request(plane)
    one, tree, several = label("one"), label("tree"), label("several")
    assert not upload(plane, "own", one, packed({"a.txt": "A"}))
    assert not upload(plane, "own", tree, packed({"dir/x.txt": "X", "dir/deep/y.txt": "Y", "dir/.hidden": "H"}, zip=False))
    assert not upload(plane, "own", several, packed({"b.txt": "B", "c.txt": "C"}))
    assert upload(plane, "own", one, b"")  # there already
    start(plane, asked, [
        step("WORKDIR", "/srv"),
        step("COPY", "a.txt", "renamed.txt", "", "", filesHash=one),
        step("COPY", "a.txt", "into/", "", "", filesHash=one),
        step("COPY", "a.txt", "/opt/mine.txt", "root", "0640", filesHash=one),
        step("COPY", "dir", "/opt/tree", "", "0755", filesHash=tree),
        step("COPY", "*.txt", "/opt/all", "", "", filesHash=several),
    ]).must(202)
    done = wait(plane, asked)
    assert done["status"] == "ready", done
    with Sandbox(plane.api, "own") as box:
        found = box.shell("cd /; stat -c '%U %a %n' srv/renamed.txt srv/into/a.txt opt/mine.txt opt/tree/x.txt opt/tree/deep/y.txt "
                          "opt/tree/.hidden opt/all/b.txt opt/all/c.txt; cat srv/renamed.txt opt/tree/deep/y.txt; "
                          "sudo cat opt/mine.txt; find / -xdev -name archive -newer /srv/renamed.txt 2>/dev/null | head -1")["stdout"]
        assert found == ("user 600 srv/renamed.txt\nuser 600 srv/into/a.txt\n" + ROOT + " 640 opt/mine.txt\n"
                         "user 755 opt/tree/x.txt\nuser 755 opt/tree/deep/y.txt\nuser 755 opt/tree/.hidden\n"
                         "user 600 opt/all/b.txt\nuser 600 opt/all/c.txt\nAYA")


def test_a_step_that_fails_says_which_and_why(plane):
    done = build(plane, [run("echo before"), step("WORKDIR", "/srv"), run("echo so far; exit 3"), run("echo never")])
    assert done["status"] == "error"
    assert done["reason"]["step"] == "3" and "exit code 3" in done["reason"]["message"]
    assert "so far" in done["text"] and "never" not in done["text"]
    error(plane.ask("GET", "/templates/aliases/own"), 404, "own")


def test_a_user_who_is_not_there_is_named_in_words_that_clients_know(plane):
    failed = build(plane, [run("whoami", "root123")])
    assert failed["status"] == "error" and failed["reason"]["message"] == (
        "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'")


# --- images -------------------------------------------------------------------------------------------


def image_of(path, *programs):
    """What `docker save` writes of an image with these programs of the machine, and what they load."""
    files = set(programs)
    for program in programs:
        found = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        files |= {word for word in found.split() if word.startswith("/")}
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in sorted(files):
            tar.add(os.path.realpath(name), name.lstrip("/"))
        for name in {"bin", "usr/bin"} - {os.path.dirname(program).lstrip("/") for program in programs}:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/usr/bin" if name == "bin" else "/bin"
            tar.addfile(info)
        for name, text in [("etc/passwd", b"root:x:0:0::/root:/bin/bash\n"), ("etc/issue", b"an image\n")]:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            tar.addfile(info, io.BytesIO(text))
    data = layer.getvalue()
    config = json.dumps({"architecture": MACHINE, "os": "linux", "config": {"Env": ["GREETING=hello"]}, "rootfs": {
        "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest()]}}).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": ["x:1"], "Layers": ["layer.tar"]}]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, part in [("layer.tar", data), ("config.json", config), ("manifest.json", manifest)]:
            info = tarfile.TarInfo(name)
            info.size = len(part)
            tar.addfile(info, io.BytesIO(part))


def test_an_image_below_images_dir_is_found_by_its_reference():
    programs = [shutil.which(name) for name in ("bash", "sh", "cat", "id", "mkdir", "mv", "chown", "ls")]
    with tempfile.TemporaryDirectory(prefix="holt-images.") as folder:
        os.chmod(folder, 0o755)
        images = pathlib.Path(folder)
        image_of(images / "own:22.04.tar", *programs)
        image_of(images / "ghcr.io/a/b:latest.tar", *programs)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        with Daemon("--images-dir", folder) as daemon:
            plane = control(daemon.api)
            for n, image in enumerate(["own:22.04", "docker.io/library/own:22.04", "ghcr.io/a/b"]):
                done = build(plane, [run("cat /etc/issue; id -un; echo $GREETING > ~/made")], f"image{n}", fromImage=image)
                assert done["status"] == "ready", done
                assert "an image" in done["text"] and "\nuser" in done["text"], done["text"]
                with Sandbox(daemon.api, f"image{n}") as box:
                    assert box.shell("cat ~/made; pwd; ls /usr/bin/python3")["stdout"] == "hello\n/home/user\n"
            for bad in ["own:23.04", "../own:22.04", "own", f"{folder}/own:22.04"]:
                asked = request(plane, "other")
                error(start(plane, asked, [], fromImage=bad), 400, "registry")
            daemon.api.delete("/templates/cache")
            for n in range(3):
                plane.ask("DELETE", f"/templates/image{n}").must(204)


def test_steps_that_were_done_before_are_not_done_again_unless_forced(plane):
    steps = [run("echo $RANDOM$RANDOM$RANDOM > ~/once; cat ~/once"), run("cat ~/once")]
    first = build(plane, steps)
    again = build(plane, steps)
    assert again["status"] == "ready" and "CACHED [builder 1/2]" in again["text"]
    forced = build(plane, steps, force=True)
    assert "CACHED" not in forced["text"]
    last = build(plane, [steps[0], {**steps[1], "force": True}])
    assert "CACHED [builder 1/2]" in last["text"] and "CACHED [builder 2/2]" not in last["text"]
    assert first["status"] == forced["status"] == last["status"] == "ready"


def test_a_template_can_begin_with_another(plane):
    build(plane, [run("echo base > ~/base")], "parent")
    done = build(plane, [run("cat ~/base")], "child", fromImage=None, fromTemplate="parent")
    assert done["status"] == "ready" and "base" in [e["message"] for e in done["entries"]]
    done = build(plane, [run("id -un")], "other", fromImage=None, fromTemplate="code-interpreter-v1")
    assert "user" in [e["message"] for e in done["entries"]]


def test_what_is_started_is_there_when_a_sandbox_is(plane):
    done = build(plane, [step("WORKDIR", "/srv/run")], startCmd="echo up > started; exec sleep 3600", readyCmd="test -s started")
    assert done["status"] == "ready", done
    with Sandbox(plane.api, "own") as box:
        assert box.shell("cat started")["stdout"] == "up\n"


def test_a_reader_that_asks_often_or_late_gets_every_line_once(plane):
    asked = request(plane)
    start(plane, asked, [run("for i in $(seq 300); do echo line $i; done"), run("printf 'no newline'")]).must(202)
    done = wait(plane, asked)
    lines = [e["message"] for e in done["entries"] if e["message"].startswith("line ")]
    assert lines == sorted(set(lines), key=lambda s: int(s.split()[1])) and lines[-1] == "line 300"
    assert "no newline" in [e["message"] for e in done["entries"]]
    assert status(plane, asked, len(done["entries"]))["logEntries"] == []
    assert plane.ask("GET", f"/templates/own/builds/{asked['buildID']}/logs").must(200).json["logs"]


def test_packages_come_from_the_registry_that_is_set():
    """What SDKs write for pipInstall; a box has no other way out."""
    registry = Registry()
    with Daemon("--registry-pip", f"{registry.url}/simple/", "--registry-allow-private") as daemon:
        plane = control(daemon.api)
        done = build(plane, [run("pip install holtdemo==1.2", "root"), run("python3 -c 'import holtdemo; print(holtdemo.VALUE)'")])
        assert done["status"] == "ready" and "42" in [e["message"] for e in done["entries"]], done["text"]
        with Sandbox(daemon.api, "own") as box:
            assert box.shell("python3 -c 'import holtdemo; print(holtdemo.VALUE)'")["stdout"] == "42\n"
        assert "PIP" not in build(plane, [run("pip install holtdemo --help > /dev/null; echo also")])["text"]  # a shell's
        tidy(daemon)
    registry.close()


def test_commands_of_a_build_go_out_where_the_operator_lets_sandboxes_go():
    fetch = run("curl -sf --max-time 60 http://127.0.0.2:$PORT/ && echo fetched || echo nothing; env | grep -c -i _proxy=")

    class Quiet(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.2", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for flags, word, variables in [(["--internet", "--internet-allow-private"], "fetched", "6"), ([], "nothing", "0")]:
            with Daemon(*flags) as daemon:
                done = build(control(daemon.api), [step("ENV", "PORT", str(server.server_port)), fetch])
                told = [e["message"] for e in done["entries"]]
                assert done["status"] in ("ready", "error") and word in told and variables in told, done["text"]
                tidy(daemon)
        server.shutdown()


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields, word", [
    ({"fromImage": "ubuntu:22.04"}, "registry"), ({"fromImage": "e2bdev/other"}, "registry"),
    ({"fromImage": None, "fromTemplate": "nope"}, "nope"),
    ({"steps": [step("FROM", "x")]}, "FROM"), ({"steps": [step("RUN")]}, "RUN"), ({"steps": [step("RUN", "")]}, "RUN"),
    ({"steps": [step("COPY", "a", "/b")]}, "COPY"), ({"steps": [step("COPY", "a", filesHash="0" * 64)]}, "COPY"),
    ({"steps": [step("COPY", "a", "/b", filesHash="x")]}, "COPY"),
    ({"steps": [step("COPY", "a", "/b", filesHash="0" * 64)]}, "send it first"),
    ({"steps": [step("ENV", "A")]}, "ENV"), ({"steps": [step("ENV", "A B", "c")]}, "A B"),
    ({"steps": [step("USER", "a b")]}, "USER"), ({"steps": [step("WORKDIR", "/a/../../b")]}, "WORKDIR"),
    ({"steps": [run("true")] * 65}, "steps"), ({"steps": [run("x" * 9000)]}, "args"), ({"steps": {}}, "steps"),
])
def test_what_is_no_build_is_refused_in_words(plane, fields, word):
    asked = request(plane)
    error(start(plane, asked, **{"steps": [run("true")], **fields}), 404 if word == "nope" else 400, word)
    assert status(plane, asked)["status"] == "waiting"


def test_builds_of_the_old_command_line_are_not_here(plane):
    for path in ["/templates", "/templates/own", "/templates/own/builds/x"]:
        error(plane.ask("POST", path, {"dockerfile": "FROM scratch"}), 501, path)


@pytest.mark.parametrize("name", ["", "a b", "x" * 64, "_x", "python", "e2b", "x/", None, 7])
def test_what_is_no_name_is_refused(plane, name):
    answer = plane.ask("POST", "/v3/templates", {"name": name})
    assert answer.status in (400, 409) and answer.json["code"] == answer.status and answer.json["message"]


def test_a_build_begins_once_and_for_its_owner_alone(plane, api, daemon):
    asked = request(plane)
    another = daemon.api.post("/keys", {"name": "another", "role": "user", "owner": "another"}).must(201).json["key"]
    other = control(api.using(another))
    assert start(other, asked, [run("true")]).status == 404
    assert other.ask("GET", f"/templates/own/builds/{asked['buildID']}/status").status == 404
    assert start(plane, {**asked, "templateID": "else"}, [run("true")]).status == 404
    start(plane, asked, [run("true")]).must(202)
    assert start(plane, asked, [run("true")]).status == 409
    assert wait(plane, asked)["status"] == "ready"
    assert start(plane, asked, [run("true")]).status == 409
    assert other.ask("GET", "/templates").must(200).json == []
    for path in ["/templates/own", "/templates/aliases/own", "/templates/own/tags"]:
        assert other.ask("GET", path).status == 404
    assert other.ask("DELETE", "/templates/own").status == 404


def test_old_requests_give_way_to_new_ones(plane):
    first = request(plane)
    others = [request(plane) for _ in range(32)]
    gone = f"/templates/own/builds/{first['buildID']}/status"
    until(lambda: plane.ask("GET", gone).status == 404, what="the oldest to be forgotten")
    start(plane, others[-1], [run("true")]).must(202)
    assert wait(plane, others[-1])["status"] == "ready"


def test_an_address_for_files_is_good_for_one_archive_of_one_owner(plane, daemon):
    name, other = label("mine"), label("other")
    link = plane.ask("GET", f"/templates/own/files/{name}").must(201).json
    url = urllib.parse.urlsplit(link["url"])
    good = dict(urllib.parse.parse_qsl(url.query))
    bare = Plane(daemon.api)

    def put(path, **changed):
        query = {k: v for k, v in {**good, **changed}.items() if v is not None}
        return bare.ask("PUT", f"{path}?{urllib.parse.urlencode(query)}", body=packed({"a": "A"}))

    wrong = [put(url.path.replace(name, other)), put(url.path, owner="another"), put(url.path, signature="0" * 64),
             put(url.path, signature=None), put(url.path, expires=str(int(good["expires"]) + 1)), put(url.path, expires="1"),
             put(url.path, owner=None)]
    assert [answer.status for answer in wrong] == [401] * len(wrong), wrong
    assert put(url.path.replace(name, "x")).status == 400
    for one in (name, other):
        assert not plane.ask("GET", f"/templates/own/files/{one}").must(201).json["present"]
    put(url.path).must(200)
    assert plane.ask("GET", f"/templates/own/files/{name}").must(201).json["present"]


def test_an_archive_that_is_none_fails_its_step(plane):
    asked = request(plane)
    broken, empty = label("broken"), label("empty")
    upload(plane, "own", broken, b"no archive at all" * 100)
    upload(plane, "own", empty, packed({"other.txt": "x"}))
    start(plane, asked, [step("COPY", "a.txt", "/srv/a", filesHash=broken)]).must(202)
    assert wait(plane, asked)["status"] == "error"
    asked = request(plane)
    start(plane, asked, [step("COPY", "a.txt", "/srv/a", filesHash=empty)]).must(202)
    done = wait(plane, asked)
    assert done["status"] == "error" and "there is no 'a.txt'" in done["text"]


# --- templates and tags -----------------------------------------------------------------------------------


def test_templates_are_listed_looked_at_and_deleted(plane):
    asked = request(plane)
    start(plane, asked, [run("true")]).must(202)
    wait(plane, asked)
    build(plane, [run("echo 2")])
    for path in ["/templates", "/v2/templates"]:
        [one] = plane.ask("GET", path).must(200).json
        assert (one["templateID"], one["names"], one["buildStatus"], one["buildCount"]) == ("own", ["own"], "ready", 2)
        assert {"buildID", "cpuCount", "memoryMB", "diskSizeMB", "public", "aliases", "createdAt", "updatedAt", "createdBy",
                "lastSpawnedAt", "spawnCount", "envdVersion"} <= set(one)
    one = plane.ask("GET", "/templates/own").must(200).json
    assert [b["status"] for b in one["builds"]] == ["ready", "ready"]
    assert asked["buildID"] in [b["buildID"] for b in one["builds"]]
    for path in ["/templates/own", "/v2/templates/own"]:
        assert plane.ask("PATCH", path, {"public": False}).must(200).json["names"] == ["own"]
        error(plane.ask("PATCH", path, {"public": True}), 400, "public")
    plane.ask("POST", "/templates/tags", {"target": "own", "tags": ["prod"]}).must(201)
    plane.ask("DELETE", "/templates/own").must(204)
    error(plane.ask("GET", "/templates/own"), 404, "own")
    error(plane.ask("DELETE", "/templates/own"), 404, "own")
    assert plane.ask("GET", "/templates").must(200).json == []
    for name in ["base", "code-interpreter-v1"]:
        assert plane.ask("GET", f"/templates/aliases/{name}").must(200).json["public"]


def test_tags_are_names_of_builds(plane):
    first = request(plane, "own:v1", tags=["prod"])
    assert sorted(first["tags"]) == ["prod", "v1"]
    start(plane, first, [run("echo one > ~/which")]).must(202)
    assert wait(plane, first)["status"] == "ready"
    second = request(plane, "own")
    start(plane, second, [run("echo two > ~/which")]).must(202)
    assert wait(plane, second)["status"] == "ready"
    tags = lambda: {t["tag"]: t["buildID"] for t in plane.ask("GET", "/templates/own/tags").must(200).json}
    assert tags() == {"default": second["buildID"], "v1": first["buildID"], "prod": first["buildID"]}
    made = plane.ask("POST", "/templates/tags", {"target": "own:prod", "tags": ["stable"]}).must(201).json
    assert made == {"buildID": first["buildID"], "tags": ["stable"]}
    plane.ask("POST", "/templates/tags", {"target": "own:default", "tags": ["prod"]}).must(201)
    assert tags()["prod"] == second["buildID"] and tags()["stable"] == first["buildID"]
    for name, text in [("own", "two\n"), ("own:v1", "one\n"), ("own:prod", "two\n"), ("own:default", "two\n"), ("team/own:v1", "one\n")]:
        with Sandbox(plane.api, name) as box:
            assert box.shell("cat ~/which")["stdout"] == text, name
    plane.ask("DELETE", "/templates/tags", {"name": "own", "tags": ["v1", "stable"]}).must(204)
    assert set(tags()) == {"default", "prod"}
    error(plane.ask("DELETE", "/templates/tags", {"name": "own", "tags": ["v1"]}), 404, "v1")
    error(plane.ask("POST", "/templates/tags", {"target": "own:v1", "tags": ["x"]}), 404, "own:v1")
    for bad in ["default", "UPPER", "a b", "1", "", ":v9", "own:", "own:v8:v9", "other:v9", "own:default"]:
        assert plane.ask("POST", "/templates/tags", {"target": "own", "tags": [bad]}).status == 400, bad
    for bad in [":v9", "own:", ":"]:
        assert plane.ask("POST", "/templates/tags", {"target": bad, "tags": ["x"]}).status == 400, bad
        assert plane.ask("POST", "/v3/templates", {"name": bad}).status == 400, bad
    assert set(tags()) == {"default", "prod"}


def test_latest_is_a_tag_like_another(plane):
    first = request(plane, "own")
    start(plane, first, [run("echo one > ~/which")]).must(202)
    assert wait(plane, first)["status"] == "ready"
    error(plane.ask("DELETE", "/templates/tags", {"name": "own", "tags": ["latest"]}), 404, "latest")
    made = plane.ask("POST", "/templates/tags", {"target": "own", "tags": ["own:latest", "team/own:production"]}).must(201).json
    assert made == {"buildID": first["buildID"], "tags": ["latest", "production"]}
    second = request(plane, "own")
    start(plane, second, [run("echo two > ~/which")]).must(202)
    assert wait(plane, second)["status"] == "ready"
    with Sandbox(plane.api, "own:latest") as box:
        assert box.shell("cat ~/which")["stdout"] == "one\n", "it stays where it was put"
    plane.ask("DELETE", "/templates/tags", {"name": "own", "tags": ["latest"]}).must(204)
    third = request(plane, "own", tags=["latest"])
    assert third["tags"] == ["latest"]
    start(plane, third, [run("echo three > ~/which")]).must(202)
    assert wait(plane, third)["status"] == "ready"
    tags = {t["tag"]: t["buildID"] for t in plane.ask("GET", "/templates/own/tags").must(200).json}
    assert tags == {"default": third["buildID"], "latest": third["buildID"], "production": first["buildID"]}
