"""E2B's command line, as its users type it."""
import json

import pytest


@pytest.fixture
def cli(daemon, clients, tmp_path):
    def run(*args, code=0):
        done = clients.cli(daemon, *args, cwd=tmp_path)
        assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout
    return run


@pytest.fixture
def box(api, cli):
    before = {item["id"] for item in api.get("/sandboxes").json["items"]}
    cli("sandbox", "create", "--detach", "base")
    made, = {item["id"] for item in api.get("/sandboxes").json["items"]} - before
    yield made
    api.delete(f"/sandboxes/{made}").must(204, 404)


def test_a_sandbox_is_created_listed_and_killed(cli, box):
    listed = json.loads(cli("sandbox", "list", "--format", "json"))
    assert box in [item["sandboxId"] for item in listed]
    assert box in cli("sandbox", "list")
    cli("sandbox", "kill", box)
    assert box not in cli("sandbox", "list")


def test_commands_are_executed_and_their_exit_code_is_passed_on(cli, box):
    assert cli("sandbox", "exec", box, "echo", "hello") == "hello\n"
    assert cli("sandbox", "exec", "-c", "/tmp", "-e", "A=b", box, "echo $A $(whoami) $(pwd)") == "b user /tmp\n"
    cli("sandbox", "exec", box, "exit 3", code=3)


def test_commands_are_executed_as_root(cli, box, needs_root):
    assert cli("sandbox", "exec", "-u", "root", box, "whoami") == "root\n"


def test_a_sandbox_tells_of_itself(cli, box):
    assert box in cli("sandbox", "info", box)
    info = json.loads(cli("sandbox", "info", "--format", "json", box))
    assert info["state"] == "running"
    cli("sandbox", "metrics", box)
    cli("sandbox", "logs", box)


def test_a_sandbox_is_paused_and_resumed(cli, box):
    cli("sandbox", "pause", box)
    assert box in cli("sandbox", "list", "--state", "paused")
    cli("sandbox", "resume", box)
    assert cli("sandbox", "exec", box, "echo", "back") == "back\n"


def test_templates_are_listed(cli):
    cli("template", "list")


def test_what_is_not_there_is_an_error(cli):
    cli("sandbox", "info", "nosuchsandbox0000", code=1)
