"""Programs inside that turn on the interpreter, on the sandbox or on those who look at them."""
import time

import pytest


def context(box, language="python"):
    made = box.api.post(f"{box.path}/contexts", {"language": language}).must(201).json
    return f"{box.path}/contexts/{made['contextId']}"


def run(box, path, code, **fields):
    return box.api.post(f"{path}/run", {"code": code, **fields}).must(200).json


def test_a_context_that_takes_all_memory_is_lost_and_begins_anew(api, needs_limits):
    box = api.sandbox("python", resources={"memory": "128Mi"})
    path, other = context(box), context(box, "bash")
    answer = run(box, path, "a = []\nwhile True: a.append(bytearray(1 << 20))", timeout=60)
    assert answer["status"] in ("lost", "error"), answer["status"]
    if answer["status"] == "lost":
        assert box.api.get(path).must(200).json["state"] == "failed"
        box.api.post(f"{path}/restart").must(200)
    assert run(box, path, "1 + 1")["results"] == [{"isMain": True, "text": "2"}]
    # What else runs there may have been the one that was killed: it says so, and can be had again.
    if box.api.get(other).must(200).json["state"] == "failed":
        box.api.post(f"{other}/restart").must(200)
    assert run(box, other, "echo on")["stdout"] == "on\n"
    assert box.get()["status"] == "running"
    box.delete().must(204)


@pytest.mark.parametrize("code", [
    "import sys\nsys.stdout.write('x' * (32 << 20))",                     # a line without an end
    "import os\nos.write(1, b'\\x1e' * (8 << 20))",                       # marks, but of nobody's
    "for i in range(3000): display(i)",                                   # results without number
    "raise Exception('x' * (8 << 20))",
    "e = None\nfor i in range(2000):\n    n = Exception(i); n.__cause__ = e; e = n\nraise e",
    "class A:\n    def __repr__(self): raise SystemExit(3)\nA()",
    "class A:\n    def __repr__(self): return 7\nA()",
    "class A:\n    def _repr_mimebundle_(self, **k): return {'text/html': self, 'x' * 10000: 1, 7: 8}\nA()",
    "import sys\nsys.displayhook = sys.excepthook = sys.stdout = None\n1 / 0",
    "__builtins__.__dict__.clear()",
])
def test_whatever_a_cell_says_the_answer_is_bounded_and_the_next_one_works(python, code):
    path = context(python)
    answer = python.api.post(f"{path}/run", {"code": code, "timeout": 60}).must(200)
    assert len(answer.body) < 12 << 20 and answer.json["status"] in ("ok", "error", "lost"), answer.json["status"]
    python.api.post(f"{path}/restart").must(200)
    assert run(python, path, "1 + 1")["results"] == [{"isMain": True, "text": "2"}]


def test_variables_that_turn_programs_around_stay_in_the_box(api):
    """They are the owner's to set; what serves the box must not listen to them."""
    env = {"LD_PRELOAD": "/workspace/evil.so", "LD_LIBRARY_PATH": "/workspace", "PYTHONHOME": "/nowhere",
           "PYTHONSTARTUP": "/workspace/evil.py", "NODE_OPTIONS": "--require /workspace/evil.js", "BASH_ENV": "/workspace/evil.sh",
           "GCONV_PATH": "/workspace", "MALLOC_CHECK_": "3", "IFS": "x", "PATH": "/workspace:/usr/bin:/bin"}
    box = api.sandbox("python", env=env)
    box.put("/workspace/evil.sh", b"echo turned\n").must(201)
    box.put("/workspace/ls", b"#!/bin/sh\necho mine\n", mode="755").must(201)
    assert box.read("/workspace/evil.sh").must(200).body == b"echo turned\n"
    names = [item["path"].rpartition("/")[2] for item in box.listing(path="/workspace").must(200).json["items"]]
    assert sorted(names) == ["evil.sh", "ls"], names
    assert box.run("ls")["stdout"].endswith("mine\n")
    made = api.post(f"{box.path}/contexts", {"language": "python"})
    assert made.status in (201, 400, 409), made  # a Python without its home cannot start, and that is said
    assert box.api.post(f"{box.path}/grep", {"pattern": "turned"}).must(200).json["items"]
    assert box.get()["status"] == "running"
    box.delete().must(204)


def test_a_server_inside_that_floods_holds_up_nobody(api, box):
    """Its answer never ends, and whoever asked does not read it."""
    flood = ("import socket\ns = socket.create_server(('127.0.0.1', 4000))\nprint('on', flush=True)\nwhile True:\n"
             "    c, _ = s.accept()\n    try:\n        c.sendall(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n')\n"
             "        while True: c.sendall(b'x' * 65536)\n    except OSError: pass")
    box.begin(argv=["python3", "-c", flood]).wait_for_output("on")
    box.api.post(f"{box.path}/ports", {"port": 4000}).must(201)
    connections = []
    for _ in range(3):
        connection = api.connect(60)
        connection.request("GET", f"/api/v1{box.path}/ports/4000/", headers={"Authorization": f"Bearer {api.key}"})
        connections.append(connection)
    assert connections[0].getresponse().read(1 << 20) == b"x" * (1 << 20)
    for _ in range(20):
        asked = time.monotonic()
        api.get("/healthz").must(200)
        assert time.monotonic() - asked < 20
    for connection in connections:
        connection.close()
    assert box.run("echo on")["stdout"] == "on\n"
