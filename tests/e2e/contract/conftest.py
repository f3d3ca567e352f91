"""A daemon for what schemathesis makes up: patient with nothing, so that no request lasts."""
import pytest
from contract.world import World
from support.daemon import Daemon, until


@pytest.fixture(scope="session")
def world():
    with Daemon("--exec-timeout", "2s", "--exec-timeout-max", "3s", "--max-sandboxes", "40") as daemon:
        made = World(daemon.api)
        yield made
        made.leave()
        until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")
