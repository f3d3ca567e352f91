"""Sessions of agents from the command line."""
import itertools

import pytest

from support.cli import Cli
from support.daemon import Daemon

NAMES = (f"talk-{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def cli():
    with Daemon() as daemon:
        yield Cli(daemon)


def test_a_session_is_made_given_a_sandbox_and_ended(cli):
    name = next(NAMES)
    assert cli.must("session", "create", name, "--agent", "helper", "--user-id", "u-1", "-t", "bash", "-e", "A=1",
                    "-m", "team=x", "--timeout", "10m", "--name", "a talk").strip() == name
    assert "helper" in cli.must("session", "ls") and name in cli.must("session", "ls", "--user-id", "u-1")
    assert name not in cli.must("session", "ls", "--user-id", "u-2")
    shown = cli.must("session", "show", name)
    assert "agent_ref: helper" in shown and "team" in shown
    given = cli.json("session", "sandbox", name, "--json")
    assert given["ready"] and given["created"] and given["headers"]["Authorization"].startswith("Bearer box_")
    assert given["sandbox_id"] in cli.must("session", "sandbox", name, "--wait", "1m")
    assert cli.must("exec", given["sandbox_id"], "--", "sh", "-c", "echo $A").strip() == "1"
    assert cli.json("session", "ls", "--json")[0]["id"] == name
    assert cli.must("session", "rm", name).strip() == name
    assert "no session" in cli.fails("session", "show", name)[0]


def test_what_cannot_be_is_said(cli):
    name = cli.must("session", "create", "--no-workspace").strip()
    assert "workspace" in cli.fails("session", "sandbox", name)[0]
    assert "taken" in cli.fails("session", "create", name)[0]
    assert "template" in cli.fails("session", "create", "-t", "none-such")[0]
    said = cli.fails("session", "rm", "none", name)
    assert "no session" in said[0] and name not in cli.must("session", "ls")
