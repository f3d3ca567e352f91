"""One daemon for most tests of the API; a test that needs other settings starts its own."""
import itertools
import pathlib

import pytest

from support.daemon import IS_ROOT, Daemon


HERE = pathlib.Path(__file__).parent


def pytest_configure(config):
    config.addinivalue_line("markers", "last: looks back at what all the others did")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture
def whole_suite(request):
    """Nothing can be said about all tests when only some were asked for."""
    files = {item.path for item in request.session.items}
    options = request.config.option
    if options.keyword or options.markexpr or options.deselect or not files >= set(HERE.glob("test_*.py")):
        pytest.skip("not all tests of the API are run")


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


@pytest.fixture
def box(api):
    made = api.sandbox()
    yield made
    made.delete().must(204, 404)


@pytest.fixture
def python(api):
    made = api.sandbox("python")
    yield made
    made.delete().must(204, 404)


@pytest.fixture
def key_for(api):
    """Makes keys: `key_for("viewer", owner="team-a")` is a client that uses one."""
    made = []

    def make(role, owner=None, **fields):
        value = {"name": f"test {role}", "role": role, **fields}
        if owner:
            value["owner"] = owner
        key = api.post("/keys", value).must(201).json
        made.append(key["id"])
        return api.using(key["key"])

    yield make
    for ident in made:
        api.delete(f"/keys/{ident}").must(204, 404)


@pytest.fixture
def needs_root():
    if not IS_ROOT:
        pytest.skip("only root can do this")
