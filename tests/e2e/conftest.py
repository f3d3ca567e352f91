"""What this machine can do, for all end-to-end tests."""
import json
import os
import signal

import pytest

from support.local import run
from support.registry import Registry

LONGEST = 600 * max(1, int(os.environ.get("ROUNDS") or 1) // 20)  # seconds


def give_up(*_):
    raise TimeoutError(f"the test hung: {LONGEST} s")


@pytest.fixture(autouse=True)
def end_of_patience():
    """A test that waits for what never comes fails, and says where it waited; the others go on."""
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def doctor():
    """What `holt doctor` found, by the name of the row."""
    done = run("doctor", "--json")
    report = json.loads(done.stdout)
    assert report["works"], report
    return {row["name"]: row for row in report["checks"]}


@pytest.fixture(scope="module")
def registry():
    """Packages of the test's own."""
    made = Registry()
    yield made
    made.close()


@pytest.fixture(scope="session")
def has_freezer(doctor):
    """Without it nothing can be paused, copied or kept."""
    return "freezer" not in doctor["limits"]["text"]


@pytest.fixture
def needs_freezer(doctor, has_freezer):
    if not has_freezer:
        pytest.skip("nothing can be frozen here: " + doctor["limits"]["text"])


@pytest.fixture
def needs_limits(doctor):
    if doctor["limits"]["status"] != "ok":
        pytest.skip("limits are not all enforced here: " + doctor["limits"]["text"])
