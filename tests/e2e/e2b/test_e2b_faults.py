"""What E2B's SDK meets when something goes wrong: nothing is lost that was said, and nobody waits for ever."""
import json

from support.daemon import Daemon
from support.e2b import SCENARIO

FAULT = SCENARIO / "fault.mjs"


def follow(clients, daemon):
    """A program that follows a command, and which one."""
    program = clients.start_node(daemon, FAULT, "begin")
    line = program.stdout.readline()
    assert line, program.communicate()
    return program, json.loads(line)


def test_a_killed_daemon_loses_no_word_of_a_running_command(clients):
    with Daemon() as daemon:
        program, made = follow(clients, daemon)
        daemon.kill("daemon", "launcher", "keeper")
        said, err = program.communicate(timeout=120)
        assert program.returncode == 0, err
        assert "error" in json.loads(said), said
        daemon.wait_ended()
        daemon.start()
        found = clients.node(daemon, FAULT, "again", made["id"], str(made["pid"]))
        assert found == [{"stdout": "first\nlast\n", "exitCode": 0}]


def test_a_client_that_vanishes_leaves_its_command_running(daemon, clients):
    program = clients.start_node(daemon, FAULT, "vanish")
    said, err = program.communicate(timeout=120)
    assert said, err
    made = json.loads(said)
    found = clients.node(daemon, FAULT, "again", made["id"], str(made["pid"]))
    assert found == [{"stdout": "first\nlast\n", "exitCode": 0}]


def test_a_full_disk_is_said_and_what_fits_is_written(clients):
    with Daemon("--limits-disk", "24M") as daemon:
        full, small = clients.node(daemon, FAULT, "full")
        assert full["right"], full
        assert small == {"small": "fits"}


def test_more_output_than_is_kept_arrives(daemon, clients):
    bytes_ = 20_000_000
    assert clients.node(daemon, FAULT, "flood", str(bytes_)) == [{"seen": bytes_, "exitCode": 0}]


def test_a_hundred_sandboxes_at_once_all_work(daemon, clients):
    assert clients.node(daemon, FAULT, "crowd", "100") == [{"good": 100, "failed": []}]
