"""WebSockets by a client library that others wrote."""
import json
import socket
import time

import websocket


class Socket:
    """`?token=` or a header: both are ways in."""

    def __init__(self, api, path, by="header", seconds=60, **more):
        url = f"ws://127.0.0.1:{api.target.port}/api/v1{path}"
        headers = []
        if by == "header":
            headers = [f"Authorization: Bearer {api.key}"]
        elif by == "token":
            url += ("&" if "?" in path else "?") + f"token={api.key}"
        plain = socket.create_connection(("127.0.0.1", api.target.port), seconds, (api.source, 0))
        self.raw = websocket.create_connection(url, timeout=seconds, header=headers, socket=plain, **more)
        self.seconds = seconds
        self.code = None  # of the close

    def send(self, value):
        """Text: an object goes as JSON."""
        self.raw.send(value if isinstance(value, str) else json.dumps(value))

    def send_bytes(self, data):
        self.raw.send_binary(data)

    def receive(self):
        """The next message: an object, bytes, or None at the close."""
        end = time.monotonic() + self.seconds
        while True:
            assert time.monotonic() < end, "nothing but pings"
            kind, data = self.raw.recv_data(control_frame=True)
            if kind == websocket.ABNF.OPCODE_TEXT:
                return json.loads(data)
            if kind == websocket.ABNF.OPCODE_BINARY:
                return data
            if kind == websocket.ABNF.OPCODE_CLOSE:
                self.code = int.from_bytes(data[:2], "big") if len(data) >= 2 else None
                return None

    def next(self, kind):
        """The next object, which must be of this type."""
        value = self.receive()
        assert isinstance(value, dict) and value["type"] == kind, value
        return value

    def until(self, kind):
        """The next object of this type; what came before it is returned too."""
        before = []
        while True:
            value = self.receive()
            assert value is not None, (before, self.code)
            if isinstance(value, dict) and value["type"] == kind:
                return value, before
            before.append(value)

    def close(self):
        self.raw.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refusal(api, path, **more):
    """The HTTP status that an upgrade gets instead."""
    try:
        Socket(api, path, **more).close()
    except websocket.WebSocketBadStatusException as problem:
        return problem.status_code
    return 101
