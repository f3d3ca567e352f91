"""Ports: exposing them, who may reach them, and what passes both ways, by path and by host name."""
import hashlib
import http.client
import json
import pathlib
import socket
import threading
import time

import pytest
import websocket

from support.daemon import Daemon, until
from support.provider import AUDIENCE, ISSUER, Provider

PORT = 3000
SERVER = (pathlib.Path(__file__).parents[1] / "support" / "box_server.py").read_bytes()
DOMAIN = "box.example"


def serve(box, port=PORT, address="127.0.0.1"):
    """Starts the server inside, and waits until it listens."""
    box.api.put(f"{box.path}/files/workspace/server.py", SERVER).must(200, 201)
    started = box.api.post(f"{box.path}/executions", {
        "argv": ["python3", "/workspace/server.py", str(port), address], "background": True}).must(202).json
    path = f"{box.path}/executions/{started['executionId']}/output"
    until(lambda: "listening" in json.dumps(box.api.get(path).must(200).json), what="the server inside")
    return box


def expose(box, port=PORT, **fields):
    return box.api.post(f"{box.path}/ports", {"port": port, **fields}).must(201).json


class Reach:
    """What a client of the port does, without any help of a client of the API."""

    def __init__(self, box, port=PORT, key=None, token=None, host=None):
        self.box, self.port, self.host = box, port, host
        self.headers = {}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        if token:
            self.headers["X-Holt-Port-Token"] = token
        if host:
            self.headers["Host"] = host
        self.prefix = "" if host else f"/api/v1{box.path}/ports/{port}"

    def ask(self, method="GET", path="/", body=None, headers=None, connection=None, **more):
        own = connection or self.box.api.connect(30)
        try:
            own.request(method, self.prefix + path, body=body, headers={**self.headers, **(headers or {})}, **more)
            response = own.getresponse()
            response.data = response.read()
            return response
        finally:
            if not connection:
                own.close()

    def json(self, *args, **more):
        response = self.ask(*args, **more)
        assert response.status == 200, (response.status, response.data)
        return json.loads(response.data)


def headers_of(seen):
    return {name.lower(): value for name, value in seen["headers"]}


@pytest.fixture(scope="module")
def served(daemon):
    made = serve(daemon.api.sandbox(resources={"memory": "512Mi", "cpu": 2, "pids": 512}))
    expose(made)
    yield made
    made.delete().must(204)


@pytest.fixture
def port(served):
    return Reach(served, key=served.api.key)


# --- exposing ------------------------------------------------------------------------------------


def test_a_port_is_closed_until_it_is_exposed_and_after_it_was_closed(api, box):
    serve(box)
    reach = Reach(box, key=api.key)
    assert reach.ask().status == 404
    assert api.get(f"{box.path}/ports").must(200).json["items"] == []
    made = expose(box)
    assert sorted(made) == ["createdAt", "port", "public", "token", "url", "wake"]
    assert made["token"].startswith("port_") and made["url"].endswith(f"/api/v1{box.path}/ports/{PORT}/")
    assert reach.ask().status == 200
    listed = api.get(f"{box.path}/ports").must(200).json["items"]
    assert [p["port"] for p in listed] == [PORT] and "token" not in listed[0]
    assert api.get(f"{box.path}/ports/{PORT}").must(200).json == listed[0]
    api.delete(f"{box.path}/ports/{PORT}").must(204)
    assert reach.ask().status == 404
    api.delete(f"{box.path}/ports/{PORT}").error(404)


def test_what_listens_is_listed_whether_it_is_exposed_or_not(api, box):
    listing = lambda: api.get(f"{box.path}/ports").must(200).json
    assert listing() == {"items": [], "listening": [], "truncated": False}
    serve(box)
    serve(box, 3001, "0.0.0.0")
    serve(box, 3002, "::1")
    expose(box, 3001)
    found = {(one["port"], one["address"], one["exposed"]): one for one in listing()["listening"]}
    assert sorted(found) == [(3000, "127.0.0.1", False), (3001, "0.0.0.0", True), (3002, "::1", False)]
    assert {one["command"] for one in found.values()} == {"python3"}
    assert all(one["pid"] > 1 for one in found.values())
    api.post(f"{box.path}/pause").must(200)
    paused = listing()
    assert paused["listening"] is None and [one["port"] for one in paused["items"]] == [3001]
    api.post(f"{box.path}/resume").must(200)
    assert len(listing()["listening"]) == 3


