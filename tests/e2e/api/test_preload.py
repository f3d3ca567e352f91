"""Modules that interpreters of a template have loaded before a program begins, from its own files."""
import os

import pytest

from support.daemon import until

SITE = "import os, site; d = site.getusersitepackages(); os.makedirs(d, exist_ok=True)"


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
                api.put(f"{box.path}/files/workspace/{name}", text.encode()).must(200, 201)
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


@pytest.fixture
def pool(api):
    made = []

    def make(name, **fields):
        made.append(name)
        api.post("/warmpools", {"name": name, "minSize": 1, "maxSize": 1, **fields}).must(201)

    yield make
    for name in made:
        api.delete(f"/warmpools/{name}").must(204)


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



def has(one, module):
    """Whether a warm Python has the module before the program begins."""
    run = one.code("python", f"import sys; print({module!r} in sys.modules)")
    assert run["exitCode"] == 0, run
    return run["warm"] and run["stdout"] == "True\n"


def refused(api, **fields):
    """Why no sandbox of the template can be made."""
    return api.post("/sandboxes", {"template": "loaded", **fields}).error(409)


def test_a_python_of_a_template_without_files_has_them_too(api, start):
    made = api.post("/templates", {"name": "loaded", "from": "python", "preload": ["fractions"]}).must(201).json
    # The template's interpreter makes the box, or, before that is ready, the box imports by itself.
    assert has(start(), "fractions")
    api.delete(f"/templates/{made['id']}").must(204)


def test_boxes_that_wait_have_imported_them(api, own, pool, start):
    own({"stamped.py": STAMPED}, preload=["stamped"])
    pool("loaded", runtime="loaded")
    status = until(lambda: (lambda s: s if s["ready"] else None)(api.get("/warmpools/loaded/status").must(200).json),
                   60, "a box that waits")
    assert status["problem"] is None
    one = start()
    assert one.value["start"] == "warm" and has(one, "stamped")


def test_a_context_begins_with_them(api, own, start):
    own({"stamped.py": STAMPED}, preload=["stamped"])
    one = start()
    before = one.code("python", "import stamped; print(stamped.stamp)")["stdout"]
    context = api.post(f"{one.path}/contexts", {"language": "python"}).must(201).json["contextId"]
    answer = api.post(f"{one.path}/contexts/{context}/run", {"code": "import stamped; print(stamped.stamp)"}).must(200)
    assert before.strip() in answer.body.decode()


def test_what_is_installed_later_is_found(api, own, start):
    own({"stamped.py": STAMPED}, preload=["stamped"])
    one = start()
    assert has(one, "stamped")
    one.run(f"""python3 -c '{SITE}; open(os.path.join(d, "later.py"), "w").write("x = 5")'""")
    run = one.code("python", "import sys; fresh = 'stamped' not in sys.modules; import later; print(later.x, fresh)")
    assert run["stdout"] == "5 True\n", run


def test_a_node_has_loaded_the_templates_own_modules(api, own, start):
    value = own({"node_modules/noisy/index.js": "console.log('no'); console.error('no'); module.exports = {at: process.hrtime.bigint()}",
                 "node_modules/noisy/package.json": '{"name": "noisy", "version": "1.0.0"}'},
                base="node", preloadNode=["noisy", "fs"])
    assert value["preloadNode"] == ["noisy", "fs"] and value["preload"] == []
    run = start().code("javascript", "console.log(Object.keys(require('module')._cache).join())")
    assert run["warm"] and run["stdout"] == "/workspace/node_modules/noisy/index.js\n" and run["stderr"] == ""
    again = start().code("javascript", "const before = process.hrtime.bigint() - 1000000n; console.log(require('noisy').at < before)")
    assert again["stdout"] == "true\n" and again["warm"]


def test_a_module_that_is_not_there_is_told_to_the_first_who_wants_it(api, own, daemon):
    own({"stamped.py": STAMPED}, preload=["json", "no_such_module"])
    assert "cannot import 'no_such_module': ModuleNotFoundError" in refused(api)
    own({"broken.py": "1 / 0"}, preload=["broken"])
    assert "cannot import 'broken': ZeroDivisionError: division by zero" in refused(api)
    own({"leaves.py": "raise SystemExit(3)"}, preload=["leaves"])
    assert "cannot import 'leaves': SystemExit: 3" in refused(api)
    own({}, base="node", preloadNode=["no-such"])
    assert "Node cannot load 'no-such': Cannot find module 'no-such'" in refused(api)


