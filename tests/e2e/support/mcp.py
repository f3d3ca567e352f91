"""MCP as its published programs speak it, and as plain requests."""
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess

from support.client import SECONDS, Events
from support.daemon import BUILD, ROOT, Daemon

FOLDER = pathlib.Path(os.environ.get("MCP_CLIENTS", ROOT / "build-mcp"))
MODULES = FOLDER / "npm/node_modules"
SUITE = MODULES / "@modelcontextprotocol/conformance"
HERE = pathlib.Path(__file__).resolve().parent.parent / "mcp"
PROGRAMS = ("holt-launch", "holt-init", "holt-warm.so")
MODERN, LEGACY = "2026-07-28", "2025-11-25"


def has_clients():
    return (FOLDER / "npm/stamp").exists()


def environment(**more):
    """A newer Node than the machine's, where mcp-clients had to bring one."""
    env = dict(os.environ, MCP_CLIENTS=str(FOLDER), NO_COLOR="1", **more)
    env["PATH"] = f"{FOLDER / 'bin'}:{env.get('PATH', os.defpath)}"
    return env


def node(program, *args, seconds=300, **more):
    return subprocess.run(["node", str(program), *map(str, args)], env=environment(**more), text=True,
                          capture_output=True, timeout=seconds, check=False)


def make_skills(folder):
    """Two skills; the first has files below it, which is the one that the suite looks at."""
    deep = {"SKILL.md": "See [how](references/how.md).\n", "references/how.md": "# With wc\n", "scripts/run.sh": "wc -w\n"}
    for name, files in {"count-words": deep, "make-report": {"SKILL.md": "Write it down.\n"}}.items():
        for path, text in files.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            front = f"---\nname: {name}\ndescription: How to {name.replace('-', ' ')}.\n---\n" if path == "SKILL.md" else ""
            file.write_text(front + text)
    return folder


class Fixtures(Daemon):
    """The daemon with the conformance suite's fixtures. It looks for its other programs where it is itself."""

    def __init__(self, *flags):
        super().__init__(*flags)
        self.flags += ["--skills-dir", str(make_skills(self.dir / "skills"))]
        self.program = str(self.dir / "mcp-fixtures")
        shutil.copy(BUILD / "tests/mcp/mcp-fixtures", self.program)
        for name in PROGRAMS:
            shutil.copy(BUILD / name, self.dir / name)

    @property
    def url(self):
        return f"http://localhost:{self.port}/mcp"


# --- the conformance suite ---------------------------------------------------------------------


def scenarios(side, revision):
    """What the suite runs by this revision, scored or not."""
    text = (SUITE / f"requirements/{revision}.yaml").read_text()
    scored = re.search(rf"^{side}:\n((?:  - .*\n|\s*#.*\n)*)", text, re.M).group(1)
    return re.findall(r"^  - (\S+)", scored, re.M) + re.findall(rf"- scenario: (\S+)\n    leg: {side}\n", text)


