"""The way out of E2B's sandboxes: closed unless the operator opens it, and then as far as each one's terms go."""
import http.server
import json
import threading

import pytest

from support.client import Answer
from support.connect import open_envd, start
from support.daemon import Daemon, until

HOST = "127.0.0.2"  # of this machine, and not among those that programs reach without the proxy


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 5))
        self.end_headers()
        self.wfile.write(b"echo " + body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer((HOST, 0), Echo) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running.server_port
        running.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def open_daemon():
    with Daemon("--internet", "--internet-allow-private") as running:
        yield running


def ask(envd, port, body=None, host=HOST):
    """What a program in the box gets: its status and text."""
    program = ("import sys, urllib.request, urllib.error\n"
               f"body = {body!r}\n"
               f"try: r = urllib.request.urlopen('http://{host}:{port}/', body, 30); print(r.status, r.read().decode())\n"
               "except urllib.error.HTTPError as e: print(e.code, e.read().decode())\n"
               "except OSError as e: print(0, e)\n")
    done = start(envd, process={"cmd": "python3", "args": ["-c", program]}).wait()
    assert b" " in done.stdout, done.stderr
    status, text = done.stdout.decode().split(" ", 1)
    return int(status), text.strip() or done.stderr


def variables(envd):
    done = start(envd, "env").wait()
    return {line.split("=", 1)[0] for line in done.stdout.decode().splitlines()}


def change(envd, **network):
    api = envd.api
    connection = api.connect()
    try:
        headers = {"X-API-Key": "e2b_" + api.key.removeprefix("holt_"), "Content-Type": "application/json"}
        connection.request("PUT", f"/sandboxes/{envd.id}/network", json.dumps(network), headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def test_without_the_operators_word_there_is_no_way_out(daemon, server):
    envd = open_envd(daemon.api, allow_internet_access=True)
    assert not variables(envd) & {"HTTP_PROXY", "https_proxy"}
    assert ask(envd, server)[0] == 0
    daemon.api.delete(f"/sandboxes/{envd.id}").must(204)


def test_requests_with_and_without_a_body_go_through(open_daemon, server):
    envd = open_envd(open_daemon.api)
    assert ask(envd, server) == (200, "echo")
    assert ask(envd, server, b"x" * 30000) == (200, "echo " + "x" * 30000)
    tunnel = (f"import http.client, os\nc = http.client.HTTPConnection('127.0.0.1', "
              f"int(os.environ['HTTPS_PROXY'].rsplit(':', 1)[1]))\nc.set_tunnel('{HOST}', {server})\n"
              "c.request('POST', '/', b'tunnelled')\nprint(c.getresponse().read().decode())")
    assert start(envd, process={"cmd": "python3", "args": ["-c", tunnel]}).wait().stdout == b"echo tunnelled\n"


def execute(envd, code):
    """Lines of the code interpreter."""
    answer = envd.request("POST", "/execute", json.dumps({"code": code}).encode(),
                          {"E2b-Sandbox-Port": "49999", "Content-Type": "application/json"}).must(200)
    return [json.loads(line) for line in answer.body.splitlines()]


def test_code_goes_out_by_the_same_way(open_daemon, server):
    envd = open_envd(open_daemon.api, network={"denyOut": ["0.0.0.0/0"], "allowOut": [HOST]})
    code = f"import urllib.request\nprint(urllib.request.urlopen('http://{HOST}:{server}/', b'hi').read())"
    said = [line["text"] for line in execute(envd, code) if line["type"] == "stdout"]
    assert "".join(said) == "b'echo hi'\n"
    change(envd, denyOut=["0.0.0.0/0"]).must(204)
    errors = [line for line in execute(envd, code) if line["type"] == "error"]
    assert errors and "403" in errors[0]["value"]


def test_who_asks_for_none_gets_none(open_daemon, server):
    envd = open_envd(open_daemon.api, allow_internet_access=False)
    assert not variables(envd) & {"HTTP_PROXY", "https_proxy"}
    assert ask(envd, server)[0] == 0


def test_a_client_may_have_variables_of_its_own(open_daemon):
    envd = open_envd(open_daemon.api)
    done = start(envd, "echo $HTTP_PROXY $NO_PROXY", process={"envs": {"HTTP_PROXY": "http://own.test"}}).wait()
    assert done.stdout.split() == [b"http://own.test", b"localhost,127.0.0.1,::1"]


@pytest.mark.parametrize("network, status", [
    ({"denyOut": ["127.0.0.0/8"]}, 403), ({"denyOut": ["0.0.0.0/0"]}, 403), ({"denyOut": ["192.0.2.0/24"]}, 200),
    ({"denyOut": ["0.0.0.0/0"], "allowOut": [HOST]}, 200), ({"denyOut": ["0.0.0.0/0"], "allowOut": ["*"]}, 200),
    ({"denyOut": ["0.0.0.0/0"], "allowOut": ["a.test", "10.0.0.0/8"]}, 403)])
def test_what_is_allowed_comes_before_what_is_denied(open_daemon, server, network, status):
    envd = open_envd(open_daemon.api, network=network)
    assert ask(envd, server)[0] == status


def test_only_what_is_allowed_is_reached_where_the_rest_is_closed(open_daemon, server):
    envd = open_envd(open_daemon.api, allow_internet_access=False, network={"allowOut": [f"{HOST}/32"]})
    assert ask(envd, server)[0] == 200
    assert ask(envd, server, host="127.0.0.3")[0] == 403


def test_a_refusal_is_an_event(open_daemon, server):
    envd = open_envd(open_daemon.api, network={"denyOut": ["0.0.0.0/0"]})
    assert ask(envd, server)[0] == 403
    until(lambda: envd.id in open_daemon.api.get("/security-events").must(200).body.decode(), what="the event")


def test_other_terms_count_at_once_and_cut_what_is_open(open_daemon, server):
    envd = open_envd(open_daemon.api)
    hold = (f"import http.client, os\nc = http.client.HTTPConnection('127.0.0.1', "
            f"int(os.environ['HTTP_PROXY'].rsplit(':', 1)[1]))\nc.set_tunnel('{HOST}', {server})\nc.connect()\n"
            "print('open', flush=True)\nprint('cut', c.sock.recv(1))")
    held = start(envd, process={"cmd": "python3", "args": ["-c", hold]}).until(b"open\n")
    change(envd, denyOut=["0.0.0.0/0"]).must(204)
    assert held.wait().stdout == b"open\ncut b''\n"
    assert ask(envd, server)[0] == 403
    change(envd, allowOut=[HOST], denyOut=["0.0.0.0/0"]).must(204)
    assert ask(envd, server)[0] == 200
    change(envd, allow_internet_access=False).must(204)
    assert ask(envd, server)[0] == 0


def test_entries_that_are_none_are_refused(open_daemon):
    envd = open_envd(open_daemon.api)
    for bad in ({"allowOut": ["a b"]}, {"denyOut": ["a.test"]}, {"denyOut": ["1.2.3.4/64"]}, {"allowOut": [""]}):
        answer = change(envd, **bad).must(400)
        assert answer.json["code"] == 400 and "network" in answer.json["message"]


def test_private_networks_stay_closed(server):
    with Daemon("--internet") as daemon:
        envd = open_envd(daemon.api, network={"allowOut": ["127.0.0.0/8", "*"]})
        assert ask(envd, server)[0] == 403


def test_what_the_operator_denies_no_client_opens(server):
    with Daemon("--internet", "--internet-allow-private", "--egress-deny", f"192.0.2.0/24,{HOST}/32") as running:
        envd = open_envd(running.api, network={"allowOut": [HOST, "*"]})
        assert ask(envd, server)[0] == 403
        assert ask(envd, server, host=f"[::ffff:{HOST}]")[0] == 403
