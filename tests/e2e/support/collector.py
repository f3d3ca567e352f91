"""A collector of traces: takes OTLP over HTTP and keeps what came."""
import contextlib
import http.server
import json
import socket
import threading

from support.daemon import until


class Span:
    """One span, with its attributes as a plain dict."""

    def __init__(self, raw, resource):
        self.raw, self.resource = raw, attributes(resource["attributes"])
        self.trace, self.id, self.parent = raw["traceId"], raw["spanId"], raw.get("parentSpanId")
        self.name, self.kind = raw["name"], raw["kind"]
        self.start, self.end = int(raw["startTimeUnixNano"]), int(raw["endTimeUnixNano"])
        self.attributes = attributes(raw["attributes"])
        self.failed = raw["status"].get("code") == 2

    def __repr__(self):
        return f"<{self.name} {self.id} below {self.parent} of {self.trace} {self.attributes}>"


def attributes(items):
    values = {}
    for item in items:
        (kind, value), = item["value"].items()
        values[item["key"]] = int(value) if kind == "intValue" else value
    return values


class Collector:
    """`answers` are statuses (or pairs with headers) of the next requests; then 200."""

    def __init__(self, port=0):
        self.bodies, self.headers, self.answers, self.lock = [], [], [], threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = outer.take(self.path, self.headers, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def process_request(self, request, client_address):
                outer.connections.append(request)
                super().process_request(request, client_address)

        self.connections = []
        self.server = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def take(self, path, headers, body):
        with self.lock:
            answer = self.answers.pop(0) if self.answers else 200
            status, extra = answer if isinstance(answer, tuple) else (answer, {})
            if path != "/v1/traces" or headers["Content-Type"] != "application/json":
                status = 404
            self.headers.append(dict(headers))
            if status == 200:
                self.bodies.append(body)
        return status, extra

    def spans(self, trace=None):
        """All that came, or those of one trace."""
        with self.lock:
            bodies = list(self.bodies)
        found = [Span(span, resource["resource"]) for body in bodies for resource in json.loads(body)["resourceSpans"]
                 for scope in resource["scopeSpans"] for span in scope["spans"]]
        return [span for span in found if trace in (None, span.trace)]

    def wait(self, trace, condition, what="the span"):
        """The spans of a trace, once they are such that the condition holds."""
        return until(lambda: (spans := self.spans(trace)) and condition(spans) and spans, 30, what)

    def wait_names(self, trace, *names):
        return self.wait(trace, lambda spans: {span.name for span in spans} >= set(names), f"{names}")

    def __enter__(self):
        self.thread.start()
        return self

    def die(self):
        """Nobody listens any more, and what was connected is cut off."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_):
        self.die()
