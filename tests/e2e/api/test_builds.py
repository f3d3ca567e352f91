"""Templates by steps: archives to copy from, builds, their cache, their limits."""
import hashlib
import io
import tarfile

import pytest

from support.daemon import until


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


def build(api, name="own", **fields):
    """Builds and waits for the end: the build, as it then is."""
    made = api.post("/templates/builds", {"name": name, **fields}).must(202).json
    with api.events("GET", f"/templates/builds/{made['id']}/events") as events:
        for event in events:
            if event.name == "end":
                break
    return api.get(f"/templates/builds/{made['id']}").must(200).json


def run(*args, **more):
    return {"type": "RUN", "args": list(args), **more}


def test_steps_make_a_template(api):
    data, hash = tar_of(**{"tool.txt": "copied\n"})
    send(api, data, hash).must(201)
    one = build(api, **{"from": "bash"}, steps=[
        {"type": "ENV", "args": ["GREETING", "hello"]},
        {"type": "WORKDIR", "args": ["/workspace/app"]},
        run("echo $GREETING > made; pwd >> made"),
        {"type": "COPY", "args": ["x", "."], "filesHash": hash},
    ])
    print(one)
    assert one["status"] == "ready", one
    assert one["template"] == "own:1"
