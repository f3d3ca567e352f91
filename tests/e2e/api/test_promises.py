"""Every route, method and tool of every protocol, with every role, scope and kind of token: what is let through is what
support/promises.py says, no more and no less."""
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import tempfile
import time

import pytest

from support import promises
from support.client import Client
from support.daemon import ROOT, Daemon, until
from support.e2b import DOMAIN
from support.mcp import make_skills
from support.promises import ANY, PUBLIC
from support.provider import AUDIENCE, ISSUER, Provider

JWT = ["--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-role-claim", "role", "--jwt-skew", "1"]
RATES = [word for name in ("read", "write", "exec", "create") for word in (f"--rate-{name}", "0")]
REFUSED = (401, 403, 429)  # 429: too many requests without a valid key came before
NOBODY_S = "0" * 20  # an id that no sandbox has
# Of one path: what stands for its parameters.
PARTS = {":id": None, ":port": "8000", "*path": "tmp/x", ":hash": "0" * 64}


class World:
    """Keys and tokens of every kind, and what they open."""

    def __init__(self, daemon, provider):
        self.daemon, self.provider, self.admin = daemon, provider, daemon.api
        self.anna = self.key("user", "anna")
        self.one, self.two = (self.admin.using(self.anna).sandbox() for _ in range(2))
        self.e2b = self.control("POST", "/sandboxes", {"templateID": "base"}, self.anna)
        # Volumes need a launcher that root has started.
        self.volume = self.control("POST", "/volumes", {"name": "data"}, self.anna)["volumeID"] if os.geteuid() == 0 else None

    def key(self, role, owner, **fields):
        return self.make_key(role, owner, **fields)["key"]

    def make_key(self, role, owner, **fields):
        return self.admin.post("/keys", {"name": "walk", "role": role, "owner": owner, **fields}).must(201).json

    def control(self, method, path, value, key):
        answer = ask(self.daemon, method, path, {"X-API-Key": key}, value)
        assert answer.status in (200, 201), answer
        return answer.json()

    def keys(self):
        """Name -> (key, the scopes that it holds)."""
        found = {role: (self.key(role, "anna" if role != "admin" else "admin"), scopes)
                 for role, scopes in promises.ROLES.items()}
        for scope in sorted(promises.ROLES["admin"]):
            role = "user" if scope in promises.ROLES["user"] else "admin"
            found[f"only {scope}"] = (self.key(role, "anna", scopes=[scope]), {scope})
        signer = self.provider.keys[0]
        found["token of a provider"] = (signer.token("anna"), promises.ROLES["user"])
        found["token of a provider, viewer"] = (signer.token("anna", role="viewer"), promises.ROLES["viewer"])
        return found

    @functools.cached_property
    def bad_keys(self):
        """Name -> what is good for nothing."""
        revoked = self.make_key("admin", "anna")
        self.admin.delete(f"/keys/{revoked['id']}").must(204)
        shut_out = self.key("user", "shut-out")
        self.admin.post("/users", {"name": "shut-out", "status": "disabled"}).must(201)
        expired = self.key("admin", "anna", expiresIn="1s")
        until(lambda: self.admin.using(expired).get("/user").status == 401, what="the key's end")
        return {"none": None, "revoked": revoked["key"], "of a disabled user": shut_out, "expired": expired,
                "made up": "holt_" + 40 * "0", "expired token": self.provider.keys[0].token("anna", exp=int(time.time()) - 10)}

    def box_token(self):
        return self.admin.using(self.anna).post(f"{self.one.path}/tokens", {}).must(201).json["key"]

    @functools.cached_property
    def session_token(self):
        """Of a session's sandbox; the sandbox's id with it."""
        client = self.admin.using(self.anna)
        client.post("/api/sessions", {"id": "walk", "workspace": {"template": "bash"}}).must(201)
        given = client.post("/api/sessions/walk/sandbox").must(200).json
        return given["headers"]["Authorization"].split()[1], given["sandbox_id"]


class Reply:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:500]!r}>"


def ask(daemon, method, path, headers, value=None):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=120)) as connection:
        body = json.dumps(value).encode() if value is not None else None
        headers = {"Content-Type": "application/json", **headers} if body else headers
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        if response.headers.get("Content-Type") == "text/event-stream":
            response.read = lambda: b""  # it would not end
        return Reply(response)


