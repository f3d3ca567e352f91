"""snapshot, fork, stop, start, volume and pool from the command line."""
import pytest

from support.daemon import IS_ROOT


def test_a_snapshot_is_made_listed_and_removed(cli):
    box = cli.must("sandbox", "create", "--template", "bash").strip()
    ident = cli.must("snapshot", "create", "--name", "cli", box).strip()
    assert ident in cli.must("snapshot", "ls")
    assert cli.json("snapshot", "ls", "--json")[0]["name"] == "cli"
    forks = cli.must("fork", "--count", "2", "--name", "twin", box).split()
    assert len(forks) == 2
    cli.must("sandbox", "stop", box)
    assert '"suspended"' in cli.must("sandbox", "inspect", "--json", box)
    cli.must("sandbox", "start", box)
    assert '"running"' in cli.must("sandbox", "inspect", "--json", box)
    cli.must("snapshot", "rm", "cli")
    cli.must("sandbox", "rm", box, *forks)


def test_all_that_run_are_stopped_at_once(cli):
    boxes = [cli.must("sandbox", "create", "--template", "bash").strip() for _ in range(3)]
    cli.must("sandbox", "stop", boxes[0])
    cli.must("sandbox", "pause", boxes[1])
    assert b"exclude" in cli.run("sandbox", "stop", "--all", boxes[2]).stderr
    assert b"--all" in cli.run("sandbox", "stop").stderr
    stopped = cli.must("sandbox", "stop", "--all").split()
    assert boxes[1] in stopped and boxes[2] in stopped and boxes[0] not in stopped
    for box in boxes:
        assert '"suspended"' in cli.must("sandbox", "inspect", "--json", box)
    cli.must("sandbox", "rm", *boxes)


def test_a_pool_is_made_changed_and_removed(cli):
    cli.must("pool", "create", "cli-pool", "--template", "bash", "--min", "1", "--max", "2")
    assert "cli-pool" in cli.must("pool", "ls")
    cli.must("pool", "set", "cli-pool", "--max", "3")
    assert cli.json("pool", "ls", "--json")[0]["maxSize"] == 3
    assert "target" in cli.json("pool", "status", "--json", "cli-pool")
    cli.must("pool", "rm", "cli-pool")
    assert "cli-pool" not in cli.must("pool", "ls")
    assert "TEMPLATE" in cli.must("pool")


def test_a_volume_is_made_listed_and_removed(cli):
    if not IS_ROOT:
        pytest.skip("volumes need root")
    cli.must("volume", "create", "cli-data", "--size", "16M")
    assert "cli-data" in cli.must("volume", "ls")
    box = cli.must("sandbox", "create", "--template", "bash", "--volume", "cli-data:/mnt/data").strip()
    assert cli.must("exec", box, "--", "sh", "-c", "echo x > /mnt/data/a; cat /mnt/data/a") == "x\n"
    assert cli.run("volume", "rm", "cli-data").returncode != 0
    cli.must("sandbox", "rm", box)
    box = cli.must("sandbox", "create", "--template", "bash", "--volume", "cli-data:/mnt/data:ro").strip()
    assert cli.run("exec", box, "--", "sh", "-c", "echo y > /mnt/data/a").returncode != 0
    cli.must("sandbox", "rm", box)
    assert "NAME:PATH" in cli.fails("sandbox", "create", "--volume", "cli-data")[0]
    cli.must("volume", "rm", "cli-data")


def test_a_template_is_made_used_and_removed(cli):
    assert cli.must("template", "create", "cli-own", "--from", "bash", "--env", "A=7", "--memory", "128M") == "cli-own:1\n"
    assert "cli-own:1" in cli.must("template", "ls")
    box = cli.must("sandbox", "create", "--template", "cli-own").strip()
    assert cli.must("exec", box, "--", "sh", "-c", "echo $A") == "7\n"
    ident = cli.must("snapshot", "create", box).strip()
    other = cli.must("sandbox", "create", "--snapshot", ident).strip()
    assert cli.must("exec", other, "--", "sh", "-c", "echo $A") == "7\n"
    cli.must("sandbox", "rm", box, other)
    cli.must("snapshot", "rm", ident)
    cli.must("template", "rm", "cli-own:1")
