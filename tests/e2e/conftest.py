"""What this machine can do, for all end-to-end tests."""
import json

import pytest

from support.local import run


@pytest.fixture(scope="session")
def doctor():
    """What `holt doctor` found, by the name of the row."""
    done = run("doctor", "--json")
    report = json.loads(done.stdout)
    assert report["works"], report
    return {row["name"]: row for row in report["checks"]}


@pytest.fixture
def needs_limits(doctor):
    if doctor["limits"]["status"] != "ok":
        pytest.skip("limits are not all enforced here: " + doctor["limits"]["text"])
