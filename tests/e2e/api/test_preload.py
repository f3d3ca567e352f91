"""Modules that interpreters of a template have loaded before a program begins, from its own files."""
import os

import pytest

from support.daemon import until

SITE = "import os, site; d = site.getusersitepackages(); os.makedirs(d, exist_ok=True)"
LOADED = "import sys; print('%s' in sys.modules)"


@pytest.fixture
def own(api):
    """`own({"mod.py": text}, preload=["mod"])`: a template with these files among the user's own packages (names with
    a slash: in /workspace)."""
    made = []

    def make(files, base="python", **fields):
        box = api.sandbox(base)
        for name, text in files.items():
            if "/" in name:
                box.run(f"mkdir -p /workspace/{os.path.dirname(name)}")
                api.put(f"{box.path}/files/content?path=/workspace/{name}", text.encode()).must(200, 201)
            else:
                done = box.run(f"""python3 -c '{SITE}; open(os.path.join(d, "{name}"), "w").write(os.environ["TEXT"])'""",
                               env={"TEXT": text})
                assert done["exitCode"] == 0, done
        taken = api.post(f"{box.path}/snapshots", {})
        box.delete().must(204)
        if taken.status == 409:
            pytest.skip(taken.json["error"]["message"])
        ident = taken.must(201).json["id"]
        one = api.post("/templates", {"name": "loaded", "snapshot": ident, **fields}).must(201).json
        made.append(one["name"])
        api.delete(f"/snapshots/{ident}").must(204)
        return one

    yield make
    for name in made:
        api.delete(f"/templates/{name}").must(204, 404)


@pytest.fixture
def start(api, box):
    """Makes sandboxes of the template."""
    made = []

    def make(**fields):
        one = type(box)(api, api.post("/sandboxes", {"template": "loaded", **fields}).must(201).json)
        made.append(one)
        return one

    yield make
    for one in made:
        one.delete().must(204, 404)


STAMPED = "import time\nstamp = time.time_ns()\n"


def test_a_python_has_imported_the_templates_own_modules(api, own, start):
    value = own({"stamped.py": STAMPED}, preload=["stamped", "json"])
    assert value["preload"] == ["stamped", "json"] and value["preloadNode"] == []
    one = start()
    runs = [one.code("python", "import sys; print('stamped' in sys.modules); import stamped; print(stamped.stamp)")
            for _ in range(3)]
    assert all(run["warm"] for run in runs), runs
    assert len({run["stdout"] for run in runs}) == 1 and runs[0]["stdout"].startswith("True\n")
    # Another sandbox has imported it for itself.
    assert start().code("python", "import stamped; print(stamped.stamp)")["stdout"] not in runs[0]["stdout"]
    # What one run leaves in it, the next does not see.
    one.code("python", "import stamped; stamped.stamp = 0")
    assert one.code("python", "import stamped; print(stamped.stamp)")["stdout"] != "0\n"
