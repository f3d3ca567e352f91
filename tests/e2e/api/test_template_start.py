"""What a template starts in each sandbox: the sandbox is there when it is ready, or not at all."""
import os
import signal

import pytest

from support.daemon import until

SERVER = "exec python3 -m http.server 8000 --bind 127.0.0.1 --directory /tmp"


@pytest.fixture
def template(api):
    made = []

    def make(start, **fields):
        value = api.post("/templates", {"name": "web", "from": "bash", "start": start, **fields}).must(201).json
        made.append(value["id"])
        return value

    yield make
    for ident in made:
        api.delete(f"/templates/{ident}").must(204, 404)


@pytest.fixture
def web(api, box, template):
    """A sandbox of a template that starts this."""
    made = []

    def make(start, **fields):
        template(start, **fields)
        made.append(type(box)(api, api.post("/sandboxes", {"template": "web"}).must(201).json))
        return made[-1]

    yield make
    for one in made:
        one.delete().must(204, 404)


def refused(api, status=409):
    """Why no sandbox came; and none is left."""
    before = {one["id"] for one in api.get("/sandboxes").must(200).json["items"]}
    message = api.post("/sandboxes", {"template": "web", "name": "never"}).error(status)
    assert {one["id"] for one in api.get("/sandboxes").must(200).json["items"]} == before
    api.get("/sandboxes/never").error(404)
    return message


def test_a_port_that_listens_is_ready(web):
    one = web({"command": f"sleep 0.3; {SERVER}", "readyPort": 8000})
    assert one.run("curl -sf http://127.0.0.1:8000/ >/dev/null && echo there")["stdout"] == "there\n"


def test_an_answer_of_200_is_ready(web):
    one = web({"command": f"cd /tmp; (sleep 0.5; touch /tmp/health) & {SERVER}", "readyPort": 8000,
               "readyHttp": "/health"})
    assert one.run("test -e /tmp/health && echo ready")["stdout"] == "ready\n"


def test_a_command_that_ends_well_says_when(web):
    one = web({"command": "sleep 0.3; touch /tmp/up; exec sleep 600", "readyCommand": "test -e /tmp/up"})
    assert one.run("ls /tmp/up")["stdout"] == "/tmp/up\n"


def test_what_was_started_is_an_execution_like_others(api, web):
    one = web({"command": "echo hello; exec sleep 600"}, env={"A": "b"}, workdir="/tmp")
    running = [x for x in api.get(f"{one.path}/executions").must(200).json["items"] if x["status"] == "running"]
    assert len(running) == 1
    text = until(lambda: api.get(f"{one.path}/executions/{running[0]['executionId']}").must(200).json["stdout"], what="hello")
    assert text == "hello\n"
    assert one.run("tr '\\0' '\\n' < /proc/$(pgrep -n sleep)/environ | grep ^A=")["stdout"] == "A=b\n"


def test_a_command_that_leaves_something_behind_may_end(web):
    one = web({"command": f"({SERVER}) >/dev/null 2>&1 & disown; exit 0", "readyPort": 8000})
    assert one.run("curl -sf http://127.0.0.1:8000/ >/dev/null && echo there")["stdout"] == "there\n"


def test_one_that_fails_says_so_and_leaves_nothing(api, template):
    template({"command": "echo no such database >&2; exit 3", "readyPort": 8000})
    message = refused(api)
    assert "exit code 3" in message and "no such database" in message


def test_one_that_is_killed_says_so(api, template):
    template({"command": "kill -KILL $$", "readyCommand": "false"})
    assert "signal 9" in refused(api)


def test_one_that_is_never_ready_is_given_up(api, template):
    template({"command": "echo still busy; exec sleep 600", "readyCommand": "false", "timeout": 3})
    message = refused(api)
    assert "within 3 s" in message and "still busy" in message


@pytest.mark.parametrize("server", [
    "exec python3 -c 'import socket as s\nw=s.create_server((\"127.0.0.1\",8000))\nwhile 1:\n c=w.accept()[0]; c.recv(999); c.send(b\"HTTP/1.0 503 No\\r\\n\\r\\n\"); c.close()'",
    "exec python3 -c 'import socket as s\nw=s.create_server((\"127.0.0.1\",8000))\nk=[]\nwhile 1: k.append(w.accept()[0])'",
    "exec python3 -c 'import socket as s\nw=s.create_server((\"127.0.0.1\",8000))\nwhile 1:\n c=w.accept()[0]; c.send(b\"\\0\"*99); c.close()'",
], ids=["not 200", "silent", "garbage"])
def test_a_server_that_does_not_answer_well_is_not_ready(api, template, server):
    template({"command": server, "readyPort": 8000, "readyHttp": "/", "timeout": 1})
    assert "within 1 s" in refused(api)


def test_a_user_that_is_not_there_is_told(api, template):
    template({"command": "true", "readyCommand": "true"}, user="nosuch")
    assert "nosuch" in refused(api)


def test_it_starts_again_with_the_sandbox(api, web):
    one = web({"command": f"echo x >> /workspace/starts; {SERVER}", "readyPort": 8000})
    stopped = api.post(f"{one.path}/stop")
    if stopped.status == 409:
        pytest.skip(stopped.json["error"]["message"])
    stopped.must(200)
    api.post(f"{one.path}/start").must(200)
    assert one.run("cat /workspace/starts; curl -sf http://127.0.0.1:8000/ >/dev/null && echo up")["stdout"] == "x\nx\nup\n"


def test_one_that_cannot_start_again_stays_stopped(api, web):
    one = web({"command": "test ! -e /workspace/broken || { echo is broken; exit 1; }; exec sleep 600",
               "readyCommand": "test ! -e /workspace/broken"})
    one.run("touch /workspace/broken")
    stopped = api.post(f"{one.path}/stop")
    if stopped.status == 409:
        pytest.skip(stopped.json["error"]["message"])
    assert "is broken" in api.post(f"{one.path}/start").error(409)
    assert one.get()["status"] == "suspended"


def test_it_goes_on_after_a_restart_of_the_daemon(api, web, daemon):
    one = web({"command": SERVER, "readyPort": 8000})
    before = one.run("pgrep -f http.server")["stdout"]
    daemon.kill("daemon")
    daemon.start()
    assert one.run("pgrep -f http.server")["stdout"] == before
    assert [x["status"] for x in api.get(f"{one.path}/executions").must(200).json["items"]
            if x["status"] == "running"] == ["running"]


def test_a_daemon_that_is_killed_on_the_way_leaves_nothing(api, template, daemon):
    """The row comes with readiness: until then there is no sandbox, and its box is nobody's."""
    own = f"600.{os.getpid()}"  # no other test's
    template({"command": f"exec sleep {own}", "readyCommand": "false", "timeout": 60})
    pid = os.fork()
    if pid == 0:
        try:
            api.post("/sandboxes", {"template": "web", "name": "never"})
        finally:
            os._exit(0)
    try:
        until(lambda: own.encode() in b"".join(commands("sleep")), what="the start")
        daemon.kill("daemon")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    daemon.start()
    api.get("/sandboxes/never").error(404)
    until(lambda: own.encode() not in b"".join(commands("sleep")), what="the end of its box")


def commands(name_of_program):
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    line = f.read()
                if line.startswith(name_of_program.encode() + b"\0"):
                    yield line
            except OSError:
                pass