def test_more_than_can_be_told_listen(api):
    box = api.sandbox(resources={"memory": "256Mi"})
    code = ("import socket, time; held = [socket.create_server(('127.0.0.1', 10000 + n)) for n in range(600)];"
            "print('on', flush=True); time.sleep(600)")
    started = api.post(f"{box.path}/executions", {"argv": ["python3", "-c", code], "background": True}).must(202).json
    path = f"{box.path}/executions/{started['executionId']}/output"
    until(lambda: "on" in json.dumps(api.get(path).must(200).json["chunks"]), what="the sockets inside")
    found = api.get(f"{box.path}/ports").must(200).json
    assert found["truncated"] and len(found["listening"]) == 512
    box.delete().must(204)


def test_exposing_has_bounds(api, box):
    for value in [{}, {"port": 0}, {"port": 65536}, {"port": "80"}, {"port": 80, "more": 1}]:
        api.post(f"{box.path}/ports", value).must(400)
    for number in range(1000, 1064):
        expose(box, number)
    api.post(f"{box.path}/ports", {"port": 2000}).error(429)
    assert [p["port"] for p in api.get(f"{box.path}/ports").json["items"]] == list(range(1000, 1064))


def test_ports_stay_exposed_when_the_daemon_starts_again():
    with Daemon() as daemon:
        box = serve(daemon.api.sandbox())
        token = expose(box, public=False)["token"]
        assert Reach(box, token=token).ask().status == 200
        daemon.stop()
        daemon.start()
        until(lambda: Reach(box, token=token).ask().status == 200, what="the port again")
        gone = daemon.api.sandbox()
        expose(gone)
        gone.delete().must(204)
        box.delete().must(204)


# --- who may -------------------------------------------------------------------------------------


def test_only_keys_tokens_and_public_ports_let_one_in(api, box, key_for):
    serve(box)
    made = expose(box)
    other = key_for("user", owner="somebody-else")
    assert Reach(box).ask().status == 401
    assert Reach(box, token="port_" + "0" * 40).ask().status == 401
    assert Reach(box, token=made["token"][:-1]).ask().status == 401
    assert Reach(box, key="holt_" + "0" * 40).ask().status == 401
    assert Reach(box, key=other.key).ask().status == 404
    assert Reach(box, key=key_for("viewer").key).ask().status == 403
    assert Reach(box, token=made["token"]).ask().status == 200
    assert Reach(box, key=api.key).ask().status == 200
    # What is not exposed looks the same to those who may not know.
    assert Reach(box, 3001).ask().status == 401
    again = expose(box, public=True)
    assert Reach(box).ask().status == 200
    assert again["token"] != made["token"]
    expose(box)
    assert Reach(box, token=again["token"]).ask().status == 401


def test_no_credential_of_ours_reaches_the_box(served, port):
    token = expose(served, 3002)["token"]
    seen = port.json(headers={"Cookie": "session=api", "X-API-Key": served.api.key, "X-Holt-Port-Token": token})
    text = json.dumps(seen)
    assert served.api.key not in text and token not in text and "session=api" not in text
    assert not {"authorization", "x-api-key", "cookie", "x-holt-port-token"} & set(headers_of(seen))


# --- requests ------------------------------------------------------------------------------------


def test_a_request_arrives_as_it_was_meant(served, port):
    seen = port.json("GET", "/a%2Fb/../c?x=%20&y=1&y=2", headers={"X-Mine": "a, b", "Accept": "text/html"})
    assert seen["method"] == "GET" and seen["path"] == "/a%2Fb/../c?x=%20&y=1&y=2"
    headers = headers_of(seen)
    assert headers["x-mine"] == "a, b" and headers["accept"] == "text/html"
    assert headers["host"] == f"localhost:{PORT}"
    assert headers["x-forwarded-for"] == "127.0.0.1" and headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-prefix"] == f"/api/v1{served.path}/ports/{PORT}"
    assert len(headers["x-request-id"]) == 20


