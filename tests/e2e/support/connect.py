"""Connect RPC as E2B's SDKs speak it to envd: JSON messages, whole or in envelopes."""
import base64
import json
import struct

from support.client import SECONDS, Answer

END = 2  # the flag of a stream's last envelope


def envelope(value, flags=0):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">BI", flags, len(data)) + data


class Cut(Exception):
    """The stream broke off without an end."""


class Stream:
    """An answer in envelopes: iterating gives its messages, and then `end` is the last one's."""

    def __init__(self, connection, response):
        self.connection, self.response, self.end = connection, response, None

    def read(self, n):
        data = b""
        while len(data) < n:
            try:
                more = self.response.read(n - len(data))
            except Exception as why:
                raise Cut from why
            if not more:
                raise Cut
            data += more
        return data

    def __iter__(self):
        return self

    def __next__(self):
        if self.end is not None:
            raise StopIteration
        flags, n = struct.unpack(">BI", self.read(5))
        message = json.loads(self.read(n))
        if flags & END:
            self.end = message
            assert self.response.read() == b""
            raise StopIteration
        return message

    def close(self):
        self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Envd:
    """Files and processes of one sandbox, by its token."""

    def __init__(self, api, sandbox_id, token):
        self.api, self.id, self.token = api, sandbox_id, token

    def headers(self, user, more):
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "Connect-Protocol-Version": "1"}
        if self.token:
            headers["X-Access-Token"] = self.token
        if user is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        headers.update(more or {})
        return headers

    def request(self, method, path, body=None, headers=None, user=None, seconds=SECONDS):
        """One request and its whole answer."""
        connection = self.api.connect(seconds)
        try:
            connection.request(method, path, body=body, headers=self.headers(user, headers))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def unary(self, call, value, user=None, headers=None):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self.request("POST", "/" + call, body, {"Content-Type": "application/json", **(headers or {})}, user)

    def stream(self, call, value, user=None, headers=None, seconds=SECONDS):
        """The open stream; what is refused before it begins is an AssertionError."""
        body = value if isinstance(value, bytes) else envelope(value)
        connection = self.api.connect(seconds)
        connection.request("POST", "/" + call, body=body, headers=self.headers(
            user, {"Content-Type": "application/connect+json", **(headers or {})}))
        response = connection.getresponse()
        if response.status != 200:
            try:
                raise AssertionError(Answer(response.status, response.headers, response.read()))
            finally:
                connection.close()
        assert response.headers["Content-Type"] == "application/connect+json"
        return Stream(connection, response)


class Process:
    """A stream of Process.Start or Process.Connect: its number first."""

    def __init__(self, envd, stream):
        self.envd, self.stream = envd, stream
        self.stdout = self.stderr = self.pty = b""
        self.sizes, self.pings, self.exit, self.pid = [], 0, None, None
        self.step()

    def step(self):
        """Takes one event; False at the end."""
        message = next(self.stream, None)
        if message is None:
            return False
        assert list(message) == ["event"], message
        (kind, value), = message["event"].items()
        if kind == "start":
            assert self.pid is None
            self.pid = value["pid"]
        elif kind == "data":
            assert self.pid is not None
            (name, text), = value.items()
            data = base64.b64decode(text, validate=True)
            self.sizes.append(len(data))
            setattr(self, name, getattr(self, name) + data)
        elif kind == "keepalive":
            self.pings += 1
        else:
            assert kind == "end" and self.exit is None, message
            self.exit = value
        return True

    def until(self, text, name="stdout"):
        while text not in getattr(self, name):
            assert self.step(), (getattr(self, name), self.stream.end)
        return self

    def wait(self):
        """All of it, to the end of the stream."""
        while self.step():
            pass
        return self

    @property
    def error(self):
        return (self.stream.end or {}).get("error")

    def say(self, call, **fields):
        return self.envd.unary(f"process.Process/{call}", {"process": {"pid": self.pid}, **fields})

    def write(self, data, to="stdin"):
        return self.say("SendInput", input={to: base64.b64encode(data).decode()})

    def close(self):
        self.stream.close()


def start(envd, command=None, user=None, headers=None, **fields):
    """Process.Start with a line for the shell, as the SDKs do it, or with `process` as it is."""
    fields.setdefault("stdin", False)
    process = fields.pop("process", {})
    if command is not None:
        process = {"cmd": "/bin/bash", "args": ["-l", "-c", command], **process}
    return Process(envd, envd.stream("process.Process/Start", {"process": process, **fields}, user, headers))


def join(envd, pid=None, tag=None):
    which = {"tag": tag} if tag else {"pid": pid}
    return Process(envd, envd.stream("process.Process/Connect", {"process": which}))


def open_envd(api, template="base", **fields):
    """A new sandbox, by E2B's control plane."""
    headers = {"X-API-Key": "e2b_" + api.key.removeprefix("holt_"), "Content-Type": "application/json"}
    connection = api.connect()
    try:
        body = json.dumps({"templateID": template, "timeout": 600, **fields})
        connection.request("POST", "/sandboxes", body=body, headers=headers)
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read()).must(201)
    finally:
        connection.close()
    made = answer.json
    return Envd(api, made["sandboxID"], made["envdAccessToken"])