def fill(path, box):
    parts = [part if part[:1] not in (":", "*") else (PARTS.get(part) or (box if part == ":id" else NOBODY_S))
             for part in path.split("/")]
    return "/".join(parts)


def bearer(key):
    return {"Authorization": f"Bearer {key}"} if key else {}


def walk(world, table, key, box=NOBODY_S, more=None):
    """(method, path, scope, status) of each route. What would change something names nothing that is there, or sends
    a body that is no object: who is let through gets 400 or 404."""
    for (method, path), scope in promises.routes(table).items():
        value = [] if method in ("POST", "PUT", "PATCH") else None
        answer = ask(world.daemon, method, fill(path, box), {**bearer(key), **(more or {})}, value)
        yield method, path, scope, answer


@pytest.fixture(scope="module")
def world():
    # Not below pytest's own directory, which the daemon's account may not enter.
    with tempfile.TemporaryDirectory() as folder, Provider() as provider:
        pathlib.Path(folder).chmod(0o755)
        skills = make_skills(pathlib.Path(folder) / "s")
        provider.add("EdDSA", "one")
        flags = [*JWT, *RATES, "--domain", DOMAIN, "--jwt-jwks", provider.url, "--skills-dir", str(skills)]
        with Daemon(*flags) as daemon:
            made = World(daemon, provider)
            yield made
            made.admin.using(made.anna).delete("/api/sessions/walk").must(200, 404)
            daemon.delete_all()
            if made.volume:
                until(lambda: ask(daemon, "DELETE", f"/volumes/{made.volume}", {"X-API-Key": made.anna}).status != 409)


# --- nothing is without a promise ------------------------------------------------------------------


def rows(name, macros, table=None):
    """(method, path) of the rows in a source file, as C reads them."""
    text = (ROOT / "src" / name).read_text()
    if table:
        text = re.search(rf"struct api_route {table}\[\] = {{(.*?)\n}};", text, re.S).group(1)
    for method, path in re.findall(r'\bROW\("(\w+)",\s*((?:"[^"]*"|\w+|\s)+?),', text):
        words = re.findall(r'"[^"]*"|\w+', path)
        yield method, "".join(word.strip('"') if word[0] == '"' else macros[word] for word in words)


@pytest.fixture
def sources():
    if not (ROOT / "src").exists():
        pytest.skip("there are no sources here")


E2B = {"FILESYSTEM": "/filesystem.Filesystem", "PROCESS": "/process.Process", "VOLUME": "/volumecontent/:vid"}


@pytest.mark.parametrize("table, name, macros, promised", [
    ("control", "e2b/routes.c", E2B, promises.CONTROL), ("envd", "e2b/routes.c", E2B, promises.ENVD),
    ("code", "e2b/routes.c", E2B, promises.CODE), ("volume", "e2b/routes.c", E2B, promises.VOLUME),
    ("rows", "mcp/http.c", {"MCP_METADATA_PATH": "/.well-known/oauth-protected-resource"}, promises.MCP)])
def test_every_route_of_another_protocol_has_a_promise(sources, table, name, macros, promised):
    assert set(rows(name, macros, table)) == set(promises.routes(promised))


def test_every_route_of_the_api_has_a_promise(world):
    contract = world.admin.get("/openapi.json").must(200).json
    paths = {(method.upper(), re.sub(r"{(\w+)}", r":\1", path)) for path, all_of in contract["paths"].items() for method in all_of
             if method in ("get", "head", "post", "put", "patch", "delete", "options")}
    promised = {(method, path.replace("*path", ":path")) for method, path in promises.routes(promises.REST)}
    assert paths == promised


def test_every_method_and_tool_of_mcp_has_a_promise(sources, world):
    text = (ROOT / "src/mcp/methods.c").read_text()
    assert set(re.findall(r'{ "([\w/]+)", (?:LEGACY|MODERN|BOTH)', text)) == set().union(*promises.METHODS.values())
    listed = mcp(world, world.admin.key, "tools/list", {})["result"]["tools"]
    assert {tool["name"] for tool in listed} == set().union(*promises.TOOLS.values())


