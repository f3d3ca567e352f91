"""Packages: names that are none, the way out that is open for one call, and what it does not reach."""
import http.server
import json
import shutil
import socket
import threading

import pytest

from support.daemon import Daemon, until
from support.registry import Registry

BOX = {"resources": {"memory": "1Gi", "cpu": 2, "pids": 256, "disk": "512Mi"}}


@pytest.fixture(scope="module")
def daemon(registry):
    with Daemon("--registry-pip", f"{registry.url}/simple/", "--registry-npm", f"{registry.url}/",
                "--registry-allow-private") as running:
        yield running


@pytest.fixture
def sandbox(daemon):
    made = daemon.api.sandbox("base", **BOX)
    yield made
    made.delete().must(204, 404)


def install(box, manager, *packages, **more):
    return box.api.post(f"{box.path}/packages", {"manager": manager, "packages": list(packages), **more})


BAD = {
    "pip": ["", "-r", "--index-url=http://evil", "a b", "a;b", "a@http://x/y.whl", "./a", "/etc/passwd", "git+https://x/y",
            "a==1;os", "a==", "a==1,", "a[", "a[]", "a[x", "a===1", "http://x", "a\n", "$(id)", "a`id`", "..", "é"],
    "npm": ["-g", "../a", "a/b", "@a", "@a/", "a@", "a@http://x", "a@file:x", "a@npm:b", "a@git+ssh://x", "A", "a b", ".a",
            "https://x", "@a/b/c", "a@1 || 2", "a@../x"],
    "cargo": ["--git", "a b", "a@", "a@=1", "1a", "a/b", "a@1 --path /", "../a", "https://x", "a;b"],
    "go": ["cmd/go", "./x", "x.example/../y@v1", "x.example//y", "x.example/y@", "-v", "x.example/y@v1 -x", "/x.example/y",
           "x.example/y/", "https://x.example/y", "x.example", "x.example/y@v1;id"],
}


@pytest.mark.parametrize("manager, name", [(m, n) for m, names in BAD.items() for n in names])
def test_what_is_no_name_and_version_is_refused(sandbox_once, manager, name):
    answer = install(sandbox_once, manager, name)
    assert answer.status == 400 and answer.json["error"]["details"] in ({"field": "packages"}, {"field": "packages[0]"}), answer


@pytest.fixture(scope="module")
def sandbox_once(daemon):
    made = daemon.api.sandbox("base", **BOX)
    yield made
    made.delete().must(204)


@pytest.mark.parametrize("manager, name", [("cargo", "ripgrep@14.1.0"), ("go", "example.com/tool@v1.2.3")])
def test_a_manager_without_a_registry_says_how_to_set_one(sandbox_once, manager, name):
    assert f"registry_{manager}" in install(sandbox_once, manager, name).error(409)


def test_the_number_of_packages_is_bounded(sandbox_once):
    install(sandbox_once, "pip").must(400)
    install(sandbox_once, "pip", *["a"] * 65).must(400)
    install(sandbox_once, "apt", "a").must(400)


def test_pip_installs_from_the_registry_and_the_package_can_be_imported(sandbox, registry):
    value = install(sandbox, "pip", "holtdemo==1.2").must(200).json
    assert value["exitCode"] == 0, value
    assert sandbox.run("python3 -c 'import holtdemo; print(holtdemo.VALUE)'")["stdout"] == "42\n"
    assert any(path == "/simple/holtdemo/" for path, _ in registry.asked)
    listed = sandbox.api.get(f"{sandbox.path}/packages").must(200).json["items"]
    assert [(p["request"], p["installed"], p["running"]) for p in listed] == [
        ({"manager": "pip", "packages": ["holtdemo==1.2"]}, True, False)]
    sandbox.delete().must(204)
    used = sandbox.api.get("/usage?group=sandbox").must(200).json["items"]
    assert [row["networkBytes"] > 0 for row in used if row["sandboxId"] == sandbox.id] == [True]


def test_installations_are_listed_by_page_however_many_executions_are_between(sandbox):
    done = []
    for version in ("1.2", "9.9", "1.2"):
        done.insert(0, install(sandbox, "pip", f"holtdemo=={version}").must(200).json["executionId"])
        sandbox.run("true")
    listing = lambda query="": sandbox.api.get(f"{sandbox.path}/packages{query}").must(200).json
    whole = listing()
    assert [one["executionId"] for one in whole["items"]] == done and whole["nextCursor"] is None
    assert [one["installed"] for one in whole["items"]] == [True, False, True]
    page = listing("?limit=2")
    assert page["items"] == whole["items"][:2] and page["nextCursor"]
    rest = listing(f"?limit=2&cursor={page['nextCursor']}")
    assert rest == {"items": whole["items"][2:], "nextCursor": None}
    sandbox.api.get(f"{sandbox.path}/packages?cursor=x").error(400, field="cursor")


