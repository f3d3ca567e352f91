"""Name servers that say nothing: who asks them waits, and nobody else does. The server is a socket on the loopback
device that nobody reads."""
import socket

import pytest

from support.connect import open_envd, start
from support.daemon import Daemon, until
from test_network import ask, server  # noqa: F401: a fixture

ASKERS = 24  # at once: more than there are threads for work of the daemon
PROGRAM = f"""
import threading, urllib.request
def go(n):
    while True:
        try: urllib.request.urlopen(f'http://n{{n}}.silent.test/', None, 60)
        except OSError: pass
for n in range({ASKERS}):
    threading.Thread(target=go, args=(n,)).start()
"""


@pytest.fixture
def silent():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names:
        names.bind(("127.0.0.1", 0))
        names.settimeout(60)
        yield names


def asked(names, count):
    """Waits until the server has been asked for so many names."""
    seen = set()
    while len(seen) < count:
        seen.add(names.recv(512)[12:].split(b"\0")[0])


def test_lookups_that_hang_hold_up_neither_others_nor_the_launcher(server, silent):
    port = silent.getsockname()[1]
    with Daemon("--internet", "--internet-allow-private", "--dns-servers", f"127.0.0.1:{port}") as running:
        api = running.api
        envd, other = open_envd(api), open_envd(api)
        hanging = start(envd, process={"cmd": "python3", "args": ["-c", PROGRAM]})
        asked(silent, ASKERS)
        assert ask(other, server) == (200, "echo"), "an address needs no name server"
        before = running.parts()["launcher"]
        running.kill("launcher")
        until(lambda: running.parts().get("launcher", before) != before, what="another launcher")
        made = api.sandbox()
        assert made.run("echo on")["stdout"] == "on\n"
        assert ask(other, server) == (200, "echo")
        asked(silent, 4)  # they still ask, and still wait
        made.delete().must(204)
        hanging.close()
