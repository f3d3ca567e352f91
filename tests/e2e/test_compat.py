"""Waiting interpreters behave as fresh ones: every case of compat/*.cases, run by compat/compat.c."""
import concurrent.futures
import re
import subprocess

import pytest

from support.local import BUILD, ROOT

FILES = ["python.cases", "node.cases"]


def names(file):
    text = (ROOT / "tests/e2e/compat" / file).read_text()
    return [(file, name) for name in re.findall(r"^=== (.*)$", text, re.M)]


def run_file(file):
    done = subprocess.run(
        [BUILD / "tests/e2e/compat/compat", BUILD / "holt-launch", "-v", ROOT / "tests/e2e/compat" / file],
        capture_output=True, timeout=1200)
    results, name = {}, None
    for line in done.stdout.decode(errors="replace").splitlines():
        found = re.match(r"(ok|FAILED) (?:python|node): (.*)", line)
        if found:
            name = found[2]
            results[name] = [found[1]]
        elif name:
            results[name].append(line)
    return results, done


@pytest.fixture(scope="session")
def outcomes():
    with concurrent.futures.ThreadPoolExecutor() as side_by_side:
        return dict(zip(FILES, side_by_side.map(run_file, FILES)))


@pytest.mark.parametrize("file,name", [case for file in FILES for case in names(file)])
def test_behaves_as_a_fresh_one(outcomes, file, name):
    results, done = outcomes[file]
    if name in results and results[name][0] == "ok":
        return
    failed = [key for key in results if key.startswith(name + ": ")]
    detail = "\n".join(results[failed[0]]) if failed else done.stdout[-2000:].decode(errors="replace")
    pytest.fail(f"{name}\n{detail}\n{done.stderr[-1000:].decode(errors='replace')}", pytrace=False)