def test_progress_comes_as_events(sandbox):
    with sandbox.api.events("POST", f"{sandbox.path}/packages",
                            {"manager": "pip", "packages": ["holtdemo"], "stream": True}) as events:
        seen = list(events)
    assert seen[0].name == "start" and seen[-1].name == "end" and seen[-1].data["exitCode"] == 0
    assert any("holtdemo" in event.text for event in seen if event.name == "output")


def test_npm_installs_from_the_registry(sandbox):
    if sandbox.run("npm --version")["exitCode"] != 0:
        pytest.skip("there is no npm here")
    value = install(sandbox, "npm", "holtdemo@1.2.0", timeout="120s").must(200).json
    assert value["exitCode"] == 0, value
    assert sandbox.run("cd /workspace && node -e \"console.log(require('holtdemo'))\"")["stdout"] == "42\n"


@pytest.fixture
def named():
    """A registry with a name: go asks no proxy for addresses of the loopback."""
    name = socket.gethostname()
    try:
        made = Registry(name)
    except OSError:
        pytest.skip(f"'{name}' is no name of this machine's own")
    yield made
    made.close()


def asked(registry, part):
    return any(part in path for path, _ in registry.asked)


@pytest.mark.parametrize("manager, package, part, program", [
    ("cargo", "holtdemo@1.2.0", "/crates/holtdemo-1.2.0.crate", "~/.cargo/bin/holtdemo"),
    ("go", "holt.example/holtdemo@v1.2.0", "/go/holt.example/holtdemo/@v/v1.2.0.zip", "~/go/bin/holtdemo"),
])
def test_cargo_and_go_fetch_build_and_install(named, manager, package, part, program):
    if not shutil.which(manager, path="/usr/local/bin:/usr/bin"):
        pytest.skip(f"boxes of this machine have no {manager}")
    # A cargo from before 1.68 knows such a registry, but wants to be asked twice.
    env = {"RUSTC_BOOTSTRAP": "1", "CARGO_UNSTABLE_SPARSE_REGISTRY": "true"}
    with Daemon("--registry-cargo", f"{named.url}/index/", "--registry-go", f"{named.url}/go",
                "--registry-allow-private") as daemon:
        box = daemon.api.sandbox("base", env=env, **BOX)
        value = install(box, manager, package, timeout="300s").must(200).json
        assert value["exitCode"] == 0, value["stdout"] + value["stderr"]
        assert asked(named, part)
        assert box.run(program)["stdout"] == "42\n"
        missing = install(box, manager, package.replace("holtdemo", "holtnothing"), timeout="300s").must(200).json
        assert missing["exitCode"] != 0 and "holtnothing" in missing["stderr"], missing
        box.delete().must(204)


def test_what_is_not_there_fails_with_the_manager_s_own_words(sandbox):
    value = install(sandbox, "pip", "holtnothing").must(200).json
    assert value["exitCode"] != 0 and "holtnothing" in value["stdout"] + value["stderr"]


# --- the way out ---------------------------------------------------------------------------------

# Runs beside pip: finds the proxy in pip's environment, and tries what it can.
SPY = r'''
import glob, json, socket, sys, time
def proxy():
    end = time.time() + 30
    while time.time() < end:
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                for pair in open(path, "rb").read().split(b"\0"):
                    if pair.startswith(b"HTTP_PROXY=http://127.0.0.1:"):
                        return int(pair.rsplit(b":", 1)[1])
            except OSError:
                pass
    sys.exit("no proxy was seen")
def say(port, text):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.sendall(text.encode())
    data = b""
    try:
        while piece := s.recv(65536):
            data += piece
            if len(data) > 4096: break
    except OSError:
        pass
    return data.decode("latin-1").split("\r\n")[0]
registry, forbidden = sys.argv[1], sys.argv[2]
port = proxy()
out = {}
def host(h): return f"Host: {h}\r\n\r\n"
out["connect other port"] = say(port, f"CONNECT 127.0.0.1:{forbidden} HTTP/1.1\r\n" + host("127.0.0.1"))
out["connect other host"] = say(port, "CONNECT localhost:%s HTTP/1.1\r\n" % registry + host("localhost"))
out["connect metadata"] = say(port, "CONNECT 169.254.169.254:80 HTTP/1.1\r\n" + host("x"))
out["absolute other"] = say(port, f"GET http://127.0.0.1:{forbidden}/ HTTP/1.1\r\n" + host(f"127.0.0.1:{forbidden}"))
out["mismatch"] = say(port, f"GET http://127.0.0.1:{registry}/ HTTP/1.1\r\n" + host(f"127.0.0.1:{forbidden}"))
out["userinfo"] = say(port, f"GET http://127.0.0.1:{registry}@127.0.0.1:{forbidden}/ HTTP/1.1\r\n" + host(f"127.0.0.1:{registry}"))
out["origin form"] = say(port, "GET / HTTP/1.1\r\n" + host(f"127.0.0.1:{registry}"))
out["smuggled"] = say(port, f"GET http://127.0.0.1:{registry}/simple/holtdemo/ HTTP/1.1\r\n" + host(f"127.0.0.1:{registry}")
                      + f"GET http://127.0.0.1:{forbidden}/ HTTP/1.1\r\n" + host(f"127.0.0.1:{forbidden}"))
out["decimal"] = say(port, f"CONNECT 2130706433:{forbidden} HTTP/1.1\r\n" + host("x"))
out["garbage"] = say(port, "\x16\x03\x01hello\r\n\r\n")
out["big head"] = say(port, f"GET http://127.0.0.1:{registry}/ HTTP/1.1\r\nX: " + "a" * 100000 + "\r\n\r\n")
out["redirect"] = say(port, f"GET http://127.0.0.1:{registry}/moved HTTP/1.1\r\n" + host(f"127.0.0.1:{registry}"))
out["allowed"] = say(port, f"CONNECT 127.0.0.1:{registry} HTTP/1.0\r\n\r\nGET /simple/holtdemo/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
try:
    socket.create_connection(("127.0.0.1", int(registry)), 3)
    out["direct"] = "connected"
except OSError as e:
    out["direct"] = "refused"
out["port"] = port
print(json.dumps(out))
'''


