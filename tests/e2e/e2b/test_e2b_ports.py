"""Ports of sandboxes as E2B's clients reach them: by headers, by host names, with and without the token."""
import json
import socket

import pytest

from support.daemon import Daemon, until
from support.e2b import DOMAIN
from support.e2b_plain import Plane, Sandbox

SERVER = r'''
import http.server, json, sys
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        n = int(self.headers.get("Content-Length") or 0)
        told = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                "body": self.rfile.read(n).decode()}
        data = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Own", "yes")
        self.end_headers()
        self.wfile.write(data)
    do_POST = do_PUT = do_DELETE = do_GET
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((sys.argv[1], 3000), Echo).serve_forever()
'''


def serve(box, address="127.0.0.1"):
    """A server inside; it is there when this returns."""
    box.api.put(f"/sandboxes/{box.id}/files/tmp/server.py", SERVER.encode()).must(200, 201, 204)
    box.api.post(f"/sandboxes/{box.id}/execute", {"type": "command", "background": True,
                                                  "content": f"exec python3 /tmp/server.py {address}"}).must(202)
    token = {"E2b_Traffic_Access_Token": box.made["trafficAccessToken"]}
    until(lambda: box.port(3000, **token).ask("GET", "/").status == 200, what="the server")
    return box


@pytest.fixture(scope="module")
def box(daemon):
    with Sandbox(daemon.api) as made:
        yield serve(made)


def gone(answer, ident):
    assert answer.status == 502, answer
    assert answer.json == {"sandboxId": ident, "message": "The sandbox was not found", "code": 502}


def test_what_listens_on_a_port_answers_by_the_headers(box):
    answer = box.port(3000, Authorization="Bearer their-own", Cookie="a=b").ask("POST", "/x/y?q=1", {"v": 1}).must(200)
    told = answer.json
    assert (told["method"], told["path"], told["body"]) == ("POST", "/x/y?q=1", '{"v": 1}')
    assert answer.headers["X-Own"] == "yes"
    headers = {name.lower(): value for name, value in told["headers"].items()}
    assert headers["authorization"] == "Bearer their-own" and headers["cookie"] == "a=b"
    assert not [name for name in headers if name.startswith("e2b-")]


def test_neither_keys_nor_tokens_reach_the_program(box, daemon):
    told = box.port(3000, X_API_Key=daemon.key, E2b_Traffic_Access_Token=box.made["trafficAccessToken"]).ask("GET", "/")
    text = json.dumps(told.must(200).json)
    assert daemon.key not in text and box.made["trafficAccessToken"] not in text


def test_what_listens_answers_by_the_host_name(box, api):
    host = f"3000-{box.id}.{DOMAIN}"
    told = Plane(api, Host=host).ask("GET", "/by/host").must(200).json
    assert told["path"] == "/by/host" and told["headers"]["Host"] == host
    assert Plane(api, Host=f"3001-{box.id}.{DOMAIN}").ask("GET", "/").must(502).json["port"] == 3001


def test_a_port_where_nothing_listens_is_said_to_be_closed(box):
    answer = box.port(3001).ask("GET", "/")
    assert answer.status == 502 and answer.json == {
        "sandboxId": box.id, "message": "The sandbox is running but port is not open", "port": 3001, "code": 502}


def test_people_get_a_page_and_programs_json(box):
    for headers in [{"Accept": "text/html,application/xhtml+xml"}, {"Sec-Fetch-Mode": "navigate"}]:
        page = box.port(3001).ask("GET", "/", headers=headers)
        assert page.status == 502 and page.headers["Content-Type"].startswith("text/html"), page
        assert b"port is not open" in page.body
    for headers in [{"Accept": "text/html", "Sec-Fetch-Mode": "cors"}, {"Accept": "*/*"}]:
        assert box.port(3001).ask("GET", "/", headers=headers).json["code"] == 502
    assert box.port(3001).ask("POST", "/", headers={"Accept": "text/html"}).json["code"] == 502


