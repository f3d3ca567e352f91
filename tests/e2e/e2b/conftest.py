"""One daemon for E2B's clients and for plain requests to its doors."""
import itertools
import os
import pathlib

import pytest

from support.daemon import IS_ROOT, ROOT, Daemon
from support.e2b import DOMAIN, Clients


@pytest.fixture(scope="session")
def daemon():
    with Daemon("--domain", DOMAIN) as running:
        running.is_shared = True
        yield running


PEERS = itertools.cycle(f"127.{a}.{b}.1" for a in range(1, 255) for b in range(1, 255))


@pytest.fixture
def api(daemon):
    """Each test is another peer: failures of one do not shut out the next."""
    return daemon.api.coming_from(next(PEERS))


@pytest.fixture(scope="session")
def clients():
    """The published clients, which tests/support/e2b-clients installs; tests/run insists on them."""
    folder = pathlib.Path(os.environ.get("E2B_CLIENTS", ROOT / "build-e2b"))
    if not (folder / "npm" / "stamp").exists():
        pytest.skip(f"no clients in {folder}: run tests/support/e2b-clients {folder}")
    return Clients(folder)


@pytest.fixture
def needs_root():
    if not IS_ROOT:
        pytest.skip("only root can do this")
