"""Descriptors are finite: whoever uses them up must not harm others."""
import contextlib
import shlex

import support.daemon
from support.daemon import Daemon
from support.raw import Raw


def test_connections_leave_descriptors_for_sandboxes(monkeypatch, tmp_path):
    limited = tmp_path / "holt"
    limited.write_text(f"#!/bin/sh\nulimit -n 256\nexec {shlex.quote(support.daemon.HOLT)} \"$@\"\n")
    limited.chmod(0o755)
    monkeypatch.setattr(support.daemon, "HOLT", str(limited))
    with Daemon() as daemon, contextlib.ExitStack() as crowd:
        launcher = daemon.parts()["launcher"]
        for _ in range(400):  # none has a key, none says a word
            crowd.callback(Raw(daemon.port).socket.close)
        assert daemon.api.sandbox().run("echo in")["stdout"] == "in\n"
        assert daemon.parts()["launcher"] == launcher
