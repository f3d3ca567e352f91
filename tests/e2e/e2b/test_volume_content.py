"""What is in a volume, by its own token: with and without a sandbox that has it."""
import concurrent.futures
import itertools
import json
import urllib.parse

import pytest

from support.client import Answer
from support.connect import Envd
from support.daemon import Daemon, until
from support.e2b import e2b_key

NAMES = itertools.count()
pytestmark = pytest.mark.usefixtures("needs_root")  # without root there are no volumes


def send(api, method, path, body=None, **headers):
    connection = api.connect()
    try:
        connection.request(method, path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def free(answer, status):
    """None while the machine still holds the volume for a box that is gone: on a loaded one that takes its time."""
    return answer if answer.must(status, 409).status == status else None


class Control:
    def __init__(self, api, key=None):
        self.api, self.key = api, e2b_key(key or api.key)

    def ask(self, method, path, value=None):
        body = json.dumps(value) if value is not None else None
        return send(self.api, method, path, body, X_API_KEY=self.key,
                    **({"Content_Type": "application/json"} if body else {}))

    def create(self, volume, path="/mnt/v"):
        body = {"templateID": "base", "volumeMounts": [{"name": volume.name, "path": path}]}
        made = until(lambda: free(self.ask("POST", "/v2/sandboxes", body), 201), what="its release").json
        return made["sandboxID"], Envd(self.api, made["sandboxID"], made["envdAccessToken"])

    def kill(self, ident):
        self.ask("DELETE", f"/sandboxes/{ident}").must(204, 404)

    def drop(self, volume):
        """The machine may hold its device a moment longer than its box is there."""
        until(lambda: self.ask("DELETE", f"/volumes/{volume.id}").must(204, 404, 409).status != 409, what="its release")


class Volume:
    def __init__(self, control):
        answer = control.ask("POST", "/volumes", {"name": f"content-{next(NAMES)}"})
        if answer.status == 409:
            pytest.skip(f"this machine cannot: {answer.json['message']}")
        made = answer.must(201).json
        self.api, self.id, self.name, self.token = control.api, made["volumeID"], made["name"], made["token"]

    def ask(self, method, what, path=None, body=None, token=None, **query):
        query = {**({"path": path} if path is not None else {}), **query}
        return send(self.api, method, f"/volumecontent/{self.id}/{what}?{urllib.parse.urlencode(query)}", body,
                    Authorization=f"Bearer {token or self.token}",
                    **({"Content_Type": "application/json"} if method == "PATCH" else {}))

    def write(self, path, data, **query):
        return self.ask("PUT", "file", path, data, **query).must(201).json

    def read(self, path):
        return self.ask("GET", "file", path).must(200).body

    def names(self, path="/", **query):
        return [entry["path"] for entry in self.ask("GET", "dir", path, **query).must(200).json]


@pytest.fixture
def control(api):
    return Control(api)


@pytest.fixture
def volume(control):
    made = Volume(control)
    yield made
    control.drop(made)


def run(envd, command):
    with envd.stream("process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", command]}}) as all_:
        return next(m["event"]["end"].get("exitCode", 0) for m in all_ if "end" in m["event"])


def test_files_are_written_read_listed_changed_and_removed(volume):
    made = volume.write("/a.txt", b"first")
    assert made["path"] == "/a.txt" and made["name"] == "a.txt" and made["type"] == "file" and made["size"] == 5
    assert {"mode", "uid", "gid", "atime", "mtime", "ctime"} <= set(made)
    assert volume.read("a.txt") == b"first"
    volume.write("/a.txt", b"second, and longer", mode=0o600)
    assert volume.read("/x/../a.txt") == b"second, and longer"
    assert volume.ask("GET", "path", "/a.txt").must(200).json["mode"] == 0o600
    changed = volume.ask("PATCH", "path", "/a.txt", json.dumps({"mode": 0o640})).must(200).json
    assert changed["mode"] == 0o640 and changed["size"] == 18
    made = volume.ask("POST", "dir", "/d/e", force="true").must(201).json
    assert made["type"] == "directory" and made["path"] == "/d/e"
    volume.ask("POST", "dir", "/d/e", force="true").must(201)
    volume.write("/d/e/f", b"")
    assert [p for p in volume.names() if "lost+found" not in p] == ["/a.txt", "/d"]
    assert [p for p in volume.names("/d", depth=2)] == ["/d/e", "/d/e/f"]
    volume.ask("DELETE", "path", "/d").must(204)
    volume.ask("GET", "path", "/d").must(404)
    volume.ask("DELETE", "path", "/d").must(404)


def test_what_is_there_is_replaced_unless_nothing_is_to_be_forced(volume):
    volume.write("/a.txt", b"first", force="false")
    volume.ask("PUT", "file", "/a.txt", b"second", force="false").must(409)
    assert volume.read("/a.txt") == b"first"
    volume.ask("PUT", "file", "/a.txt", b"second", force="true").must(201)
    assert volume.read("/a.txt") == b"second"
    volume.ask("PUT", "file", "/a.txt", b"third").must(201)
    assert volume.read("/a.txt") == b"third"


