"""MCP: a daemon for real clients and plain requests, and one with the conformance suite's fixtures."""
import itertools

import pytest

from support import mcp
from support.daemon import Daemon


@pytest.fixture(scope="session")
def daemon():
    with Daemon() as running:
        running.is_shared = True
        yield running


PEERS = itertools.cycle(f"127.{a}.{b}.1" for a in range(1, 255) for b in range(1, 255))


@pytest.fixture
def api(daemon):
    """Each test is another peer: failures of one do not shut out the next."""
    return daemon.api.coming_from(next(PEERS))


@pytest.fixture(scope="session")
def fixtures(clients):
    with mcp.Fixtures() as running:
        yield running


@pytest.fixture(scope="session")
def clients():
    """What tests/support/mcp-clients installs; tests/run insists on it where root runs."""
    if not mcp.has_clients():
        pytest.skip(f"nothing in {mcp.FOLDER}: run tests/support/mcp-clients {mcp.FOLDER}")
    return mcp
