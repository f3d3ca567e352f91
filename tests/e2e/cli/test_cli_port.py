"""holt port: expose, list, close."""
import json

from support.daemon import until


def test_a_port_is_exposed_listed_and_closed(cli, box):
    url, token = cli.must("port", "expose", box, "3000", "--wake").split()
    assert url.endswith("/ports/3000/") and token.startswith("port_")
    table = cli.must("port", "ls", box).splitlines()
    assert table[0].split() == ["PORT", "EXPOSED", "WAKE", "LISTENS", "PROGRAM", "AGE", "URL"]
    assert table[1].split()[:5] == ["3000", "yes", "yes", "-", "-"] and table[1].split()[-1] == url
    assert [(p["port"], p["wake"]) for p in cli.json("port", "ls", box, "--json")["items"]] == [(3000, True)]
    cli.must("port", "rm", box, "3000")
    assert cli.json("port", "ls", box, "--json") == {"items": [], "listening": [], "truncated": False}


def test_what_listens_is_listed_too(cli, daemon, box):
    code = ("import socket, time; a = socket.create_server(('127.0.0.1', 4100)); b = socket.create_server(('', 4101));"
            "print('on', flush=True); time.sleep(600)")
    started = daemon.api.post(f"/sandboxes/{box}/executions", {"argv": ["python3", "-c", code], "background": True})
    path = f"/sandboxes/{box}/executions/{started.must(202).json['executionId']}/output"
    until(lambda: "on" in json.dumps(daemon.api.get(path).json["chunks"]), what="the server inside")
    cli.must("port", "expose", box, "4101", "--public")
    rows = [line.split()[:6] for line in cli.must("port", "ls", box).splitlines()[1:]]
    assert [row[:4] for row in rows] == [["4101", "public", "no", "0.0.0.0"], ["4100", "no", "-", "127.0.0.1"]]
    assert all(row[4] == "python3" and row[5].strip("()").isdigit() for row in rows)


def test_what_is_no_port_is_refused(cli, box):
    for number in ("0", "65536", "http"):
        answer = cli.run("port", "expose", box, number)
        assert answer.returncode != 0 and b"want a number from 1 to 65535" in answer.stderr
