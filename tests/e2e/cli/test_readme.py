"""What the README shows, as it stands there."""
import json
import os
import re
import shutil
import subprocess

import pytest

from support.daemon import HOLT, IS_ROOT, ROOT, Daemon

README = ROOT / "README.md"

# What a person does at the two commands that want one, and how to see which commands failed, and with what.
PERSON = r"""
holt() {
	case "$1 $2" in
	"logs -f") command holt "$@" | sed 2q ;;
	"shell demo") printf "echo typed by hand\\nexit\\n" | command holt "$@" ;;
	*) command holt "$@" ;;
	esac
}
trap 'echo "ended with $?: $BASH_COMMAND" >&3' ERR
"""

# Removes what outlives the sandboxes of the blocks.
TIDY = """
holt pool rm ready
holt template rm app
holt build prune
holt snapshot rm clean
holt volume rm data
"""


def block(first):
    """The block of shell that begins with this line."""
    found = [text for text in re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.M | re.S) if text.startswith(first)]
    assert len(found) == 1, first
    return found[0]


class Reader:
    """Somebody who types the README's blocks, with a home and a daemon of their own."""

    def __init__(self, daemon, home):
        self.daemon, self.home = daemon, home
        (home / ".config/holt").mkdir(parents=True)
        shutil.copy(daemon.key_file, home / ".config/holt/key")  # with its mode
        shutil.copy(README, home)
        shutil.copytree(ROOT / "src/base", home / "src/base")
        shutil.copytree(ROOT / "examples", home / "examples")

    def type(self, first):
        """What the block printed, and how those of its commands ended that did not end with 0."""
        return self.run(block(first).replace("127.0.0.1:8765", f"127.0.0.1:{self.daemon.port}"))

    def run(self, script):
        url = f"http://127.0.0.1:{self.daemon.port}"
        env = {"PATH": f"{os.path.dirname(HOLT)}:{os.environ['PATH']}", "HOME": str(self.home), "LANG": "C.UTF-8", "HOLT_URL": url}
        done = subprocess.run(["bash", "-c", "exec 3>failed\n" + PERSON + script], env=env, cwd=self.home, timeout=300,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        failed = (self.home / "failed").read_text()
        return done.stdout, [int(code) for code in re.findall(r"^ended with (\d+):", failed, re.M)], failed


@pytest.fixture
def reader(tmp_path):
    with Daemon() as daemon:
        yield Reader(daemon, tmp_path)


def needs(doctor, limit):
    if limit in doctor["limits"]["text"]:
        pytest.skip(f"{limit} is not there: " + doctor["limits"]["text"])


def test_the_walk_through_a_sandbox_works(reader):
    printed, codes, failed = reader.type("alias holt=")
    assert codes == [], (failed, printed)
    assert "typed by hand" in printed and re.search(r"demo .*running", printed), printed


def test_the_walk_through_a_platform_works(reader, doctor):
    needs(doctor, "freezer")
    reader.run("holt sandbox create --name demo")
    printed, codes, failed = reader.type("holt repl demo")
    assert codes == ([] if IS_ROOT else [125]), (failed, printed)  # volumes need root
    printed, codes, failed = reader.run(TIDY)
    assert codes == ([] if IS_ROOT else [125]), (failed, printed)


def test_the_walk_through_a_session_works(reader):
    printed, codes, failed = reader.type("holt session create")
    assert codes == [], (failed, printed)
    answers = [json.loads(line)["result"] for line in printed.splitlines() if line.startswith("{")]
    assert [answer.get("isError", False) for answer in answers] == [False] * 3, answers
    ran, wrote, read = answers
    assert "uid=1000" in ran["structuredContent"]["stdout"] and ran["structuredContent"]["exit_code"] == 0
    assert wrote["structuredContent"]["ok"] and "hello" in json.dumps(read)
    assert reader.daemon.api.get("/sandboxes").must(200).json["items"] == []
    assert reader.daemon.api.get("/api/sessions").must(200).json["data"] == []


def test_the_walk_over_http_works(reader):
    printed, codes, failed = reader.type("export HOLT_API_KEY=")
    assert codes == [], (failed, printed)
    assert '"error"' not in printed and r'"stdout":"42\n"' in printed and printed.count("event: output") == 3, printed


def test_the_walk_without_a_daemon_works(reader, doctor):
    needs(doctor, "memory")
    printed, codes, failed = reader.type("holt doctor")
    assert codes == [124, 137, 3], (failed, printed)
    assert "boxes work here" in printed and "uid=1000" in printed and "\n42\n" in printed, printed
