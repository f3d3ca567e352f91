"""Templates by steps: archives to copy from, builds, their cache, their limits."""
import hashlib
import io
import tarfile

import pytest

from support.daemon import Daemon, until


@pytest.fixture(autouse=True)
def clean(api, daemon):
    """No template, build or cached step is left, and no layer of theirs."""
    yield
    for one in api.get("/templates").must(200).json["items"]:
        if not one["builtIn"]:
            api.delete(f"/templates/{one['id']}").must(204)
    api.delete("/templates/cache").must(204)
    until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")


def tar_of(**files):
    """A tar with these files, and its SHA-256."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    data = out.getvalue()
    return data, hashlib.sha256(data).hexdigest()


def send(api, data, hash):
    return api.put(f"/templates/files/{hash}", data)


def test_an_archive_is_there_once_it_was_sent_and_for_its_owner_alone(api, key_for):
    data, hash = tar_of(a="one")
    path = f"/templates/files/{hash}"
    assert api.get(path).must(200).json == {"hash": hash, "present": False, "bytes": 0}
    assert send(api, data, hash).must(201).json["present"]
    assert send(api, data, hash).must(201).json["bytes"] == len(data)
    assert api.get(path).must(200).json["present"]
    assert not key_for("user", owner="another").get(path).must(200).json["present"]


def test_an_archive_of_another_sum_is_not_kept(api):
    data, _ = tar_of(a="one")
    wrong = "0" * 64
    assert "SHA-256" in send(api, data, wrong).error(400)
    assert not api.get(f"/templates/files/{wrong}").must(200).json["present"]
    for bad in ["x", "A" * 64, "0" * 65]:
        send(api, data, bad).error(400)
        api.get(f"/templates/files/{bad}").error(400, field="hash")


def follow(api, made):
    """Events until the end of a build."""
    with api.events("GET", f"/templates/builds/{made['id']}/events") as events:
        return list(events)


def build(api, name="own", **fields):
    """Builds and waits for the end: the build, as it then is."""
    made = api.post("/templates/builds", {"name": name, **fields}).must(202).json
    follow(api, made)
    one = api.get(f"/templates/builds/{made['id']}").must(200).json
    if one["reason"] and "freezer" in one["reason"]:
        pytest.skip(one["reason"])
    return one


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


def run(*args, **more):
    return step("RUN", *args, **more)


def made_from(api, box, template):
    return type(box)(api, api.post("/sandboxes", {"template": template}).must(201).json)


def test_steps_make_a_template(api, box):
    data, hash = tar_of(**{"tool.txt": "copied\n", "deep/er.txt": "below\n"})
    send(api, data, hash).must(201)
    one = build(api, **{"from": "bash", "env": {"OUTER": "1"}, "description": "by steps"}, steps=[
        step("ENV", "GREETING", "hello", "OTHER", "2"),
        step("WORKDIR", "/workspace/app"),
        run("echo $GREETING $OUTER > made; pwd >> made; id -un >> made; echo said"),
        step("COPY", "what", ".", filesHash=hash),
        run("cat", "tool.txt", "deep/er.txt"),
    ])
    assert one["status"] == "ready" and one["template"] == "own:1" and one["reason"] is None, one
    assert [s["status"] for s in one["steps"]] == ["done"] * 5
    assert one["steps"][2]["output"] == "said\n" and one["steps"][4]["output"] == "copied\nbelow\n"
    value = api.get("/templates/own").must(200).json
    assert value["layers"] == 3 and sorted(value["envNames"]) == ["GREETING", "OTHER", "OUTER"]
    assert value["workdir"] == "/workspace/app" and value["description"] == "by steps"
    other = made_from(api, box, "own")
    assert other.run("cat made; echo $OTHER")["stdout"] == "hello 1\n/workspace/app\nuser\n2\n"
    other.delete().must(204)
    kinds = [e["kind"] for e in api.get("/events?kind=template.built").must(200).json["items"]]
    assert kinds and set(kinds) == {"template.built"}


def test_a_command_can_have_an_archive_as_its_input(api):
    data, hash = tar_of(**{"tool.txt": "x" * 700_000})
    send(api, data, hash).must(201)
    one = build(api, **{"from": "bash"}, steps=[
        run("mkdir /workspace/in && tar -xf - -C /workspace/in && wc -c < /workspace/in/tool.txt",
            filesHash=hash),
        run("sha256sum | cut -c1-64", filesHash=hash),
        run("head -c 9 > /dev/null; echo enough", filesHash=hash),
        run("cat | wc -c"),
    ])
    assert one["status"] == "ready", one
    assert [s["output"] for s in one["steps"]] == ["700000\n", hash + "\n", "enough\n", "0\n"]
    for bad in ["0" * 64, "label-" + "0" * 64]:
        assert "send it first" in api.post("/templates/builds", {
            "name": "own", "from": "bash", "steps": [run("cat", filesHash=bad)]}).error(400)
    send(api, data, "label-" + hash).error(400)


def test_a_step_that_was_done_before_is_not_done_again(api):
    steps = [run("echo $RANDOM$RANDOM > /workspace/a; cat /workspace/a"), run("cat /workspace/a")]
    first = build(api, **{"from": "bash"}, steps=steps)
    again = build(api, **{"from": "bash"}, steps=steps + [run("cat /workspace/a > /workspace/b; cat /workspace/b")])
    assert [s["cached"] for s in first["steps"]] == [False, False]
    assert [s["cached"] for s in again["steps"]] == [True, True, False]
    assert again["steps"][2]["output"] == first["steps"][1]["output"] != ""
    assert again["template"] == "own:2"
    forced = build(api, **{"from": "bash"}, steps=[dict(steps[0], force=True), steps[1]])
    assert [s["cached"] for s in forced["steps"]] == [False, False]
    changed = build(api, **{"from": "bash", "env": {"A": "1"}}, steps=steps)
    assert [s["cached"] for s in changed["steps"]] == [False, False]
    api.delete("/templates/cache").must(204)
    assert [s["cached"] for s in build(api, **{"from": "bash"}, steps=steps)["steps"]] == [False, False]


def test_a_cache_is_its_owners_alone(api, key_for):
    build(api, **{"from": "bash"}, steps=[run("true")])
    other = key_for("user", owner="another")
    theirs = build(other, **{"from": "bash"}, steps=[run("true")])
    assert not theirs["steps"][0]["cached"]
    for path in ("", "/events"):
        key_for("user", owner="third").get(f"/templates/builds/{theirs['id']}{path}").error(404)
    key_for("user", owner="third").delete(f"/templates/builds/{theirs['id']}").error(404)
    other.delete("/templates/own").must(204)
    other.delete("/templates/cache").must(204)


def test_a_step_that_fails_shows_its_output(api):
    made = api.post("/templates/builds", {"name": "own", "from": "bash", "steps": [
        run("echo out; echo err >&2; exit 3"), run("echo never")]}).must(202).json
    events = follow(api, made)
    assert [e.name for e in events][-1] == "end" and events[-1].data["status"] == "failed"
    assert "".join(e.data["data"] for e in events if e.name == "output") in ("out\nerr\n", "err\nout\n")
    one = api.get(f"/templates/builds/{made['id']}").must(200).json
    assert one["status"] == "failed" and one["reason"] == "it ended with exit code 3" and one["template"] is None
    assert [s["status"] for s in one["steps"]] == ["failed", "waiting"]
    assert sorted(one["steps"][0]["output"].split()) == ["err", "out"]
    assert [e.data for e in follow(api, made)][-1] == events[-1].data, "it can be looked at again"
    api.get("/templates/own").error(404)
    assert made["id"] in [b["id"] for b in api.get("/templates/builds").must(200).json["items"]]
    api.delete(f"/templates/builds/{made['id']}").must(204)
    api.get(f"/templates/builds/{made['id']}").error(404)


def test_a_build_can_be_canceled(api, daemon):
    made = api.post("/templates/builds", {"name": "own", "from": "bash", "steps": [
        run("echo begun; sleep 600")]}).must(202).json
    path = f"/templates/builds/{made['id']}"
    with api.events("GET", f"{path}/events") as events:
        assert next(e for e in events if e.name == "output").data["data"] == "begun\n"
        api.delete(path).must(204)
        assert [e.data for e in events][-1]["status"] == "canceled"
    until(lambda: api.get("/sandboxes").must(200).json["items"] == [], what="ending the step's sandbox")
    assert api.get(path).must(200).json["status"] == "canceled"


BAD_STEPS = [
    step("RUN"), step("RUN", ""), step("NOPE", "x"), step("ENV", "A"), step("ENV", "1A", "x"), step("ENV", "A=B", "x"),
    step("WORKDIR", "a/../../b"), step("WORKDIR", ""), step("WORKDIR", "/a", "/b"), step("USER", "a b"), step("USER", "-x"),
    step("USER", "a", "b"), run("true", user="a/b"), run("true", user=""), step("COPY", "a"), step("COPY", "a", "/b"),
    step("COPY", "a", "/b", filesHash="0" * 64), step("COPY", "a", "/b/../../c", filesHash="0" * 64),
    step("COPY", "a", "/b", filesHash="../" * 21 + "x"), run("x" * 9000), run("true", timeout=0), run("true", nope=1),
    {"type": "RUN"}, {"args": ["x"]}, {"type": "RUN", "args": "x"}, "RUN x", step("RUN", "a\u0000b"),
]


@pytest.mark.parametrize("bad", BAD_STEPS, ids=lambda bad: str(bad)[:40])
def test_what_is_no_step_is_refused(api, bad):
    answer = api.post("/templates/builds", {"name": "own", "from": "bash", "steps": [bad]})
    assert answer.status == 400, answer


def test_what_is_no_build_is_refused(api):
    for name in ("builds", "cache", "files"):
        assert api.post("/templates", {"name": name}).status == 400, "paths of the API"
    for bad in ({"name": "python"}, {"name": "cache"}, {"name": "a/b"}, {"name": ""}, {}, {"name": "own", "from": "nothing"},
                {"name": "own", "from": "bash", "snapshot": "x"}, {"name": "own", "snapshot": "none"},
                {"name": "own", "steps": [run("true")] * 65}, {"name": "own", "packages": {"gem": ["x"]}}):
        assert api.post("/templates/builds", bad).status in (400, 409), bad
    assert api.post("/templates/builds", {"name": "own", "packages": {"pip": ["--evil"]}}).status == 400
    assert api.post("/templates/builds", {"name": "own", "packages": {"pip": ["numpy"]}}).status == 409, "no registry"
    api.get("/templates/builds/none").error(404)
    api.delete("/templates/builds/none").error(404)


def test_what_a_build_makes_is_its_owner_s_disk(api, key_for):
    ann = key_for("user", owner="builder-disk")
    disk = lambda: ann.get("/user").must(200).json["use"]["disk"]
    steps = [step("RUN", "head -c 1000000 /dev/urandom > /workspace/a"), step("RUN", "head -c 500000 /dev/urandom > /workspace/b")]
    for name in ("one", "two"):  # the second from the cache, and it keeps the files all the same
        assert build(ann, name, steps=steps)["status"] == "ready"
    both = disk()
    ann.delete("/templates/cache").must(204)
    until(lambda: disk() < both, what="the cache's part")
    kept = disk()
    ann.delete("/templates/one:1").must(204)
    assert disk() * 2 == kept and disk() >= 1500000
    ann.delete("/templates/two:1").must(204)
    until(lambda: disk() == 0, what="all of it")
    rows = [row for row in ann.get("/usage?group=sandbox").json["items"] if row["sandboxId"] == "kept"]
    assert rows and rows[0]["diskGiBHours"] > 0


def test_hostile_steps_stay_within_their_limits(api):
    limits = {"memory": "128Mi", "disk": "16Mi", "pids": 32}
    small = {"from": "bash", "resources": limits}
    one = build(api, **small, steps=[run("yes | head -c 5000000; echo; echo the end; exit 1")])
    assert one["status"] == "failed" and one["steps"][0]["output"].endswith("the end\n")
    assert one["steps"][0]["outputOmitted"] > 4000000 and len(one["steps"][0]["output"]) <= 16 << 10
    one = build(api, **small, steps=[run("while :; do :; done", timeout=1)])
    assert one["status"] == "failed" and one["reason"] == "it took too long"
    one = build(api, **small, steps=[run("f() { f | f & }; f; sleep 1; exit 7", timeout=20)])
    assert one["status"] == "failed"
    one = build(api, **small, steps=[run("head -c 64M /dev/zero > /workspace/big")])
    assert one["status"] == "failed"
    data, hash = tar_of(bomb="\0" * (20 << 20))
    send(api, data, hash).must(201)
    one = build(api, **small, steps=[step("COPY", "bomb", "/workspace", filesHash=hash)])
    assert one["status"] == "failed" and one["reason"], one


def test_paths_in_an_archive_stay_in_its_directory(api):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("../up", "/abs"):
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    data = out.getvalue()
    hash = hashlib.sha256(data).hexdigest()
    send(api, data, hash).must(201)
    one = build(api, **{"from": "bash"}, steps=[step("COPY", "x", "/workspace/in", filesHash=hash),
                                               run("ls /workspace /abs")])
    assert one["status"] == "failed"
    send(api, b"no tar at all" * 100, hashlib.sha256(b"no tar at all" * 100).hexdigest()).must(201)
    one = build(api, **{"from": "bash"}, steps=[
        step("COPY", "x", "/workspace", filesHash=hashlib.sha256(b"no tar at all" * 100).hexdigest())])
    assert one["status"] == "failed" and one["steps"][0]["status"] == "failed"


def test_what_a_root_step_installs_is_in_the_root(api, box, needs_root):
    one = build(api, **{"from": "bash"}, steps=[
        step("USER", "root"), run("echo installed > /opt/tool; echo x > /etc/own.conf; id -u"), step("USER", "user"),
        run("cat /opt/tool; ! touch /opt/other")])
    assert one["status"] == "ready", one
    other = made_from(api, box, "own")
    assert other.run("cat /opt/tool; id -un; ! touch /opt/x")["stdout"] == "installed\nuser\n"
    other.delete().must(204)


def test_a_chain_of_builds_does_not_grow_for_ever(api, box):
    build(api, **{"from": "bash"}, steps=[run(f"echo {i} > /workspace/{i}") for i in range(17)])
    value = api.get("/templates/own").must(200).json
    assert value["layers"] <= 16
    other = made_from(api, box, "own")
    assert other.run("cat /workspace/*")["stdout"].split() == sorted((str(i) for i in range(17)), key=str)
    other.delete().must(204)


def test_a_killed_daemon_leaves_a_build_that_failed_and_nothing_else():
    with Daemon() as daemon:
        api = daemon.api
        made = api.post("/templates/builds", {"name": "own", "from": "bash", "steps": [
            run("echo one > /workspace/a"), run("echo begun; sleep 600")]}).must(202).json
        path = f"/templates/builds/{made['id']}"
        with api.events("GET", f"{path}/events") as events:
            for event in events:
                if event.name == "output":
                    break
                if event.name == "end":
                    pytest.skip(event.data["reason"])
        waiting = [api.post("/templates/builds", {"name": "own", "steps": [run("true")]}).must(202).json for _ in range(3)]
        daemon.kill("daemon")
        daemon.wait_ended()
        daemon.start()
        for one in [made] + waiting:
            now = api.get(f"/templates/builds/{one['id']}").must(200).json
            assert now["status"] in ("failed", "ready") and (now["template"] or "interrupted" in now["reason"]), now
        assert api.get(path).must(200).json["status"] == "failed"
        until(lambda: api.get("/sandboxes").must(200).json["items"] == [], what="ending the step's sandbox")
        again = build(api, **{"from": "bash"}, steps=[run("echo one > /workspace/a")])
        assert again["steps"][0]["cached"], "what was done stays done"
        for one in api.get("/templates").must(200).json["items"]:
            api.delete(f"/templates/{one['id']}").must(204)
        api.delete("/templates/cache").must(204)
        until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")


def test_archives_count_as_their_owners_disk(api, key_for):
    name = "small-disk"
    api.post("/users", {"name": name, "quota": {"disk": "1Mi"}}).must(201)
    small = key_for("user", owner=name)
    data, hash = tar_of(big="x" * (2 << 20))
    refused = send(small, data, hash)
    assert refused.status == 403 and refused.json["error"]["code"] == "quota_exceeded", refused
    assert not small.get(f"/templates/files/{hash}").must(200).json["present"]
    data, hash = tar_of(little="x")
    send(small, data, hash).must(201)
    big = build(small, **{"from": "bash", "resources": {"disk": "4Mi"}}, steps=[run("true")])
    assert big["status"] == "failed" and "quota" in big["reason"], "its box is the owner's, too"
    api.delete(f"/users/{name}").must(204)


@pytest.mark.parametrize("harm", [lambda f: f.write_bytes(b"x" * f.stat().st_size), lambda f: f.unlink()],
                         ids=["damaged", "lost"])
def test_an_archive_that_a_power_cut_took_is_said_and_can_be_sent_again(daemon, api, harm):
    data, hash = tar_of(a=f"kept {harm}")
    send(api, data, hash).must(201)
    [kept] = [file for file in daemon.state_dir.glob("data/files/*") if file.read_bytes() == data]
    harm(kept)
    one = build(api, "cut", steps=[step("COPY", "a", "/workspace/cut", filesHash=hash)])
    assert one["status"] == "failed" and "send it again" in one["reason"], one
    until(lambda: not api.get(f"/templates/files/{hash}").must(200).json["present"], what="its end")
    send(api, data, hash).must(201)
    assert build(api, "cut", steps=[step("COPY", "a", "/workspace/cut", filesHash=hash)])["status"] == "ready"
