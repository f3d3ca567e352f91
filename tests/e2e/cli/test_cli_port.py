"""holt port: expose, list, close."""
import json


def test_a_port_is_exposed_listed_and_closed(cli, box):
    url, token = cli.must("port", "expose", box, "3000", "--wake").split()
    assert url.endswith("/ports/3000/") and token.startswith("port_")
    table = cli.must("port", "ls", box).splitlines()
    assert table[0].split()[:3] == ["PORT", "PUBLIC", "WAKE"] and table[1].split()[0] == "3000"
    assert [(p["port"], p["wake"]) for p in json.loads(cli.must("port", "ls", box, "--json"))] == [(3000, True)]
    cli.must("port", "rm", box, "3000")
    assert json.loads(cli.must("port", "ls", box, "--json")) == []


def test_what_is_no_port_is_refused(cli, box):
    for number in ("0", "65536", "http"):
        answer = cli.run("port", "expose", box, number)
        assert answer.returncode != 0 and b"want a number from 1 to 65535" in answer.stderr