def test_a_template_without_files_tells_it_as_well(api):
    made = api.post("/templates", {"name": "loaded", "from": "python", "preload": ["no_such_module"]}).must(201).json
    for _ in range(2):
        assert "cannot import 'no_such_module'" in refused(api)
    api.delete(f"/templates/{made['id']}").must(204)


def test_a_pool_tells_what_its_boxes_lack(api, own, pool):
    own({"stamped.py": STAMPED}, preload=["no_such_module"])
    for name, fields in [("loaded", {"runtime": "loaded"}), ("builtin", {"runtime": "python", "preloadPackages": ["nope"]})]:
        pool(name, **fields)
        problem = until(lambda: api.get(f"/warmpools/{name}/status").must(200).json["problem"], 60, "why no Python waits")
        assert "preload: Python cannot import 'no" in problem
    # Boxes of a built-in template wait without it, and it is still said.
    until(lambda: api.get("/warmpools/builtin/status").must(200).json["ready"], 60, "a box that waits")
    assert "'nope'" in api.get("/warmpools/builtin/status").must(200).json["problem"]


def test_files_are_given_back_though_a_module_is_gone(api, own, start):
    own({"stamped.py": STAMPED}, preload=["stamped"])
    one = start()
    assert has(one, "stamped")
    one.run(f"""echo kept > a; python3 -c '{SITE}; os.unlink(os.path.join(d, "stamped.py")); __import__("shutil").rmtree(d)'""")
    api.post(f"{one.path}/stop").must(200)
    api.post(f"{one.path}/start").must(200)
    assert one.run("cat a")["stdout"] == "kept\n"
    assert one.code("python", "print(1)")["stdout"] == "1\n"
    # It is told before the events of the start, which are told already.
    with api.events("GET", f"/events?sandbox={one.id}", headers={"Last-Event-ID": "0"}) as events:
        told = next(event.data for event in events if event.name == "sandbox.preload_failed")
    assert "cannot import 'stamped'" in told["data"]["reason"]


@pytest.mark.parametrize("field, value", [
    ("preload", ["a-b"]), ("preload", ["a,b"]), ("preload", [""]), ("preloadNode", ["../x"]), ("preloadNode", ["/etc/x"]),
    ("preloadNode", ["a,b"]), ("preloadNode", [""]), ("preloadNode", ["-r"]), ("preloadNode", ["m" * 120] * 12),
    ("preloadNode", [f"m{n}" for n in range(33)]),
])
def test_only_names_of_modules_are_taken(api, field, value):
    api.post("/templates", {"name": "bad", "from": "base", field: value}).error(400, field=field)


def test_modules_are_those_of_an_interpreter_that_waits(api):
    api.post("/templates", {"name": "bad", "from": "python", "preloadNode": ["fs"]}).error(400, field="preloadNode")
    api.post("/templates", {"name": "bad", "from": "node", "preload": ["json"]}).error(400, field="preload")


def test_a_build_brings_the_modules_and_says_what_is_preloaded(api, own, start):  # own: whether files can be kept here
    own({})
    made = api.post("/templates/builds", {"name": "loaded", "preload": ["made"], "steps": [
        {"type": "RUN", "args": [f"""python3 -c '{SITE}; open(os.path.join(d, "made.py"), "w").write("x = 7")'"""]}]}).must(202).json
    with api.events("GET", f"/templates/builds/{made['id']}/events") as events:
        list(events)
    built = api.get(f"/templates/builds/{made['id']}").must(200).json
    if built["reason"] and "freezer" in built["reason"]:
        pytest.skip(built["reason"])
    assert built["status"] == "ready", built
    value = api.get("/templates/loaded").must(200).json
    assert value["preload"] == ["made"]
    assert has(start(), "made")
    api.delete(f"/templates/{value['id']}").must(204)
    api.delete("/templates/cache").must(204)


def test_programs_find_nothing_of_the_machinery(api, own, start, python):
    own({"stamped.py": STAMPED}, preload=["stamped"])
    one = start()
    look = "import os; print(sorted(os.listdir('/proc/self/fd')), sorted(os.environ), os.getuid(), os.getgroups(), os.getcwd())"
    assert one.code("python", look)["stdout"] == python.code("python", look)["stdout"]
    assert one.run("ls /proc/self/fd")["stdout"] == python.run("ls /proc/self/fd")["stdout"]
    caps = "print([line for line in open('/proc/self/status') if line.startswith(('Cap', 'NoNewPrivs', 'Seccomp:'))])"
    assert one.code("python", caps)["stdout"] == python.code("python", caps)["stdout"]