def test_a_large_file_goes_both_ways(volume):
    data = bytes(range(256)) * (12 << 10)
    assert volume.write("/large", data)["size"] == len(data)
    assert volume.read("/large") == data


def test_what_cannot_be_is_refused(volume):
    volume.ask("GET", "file", "/none").must(404)
    volume.ask("GET", "dir", "/none").must(404)
    volume.ask("PUT", "file", "/no/parent", b"x").must(404)
    volume.ask("POST", "dir", "/no/parent").must(404)
    volume.ask("POST", "dir", "/d").must(201)
    volume.ask("POST", "dir", "/d").must(409)
    volume.ask("GET", "file", "/d").must(400)
    volume.ask("GET", "file", "/" + "x" * 5000).must(400, 414)
    volume.ask("GET", "dir", "/", depth=100000).must(400)
    volume.ask("PUT", "file", "/x", b"x", mode=0o4755).must(400)
    volume.ask("PUT", "file", "/x", b"x", uid=0).must(501)
    volume.ask("PATCH", "path", "/d", json.dumps({"gid": 7})).must(501)
    volume.ask("DELETE", "path", "/").must(400)
    volume.ask("GET", "else", "/").must(404)
    assert "/d" in volume.names()


def test_only_the_volumes_token_opens_it(volume, control):
    other = Volume(control)
    for token in ("x", other.token, control.key, control.api.key, volume.token[:-1] + "g", volume.id):
        volume.ask("GET", "dir", "/", token=token).must(401)
    send(control.api, "GET", f"/volumecontent/{volume.id}/dir?path=/").must(401)
    send(control.api, "GET", f"/volumecontent/{volume.name}/dir?path=/", Authorization=f"Bearer {volume.token}").must(401)
    send(control.api, "GET", "/volumes", Authorization=f"Bearer {volume.token}").must(401)
    again = control.ask("GET", f"/volumes/{volume.id}").must(200).json
    assert again["token"] == volume.token
    control.drop(other)
    other.ask("GET", "dir", "/").must(404)


def test_a_volume_in_use_gives_way_to_a_sandbox_and_is_read_there(volume, control):
    volume.write("/before", b"from outside")
    ident, envd = control.create(volume)  # at once: the box that wrote it gives way
    try:
        assert run(envd, "cat /mnt/v/before; echo inside > /mnt/v/within; ln -s /etc /mnt/v/out") == 0
        assert volume.read("/within") == b"inside\n"
        volume.write("/later", b"while it runs")
        assert run(envd, "grep -q 'while it runs' /mnt/v/later") == 0
        # Links resolve below the volume: nothing else of the sandbox is reached.
        assert volume.ask("GET", "path", "/out").must(200).json["type"] == "symlink"
        volume.ask("GET", "file", "/out/passwd").must(404)
        volume.ask("PUT", "file", "/out/evil", b"x").must(404)
        volume.ask("GET", "file", "/../../etc/passwd").must(404)
        assert run(envd, "test ! -e /etc/evil") == 0
        control.ask("POST", f"/sandboxes/{ident}/pause").must(204)
        refused = volume.ask("GET", "dir", "/").must(409).json
        assert ident in refused["message"]
        control.ask("DELETE", f"/volumes/{volume.id}").must(409)
    finally:
        control.kill(ident)
    assert until(lambda: free(volume.ask("GET", "file", "/later"), 200), what="its release").body == b"while it runs"


def test_many_at_once_share_one_box(volume):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: volume.write(f"/f{i}", str(i).encode()), range(16)))
        assert list(pool.map(lambda i: volume.read(f"/f{i}"), range(16))) == [str(i).encode() for i in range(16)]


def test_more_volumes_than_boxes_take_turns(control):
    volumes = [Volume(control) for _ in range(6)]
    for one in volumes:
        one.write("/name", one.name.encode())
    for one in volumes:
        assert one.read("/name") == one.name.encode()
        control.drop(one)


def test_a_volume_goes_while_its_box_is_there(control):
    made = Volume(control)
    made.write("/x", b"x")
    control.drop(made)
    made.ask("GET", "file", "/x").must(404)


def test_a_killed_daemon_leaves_no_box_of_its_own():
    with Daemon() as daemon:
        made = Volume(Control(daemon.api))
        made.write("/kept", b"kept")
        daemon.kill("keeper", "daemon", "launcher")
        daemon.start()
        until(lambda: not daemon.api.get("/sandboxes").must(200).json["items"], what="its end")
        made.api = daemon.api  # at another port
        assert until(lambda: free(made.ask("GET", "file", "/kept"), 200), what="its release").body == b"kept"
        Control(daemon.api).drop(made)
