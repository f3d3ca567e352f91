"""docs/operating.md, command by command."""
import os
import pathlib
import re
import subprocess

import pytest

from support.daemon import HOLT, ROOT, Daemon, until

PAGE = pathlib.Path(os.environ.get("HOLT_DOCS", ROOT / "docs")) / "operating.md"


def commands():
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def script():
    """All blocks in one shell. A line that begins with `!` must fail, which `set -e` does not insist on."""
    lines = []
    for number, block in enumerate(commands()):
        lines.append(f"echo '== block {number}'")
        for line in block.splitlines():
            must_fail = line.startswith("! ")
            lines.append(f"if {line[2:]}; then echo 'this must fail'; exit 9; fi" if must_fail else line)
    return "set -eu -o pipefail\n" + "\n".join(lines) + "\necho '== all done'\n"


def test_every_command_of_the_operators_guide_works(tmp_path):
    if not PAGE.exists():
        pytest.fail(f"{PAGE} is not there")
    with Daemon() as daemon:
        env = {"PATH": f"{os.path.dirname(HOLT)}:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8",
               "HOLT_URL": f"http://127.0.0.1:{daemon.port}", "HOLT_API_KEY": daemon.key}
        (tmp_path / "guide").write_text(script())
        done = subprocess.run(["bash", "guide"], env=env, cwd=tmp_path, timeout=300, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and b"== all done" in done.stdout, done.stdout.decode()[-4000:]
        for one in daemon.api.get("/templates").must(200).json["items"]:
            if one["layers"]:
                daemon.api.delete(f"/templates/{one['id']}").must(204)
        until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")
