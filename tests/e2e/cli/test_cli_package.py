"""Packages by command, from a registry of the test's own."""
import pytest

from support.cli import Cli
from support.daemon import Daemon


@pytest.fixture(scope="module")
def daemon(registry):
    with Daemon("--registry-pip", f"{registry.url}/simple/", "--registry-allow-private") as running:
        yield running


@pytest.fixture
def cli(daemon):
    return Cli(daemon)


@pytest.fixture
def box(cli):
    ident = cli.must("sandbox", "create", "--template", "base", "--memory", "1G", "--cpu", "2", "--pids", "256", "--disk", "512M").strip()
    yield ident
    cli.run("sandbox", "rm", ident)


def test_packages_are_installed_and_listed(cli, box):
    done = cli.run("package", "install", box, "holtdemo")
    assert done.returncode == 0 and b"Successfully installed" in done.stdout, done
    assert "pip" in cli.must("package", "ls", box) and "holtdemo" in cli.must("package", "ls", box)
    assert cli.json("package", "install", "--json", box, "holtdemo")["exitCode"] == 0


def test_what_cannot_be_installed_is_said(cli, box):
    assert cli.run("package", "install", box, "there-is-none").returncode == 1
    assert "registry_npm" in cli.fails("package", "install", "--manager", "npm", box, "left-pad")[0]
    assert "no name and version" in cli.fails("package", "install", box, "a b")[0]