def suite(side, revision, out, *args, seconds=600):
    """Runs the suite; the checks of each scenario it ran, by name."""
    done = node(SUITE / "dist/index.js", side, "--requirements" if "--scenario" not in args else "--spec-version",
                revision, "-o", out, *args, seconds=seconds)
    found = {}
    for folder in sorted(pathlib.Path(out).rglob("checks.json")):
        name = str(folder.parent.relative_to(out)).removeprefix(f"{side}-")
        found[re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", name)] = json.loads(folder.read_text())
    assert found, done.stdout[-4000:] + done.stderr[-4000:]
    return found


# A client of the modern era has no reason to send these.
NOT_MODERN = re.compile(r"did not send a (notifications/)?initializ")


def faults(checks):
    """What a scenario found wrong; skipped checks are no good ones either."""
    return [f"{check['status']} {check['id']}: {check.get('errorMessage') or check.get('details')}"
            for check in checks if check["status"] in ("FAILURE", "WARNING", "SKIPPED")
            and not NOT_MODERN.search(check.get("errorMessage") or "")]


# --- plain requests ----------------------------------------------------------------------------

META = "io.modelcontextprotocol/"
TASKS = META + "tasks"
BOTH = "application/json, text/event-stream"


class RpcError(Exception):
    def __init__(self, error, status):
        super().__init__(error)
        self.code, self.data, self.status = error["code"], error.get("data"), status


class Reply:
    """The answer to a POST or GET: JSON, or events as they come."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.status, self.headers = response.status, response.headers
        self.is_stream = (response.headers.get("Content-Type") or "").startswith("text/event-stream")
        self.events = iter(Events(connection, response)) if self.is_stream else None
        self.last_id = None
        self.retry = None

    def messages(self):
        """Every message until the answer's end."""
        if not self.is_stream:
            body = self.response.read()
            self.close()
            if body:
                value = json.loads(body)
                yield from value if isinstance(value, list) else [value]
            return
        for event in self.events:
            self.last_id = event.id or self.last_id
            if event.text:
                yield json.loads(event.text)
        self.close()

    def close(self):
        self.response.close()
        self.connection.close()


class Peer:
    """Somebody who speaks MCP with a daemon, message by message."""

    def __init__(self, daemon, key=None, path="/mcp", source="127.0.0.1"):
        self.daemon, self.path, self.source = daemon, path, source
        self.key = key if key is not None else daemon.key
        self.number = 0

    def connect(self, seconds=SECONDS):
        return http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=seconds,
                                          source_address=(self.source, 0))

    def ask(self, method, body=None, headers=None, seconds=SECONDS):
        own = {"Accept": BOTH, "Authorization": f"Bearer {self.key}"}
        if body is not None:
            own["Content-Type"] = "application/json"
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        own.update(headers or {})
        connection = self.connect(seconds)
        connection.request(method, self.path, body=body,
                           headers={name: value for name, value in own.items() if value is not None})
        return Reply(connection, connection.getresponse())

    def next_id(self):
        self.number += 1
        return self.number

    def result(self, reply, number, heard=None):
        """The result of request `number`; what else came goes to `heard`."""
        for message in reply.messages():
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RpcError(message["error"], reply.status)
                return message["result"]
            if heard is not None:
                heard.append(message)
        raise AssertionError(f"no answer to {number}: {reply.status}")


class Modern(Peer):
    def __init__(self, *args, client=None, **more):
        super().__init__(*args, **more)
        self.client = client or {}

    def message(self, method, params=None, meta=None):
        own = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.client,
               META + "clientInfo": {"name": "plain", "version": "1"}}
        return {"jsonrpc": "2.0", "id": self.next_id(), "method": method,
                "params": {**(params or {}), "_meta": {**own, **(meta or {})}}}

    def headers(self, message):
        head = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        params = message["params"]
        name = params.get("name") or params.get("uri") or params.get("taskId")
        if name:
            head["Mcp-Name"] = name
        return head

    def begin(self, method, params=None, meta=None, seconds=SECONDS):
        message = self.message(method, params, meta)
        return message["id"], self.ask("POST", message, self.headers(message), seconds)

    def call(self, method, params=None, meta=None, heard=None):
        number, reply = self.begin(method, params, meta)
        return self.result(reply, number, heard)

    def tool(self, name, /, meta=None, heard=None, **arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments}, meta, heard)


class Legacy(Peer):
    def __init__(self, *args, version=LEGACY, client=None, **more):
        super().__init__(*args, **more)
        self.version, self.session, self.server = version, None, None
        self.client = client or {}

    def initialize(self):
        message = {"jsonrpc": "2.0", "id": self.next_id(), "method": "initialize",
                   "params": {"protocolVersion": self.version, "capabilities": self.client,
                              "clientInfo": {"name": "plain", "version": "1"}}}
        reply = self.ask("POST", message)
        assert reply.status == 200, (reply.status, list(reply.messages()))
        self.session = reply.headers["Mcp-Session-Id"]
        self.server = self.result(reply, message["id"])
        self.version = self.server["protocolVersion"]
        assert self.notify("notifications/initialized") == 202
        return self

    def headers(self):
        head = {"Mcp-Session-Id": self.session}
        if self.version >= "2025-06-18":
            head["MCP-Protocol-Version"] = self.version
        return head

    def post(self, message, seconds=SECONDS):
        return self.ask("POST", message, self.headers(), seconds)

    def notify(self, method, params=None):
        reply = self.post({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})
        list(reply.messages())
        return reply.status

    def begin(self, method, params=None, seconds=SECONDS):
        number = self.next_id()
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            message["params"] = params
        return number, self.post(message, seconds)

    def call(self, method, params=None, heard=None):
        number, reply = self.begin(method, params)
        return self.result(reply, number, heard)

    def tool(self, name, /, token=None, heard=None, **arguments):
        params = {"name": name, "arguments": arguments}
        if token:
            params["_meta"] = {"progressToken": token}
        return self.call("tools/call", params, heard)

    def resume(self, last_id):
        return self.ask("GET", headers={**self.headers(), "Accept": "text/event-stream", "Last-Event-ID": last_id})

    def end(self):
        return self.ask("DELETE", headers=self.headers()).status