# --- what a key may -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["REST", "CONTROL", "MCP"])
def test_a_key_is_let_through_where_it_has_the_scope_and_nowhere_else(world, name):
    wrong = []
    for who, (key, scopes) in world.keys().items():
        for method, path, scope, answer in walk(world, getattr(promises, name), key):
            if (answer.status not in REFUSED) != (scope in (PUBLIC, ANY) or scope in scopes):
                wrong.append((who, method, path, scope, answer))
    assert not wrong, wrong


@pytest.mark.parametrize("name", ["REST", "CONTROL", "MCP", "VOLUME"])
def test_what_is_no_good_key_is_refused_everywhere(world, name):
    wrong = []
    for who, key in world.bad_keys.items():
        for method, path, scope, answer in walk(world, getattr(promises, name), key):
            if (answer.status in REFUSED) != (scope != PUBLIC):
                wrong.append((who, method, path, scope, answer))
    assert not wrong, wrong


@pytest.mark.parametrize("name, port", [("ENVD", "49983"), ("CODE", "49999")])
def test_no_key_opens_what_is_in_a_sandbox_of_e2b(world, name, port):
    target = {"E2b-Sandbox-Id": world.e2b["sandboxID"], "E2b-Sandbox-Port": port}
    wrong = []
    for who, (key, _) in world.keys().items():
        for method, path, scope, answer in walk(world, getattr(promises, name), key, more=target):
            if (answer.status in REFUSED) != (scope != PUBLIC):
                wrong.append((who, method, path, scope, answer))
    for method, path, scope, answer in walk(world, getattr(promises, name), None,
                                            more={**target, "X-Access-Token": world.e2b["envdAccessToken"]}):
        if answer.status in REFUSED:
            wrong.append(("the token", method, path, scope, answer))
    assert not wrong, wrong


def test_no_key_opens_what_is_in_a_volume(world):
    wrong = [(who, method, path, answer) for who, (key, _) in world.keys().items()
             for method, path, _, answer in walk(world, promises.VOLUME, key) if answer.status not in REFUSED]
    assert not wrong, wrong


# --- whose sandbox it is --------------------------------------------------------------------------


