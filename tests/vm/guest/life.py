"""What the end of a machine must not take. usage: life.py keep|kept|load|whole

`keep` fills a state directory and leaves its daemon running for the shutdown, `kept` looks after the next start.
`load` does so without an end until the power is cut, and writes down what was acknowledged; `whole` looks then."""
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, "/opt/holt/tests/e2e")
from support.client import Box  # noqa: E402
from support.daemon import IS_ROOT, Daemon, until  # noqa: E402

PLACE = pathlib.Path("/var/lib/holt-vm" if IS_ROOT else pathlib.Path.home() / "holt-vm")
FACTS = PLACE / "facts"
ENOUGH = 60  # acknowledged deeds before the power is cut


def start():
    PLACE.mkdir(mode=0o755, exist_ok=True)
    daemon = Daemon(state_dir=PLACE / "state")
    daemon.key_file = PLACE / "key"
    daemon.start()
    daemon.api.key = daemon.key
    return daemon


class Facts:
    """What was acknowledged, on disk before anything else happens."""

    def __init__(self):
        self.file, self.lock, self.number = open(FACTS, "a"), threading.Lock(), 0

    def add(self, kind, name, text=""):
        with self.lock:
            self.file.write(json.dumps([kind, name, text]) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())
            self.number += 1
            if self.number == ENOUGH:
                print("vm: cut the power", flush=True)


# --- deeds: each returns when the daemon has said that it is done ------------------------------------------

def make_key(api, facts, name):
    facts.add("key", name, api.post("/keys", {"name": name, "role": "user", "owner": "admin"}).must(201).json["key"])


def make_user(api, facts, name):
    api.post("/users", {"name": name, "role": "user"}).must(201)
    facts.add("user", name)


def make_stopped(api, facts, name):
    box = api.sandbox(name=name)
    box.put("/workspace/f", name.encode()).must(201)
    api.post(f"{box.path}/stop").must(200)
    facts.add("stopped", name)


def make_snapshot(api, facts, name):
    box = api.sandbox()
    box.put("/workspace/f", name.encode()).must(201)
    api.post(f"{box.path}/snapshots", {"name": name}).must(201)
    facts.add("snapshot", name)
    box.delete().must(204)


def make_volume(api, facts, name):
    api.post("/volumes", {"name": name, "size": "16Mi"}).must(201)
    box = api.sandbox(volumes=[{"name": name, "path": "/mnt/data"}])
    assert box.run(f"echo -n {name} > /mnt/data/f && sync /mnt/data/f")["exitCode"] == 0
    facts.add("volume", name)
    box.delete().must(204)


DEEDS = {"key": make_key, "user": make_user, "stopped": make_stopped, "snapshot": make_snapshot}
if IS_ROOT:
    DEEDS["volume"] = make_volume


# --- the same, afterwards -----------------------------------------------------------------------------------

def see_key(api, name, text):
    api.using(text).get("/sandboxes").must(200)


def see_user(api, name, text):
    api.get(f"/users/{name}").must(200)


def see_file(box, path, name):
    found = box.run(f"cat {path}")
    assert found["stdout"] == name, found
    box.delete().must(204)


def see_stopped(api, name, text):
    see_file(Box(api, api.post(f"/sandboxes/{name}/start").must(200).json), "/workspace/f", name)


def see_snapshot(api, name, text):
    see_file(Box(api, api.post("/sandboxes", {"snapshot": name}).must(201).json), "/workspace/f", name)
    api.delete(f"/snapshots/{name}").must(204)


def see_volume(api, name, text):
    see_file(api.sandbox(volumes=[{"name": name, "path": "/mnt/data"}]), "/mnt/data/f", name)
    until(lambda: api.delete(f"/volumes/{name}").status == 204, what="the end of a volume")


LOOKS = {"key": see_key, "user": see_user, "stopped": see_stopped, "snapshot": see_snapshot, "volume": see_volume}


def check(what, deed, *args):
    try:
        deed(*args)
        print(f"ok 1 {what}", flush=True)
    except Exception as error:  # noqa: BLE001  whatever it is, the next is looked at too
        print(f"failed 1 {what}: {type(error).__name__}: {str(error)[:2000]}", flush=True)


def keep():
    api, facts = start().api, Facts()
    for kind, deed in DEEDS.items():
        check(f"a {kind} is made", deed, api, facts, f"kept-{kind}")
    api.sandbox(name="running").begin("sleep 1000")


def load():
    api, facts = start().api, Facts()

    def go_on(kind, deed):
        for number in itertools.count():
            deed(api, facts, f"{kind}-{number}")

    for kind, deed in DEEDS.items():
        threading.Thread(target=go_on, args=(kind, deed)).start()


def make_way(daemon):
    """Ends what nobody wrote down: it was under way."""
    api = daemon.api
    daemon.delete_all()
    for one in api.get("/snapshots").must(200).json["items"]:
        api.delete(f"/snapshots/{one['id']}").must(204)
    for one in api.get("/volumes").must(200).json["items"]:
        until(lambda: api.delete(f"/volumes/{one['id']}").status == 204, what="the end of a volume")


def look():
    daemon = start()
    facts = [json.loads(line) for line in FACTS.read_text().splitlines()]
    counts = {kind: sum(fact[0] == kind for fact in facts) for kind in LOOKS}
    print(f"looking for {counts}", flush=True)
    for kind in DEEDS:
        check(f"every acknowledged {kind} is there",
              lambda: [LOOKS[kind](daemon.api, name, text) for one, name, text in facts if one == kind])
    check("no box is said to run that does not", lambda: see_nobody_run(daemon.api))
    check("the rest can be removed", make_way, daemon)
    check("nothing is left", daemon.finish)
    FACTS.unlink()
    subprocess.run(["rm", "-rf", PLACE], check=True)


def see_nobody_run(api):
    found = [one for one in api.get("/sandboxes?limit=500").must(200).json["items"] if one["status"] == "running"]
    assert not found, found


{"keep": keep, "kept": look, "load": load, "whole": look}[sys.argv[1]]()
