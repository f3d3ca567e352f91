"""Every published version of E2B's clients that docs/e2b.md names does all that it can."""
import os

import pytest

from support.daemon import IS_ROOT
from support.e2b import drop_templates, failures
from support.e2b_table import COLUMNS, Matrix, documented

# An ordinary user's daemon serves the oldest and the newest: the doors are the same.
TRIED = COLUMNS if IS_ROOT else [COLUMNS[0], *[column for column, after in zip(COLUMNS, [*COLUMNS[1:], ("", "")])
                                               if column[0] != after[0]]]
LEAST = {"npm": 38, "PyPI": 38, "npm interpreter": 11, "PyPI interpreter": 7}  # features
ROOTLESS = {} if IS_ROOT else {"root and sudo": "invalid username: 'root'", "volumes": "409: volumes need",
                               "files of volumes": "409: volumes need"}
KERNEL = [int(part) for part in os.uname().release.split(".")[:2]]
OLDER = {"metadata of files": "tmpfs does since Linux 6.6"} if KERNEL < [6, 6] else {}
EXCUSED = {**ROOTLESS, **OLDER}
FREEZING = {"pause, resume", "pause without memory", "auto-pause", "auto-resume", "snapshot", "fork", "template build"}


@pytest.fixture(scope="session")
def matrix(request, daemon, clients):
    """Several clients at work at a time: most of theirs is waiting."""
    wanted = [item.callspec.params["column"] for item in request.session.items
              if "column" in getattr(getattr(item, "callspec", None), "params", {})]
    with Matrix(daemon, clients, wanted) as made:
        yield made
    daemon.delete_all()
    drop_templates(daemon)


@pytest.mark.parametrize("column", TRIED, ids=["-".join(column).replace(" ", "-") for column in TRIED])
def test_a_client_does_all_that_it_can(matrix, column, has_freezer):
    found = matrix.found(*column)
    excused = set() if has_freezer else FREEZING
    left = {name: error for name, error in failures(found).items()
            if name not in excused and (name not in EXCUSED or EXCUSED[name] not in error)}
    assert not left, left
    assert sum(line["result"] == "ok" for line in found) >= LEAST[column[0]] - len(excused), found


def test_the_table_in_the_documentation_is_what_was_found(matrix, needs_root):
    assert matrix.text().splitlines() == documented().splitlines(), "make docs-e2b writes it anew"