def test_forged_and_connection_headers_stay_outside(port):
    seen = headers_of(port.json(headers={
        "Connection": "keep-alive, X-Private", "X-Private": "1", "TE": "trailers", "X-Forwarded-For": "6.6.6.6",
        "X-Forwarded-Proto": "https", "Forwarded": "for=6.6.6.6", "X-Real-IP": "6.6.6.6", "Proxy-Connection": "close",
        "Proxy-Authorization": "Basic eA==", "Upgrade": "h2c", "HTTP2-Settings": "x", "X-Request-Id": "mine"}))
    assert seen["x-forwarded-for"] == "127.0.0.1" and seen["x-forwarded-proto"] == "http"
    assert seen["x-request-id"] != "mine"
    assert not {"connection", "x-private", "te", "forwarded", "x-real-ip", "proxy-connection", "proxy-authorization",
                "upgrade", "http2-settings"} & set(seen)


def test_headers_of_the_connection_stay_outside_however_many_lines_name_them(served, port):
    own = served.api.connect(30)
    try:
        own.putrequest("GET", port.prefix + "/")
        for name, value in port.headers.items():
            own.putheader(name, value)
        for i in range(9):
            own.putheader("Connection", f"X-Private-{i}")
            own.putheader(f"X-Private-{i}", "1")
        own.endheaders()
        seen = headers_of(json.loads(own.getresponse().read()))
    finally:
        own.close()
    assert not [name for name in seen if name.startswith("x-private")], seen
    answer = port.ask(path="/raw/many-connections")
    assert answer.status == 200 and not [name for name in answer.headers if name.startswith("X-Private")]


def test_names_that_programs_take_for_ours_stay_outside(port):
    """CGI and WSGI make the same variable of '-' and '_'."""
    forged = {"X_Forwarded_For": "6.6.6.6", "x_real-ip": "6.6.6.6", "X_Access_Token": "t", "Transfer_Encoding": "x", "Own_Name": "1"}
    seen = headers_of(port.json(headers=forged))
    assert "own_name" in seen and not [name for name in seen if "_" in name and name != "own_name"], seen


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("size", [0, 1, 100_000, 5_000_000])
def test_bodies_arrive_whole(port, method, size):
    data = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    data = data[:size]
    for chunked in (False, True):
        body = (data[i:i + 70000] for i in range(0, size, 70000)) if chunked else data
        seen = port.json(method, "/x", body=body, encode_chunked=chunked,
                         headers={"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(size)})
        assert (seen["length"], seen["sha256"]) == (size, hashlib.sha256(data).hexdigest())
        names = [name.lower() for name, _ in seen["headers"]]
        assert names.count("content-length") + names.count("transfer-encoding") <= 1


def test_head_and_options_pass(port):
    answer = port.ask("HEAD", "/h")
    assert answer.status == 200 and answer.data == b"" and int(answer.headers["Content-Length"]) > 10
    assert port.json("OPTIONS", "/o")["method"] == "OPTIONS"


def test_a_connection_to_the_box_is_used_again_and_a_closed_one_is_not_missed(port):
    first = port.json(path="/one")
    second = port.json(path="/two")
    assert second["connection"] == first["connection"] and second["asked"] == first["asked"] + 1
    for _ in range(20):
        assert port.ask(path="/last").status == 200


def test_without_its_slash_the_address_is_completed(port):
    answer = port.ask(path="?x=1")
    assert answer.status in (200, 404)  # GET /ports/:port is about the port
    post = port.ask("POST", "")
    assert post.status == 308 and post.headers["Location"].endswith(f"/ports/{PORT}/")


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, status, body", [
    ("until-end", 200, b"all there is"), ("old", 200, b"old"), ("interim", 200, b"ok"), ("too-much", 200, b"hello"),
    ("204", 204, b""), ("304", 304, b""), ("trailers", 200, b"ok")])
def test_odd_answers_are_right(port, name, status, body):
    answer = port.ask(path=f"/raw/{name}")
    assert (answer.status, answer.data) == (status, body)
    assert "X-T" not in answer.headers


@pytest.mark.parametrize("name", ["none", "half-head", "both", "two-lengths", "bad-length", "big-head", "many-headers",
                                  "endless-head", "endless-interim", "switch", "split", "fold", "nul", "bad-status",
                                  "not-http", "http2", "bad-accept"])
def test_what_is_not_http_is_a_bad_gateway(port, name):
    answer = port.ask(path=f"/raw/{name}")
    assert answer.status == 502, (answer.status, answer.data[:200])
    assert json.loads(answer.data)["error"]["code"] == "bad_gateway"
    assert "X-Evil" not in answer.headers
    assert port.ask(path="/after").status == 200


