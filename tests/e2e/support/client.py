"""The API as a client sees it: requests, answers with their errors, server-sent events."""
import contextlib
import http.client
import json
import time
import urllib.parse

from support import contract

V1 = "/api/v1"
SECONDS = 120  # for one answer, on a busy machine


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        assert self.headers.get("Content-Type") == "application/json", self
        return json.loads(self.body)

    def must(self, *wanted):
        assert self.status in wanted, self
        return self

    def error(self, status, code=None, field=None):
        """Insists on an error of the documented shape, and returns its message."""
        assert self.status == status, self
        assert list(self.json) == ["error"], self
        error = self.json["error"]
        assert sorted(error) == ["code", "details", "message"], self
        assert error["code"] == (code or CODES.get(status, "invalid_request")), self
        assert error["message"], self
        assert error["details"] == ({"field": field} if field else None), self
        return error["message"]

    def __repr__(self):
        return f"<{self.status} {dict(self.headers)} {self.body[:2000]!r}>"


CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict", 412: "conflict",
         429: "rate_limited", 500: "internal_error", 503: "service_unavailable"}


class Event:
    def __init__(self, name, ident, data):
        self.name, self.id, self.text = name, ident, data

    @property
    def data(self):
        return json.loads(self.text)

    def __repr__(self):
        return f"<{self.name} {self.id} {self.text[:300]}>"


class Events:
    """An open stream of server-sent events; ends with StopIteration when the server ends it, also by a reset."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.status, self.headers = response.status, response.headers

    def __iter__(self):
        return self

    def __next__(self):
        name, ident, data = None, None, []
        while True:
            try:
                line = self.response.readline()
            except ConnectionResetError:
                line = b""
            if not line:
                raise StopIteration
            line = line.decode().rstrip("\n")
            if line == "" and (name or data):
                return Event(name, ident, "\n".join(data))
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "id":
                ident = value
            elif field == "data":
                data.append(value)

    def next(self, name):
        """The next event, which must be of this kind."""
        event = next(self)
        assert event.name == name, event
        return event

    def close(self):
        self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Client:
    """`target` has a port, which may change when the daemon starts again."""

    def __init__(self, target, key=None, source="127.0.0.1"):
        self.target, self.key, self.source = target, key, source

    def using(self, key):
        return Client(self.target, key, self.source)

    def coming_from(self, address):
        """Of this machine's own: 127.0.0.2 is another peer than 127.0.0.1."""
        return Client(self.target, self.key, address)

    def connect(self, seconds=SECONDS):
        return http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=seconds,
                                          source_address=(self.source, 0))

    def prepare(self, path, body, value, headers):
        path = path if path.startswith(("/api/", "/health", "/readyz", "/metrics")) else V1 + path
        headers = dict(headers or {})
        if self.key and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.key}"
        if value is not None:
            body = json.dumps(value).encode()
            headers.setdefault("Content-Type", "application/json")
        return path, body, headers

    def ask(self, method, path, value=None, body=None, headers=None, connection=None, seconds=SECONDS):
        """One request and its whole answer. `value` goes as JSON, `body` as it is."""
        path, body, headers = self.prepare(path, body, value, headers)
        own = connection or self.connect(seconds)
        try:
            try:
                own.request(method, path, body=body, headers=headers)
            except (BrokenPipeError, ConnectionResetError):
                if not own.sock:
                    raise
                # The answer may have come before the body had gone.
            response = own.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            contract.check(method, path, answer.status, answer.headers, answer.body)
            return answer
        finally:
            if not connection:
                own.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, value=None, **more):
        return self.ask("POST", path, value, **more)

    def put(self, path, body, **more):
        return self.ask("PUT", path, body=body, **more)

    def patch(self, path, value=None, **more):
        return self.ask("PATCH", path, value, **more)

    def delete(self, path, **more):
        return self.ask("DELETE", path, **more)

    def events(self, method, path, value=None, headers=None, seconds=SECONDS):
        path, body, headers = self.prepare(path, None, value, headers)
        headers.setdefault("Accept", "text/event-stream")
        connection = self.connect(seconds)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        if response.headers.get("Content-Type") == "text/event-stream":
            assert response.status == 200
            return Events(connection, response)
        with contextlib.closing(connection):
            raise AssertionError(Answer(response.status, response.headers, response.read()))

    def sandbox(self, template="bash", **fields):
        answer = self.post("/sandboxes", {"template": template, **fields}).must(201)
        return Box(self, answer.json)


class Box:
    """A sandbox, by its id."""

    def __init__(self, api, value):
        self.api, self.value, self.id = api, value, value["id"]
        self.path = f"/sandboxes/{self.id}"

    def get(self):
        return self.api.get(self.path).must(200).json

    def execute(self, content, kind="command", query="", **fields):
        """The answer of `execute`, whatever it is."""
        return self.api.post(f"{self.path}/execute{query}", {"type": kind, "content": content, **fields})

    def run(self, command, **fields):
        """A shell command to its end: the execution."""
        return self.execute(command, **fields).must(200).json

    def code(self, language, text, **fields):
        return self.execute(text, kind="code", language=language, **fields).must(200).json

    def begin(self, command=None, **fields):
        """An execution in the background."""
        if command is not None:
            fields["command"] = command
        answer = self.api.post(f"{self.path}/executions", {"background": True, **fields}).must(202)
        return Execution(self, answer.json)

    def stream(self, command, **fields):
        return self.api.events("POST", f"{self.path}/executions",
                               {"command": command, "stream": True, **fields})

    def file(self, name, **query):
        path = f"{self.path}/files/{urllib.parse.quote(name.lstrip('/'))}"
        return path + (f"?{urllib.parse.urlencode(query)}" if query else "")

    def put(self, name, body, headers=None, **query):
        return self.api.put(self.file(name, **query), body, headers=headers)

    def read(self, name, headers=None, **query):
        return self.api.get(self.file(name, **query), headers=headers)

    def listing(self, **query):
        return self.api.get(f"{self.path}/files?{urllib.parse.urlencode(query)}")

    def delete(self):
        return self.api.delete(self.path)


class Execution:
    def __init__(self, box, value):
        self.box, self.api, self.value, self.id = box, box.api, value, value["executionId"]
        self.path = f"{box.path}/executions/{self.id}"

    def get(self, query=""):
        return self.api.get(self.path + query).must(200).json

    def wait(self, seconds=60, query=""):
        return self.api.get(f"{self.path}/wait?timeout={seconds}{query}").must(200).json

    def output(self, start=0, **query):
        query = urllib.parse.urlencode({"from": start, **query})
        return self.api.get(f"{self.path}/output?{query}").must(200).json

    def events(self, start=0, last=None, **query):
        headers = {"Last-Event-ID": str(last)} if last is not None else {}
        query = urllib.parse.urlencode({"from": start, **query})
        return self.api.events("GET", f"{self.path}/output?{query}", headers=headers)

    def wait_for_output(self, text, seconds=30):
        """Until its output holds the text."""
        end = time.monotonic() + seconds
        while text not in self.get()["stdout"]:
            assert time.monotonic() < end, f"no {text!r} in {self.get()}"
            time.sleep(0.02)

    def stdin(self, data=b"", eof=False):
        return self.api.post(f"{self.path}/stdin" + ("?eof=1" if eof else ""), body=data)

    def signal(self, signal, tree=False):
        return self.api.post(f"{self.path}/signal", {"signal": signal, "tree": tree})

    def cancel(self):
        return self.api.post(f"{self.path}/cancel")
