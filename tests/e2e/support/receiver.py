"""A server that webhooks lead to: keeps what it got, and answers as it is told."""
import collections
import hashlib
import hmac
import http.server
import json
import threading

from support.daemon import until


class Delivery:
    def __init__(self, headers, body):
        self.headers, self.raw = headers, body
        self.json = json.loads(body)

    @property
    def kind(self):
        return self.headers["Holt-Event"]

    @property
    def seq(self):
        return self.json["seq"]

    def is_signed_with(self, secret):
        """As a receiver checks it, by the contract's words alone."""
        text = self.headers["Holt-Timestamp"].encode() + b"." + self.raw
        return self.headers["Holt-Signature"] == "v1=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


class Receiver:
    """`answers` is what the next requests get: a status, or a function that is called with the handler and answers
    itself. When they are used up, every request gets `status`."""

    def __init__(self, status=204):
        self.status = status
        self.answers = collections.deque()
        self.got = []
        self.lock = threading.Lock()
        self.over = threading.Event()  # lets go of those that are made to wait
        self.start()

    def start(self, port=0):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    receiver.got.append(Delivery(self.headers, body))
                    answer = receiver.answers.popleft() if receiver.answers else receiver.status
                if callable(answer):
                    return answer(self)
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def stop(self):
        """From here on connections are refused."""
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    def stall(self, handler):
        """Never answers."""
        self.over.wait(60)

    def wait_for(self, count, what="deliveries"):
        until(lambda: len(self.got) >= count, 30, f"{count} {what} (got {len(self.got)})")
        return self.got[:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