def test_other_programs_reach_the_registry_and_nothing_else(sandbox, registry, daemon):
    hits = []

    class Forbidden(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            hits.append(self.path)
            self.send_response(200)
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forbidden)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    forbidden = server.server_address[1]
    api = sandbox.api
    api.put(f"{sandbox.path}/files/workspace/spy.py", SPY.encode()).must(200, 201)
    # pip waits for this one until the spy is done.
    started = api.post(f"{sandbox.path}/executions", {
        "argv": ["python3", "/workspace/spy.py", str(registry.port), str(forbidden)], "background": True}).must(202).json
    slow = threading.Event()
    registry.files["/simple/holtslow/"] = ("text/html", b"")

    def run():
        while not slow.is_set():
            install(sandbox, "pip", "holtslow", "holtdemo")

    worker = threading.Thread(target=run)
    worker.start()
    path = f"{sandbox.path}/executions/{started['executionId']}"
    try:
        until(lambda: api.get(path).must(200).json["status"] != "running", 60, "the spy's end")
    finally:
        slow.set()
        worker.join()
        server.shutdown()
        server.server_close()
    done = api.get(path).must(200).json
    assert done["exitCode"] == 0, done
    seen = json.loads(done["stdout"])
    port = seen.pop("port")
    assert seen.pop("allowed").startswith("HTTP/1.1 200"), seen
    assert seen.pop("smuggled").startswith("HTTP/1.1 200")
    assert seen.pop("redirect").startswith("HTTP/1.1 302")
    assert seen.pop("direct") == "refused"
    for what, line in seen.items():
        assert line.split(" ")[1][:1] == "4", (what, line)
    assert hits == [], hits
    # Nothing is left of the way out.
    after = sandbox.run(f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 3)'")
    assert after["exitCode"] != 0 and "refused" in after["stderr"]
    kinds = [e for e in api.get("/security-events").json.get("items", [])] if api.get("/security-events").status == 200 else None
    if kinds is not None:
        assert any(e["kind"] == "security.egress_refused" for e in kinds), kinds[:5]


def test_a_private_address_is_refused_unless_the_operator_allows_it(registry):
    with Daemon("--registry-pip", f"{registry.url}/simple/") as daemon:
        box = daemon.api.sandbox("base", **BOX)
        before = len(registry.asked)
        value = install(box, "pip", "holtdemo", timeout="60s").must(200).json
        assert value["exitCode"] != 0, value
        assert len(registry.asked) == before
        box.delete().must(204)


def test_a_build_installs_packages_for_its_template(daemon, registry):
    api = daemon.api
    made = api.post("/templates/builds", {
        "name": "withdemo", "from": "base", "packages": {"pip": ["holtdemo==1.2"]}, **BOX,
        "steps": [{"type": "RUN", "args": ["python3 -c 'import holtdemo; print(holtdemo.VALUE)'"]}]}).must(202).json
    path = f"/templates/builds/{made['id']}"
    with api.events("GET", f"{path}/events") as events:
        assert list(events)[-1].name == "end"
    one = api.get(path).must(200).json
    if one["reason"] and "freezer" in one["reason"]:
        pytest.skip(one["reason"])
    assert one["status"] == "ready" and one["steps"][1]["output"] == "42\n", one
    box = api.sandbox("withdemo")
    assert box.run("python3 -c 'import holtdemo; print(holtdemo.VALUE)'")["stdout"] == "42\n"
    box.delete().must(204)
    api.delete("/templates/withdemo").must(204)
    api.delete("/templates/cache").must(204)
    until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")