@pytest.mark.parametrize("name", ["half-body", "half-chunk", "bad-chunk"])
def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(port, name):
    with pytest.raises((http.client.IncompleteRead, http.client.BadStatusLine, ConnectionError)):
        port.ask(path=f"/raw/{name}")


def test_headers_of_the_connection_and_of_ours_stay_inside(port):
    answer = port.ask(path="/raw/hop")
    assert answer.headers["X-Kept"] == "1" and answer.headers["X-Request-Id"] != "forged"
    for name in ("X-Private", "Keep-Alive", "Proxy-Authenticate", "Alt-Svc"):
        assert name not in answer.headers


def test_by_path_a_page_is_kept_apart_from_the_api(served, port):
    answer = port.ask(path="/raw/cookies")
    assert answer.status == 200 and "Set-Cookie" not in answer.headers
    assert answer.headers["Content-Security-Policy"].startswith("sandbox ")
    assert "allow-same-origin" not in answer.headers["Content-Security-Policy"]
    assert port.ask(path="/raw/moved").headers["Location"] == f"/api/v1{served.path}/ports/{PORT}/login"


def test_nothing_there_is_a_clear_502(api, box):
    expose(box, 4000)
    answer = Reach(box, 4000, key=api.key).ask()
    assert answer.status == 502
    assert json.loads(answer.data)["error"]["message"] == "port 4000: nothing listens there"


def test_a_program_on_the_other_loopback_is_found(api, box):
    serve(box, 3006, "::1")
    expose(box, 3006)
    assert Reach(box, 3006, key=api.key).ask().status == 200


def test_a_large_answer_arrives_whole_however_slow_the_client(port):
    connection = port.box.api.connect(60)
    connection.request("GET", port.prefix + "/raw/big", headers=port.headers)
    response = connection.getresponse()
    time.sleep(0.5)
    total = 0
    while piece := response.read(1 << 20):
        total += len(piece)
    assert total == 64 << 20
    connection.close()


def test_a_client_that_leaves_takes_its_connection_along(port):
    for _ in range(300):  # more than there may be at once
        connection = port.box.api.connect(60)
        connection.request("GET", port.prefix + "/raw/slow", headers=port.headers)
        assert connection.getresponse().status == 200
        connection.close()
        time.sleep(0.02)  # the program inside has a limit of its own
    until(lambda: port.ask(path="/after").status == 200, what="room for another")


def test_connections_to_one_sandbox_are_counted(api):
    box = serve(api.sandbox(resources={"memory": "512Mi", "cpu": 2, "pids": 512}))
    expose(box)
    open_ones = []
    reach = Reach(box, key=api.key)
    for _ in range(256):
        connection = api.connect(30)
        connection.request("GET", reach.prefix + "/hang", headers=reach.headers)
        open_ones.append(connection)
    until(lambda: reach.ask().status == 429, what="the limit")
    box.delete().must(204)
    statuses = {c.getresponse().status for c in open_ones}
    assert statuses <= {502, 409, 429}, statuses
    for connection in open_ones:
        connection.close()


# --- WebSockets ----------------------------------------------------------------------------------


def dial(reach, path="/ws"):
    plain = socket.create_connection(("127.0.0.1", reach.box.api.target.port), 30)
    url = f"ws://127.0.0.1:{reach.box.api.target.port}{reach.prefix}{path}"
    return websocket.create_connection(url, timeout=30, socket=plain,
                                       header=[f"{k}: {v}" for k, v in reach.headers.items() if k != "Host"],
                                       host=reach.host)


def test_a_websocket_goes_through(port):
    ws = dial(port)
    for text in ("hello", "x" * 100, ""):
        ws.send(text)
        assert ws.recv() == text
    ws.close()


def test_a_websocket_ends_with_the_port_and_with_its_key(api, box):
    serve(box)
    expose(box)
    made = api.post("/keys", {"name": "port", "role": "admin"}).must(201).json
    first, second = dial(Reach(box, key=made["key"])), dial(Reach(box, key=api.key))
    for ws in (first, second):
        ws.send("x")
        assert ws.recv() == "x"
    api.delete(f"/keys/{made['id']}").must(204)
    with pytest.raises((websocket.WebSocketException, OSError)):
        first.recv()
    api.delete(f"{box.path}/ports/{PORT}").must(204)
    with pytest.raises((websocket.WebSocketException, OSError)):
        second.recv()


# --- pause, idle and end -------------------------------------------------------------------------


