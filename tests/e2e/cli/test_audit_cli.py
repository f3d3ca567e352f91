"""`holt audit`, `holt events` and `holt usage` against a daemon."""
import csv
import io
import json
import sqlite3
import subprocess

from support.cli import Cli
from support.daemon import HOLT, Daemon, until


def test_the_log_is_verified_exported_and_verified_elsewhere():
    with Daemon() as daemon:
        cli = Cli(daemon)
        box = daemon.api.sandbox()
        box.run("true")
        box.delete().must(204)
        until(lambda: len(daemon.api.get("/audit").json["items"]) == 3, 10, "three lines")
        done = cli.run("audit", "verify")
        assert done.returncode == 0 and done.stdout.startswith(b"3 lines"), done
        head = done.stdout.decode().split()[-1]
        assert cli.run("audit", "verify", "--head", head).returncode == 0
        exported = cli.run("audit", "export").stdout
        path = daemon.dir / "audit.jsonl"
        path.write_bytes(exported)
        assert cli.run("audit", "verify", path).returncode == 0
        for old, new, words in ((b'"status":204', b'"status":404', b"line 3"), (exported.split(b"\n")[1] + b"\n", b"", b"want line 2")):
            path.write_bytes(exported.replace(old, new, 1))
            bad = cli.run("audit", "verify", path)
            assert bad.returncode == 125 and words in bad.stderr, bad
        one, two, three = exported.splitlines(keepends=True)
        for lines, words in (([two, one, three], b"1 to 1 are missing"), ([one, two, two, three], b"want line 3"), ([two, three], b"1 to 1 are missing")):
            path.write_bytes(b"".join(lines))
            bad = cli.run("audit", "verify", path)
            assert bad.returncode == 125 and words in bad.stderr, bad
        path.write_bytes(b"\n".join(exported.split(b"\n")[:2]) + b"\n")
        assert cli.run("audit", "verify", path).returncode == 0  # nobody can know what is behind it,
        cut = cli.run("audit", "verify", "--head", head, path)  # but who has kept the head
        assert cut.returncode == 125 and b"line 3 is missing" in cut.stderr, cut


def test_old_lines_are_cut_and_the_rest_is_verified():
    with Daemon() as daemon:
        cli = Cli(daemon)
        for _ in range(3):
            daemon.api.sandbox().delete().must(204)
        until(lambda: len(daemon.api.get("/audit").json["items"]) == 6, 10, "six lines")
        head = cli.run("audit", "verify").stdout.decode().split()[-1]
        daemon.env = {"HOLT_AUDIT_RETENTION": "1ms"}
        daemon.stop()
        daemon.start()
        until(lambda: daemon.api.get("/audit").json["items"][0]["seq"] == 6, 10, "the cut")
        done = cli.run("audit", "verify", "--head", head)
        assert done.returncode == 0 and b"lines 1 to 5 were cut" in done.stdout and b"\n2 lines" in done.stdout, done
        exported = cli.run("audit", "export").stdout
        path = daemon.dir / "audit.jsonl"
        path.write_bytes(exported)
        assert cli.run("audit", "verify", path).returncode == 0
        last, cut = exported.splitlines(keepends=True)
        assert json.loads(cut)["kind"] == "cut"
        for text in (cut, last, last + cut.replace(b'"seq":5', b'"seq":4'), cut + last):
            path.write_bytes(text)
            assert cli.run("audit", "verify", path).returncode == 125, text


def test_events_are_followed_and_usage_is_shown():
    with Daemon() as daemon:
        cli = Cli(daemon)
        follow = subprocess.Popen([HOLT, "events", "-f", "--json"], stdout=subprocess.PIPE, env=cli.env, cwd=daemon.dir)
        try:
            until(lambda: b'kind="sse"' in daemon.api.get("/metrics").body, 10, "a stream")
            box = daemon.api.sandbox()
            box.run("true")
            kinds = [json.loads(follow.stdout.readline())["kind"] for _ in range(4)]
            assert kinds == ["sandbox.created", "sandbox.running", "execution.started", "execution.ended"]
        finally:
            follow.kill()
            follow.wait()
        assert b"sandbox.running" in cli.run("events").stdout
        until(lambda: daemon.api.get("/usage").json["items"], 10, "a row")
        assert b"EXECUTIONS" in cli.run("usage").stdout
        assert cli.run("usage", "--csv").stdout.startswith(b"day,user,executions")
        daemon.stop()
        database = sqlite3.connect(daemon.state_dir / "data" / "holt.db")
        database.executemany("INSERT INTO usage VALUES ('s' || ?1, 20000, 'u' || ?1, '', 0, 0, 0, 0, ?1, 0, 0, 0, 0)",
                             [(n,) for n in range(2100)])
        database.commit()
        database.close()
        daemon.start()
        rows = list(csv.DictReader(io.StringIO(cli.run("usage", "--csv", "--to", "2024-10-05").stdout.decode())))
        assert sorted(int(row["executions"]) for row in rows) == list(range(2100)), "all pages, and the heads once"
