"""E2B's planes with plain requests: a sandbox, its code interpreter, its ports, templates."""
import contextlib
import json

from support.client import SECONDS, Answer
from support.e2b import e2b_key


class Plane:
    """Requests to one plane, with the headers that it wants."""

    def __init__(self, api, **headers):
        self.api = api
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def open(self, method, path, value=None, headers=None, body=None, seconds=SECONDS):
        """The connection and the answer's beginning."""
        headers = {**self.headers, **(headers or {})}
        if value is not None:
            body = json.dumps(value).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = self.api.connect(seconds)
        connection.request(method, path, body=body, headers={n: v for n, v in headers.items() if v is not None})
        return connection, connection.getresponse()

    def ask(self, method, path, value=None, **more):
        connection, response = self.open(method, path, value, **more)
        with contextlib.closing(connection):
            return Answer(response.status, response.headers, response.read())


def control(api):
    return Plane(api, X_API_KEY=e2b_key(api.key))


class Sandbox:
    """One that was made as E2B's SDKs make it."""

    def __init__(self, api, template="base", **fields):
        self.api, self.control = api, control(api)
        self.made = self.control.ask("POST", "/v2/sandboxes", {"templateID": template, **fields}).must(201).json
        self.id = self.made["sandboxID"]

    def port(self, number, **headers):
        return Plane(self.api, E2b_Sandbox_Id=self.id, E2b_Sandbox_Port=str(number), **headers)

    @property
    def code(self):
        return self.port(49999, X_Access_Token=self.made["envdAccessToken"])

    @property
    def contexts(self):
        """As SDKs ask for all but code."""
        return self.port(49999, E2B_Traffic_Access_Token=self.made["trafficAccessToken"])

    def run(self, code, **more):
        """The lines of an execution."""
        return self.ask_run(code, **more).lines()

    def ask_run(self, code, **more):
        answer = self.code.ask("POST", "/execute", {"code": code, **more})
        answer.lines = lambda: [json.loads(line) for line in answer.must(200).body.decode().splitlines()]
        return answer

    def shell(self, command):
        """Ends with the command: by Holt's own API."""
        return self.api.post(f"/sandboxes/{self.id}/execute", {"type": "command", "content": command}).must(200).json

    def pause(self):
        self.control.ask("POST", f"/sandboxes/{self.id}/pause", {}).must(204)

    def kill(self):
        self.control.ask("DELETE", f"/sandboxes/{self.id}").must(204, 404)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
