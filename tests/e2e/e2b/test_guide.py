"""The programs of docs/e2b.md do what it says, word for word."""
import os
import re
import subprocess

import pytest

from support.e2b import PYTHON
from support.e2b_table import DOCUMENT

PROGRAMS = re.findall(r"```(js|python)\n(.*?)```", DOCUMENT.read_text(), re.S)


@pytest.mark.parametrize("language, program", PROGRAMS, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(PROGRAMS)])
def test_a_program_of_the_guide_runs(daemon, clients, tmp_path, language, program):
    env = clients.environment(daemon)
    if language == "js":
        os.symlink(clients.folder / "npm/node_modules", tmp_path / "node_modules")
        (tmp_path / "hello.mjs").write_text(program)
        command = ["node", "hello.mjs"]
    else:
        env["PYTHONPATH"] = str(clients.folder / f"python-{PYTHON[-1]}" / "site")
        command = ["/usr/bin/python3", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=env, text=True, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done


def test_the_guide_has_programs():
    assert [kind for kind, _ in PROGRAMS] == ["js", "python", "js"]
