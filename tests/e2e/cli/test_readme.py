"""What the README shows, as it stands there."""
import json
import os
import re
import subprocess

from support.daemon import HOLT, ROOT, Daemon

README = ROOT / "README.md"


def block(first):
    """The block of shell that begins with this line."""
    found = [text for text in re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.M | re.S) if text.startswith(first)]
    assert len(found) == 1, first
    return found[0]


def test_the_walk_through_a_session_works(tmp_path):
    with Daemon() as daemon:
        env = {"PATH": f"{os.path.dirname(HOLT)}:{os.environ['PATH']}", "HOME": str(tmp_path), "LANG": "C.UTF-8",
               "HOLT_URL": f"http://127.0.0.1:{daemon.port}", "HOLT_API_KEY": daemon.key}
        script = "set -eu -o pipefail\n" + block("holt session create")
        done = subprocess.run(["bash", "-c", script], env=env, cwd=tmp_path, timeout=120, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done
        answers = [json.loads(line)["result"] for line in done.stdout.splitlines() if line.startswith("{")]
        assert [answer.get("isError", False) for answer in answers] == [False] * 3, answers
        ran, wrote, read = answers
        assert "uid=1000" in ran["structuredContent"]["stdout"] and ran["structuredContent"]["exit_code"] == 0
        assert wrote["structuredContent"]["ok"] and "hello" in json.dumps(read)
        assert daemon.api.get("/sandboxes").must(200).json["items"] == []
        assert daemon.api.get("/api/sessions").must(200).json["data"] == []
