"""The programs under test and a way to run them."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("HOLT_BUILD", ROOT / "build"))
HOLT = str(BUILD / "holt")


def run(*args, input=b"", timeout=60, **kwargs):
    """`holt ARGS` to its end; output is bytes."""
    if "stdin" not in kwargs:
        kwargs["input"] = input
    return subprocess.run([HOLT, *map(str, args)], capture_output=True, timeout=timeout, **kwargs)


def run_json(*args, **kwargs):
    """`holt exec --json ARGS`: the parsed object, with the process's code beside it."""
    done = run("exec", "--json", *args, **kwargs)
    result = json.loads(done.stdout)
    assert done.returncode == result["exitCode"]
    return result


def processes_with(word):
    """Pids of every process whose command line holds the word."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if word.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found
