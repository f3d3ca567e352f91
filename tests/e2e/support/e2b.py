"""E2B's published clients as programs: what they are told, what they say."""
import json
import os
import pathlib
import subprocess

SCENARIO = pathlib.Path(__file__).resolve().parent.parent / "e2b" / "scenario"
PYTHON = "/usr/bin/python3"


class Clients:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def npm_versions(self):
        found = [path.name.removeprefix("e2b-") for path in (self.folder / "npm/node_modules").glob("e2b-*")]
        return sorted(found, key=by_number)

    def python_versions(self):
        found = [path.name.removeprefix("python-") for path in self.folder.glob("python-*")]
        return sorted(found, key=by_number)

    def environment(self, daemon, **more):
        """What a user sets, and nothing of E2B that this machine may have set."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
        url = f"http://127.0.0.1:{daemon.port}"
        env.update(E2B_API_KEY=e2b_key(daemon.key), E2B_API_URL=url, E2B_SANDBOX_URL=url,
                   E2B_CLIENTS=str(self.folder), PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", **more)
        return env

    def start_node(self, daemon, program, *args, **more):
        return subprocess.Popen(["node", str(program), *args], env=self.environment(daemon), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def node(self, daemon, program, *args, seconds=600):
        """What it printed, one JSON value a line."""
        done = subprocess.run(["node", str(program), *args], env=self.environment(daemon), text=True,
                              capture_output=True, timeout=seconds, check=False)
        return lines(done)

    def python(self, daemon, version, program, *args, seconds=600):
        env = self.environment(daemon, PYTHONPATH=str(self.folder / f"python-{version}" / "site"))
        done = subprocess.run([PYTHON, str(program), *args], env=env, text=True, capture_output=True,
                              timeout=seconds, check=False)
        return lines(done)

    def cli(self, daemon, *args, seconds=300, **more):
        """`e2b`, as a shell runs it."""
        program = self.folder / "npm/node_modules/@e2b/cli/dist/index.js"
        return subprocess.run(["node", str(program), *args], env=self.environment(daemon), text=True,
                              capture_output=True, timeout=seconds, check=False, **more)


def lines(done):
    assert done.returncode == 0, f"it ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def e2b_key(key):
    """The same key, named as E2B's clients want it."""
    return "e2b_" + key.removeprefix("holt_")


def by_number(version):
    return [int(part) for part in version.split(".")]