def test_a_paused_sandbox_is_woken_only_when_the_port_says_so(needs_root, api, box):
    serve(box)
    expose(box)
    reach = Reach(box, key=api.key)
    assert reach.ask().status == 200
    api.post(f"{box.path}/pause").must(200)
    assert reach.ask().status == 409
    api.post(f"{box.path}/resume").must(200)
    expose(box, wake=True)
    api.post(f"{box.path}/pause").must(200)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(reach.ask().status)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 4
    assert box.get()["status"] == "running"


def test_requests_keep_an_idle_sandbox_alive():
    with Daemon() as daemon:
        box = serve(daemon.api.sandbox(idleTimeout="4s"))
        # The server inside is an execution, and what runs is not idle: so let it be a leftover.
        box.run("setsid -f python3 /workspace/server.py 3005 >/dev/null 2>&1; sleep 0.5")
        for ident in [e["executionId"] for e in daemon.api.get(f"{box.path}/executions").json["items"]]:
            daemon.api.delete(f"{box.path}/executions/{ident}")
        made = expose(box, 3005, public=True)
        if Reach(box, 3005).ask().status != 200:
            pytest.skip("nothing of an execution survives it here")
        connection = daemon.api.connect(30)
        connection.request("GET", f"/api/v1{box.path}/ports/3005/hang")
        time.sleep(4.5)
        assert daemon.api.get(box.path).json["status"] == "running"
        connection.close()
        last = time.monotonic()
        assert Reach(box, 3005).ask().status == 200, made
        until(lambda: daemon.api.get(box.path).json["status"] == "stopped", what="its idle end")
        assert time.monotonic() - last > 3.9


def test_the_end_of_a_sandbox_ends_what_is_open(api):
    box = serve(api.sandbox())
    expose(box)
    reach = Reach(box, key=api.key)
    connection = api.connect(30)
    connection.request("GET", reach.prefix + "/hang", headers=reach.headers)
    ws = dial(reach)
    ws.send("x")
    assert ws.recv() == "x"
    box.delete().must(204)
    assert connection.getresponse().status == 502
    with pytest.raises((websocket.WebSocketException, OSError)):
        ws.recv()
    assert reach.ask().status == 404


