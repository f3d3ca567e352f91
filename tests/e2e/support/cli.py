"""`holt` as somebody runs it against a daemon."""
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import time

from support.daemon import HOLT

# What the client's commands are run under, such as valgrind; the daemon is not.
UNDER = shlex.split(os.environ.get("HOLT_CLI_UNDER", ""))
SECONDS = 600 if UNDER else 60


class Cli:
    """Commands with the address and the key of one daemon in their environment."""

    def __init__(self, daemon, **env):
        self.daemon = daemon
        self.more = env

    @property
    def env(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("HOLT_")}
        env["HOLT_URL"] = f"http://127.0.0.1:{self.daemon.port}"
        env["HOLT_API_KEY_FILE"] = str(self.daemon.key_file)
        env.update(self.more)
        return {name: value for name, value in env.items() if value is not None}

    def with_env(self, **env):
        return Cli(self.daemon, **{**self.more, **env})

    def run(self, *args, input=b"", cwd=None, timeout=SECONDS):
        """To its end; output is bytes."""
        return subprocess.run([*UNDER, HOLT, *map(str, args)], input=input, capture_output=True, env=self.env,
                              cwd=cwd or self.daemon.dir, timeout=timeout)

    def must(self, *args, **more):
        """What it printed, once it has ended well; complaints are not expected either."""
        done = self.run(*args, **more)
        assert done.returncode == 0, (args, done)
        return done.stdout.decode()

    def json(self, *args, **more):
        return json.loads(self.must(*args, **more))

    def fails(self, *args, code=125, **more):
        """The lines it said; it must have ended with the code."""
        done = self.run(*args, **more)
        assert done.returncode == code, (args, done)
        return done.stderr.decode().splitlines()

    def begin(self, *args, **more):
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen([*UNDER, HOLT, *map(str, args)], env=self.env, cwd=self.daemon.dir, bufsize=0,
                                **more)

    def terminal(self, *args, **more):
        return Terminal([*UNDER, HOLT, *map(str, args)], dict(self.env, TERM="vt220"), **more)


def take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A program on a terminal that we hold the other end of."""

    def __init__(self, command, env, rows=30, cols=100, controls=False):
        """controls: it is the terminal of a session, whose Ctrl-C is a signal."""
        self.master, self.slave = pty.openpty()
        self.set_size(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen(command, stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, env=env, start_new_session=controls,
                                        preexec_fn=take_terminal if controls else None)

    def set_size(self, rows, cols):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, rows, cols):
        self.set_size(rows, cols)
        self.process.send_signal(signal.SIGWINCH)

    def type(self, text):
        os.write(self.master, text)

    def wait_for(self, pattern, seconds=SECONDS):
        """Reads on until the pattern is there; what was before it is forgotten."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            ready = select.select([self.master], [], [], max(0, end - time.monotonic()))[0]
            assert ready, f"no {pattern!r} in {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        self.seen = self.seen[found.end():]
        return found

    def now(self):
        """How the terminal is set; `before` is how it was."""
        return termios.tcgetattr(self.slave)

    def wait(self):
        return self.process.wait(SECONDS)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        os.close(self.master)
        os.close(self.slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