@pytest.mark.parametrize("ident", ["a" * 20, "nope", "x" * 300, "<script>", "../../etc"])
def test_a_sandbox_that_is_not_there_is_502(api, ident):
    answer = Plane(api, E2b_Sandbox_Id=ident, E2b_Sandbox_Port="3000").ask("GET", "/")
    gone(answer, ident if len(ident) <= 20 else "")
    page = Plane(api, E2b_Sandbox_Id=ident, E2b_Sandbox_Port="3000", Accept="text/html").ask("GET", "/")
    assert page.status == 502 and b"<script>" not in page.body


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "3000x", ""])
def test_what_is_no_port_is_refused(box, port):
    assert box.port(port).ask("GET", "/").status in (400, 502)


def test_one_that_was_killed_is_gone(daemon):
    with Sandbox(daemon.api) as box:
        serve(box)
        box.kill()
        gone(box.port(3000).ask("GET", "/"), box.id)


def test_a_paused_one_is_gone_unless_it_wakes_by_itself(daemon):
    with Sandbox(daemon.api) as box, Sandbox(daemon.api, autoPause=True, autoResume={"enabled": True}) as waking:
        serve(box)
        serve(waking)
        box.pause()
        waking.pause()
        gone(box.port(3000).ask("GET", "/"), box.id)
        assert waking.port(3000).ask("GET", "/awake").must(200).json["path"] == "/awake"
        assert waking.control.ask("GET", f"/sandboxes/{waking.id}").must(200).json["state"] == "running"


def test_the_host_name_of_one_that_was_killed_says_so(daemon, api):
    with Sandbox(daemon.api) as made:
        serve(made)
        plane = Plane(api, Host=f"3000-{made.id}.{DOMAIN}")
        assert plane.ask("GET", "/").status == 200
        made.control.ask("DELETE", f"/sandboxes/{made.id}").must(204)
        gone(plane.ask("GET", "/"), made.id)


def test_names_below_localhost_work_without_a_domain_and_keep_the_port():
    with Daemon() as daemon, Sandbox(daemon.api) as box:
        serve(box)
        local = f"localhost:{daemon.port}"
        assert box.made["domain"] == local
        assert Plane(daemon.api, Host=f"3000-{box.id}.{local}").ask("GET", "/").status == 200
        assert Plane(daemon.api, Host=f"49983-{box.id}.{local}").ask("GET", "/health").status == 204
        told = lambda host: box.control.ask("GET", f"/sandboxes/{box.id}", headers={"Host": host}).must(200).json["domain"]
        assert [told(host) for host in ("[::1]:81", "api.localhost", "127.0.0.1")] == ["localhost:81", "localhost", "localhost"]
        assert told("holt.example:8765") is None, "to others those names mean another machine"


def test_the_domain_of_an_answer_has_the_port_that_the_client_uses(daemon, box):
    told = lambda host: box.control.ask("GET", f"/sandboxes/{box.id}", headers={"Host": host}).must(200).json["domain"]
    assert told(f"api.{DOMAIN}:8443") == f"{DOMAIN}:8443"
    assert told(f"api.{DOMAIN}") == DOMAIN
    assert Plane(daemon.api, Host=f"3000-{box.id}.{DOMAIN}:8443").ask("GET", "/").status == 200


def test_one_that_is_not_public_wants_its_token(daemon, box):
    with Sandbox(daemon.api, network={"allowPublicTraffic": False}) as closed:
        serve(closed)
        host = {"Host": f"3000-{closed.id}.{DOMAIN}"}
        for token in [None, "", "x", closed.made["envdAccessToken"], box.made["trafficAccessToken"]]:
            for plane in [closed.port(3000), Plane(daemon.api, **host)]:
                answer = plane.ask("GET", "/", headers={"E2b-Traffic-Access-Token": token})
                assert answer.status == 403 and answer.json["code"] == 403, (token, answer)
                assert answer.json["sandboxId"] == closed.id and answer.json["message"]
        token = {"E2b-Traffic-Access-Token": closed.made["trafficAccessToken"]}
        assert closed.port(3000).ask("GET", "/", headers=token).status == 200
        assert Plane(daemon.api, **host).ask("GET", "/", headers=token).status == 200


