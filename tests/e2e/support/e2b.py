"""E2B's published clients as programs: what they are told, what they say."""
import json
import os
import pathlib
import subprocess

from support.daemon import until

HERE = pathlib.Path(__file__).resolve().parent.parent / "e2b"
SCENARIO = HERE / "scenario"
DOMAIN = "box.test"  # whose names the daemon takes for those of ports; never looked up


def by_number(version):
    return [int(part) for part in version.split(".")]


PACKAGES = json.loads((HERE / "clients/package.json").read_text())["dependencies"]
NPM = sorted((name.removeprefix("e2b-") for name in PACKAGES if name.startswith("e2b-")), key=by_number)
PYTHON = sorted((path.stem.removeprefix("python-") for path in (HERE / "clients").glob("python-*.txt")), key=by_number)


def failures(found):
    """What went wrong, by feature; the scenarios print their outcomes one JSON value a line."""
    return {line["feature"]: line["error"] for line in found if line["result"] == "failed"}


def python_interpreter(version):
    """Of the code interpreter that is installed with this version of the SDK."""
    pinned = (HERE / f"clients/python-{version}.txt").read_text().split()
    return next(line.split("==")[1] for line in pinned if line.startswith("e2b-code-interpreter=="))


class Clients:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def environment(self, daemon, **more):
        """What a user sets, and nothing of E2B that this machine may have set."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
        url = f"http://127.0.0.1:{daemon.port}"
        # A newer Node than the machine's, where e2b-clients had to bring one.
        env["PATH"] = f"{self.folder / 'bin'}:{env.get('PATH', os.defpath)}"
        env.update(E2B_API_KEY=e2b_key(daemon.key), E2B_API_URL=url, E2B_SANDBOX_URL=url, E2B_VOLUME_API_URL=url, E2B_DOMAIN=DOMAIN,
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
        done = subprocess.run(["/usr/bin/python3", str(program), *args], env=env, text=True, capture_output=True,
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


def drop_templates(daemon):
    """What clients have built is deleted, and what was kept to build it again."""
    for one in daemon.api.get("/templates").must(200).json["items"]:
        if not one["builtIn"]:
            daemon.api.delete(f"/templates/{one['id']}").must(204, 404)
    daemon.api.delete("/templates/cache").must(204)
    until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")