def claims(box):
    """Ways to say that a request is for a sandbox."""
    return [{}, {"E2b-Sandbox-Id": box}, {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49999"},
            {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "8000"}, {"Host": f"49983-{box}.{DOMAIN}"}, {"Host": f"8000-{box}.{DOMAIN}"}]


def reached(answer):
    return answer.status < 400 or answer.status in (409, 412, 416)


@pytest.mark.parametrize("name", ["REST", "CONTROL", "MCP"])
def test_nobody_reaches_another_s_sandbox(world, name):
    """A token of one sandbox, a session's token, and another owner's key: neither by its path, nor with a head that
    names the sandbox that the token is good for."""
    session, session_box = world.session_token
    wrong = []
    for who, key, own in [("token of one", world.box_token(), world.one.id), ("token of a session", session, session_box),
                          ("another owner", world.key("user", "bob"), NOBODY_S)]:
        for claim in claims(own):
            for method, path, scope, answer in walk(world, getattr(promises, name), key, world.two.id, claim):
                if ":id" in path and "warmpools" not in path and scope != PUBLIC and reached(answer):
                    wrong.append((who, claim, method, path, answer))
    assert not wrong, wrong
    assert world.two.get()["status"] == "running"


@pytest.mark.parametrize("name", ["REST", "CONTROL", "MCP"])
def test_a_token_of_one_sandbox_opens_nothing_beside_it(world, name):
    wrong = []
    for claim in claims(world.one.id):
        for method, path, scope, answer in walk(world, getattr(promises, name), world.box_token(), world.one.id, claim):
            own = path.startswith(promises.BOX) and scope in promises.SANDBOX_TOKEN or (name == "MCP" and scope == ANY)
            if scope not in (PUBLIC, ANY) and not own and reached(answer):
                wrong.append((claim, method, path, answer))
            if not claim and own and answer.status in REFUSED:
                wrong.append(("refused", method, path, answer))
    assert not wrong, wrong


def test_the_token_of_one_sandbox_of_e2b_opens_no_other(world):
    other = world.control("POST", "/sandboxes", {"templateID": "base"}, world.anna)
    wrong = []
    for table, port in ((promises.ENVD, "49983"), (promises.CODE, "49999")):
        for header, field in (("X-Access-Token", "envdAccessToken"), ("E2b-Traffic-Access-Token", "trafficAccessToken")):
            target = {"E2b-Sandbox-Id": other["sandboxID"], "E2b-Sandbox-Port": port, header: world.e2b[field]}
            wrong += [(header, method, path, answer) for method, path, scope, answer in walk(world, table, None, more=target)
                      if scope != PUBLIC and answer.status not in REFUSED]
    ask(world.daemon, "DELETE", f"/sandboxes/{other['sandboxID']}", {"X-API-Key": world.anna})
    assert not wrong, wrong


# --- tokens are given to who may do as much --------------------------------------------------------


def partial_keys(world, carried):
    """Keys that lack one scope of those that a token carries, and one that has them all."""
    rest = {"sandbox:write", "sandbox:read", "template"}
    for missing in sorted(carried):
        if missing not in rest:
            yield missing, world.key("user", "anna", scopes=sorted((carried | rest) - {missing})), False
    yield "nothing", world.key("user", "anna", scopes=sorted(carried | rest)), True
    yield "all but sandbox:write", world.key("user", "anna", scopes=["sandbox:write", "sandbox:read", "template"]), False


TOKENS = re.compile(rb"[a-z0-9]{20}[0-9a-f]{40}")


def given(answer):
    assert answer.status in (200, 201), answer
    return TOKENS.search(answer.body) is not None


def test_e2b_s_tokens_are_given_to_who_holds_what_they_open(world):
    box, volume = world.e2b["sandboxID"], world.volume
    wrong = []
    for lacks, key, has_all in partial_keys(world, promises.SANDBOX_TOKEN):
        for method, path, value in [("GET", f"/sandboxes/{box}", None), ("POST", f"/sandboxes/{box}/connect", {"timeout": 60}),
                                    ("POST", f"/v2/sandboxes/{box}/connect", {"timeout": 60}), ("POST", f"/sandboxes/{box}/fork", {}),
                                    ("POST", "/sandboxes", {"templateID": "base"}), ("POST", "/v2/sandboxes", {"templateID": "base"})]:
            answer = ask(world.daemon, method, path, {"X-API-Key": key}, value)
            if given(answer) != has_all:
                wrong.append((lacks, method, path, answer))
        ask(world.daemon, "POST", f"/sandboxes/{box}/pause", {"X-API-Key": key}, {})
        answer = ask(world.daemon, "POST", f"/sandboxes/{box}/resume", {"X-API-Key": key}, {})
        if given(answer) != has_all:
            wrong.append((lacks, "resume", answer))
        if volume:
            answer = ask(world.daemon, "GET", f"/volumes/{volume}", {"X-API-Key": key})
            if given(answer) != (lacks not in promises.VOLUME_TOKEN and not lacks.startswith("all")):
                wrong.append((lacks, "volume", answer))
    viewer = world.key("viewer", "anna")
    info = ask(world.daemon, "GET", f"/sandboxes/{box}", {"X-API-Key": viewer})
    assert info.status == 200 and not given(info), info
    assert not wrong, wrong


def test_a_session_s_token_is_given_to_who_holds_what_it_opens(world):
    client = world.admin.using(world.anna)
    client.post("/api/sessions", {"id": "given", "workspace": {"template": "bash"}}).must(201)
    for lacks, key, has_all in partial_keys(world, promises.SESSION_TOKEN):
        for method in ("POST", "GET"):
            answer = ask(world.daemon, method, "/api/sessions/given/sandbox", bearer(key))
            assert given(answer) == has_all, (lacks, method, answer)
    client.delete("/api/sessions/given").must(200)


def test_a_key_makes_no_key_that_may_more(world):
    """Also where what is asked for and what the maker has have nothing in common: none at all is made then, not one
    without limits."""
    maker = world.admin.using(world.key("user", "anna", scopes=["key"]))
    for path, body in [("/keys", {"name": "x"}), ("/keys", {"name": "x", "role": "viewer"}),
                       ("/user/apikeys", {"name": "x", "role": "viewer"}), (f"/sandboxes/{world.one.id}/tokens", {}),
                       ("/keys", {"name": "x", "scopes": ["exec"]}), (f"/sandboxes/{world.one.id}/tokens", {"scopes": ["exec"]})]:
        answer = maker.post(path, body)
        assert answer.status == 403 or answer.must(201).json["scopes"] == ["key"], (path, body, answer)


# --- MCP ------------------------------------------------------------------------------------------


def mcp(world, key, method, params, path="/mcp"):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    name = params.get("name") or params.get("uri") or params.get("taskId")
    headers = {**bearer(key), "Accept": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if name:
        headers["Mcp-Name"] = name
    return ask(world.daemon, "POST", path, headers, {"jsonrpc": "2.0", "id": 1, "method": method,
                                                     "params": {**params, "_meta": meta}}).json()


def test_tools_go_by_the_scopes_of_the_key(world):
    wrong = []
    for who, (key, scopes) in world.keys().items():
        for wanted, names in promises.TOOLS.items():
            for name in sorted(names):
                # Arguments that no tool takes: who is let through is told so.
                text = json.dumps(mcp(world, key, "tools/call", {"name": name, "arguments": {"no such": 1}}))
                if ("it lacks" in text) != (not set(wanted.split()) <= scopes):
                    wrong.append((who, name, text))
    assert not wrong, wrong


def test_methods_that_read_go_by_the_scopes_of_the_key(world):
    asked = {"tasks/get": {"taskId": "none"}, "tasks/update": {"taskId": "none", "inputResponses": {}}, "tasks/cancel": {"taskId": "none"},
             "resources/read": {"uri": f"sandbox://{world.one.id}/files/etc/hostname"}, "skills/list": {},
             "skills/get": {"name": "make-report"}, "resources/directory/read": {"uri": "skill://"}}
    wrong = []
    for who, (key, scopes) in world.keys().items():
        for scope in ("exec", "sandbox:read", "file:read"):
            for method in promises.METHODS[scope]:
                text = json.dumps(mcp(world, key, method, asked[method]))
                if ("it lacks" in text) != (scope not in scopes):
                    wrong.append((who, method, text))
    assert not wrong, wrong


def test_mcp_of_one_sandbox_knows_no_other(world):
    token = world.box_token()
    read = {"uri": f"sandbox://{world.two.id}/files/etc/hostname"}
    assert "error" in mcp(world, token, "resources/read", read)
    assert "error" in mcp(world, world.anna, "resources/read", read, f"/sandboxes/{world.one.id}/mcp")
    assert "result" in mcp(world, world.anna, "resources/read", read)
    listed = json.dumps(mcp(world, token, "resources/list", {}))
    assert world.two.id not in listed and world.one.id in listed


# --- what is whose --------------------------------------------------------------------------------


def test_the_machine_s_metrics_are_an_admin_s(world):
    seen = {role: Client(world.daemon, world.key(role, "anna")).get("/metrics").must(200).body.decode() for role in promises.ROLES}
    assert "holt_http_request_seconds" in seen["admin"] and "process_" in seen["admin"]
    for role in ("user", "viewer"):
        names = set(re.findall(r"^(\w+)", re.sub(r"^#.*\n", "", seen[role], flags=re.M), re.M))
        assert names == {"holt_user_use", "holt_user_quota"}, names
        assert re.search(r'^holt_user_use{kind="sandboxes"} [1-9]', seen[role], re.M), seen[role]


def test_the_audit_log_names_the_token_s_own_sandbox(world):
    dora = world.admin.using(world.key("user", "dora"))
    one, two = dora.sandbox(), dora.sandbox()
    token = dora.post(f"{one.path}/tokens", {}).must(201).json["key"]
    ask(world.daemon, "DELETE", f"/api/v1/sandboxes/{two.id}/files/tmp/x", bearer(token))
    ask(world.daemon, "POST", "/sandboxes", {**bearer(token), "E2b-Sandbox-Id": two.id}, {})

    def denied():
        return world.admin.get("/audit?owner=dora&kind=denied").must(200).json["items"]

    until(lambda: len(denied()) == 2, what="two lines")
    assert {line["data"]["sandbox"] for line in denied()} == {one.id}, denied()