def test_an_operator_can_close_all_of_them():
    with Daemon("--domain", DOMAIN, env={"HOLT_E2B_PUBLIC_PORTS": "false"}) as daemon, Sandbox(daemon.api) as box:
        serve(box)
        assert box.port(3000).ask("GET", "/").status == 403
        assert Plane(daemon.api, Host=f"3000-{box.id}.{DOMAIN}").ask("GET", "/").status == 403
        token = {"E2b-Traffic-Access-Token": box.made["trafficAccessToken"]}
        assert box.port(3000).ask("GET", "/", headers=token).status == 200


def test_sandboxes_that_holts_own_api_made_stay_closed(daemon, api):
    box = daemon.api.sandbox("python")
    plane = Plane(api, E2b_Sandbox_Id=box.id, E2b_Sandbox_Port="3000")
    assert plane.ask("GET", "/").status == 403
    assert Plane(api, Host=f"3000-{box.id}.{DOMAIN}").ask("GET", "/").status == 401
    box.delete().must(204)


def test_the_server_is_told_another_host_when_the_sandbox_says_so(daemon):
    with Sandbox(daemon.api, network={"maskRequestHost": "localhost:${PORT}"}) as box:
        serve(box)
        told = box.port(3000).ask("GET", "/").must(200).json
        assert told["headers"]["Host"] == "localhost:3000"
        assert "localhost:3000" != told["headers"]["X-Forwarded-Host"]


def test_what_a_box_answers_does_not_become_an_answer_of_ours(box):
    """A header that would split the answer, or a body that is shorter than it says, ends the request."""
    box.api.put(f"/sandboxes/{box.id}/files/tmp/bad.py", b'''
import socket
s = socket.create_server(("127.0.0.1", 3002))
while True:
    c, _ = s.accept()
    c.recv(65536)
    c.sendall(b"HTTP/1.1 200 OK\\r\\nX-A: b\\r\\nno colon here\\r\\n\\r\\n")
    c.close()
''').must(200, 201, 204)
    box.api.post(f"/sandboxes/{box.id}/execute", {"type": "command", "background": True,
                                                  "content": "exec python3 /tmp/bad.py"}).must(202)
    listening = lambda: "3002" in box.shell("cat /proc/net/tcp | awk '{print $2}'; python3 - <<'E'\nimport socket\n"
                                            "s = socket.socket(); print(3002 if s.connect_ex(('127.0.0.1', 3002)) == 0 else 'no')\nE")["stdout"]
    until(listening, what="the bad server")
    answer = box.port(3002).ask("GET", "/")
    assert answer.status == 502 and answer.json["code"] == 502


def test_a_websocket_goes_through(box, daemon):
    box.api.put(f"/sandboxes/{box.id}/files/tmp/ws.py", rb'''
import base64, hashlib, socket
s = socket.create_server(("127.0.0.1", 3003))
while True:
    c, _ = s.accept()
    head = b""
    while b"\r\n\r\n" not in head:
        head += c.recv(4096) or b"\r\n\r\n"
    key = [l.split(b":")[1].strip() for l in head.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")]
    if not key:
        c.close()
        continue
    accept = base64.b64encode(hashlib.sha1(key[0] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n\x81\x02hi")
    c.recv(100)
    c.close()
''').must(200, 201, 204)
    box.api.post(f"/sandboxes/{box.id}/execute", {"type": "command", "background": True,
                                                  "content": "exec python3 /tmp/ws.py"}).must(202)
    plain = lambda: box.port(3003).ask("GET", "/").json
    until(lambda: "port is not open" in plain()["message"] and
          box.shell("python3 -c \"import socket; socket.create_connection(('127.0.0.1', 3003))\" && echo up")["stdout"] == "up\n",
          what="the WebSocket server")
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as s:
        s.sendall(f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nE2b-Sandbox-Id: {box.id}\r\nE2b-Sandbox-Port: 3003\r\n"
                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        got = b""
        while not got.endswith(b"hi"):
            piece = s.recv(4096)
            assert piece, got
            got += piece
    assert got.startswith(b"HTTP/1.1 101 ") and b"\x81\x02hi" in got
