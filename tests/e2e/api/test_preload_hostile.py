"""Modules that a template preloads and that are not what they seem: the sandbox is made all the same, without a Python
that waits, and nothing of them is believed, outlives it or reaches beyond it."""
import pytest

from test_preload import own, start  # noqa: F401 (fixtures)

# What an in-box template says of a Python that waits: its pid, with a socket and a page for its end.
SAY = """
import array, os, socket, struct
mine = socket.socket(fileno=os.dup(3))
def say(pid, *fds):
    mine.sendmsg([struct.pack("i", pid)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
def orphan():
    out, into = os.pipe()
    first = os.fork()
    if first == 0:
        second = os.fork()
        if second == 0:
            import time
            time.sleep(3600)
        os.write(into, struct.pack("i", second))
        os._exit(0)
    os.waitpid(first, 0)
    return struct.unpack("i", os.read(out, 4))[0]
"""

HOSTILE = {
    "names PID 1": SAY + "say(1, pair[0].fileno())",
    "names itself": SAY + "say(os.getpid(), pair[0].fileno())",
    "names nobody": SAY + "say(2 ** 31 - 1, pair[0].fileno())",
    "names a group": SAY + "say(-1, pair[0].fileno())",
    "has no socket": SAY + "say(orphan())",
    "says nonsense": SAY + "mine.send(b'r'); mine.send(bytes(4096))",
    "says an empty word": SAY + "mine.send(b'')",
    "fails in many words": SAY + "mine.send(struct.pack('i', 0) + b'\\xff\\n' * 118)",
    "closes the socket": "import os; os.close(3)",
    "ends": "import os; os._exit(0)",
    "dies": "import os; os.kill(os.getpid(), 11)",
    "kills all but itself": "import os; os.kill(-1, 9)",
    "leaves by an exception": "raise KeyboardInterrupt",
    "takes all memory": "x = [bytearray(1 << 20) for _ in range(1 << 20)]",
}
WAYS_TO_FAIL = {"leaves by an exception", "takes all memory", "kills all but itself"}  # which Python itself can tell


@pytest.mark.parametrize("what", HOSTILE)
def test_a_sandbox_is_made_whatever_a_module_does(api, own, what):  # noqa: F811
    own({"hostile.py": HOSTILE[what]}, preload=["hostile"])
    answer = api.post("/sandboxes", {"template": "loaded", "resources": {"memory": "128Mi"}}).must(201, 409)
    if answer.status == 409:
        assert what in WAYS_TO_FAIL and "cannot import 'hostile'" in answer.json["error"]["message"], answer
        return
    one = api.get(f"/sandboxes/{answer.json['id']}").must(200).json
    box = f"/sandboxes/{one['id']}"
    for kind, text in [("code", "print(6 * 7)"), ("command", "echo $((6 * 7))"), ("code", "print(42)")]:
        run = api.post(f"{box}/execute", {"type": kind, "language": "python", "content": text}).must(200).json
        assert run["stdout"] == "42\n", (what, run)
    api.delete(box).must(204)


def test_forks_of_a_module_are_within_the_limits_and_end_with_the_sandbox(api, own, start):  # noqa: F811
    own({"hostile.py": "import os, time\nfor _ in range(200):\n    try:\n        pid = os.fork()\n    except OSError:\n        break\n"
                       "    if pid == 0:\n        time.sleep(3600)\n        os._exit(0)\n    kids = globals().setdefault('kids', []); kids.append(pid)\n"
                       "for pid in kids[4:]:\n    os.kill(pid, 9); os.waitpid(pid, 0)\n"}, preload=["hostile"])
    one = start(resources={"pids": 32})
    run = one.code("python", "import hostile; print(len(hostile.kids))")
    assert run["warm"] and 4 < int(run["stdout"]) < 32
    one.delete().must(204)


def test_a_stranger_in_place_of_a_python_ends_with_its_execution(api, own, start):  # noqa: F811
    own({"hostile.py": SAY + "page = os.memfd_create('x')\nos.truncate(page, 4096)\nsay(orphan(), pair[0].fileno(), page)\n"
                             "os.truncate(page, 0)\nimport time; time.sleep(3600)"}, preload=["hostile"])
    one = start()
    run = one.code("python", "print(1)", cwd="/", timeout=3)
    # It never says that it has begun, so a Python that was not there before takes its place; or it is ended in time.
    assert run["stdout"] == "1\n" or run["timedOut"], run
    assert one.run("echo alive")["stdout"] == "alive\n"
    assert one.code("python", "print(2)", cwd="/")["stdout"] == "2\n"


def test_one_that_begins_and_does_nothing_is_ended_in_time(api, own, start):  # noqa: F811
    own({"hostile.py": SAY + """
pid = orphan()
say(pid, pair[0].fileno())
if os.fork() == 0:
    while True:
        if not pair[1].recv(1 << 17):
            break
        pair[1].send(struct.pack("i", 0))
import time; time.sleep(3600)
"""}, preload=["hostile"])
    one = start()
    run = one.code("python", "print(1)", cwd="/", timeout=2)
    assert run["timedOut"] and run["stdout"] == "", run
    assert one.run("echo alive")["stdout"] == "alive\n"


NODE = {
    "exits": "process.exit(0)",
    "exits at once": "process.reallyExit(3)",
    "kills itself": "process.kill(process.pid, 'SIGKILL')",
    "throws nothing": "throw undefined",
    "throws what has no text": "throw {get message() { throw 1; }}",
    "speaks for the machinery": "require('fs').writeSync(1, 'x'.repeat(60000)); process.exit(0)",
    "closes its output": "require('fs').closeSync(1)",
}


@pytest.mark.parametrize("what", NODE)
def test_a_node_that_does_not_come_up_is_done_without(api, own, what):  # noqa: F811
    own({"node_modules/hostile/index.js": NODE[what]}, base="node", preloadNode=["hostile"])
    answer = api.post("/sandboxes", {"template": "loaded"}).must(201, 409)
    if answer.status == 409:
        assert "Node cannot load" in answer.json["error"]["message"]
        return
    box = f"/sandboxes/{answer.json['id']}"
    run = api.post(f"{box}/execute", {"type": "code", "language": "javascript", "content": "console.log(6 * 7)"}).must(200).json
    assert run["stdout"] == "42\n", (what, run)
    api.delete(box).must(204)


def test_a_node_that_only_says_that_it_waits_is_ended_in_time(api, own, start):  # noqa: F811
    own({"node_modules/hostile/index.js": "require('fs').writeSync(1, 'r'); for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)"},
        base="node", preloadNode=["hostile"])
    one = start()
    run = one.code("javascript", "console.log(1)", timeout=2)
    assert run["timedOut"] and run["stdout"] == "", run
    assert one.code("javascript", "console.log(1)")["stdout"] == "1\n"