# --- by host name --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    with Provider() as provider:
        provider.add("EdDSA", "one")
        with Daemon("--domain", DOMAIN, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-jwks", provider.url) as daemon:
            box = serve(daemon.api.sandbox())
            box.token, box.provider = expose(box)["token"], provider
            yield box
            box.delete().must(204)


def host_of(box, port=PORT):
    return f"{port}-{box.id}.{DOMAIN}"


def test_the_host_name_names_port_and_sandbox(named):
    made = named.api.get(f"{named.path}/ports/{PORT}").must(200).json
    assert made["url"] == f"http://{host_of(named)}:{named.api.target.port}/"
    for host in (host_of(named), host_of(named).upper(), host_of(named) + ":8443"):
        seen = Reach(named, token=named.token, host=host).json(path="/p?q=1")
        assert seen["path"] == "/p?q=1"
        assert headers_of(seen)["host"] == host and "x-forwarded-prefix" not in headers_of(seen)
    assert Reach(named, token=named.token, host=host_of(named)).json(path="/api/v1/sandboxes")["path"] == "/api/v1/sandboxes"


@pytest.mark.parametrize("host", ["{p}-{id}.{d}.evil", "{p}-{id}x.{d}", "0{p}-{id}.{d}", "{p}{id}.{d}", "{id}.{d}",
                                  "-{id}.{d}", "99999-{id}.{d}", "{p}-{id}.{d}.", "a.{p}-{id}.{d}", "{d}", "{p}-{id}"])
def test_other_hosts_are_the_api(named, host):
    host = host.format(p=PORT, id=named.id, d=DOMAIN)
    assert Reach(named, token=named.token, host=host).ask(path="/p").status == 404


def test_by_host_the_same_credentials_are_wanted(named, key_for):
    host = host_of(named)
    assert Reach(named, host=host).ask().status == 401
    assert Reach(named, host=host_of(named, 3001), token=named.token).ask().status == 401
    assert Reach(named, host=host.replace(named.id, "a" * 20), token=named.token).ask().status == 502
    assert Reach(named, host=host, key=named.api.key).ask().status == 200
    assert Reach(named, host=host, key="holt_" + "1" * 40).ask().status == 401


def test_a_token_in_the_address_becomes_a_cookie_that_the_box_does_not_see(named):
    reach = Reach(named, host=host_of(named))
    answer = reach.ask(path=f"/page?a=1&token={named.token}&b=2")
    assert answer.status == 303 and answer.headers["Location"] == "/page?a=1&b=2"
    cookie, *flags = answer.headers["Set-Cookie"].split("; ")
    assert cookie == f"holt_port={named.token}" and {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(flags)
    seen = headers_of(reach.json(headers={"Cookie": f"mine=1; {cookie}; other=2", "Authorization": "Basic dTpw"}))
    assert seen["cookie"] == "mine=1; other=2" and seen["authorization"] == "Basic dTpw"
    assert reach.ask(headers={"Cookie": "holt_port=port_" + "0" * 40}).status == 401
    assert reach.ask(path="/page?token=theirs").status == 401
    assert reach.ask(path=f"//evil.example/?token={named.token}").status == 401
    assert "cookie" not in headers_of(reach.json(headers={"Cookie": cookie}))


def credentials(box):
    """What opens something of ours, and is good for nothing to the program behind a port."""
    client = box.api
    client.post("/api/sessions", {"id": "port", "workspace": {"template": "bash"}}).must(201, 409)
    session = client.post("/api/sessions/port/sandbox").must(200).json["headers"]["Authorization"].split()[1]
    return {"key": client.key, "key for E2B": client.key.replace("holt_", "e2b_"), "session": session, "port": box.token,
            "sandbox": client.post(f"{box.path}/tokens", {}).must(201).json["key"], "provider": box.provider.keys[0].token("anna"),
            "expired": box.provider.keys[0].token("anna", exp=1)}


def test_no_credential_of_ours_reaches_a_program_wherever_it_stands(named):
    reach = Reach(named, token=named.token, host=host_of(named))
    for name, secret in credentials(named).items():
        for headers, path in [({"Authorization": f"Bearer {secret}"}, "/"), ({"Authorization": f"bearer   {secret} "}, "/"),
                              ({"Authorization": secret}, "/"), ({"X-API-Key": secret}, "/"), ({"X-Access-Token": secret}, "/"),
                              ({"X-Forwarded-Authorization": f"Bearer {secret}"}, "/"), ({"Cookie": f"a=1; mine={secret}; b=2"}, "/"),
                              ({"Sec-WebSocket-Protocol": f"x, bearer.{secret}"}, "/") if name != "provider" and name != "expired" else ({}, "/"),
                              ({"Referer": f"http://x/?token={secret}"}, "/") if name != "provider" and name != "expired" else ({}, "/"),
                              ({}, f"/p?a=1&token={secret}&b=%20"), ({}, f"/p?a=1&any=%{ord(secret[0]):02x}{secret[1:]}&b=%20")]:
            answer = reach.ask("POST", path, headers=headers, body=b"x")
            assert answer.status == 200, (name, headers, path, answer.status, answer.data)
            seen = json.loads(answer.data)
            assert secret not in json.dumps(seen) and secret[1:] not in json.dumps(seen), (name, headers, path, seen)
            if "?" in path:
                assert seen["path"] == "/p?a=1&b=%20"
            if "Cookie" in headers:
                assert headers_of(seen)["cookie"] == "a=1; b=2"
    named.api.delete("/api/sessions/port").must(200)


def test_a_program_s_own_credentials_reach_it(named):
    reach = Reach(named, token=named.token, host=host_of(named))
    key = named.provider.keys[0]
    foreign = [key.token("anna", aud="their-app"), key.token("anna", iss="https://other.example"), "holt_of_another_kind", "a.b.c",
               "box_office", "port_of_call", "ghp_" + "0" * 36]
    for secret in foreign:
        headers = {"Authorization": f"Bearer {secret}", "X-API-Key": secret, "Cookie": f"session={secret}"}
        seen = reach.json(path=f"/p?token={secret}&x", headers=headers)
        assert headers_of(seen)["authorization"] == f"Bearer {secret}" and headers_of(seen)["x-api-key"] == secret
        assert headers_of(seen)["cookie"] == f"session={secret}" and seen["path"] == f"/p?token={secret}&x"
    assert headers_of(reach.json(headers={"Authorization": "Basic dTpw"}))["authorization"] == "Basic dTpw"


def test_a_program_makes_neither_browsers_nor_proxies_do_more_than_show_its_answer(named, port):
    always = {"NEL", "Report-To", "Reporting-Endpoints", "Expect-CT", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Clear-Site-Data",
              "Alt-Svc", "X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-Lighttpd-Send-File", "X-Reproxy-URL"}
    of_an_origin = {"Strict-Transport-Security", "Service-Worker-Allowed", "WWW-Authenticate", "Accept-CH", "Critical-CH"}
    by_host = Reach(named, token=named.token, host=host_of(named)).ask(path="/raw/browser")
    assert by_host.headers["X-Kept"] == "1"
    assert not always & set(by_host.headers) and of_an_origin <= set(by_host.headers)
    by_path = port.ask(path="/raw/browser")
    assert by_path.headers["X-Kept"] == "1" and not (always | of_an_origin) & set(by_path.headers)


def test_a_disabled_user_s_key_opens_no_port(named):
    owner = named.api.post("/keys", {"name": "x", "owner": "gone"}).must(201).json["key"]
    box = serve(named.api.using(owner).sandbox())
    expose(box)
    reach = Reach(box, key=owner, host=host_of(box))
    assert reach.ask().status == 200
    named.api.post("/users", {"name": "gone", "status": "disabled"}).must(201)
    assert reach.ask().status == 401
    named.api.delete(box.path).must(204)


def refused(connection):
    """Whether a request that was held is answered by a refusal."""
    return connection.getresponse().status == 401


def hold(reach):
    """A request that the program does not answer."""
    connection = reach.box.api.connect(60)
    connection.request("GET", reach.prefix + "/hang", headers=reach.headers)
    return connection


def test_no_port_of_a_disabled_user_is_open(named):
    """Neither by its token nor to all, and what was open ends."""
    made = named.api.post("/keys", {"name": "x", "owner": "shut"}).must(201).json
    box = serve(named.api.using(made["key"]).sandbox())
    serve(box, 3001)
    token, host = expose(box)["token"], host_of(box)
    expose(box, 3001, public=True)
    ways = [Reach(box, token=token), Reach(box, token=token, host=host), Reach(box, 3001), Reach(box, 3001, host=host_of(box, 3001))]
    assert [way.ask().status for way in ways] == [200] * 4
    held, ws = [hold(way) for way in ways], dial(ways[0])
    ws.send("x")
    assert ws.recv() == "x"
    named.api.post("/users", {"name": "shut", "status": "disabled"}).must(201)
    assert [way.ask().status for way in ways] == [401] * 4
    assert all(refused(one) for one in held)
    with pytest.raises((websocket.WebSocketException, OSError)):
        ws.recv()
    assert Reach(box, key=named.api.key).ask().status == 200
    named.api.delete(box.path).must(204)


def test_a_request_to_a_port_ends_with_its_key(api, box):
    serve(box)
    expose(box)
    made = api.post("/keys", {"name": "port", "role": "admin"}).must(201).json
    held = hold(Reach(box, key=made["key"]))
    until(lambda: in_flight(api) > 1, what="the request inside")
    api.delete(f"/keys/{made['id']}").must(204)
    assert refused(held)


def in_flight(api):
    text = api.get("/metrics").must(200).body.decode()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("holt_http_requests_in_flight"))


def test_one_websocket_too_many_is_refused_whatever_its_request_took(api, port):
    """The request is over when it is refused: nothing of it is looked at behind that."""
    query = "&".join(f"{i}=%41" for i in range(800))
    sockets = [dial(port) for _ in range(64)]
    for path in ("/ws", f"/ws/{'x' * 500}?{query}", f"/ws?{'%41' * 2000}=1", f"/ws/{'%41' * 2000}"):
        with pytest.raises(websocket.WebSocketBadStatusException, match="429"):
            dial(port, path)
    for one in sockets:
        one.close()
    api.get("/user").must(200)


def test_by_host_cookies_stay_with_their_host(named):
    answer = Reach(named, host=host_of(named), token=named.token).ask(path="/raw/cookies")
    assert answer.headers.get_all("Set-Cookie") == ["a=1; Path=/"]
    assert "Content-Security-Policy" not in answer.headers
    assert Reach(named, host=host_of(named), token=named.token).ask(path="/raw/moved").headers["Location"] == "/login"


def test_by_host_a_websocket_goes_through(named):
    ws = dial(Reach(named, host=host_of(named), token=named.token))
    ws.send("hello")
    assert ws.recv() == "hello"
    ws.close()
