"""A real `holt serve` in a directory of its own: start, stop, kill any part of it, start again."""
import contextlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from support import contract, machine
from support.client import Client

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("HOLT_BUILD", ROOT / "build"))
HOLT = str(BUILD / "holt")
IS_ROOT = os.geteuid() == 0
GREETING = re.compile(rb"listens on https?://[^\s]*?:(\d+)\n")


PATIENCE = 60  # seconds: with sanitizers, on a busy machine; who waits for what happens waits no longer than it takes


def until(condition, seconds=PATIENCE, what="it"):
    """Waits for what must happen, however slow the machine is."""
    seconds = max(seconds, PATIENCE)
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


class Daemon:
    """One state directory and the daemon that serves it. Everything lies below `dir`."""

    def __init__(self, *flags, env=None, state_dir=None, program=HOLT):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="holt-e2e."))
        self.dir.chmod(0o755)  # the daemon is another account when root starts it
        self.state_dir = pathlib.Path(state_dir or self.dir / "state")
        self.key_file = self.dir / "key"
        self.log_file = self.dir / "log"
        self.out_file = self.dir / "out"
        self.flags = list(flags)
        self.program = str(program)
        self.env = env
        self.port = None
        self.process = None
        self.is_shared = False  # by tests that know nothing of each other: what it counts must not be lost
        self.others = set()  # daemons and launchers of now and before, by pid and start time
        self.api = Client(self)

    def start(self, wait=True):
        if self.process and self.process.poll() is None:
            self.wait_ended()  # what was killed takes a moment to end, and two cannot have one directory
        command = [self.program, "serve", "--state-dir", str(self.state_dir), "--listen", "127.0.0.1:0",
                   "--admin-key-file", str(self.key_file), *self.flags]
        env = {name: value for name, value in os.environ.items() if not name.startswith("HOLT_")}
        env.update(self.env or {})
        with open(self.log_file, "ab") as log, open(self.out_file, "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=log, cwd=self.dir, env=env)
        if wait:
            self.wait_started()
        return self

    def wait_started(self):
        until(lambda: self.greeting() or self.process.poll() is not None, PATIENCE, "the start")
        assert self.greeting(), f"holt serve ended with {self.process.poll()}:\n{self.log()[-4000:]}"
        self.port = int(self.greeting().group(1))
        self.api.key = self.key
        self.note_parts()

    def greeting(self):
        return GREETING.search(self.out_file.read_bytes())

    @property
    def key(self):
        return self.key_file.read_text().strip()

    def log(self):
        return self.log_file.read_text(errors="replace")

    # --- its parts -----------------------------------------------------------------------------

    def parts(self):
        """Pids by role."""
        found = {}
        for pid in sorted(machine.children_of(self.process.pid)):
            if machine.program_of(pid) == "holt-launch":
                found["launcher"] = pid
            else:  # the oldest: one that is younger is a launcher on its way
                found.setdefault("daemon", pid)
        found["keeper"] = self.process.pid
        return found

    def note_parts(self):
        self.others |= {machine.identity(pid) for pid in self.parts().values()}

    def kill(self, *roles):
        """SIGKILL, all at once; what is left by that ends by itself. Returns the pids."""
        if self.is_shared:
            self.note_used()
        parts = self.parts()
        self.note_parts()
        pids = [parts[role] for role in roles if role in parts]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return pids

    def wait_ended(self, seconds=PATIENCE):
        """The exit code, once every part is gone; boxes may live on."""
        code = self.process.wait(seconds)
        until(lambda: not any(machine.is_alive(part) for part in self.others), seconds, "the end")
        return code

    def stop(self):
        """As a service manager does it. Boxes live on."""
        self.note_parts()
        self.note_used()
        self.process.send_signal(signal.SIGTERM)
        code = self.wait_ended()
        assert code == 0, f"the daemon ended with {code}:\n{self.log()[-4000:]}"

    def note_used(self):
        """Which operations it has carried out, for the contract's test; a daemon that is hung says nothing."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.api.get("/metrics", seconds=30)
            contract.note_used(answer.body.decode() if answer.status == 200 else "")

    # --- what must be true at the end ----------------------------------------------------------

    def instance(self):
        """The name of its boxes' control groups."""
        try:
            return (self.state_dir / "boxes" / "instance").read_text().strip()
        except OSError:
            return None

    def leftovers(self):
        """All that is left of it on this machine, as texts; empty when it has cleaned up."""
        left = [f"process {pid}" for pid, start in self.others if machine.is_alive((pid, start))]
        name = self.instance()
        if name:
            left += [f"control group {path}" for path in machine.groups_named(name)]
            left += [f"process {pid} in a group" for pid in machine.processes_in_group(name)]
        boxes = self.state_dir / "boxes"
        if boxes.is_dir():
            # Not rglob(): what is being removed meanwhile may vanish under it.
            left += [f"record {parent}/{name}" for parent, dirs, files in os.walk(boxes) for name in dirs + files
                     if name not in ("lock", "instance", "layers", "volumes", "image", "layers.img")]
        spool = self.state_dir / "data" / "output"
        if spool.is_dir():
            left += [f"output {path}" for path in sorted(spool.iterdir())]
        left += [f"mount {line}" for line in machine.mounts() if str(self.state_dir) in line
                 and f" {self.state_dir} " not in line]
        left += [f"loop device of {image}" for image in machine.loop_images() if str(self.state_dir) in image]
        return left

    def complaints(self):
        """What sanitizers and assertions said."""
        words = ("Sanitizer", "runtime error:", "Assertion", "killed by signal 6", "killed by signal 11")
        return [line for line in self.log().splitlines() if any(word in line for word in words)]

    def delete_all(self):
        page = self.api.get("/sandboxes?limit=500").must(200).json
        while page["items"]:
            for item in page["items"]:
                assert self.api.delete(f"/sandboxes/{item['id']}").status in (204, 404)
            page = self.api.get("/sandboxes?limit=500").must(200).json

    def finish(self):
        """Deletes everything, stops, and insists that nothing is left."""
        try:
            self.delete_all()
            # Much output takes the store a while, and large trees the launcher: what is not done when the daemon
            # ends stays for the next.
            until(lambda: not [x for x in self.leftovers() if x.startswith("output ") or "/.old." in x], 60,
                  "recording output and removing files")
            self.stop()
            until(lambda: not self.leftovers(), 10, f"cleaning up {self.leftovers()}")
            assert self.complaints() == []
        finally:
            self.discard()

    def discard(self):
        """The way out of a test that failed: no questions, but nothing stays behind either."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        name = self.instance()
        for part in self.others:
            if machine.is_alive(part):
                os.kill(part[0], signal.SIGKILL)
        if name:
            machine.kill_group(name)
        if "HOLT_TEST_KEEP" not in os.environ:
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.finish()
        else:
            print(self.log()[-6000:])
            self.discard()
