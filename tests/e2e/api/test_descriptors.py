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
    with Daemon("--limits-nofile", "100") as daemon, contextlib.ExitStack() as crowd:
        mine = daemon.api.connect()  # from before: no other would be let in
        daemon.api.get("/user", connection=mine).must(200)
        launcher = daemon.parts()["launcher"]
        strangers = [Raw(daemon.port) for _ in range(400)]  # none has a key, none says a word
        for stranger in strangers:
            crowd.callback(stranger.socket.close)
        assert b" 503 " in strangers[-1].read_all()
        daemon.api.post("/sandboxes", {"template": "bash"}, connection=mine).must(201)
        assert daemon.parts()["launcher"] == launcher
