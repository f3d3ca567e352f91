"""One daemon for most tests of the client's commands."""
import pytest

from support.cli import Cli
from support.daemon import Daemon


@pytest.fixture(scope="session")
def daemon():
    with Daemon() as running:
        yield running


@pytest.fixture
def cli(daemon):
    return Cli(daemon)


@pytest.fixture
def box(cli):
    """A sandbox's id."""
    ident = cli.must("sandbox", "create", "--template", "bash").strip()
    yield ident
    cli.run("sandbox", "rm", ident)
