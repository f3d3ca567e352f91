"""Runs inside a sandbox: a server that tells what it was asked, and one that breaks every rule."""
import base64
import hashlib
import json
import socket
import sys
import threading
import time

OK = b"HTTP/1.1 200 OK\r\n"
BIG = 64 << 20
EVIL = []  # requests that must never come


def endless(c, first, piece, pause=0.0):
    c.sendall(first)
    for _ in range(1 << 20):
        c.sendall(piece)
        time.sleep(pause)


def stall(c, data):
    c.sendall(data)
    time.sleep(3600)


# What makes a browser, or a proxy before the daemon, do something beyond this answer.
BROWSER = (b"NEL", b"Report-To", b"Reporting-Endpoints", b"Expect-CT", b"Public-Key-Pins", b"Public-Key-Pins-Report-Only", b"Clear-Site-Data",
           b"Alt-Svc", b"X-Accel-Redirect", b"X-Accel-Buffering", b"X-Sendfile", b"X-Lighttpd-Send-File", b"X-Reproxy-URL",
           b"Strict-Transport-Security", b"Service-Worker-Allowed", b"WWW-Authenticate", b"Accept-CH", b"Critical-CH")
RAW = {
    "until-end": lambda c: c.sendall(OK + b"\r\nall there is"),
    "many-connections": lambda c: c.sendall(OK + b"".join(b"Connection: X-Private-%d\r\nX-Private-%d: 1\r\n" % (i, i) for i in range(9)) + b"\r\n"),
    "old": lambda c: c.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold"),
    "none": lambda c: None,
    "half-head": lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "half-body": lambda c: c.sendall(OK + b"Content-Length: 100\r\n\r\nhalf"),
    "half-chunk": lambda c: c.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n10\r\nhalf"),
    "bad-chunk": lambda c: c.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n"),
    "both": lambda c: c.sendall(OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "two-lengths": lambda c: c.sendall(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    "bad-length": lambda c: c.sendall(OK + b"Content-Length: +5\r\n\r\nhello"),
    "too-much": lambda c: c.sendall(OK + b"Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
    "big-head": lambda c: c.sendall(OK + b"X: " + b"a" * (1 << 20) + b"\r\n\r\n"),
    "browser": lambda c: c.sendall(OK + b"".join(name + b": x\r\n" for name in BROWSER) + b"X-Kept: 1\r\nContent-Length: 0\r\n\r\n"),
    "many-headers": lambda c: c.sendall(OK + b"".join(b"X%d: a\r\n" % i for i in range(1000)) + b"\r\n"),
    "endless-head": lambda c: endless(c, OK, b"X-More: " + b"a" * 1000 + b"\r\n"),
    "endless-interim": lambda c: endless(c, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "interim": lambda c: c.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + OK + b"Content-Length: 2\r\n\r\nok"),
    "switch": lambda c: c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nbytes"),
    "bad-accept": lambda c: c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                      b"Sec-WebSocket-Accept: bm8=\r\n\r\n"),
    "split": lambda c: c.sendall(OK + b"X-A: b\rX-Evil: 1\r\nContent-Length: 0\r\n\r\n"),
    "fold": lambda c: c.sendall(OK + b"X-A: b\r\n X-Evil: 1\r\nContent-Length: 0\r\n\r\n"),
    "nul": lambda c: c.sendall(OK + b"X-A: b\0c\r\nContent-Length: 0\r\n\r\n"),
    "bad-status": lambda c: c.sendall(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n"),
    "not-http": lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    "http2": lambda c: c.sendall(b"HTTP/2 200\r\n\r\n"),
    "204": lambda c: c.sendall(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "304": lambda c: c.sendall(b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n"),
    "trailers": lambda c: c.sendall(OK + b"Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: secret\r\n\r\n"),
    "hop": lambda c: c.sendall(OK + b"Connection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=5\r\n"
                               b"Proxy-Authenticate: Basic\r\nX-Request-Id: forged\r\nAlt-Svc: h3\r\nX-Kept: 1\r\n"
                               b"Content-Length: 0\r\n\r\n"),
    "cookies": lambda c: c.sendall(OK + b"Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2; Domain=.example\r\n"
                                   b"Set-Cookie: holt_port=evil\r\nContent-Length: 0\r\n\r\n"),
    "moved": lambda c: c.sendall(b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"),
    "big": lambda c: c.sendall(OK + b"Content-Length: %d\r\n\r\n" % BIG + b"x" * BIG),
    # Those that stop on the way, and hold the connection.
    "stall-head": lambda c: stall(c, OK + b"Content-Le"),
    "stall-interim": lambda c: stall(c, b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "stall-body": lambda c: stall(c, OK + b"Content-Length: 100\r\n\r\nhalf"),
    "stall-chunk": lambda c: stall(c, OK + b"Transfer-Encoding: chunked\r\n\r\n10\r\nhalf"),
    "stall-until-end": lambda c: stall(c, OK + b"\r\nhalf"),
    "drip-head": lambda c: endless(c, OK, b"X-A: b\r\n", 0.05),
    # Ends its side behind the answer, and goes on listening.
    "half-closed": lambda c: (c.sendall(OK + b"Content-Length: 2\r\n\r\nok"), c.shutdown(socket.SHUT_WR), time.sleep(3600)),
    "half-closed-head": lambda c: (c.sendall(OK + b"Content-"), c.shutdown(socket.SHUT_WR), time.sleep(3600)),
    # Answers before it has read the request's body, and resets the connection by that.
    "early": lambda c: c.sendall(b"HTTP/1.1 413 Too Much\r\nContent-Length: 4\r\nConnection: close\r\n\r\nstop"),
    "deaf": lambda c: time.sleep(3600),
    "no-upgrade": lambda c: c.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
    "204-body": lambda c: c.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil"),
    "205": lambda c: c.sendall(b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    "head-body": lambda c: c.sendall(OK + b"Content-Length: 4\r\n\r\nevil"),
    "gzip-chunked": lambda c: c.sendall(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "chunked-twice": lambda c: c.sendall(OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "xchunked": lambda c: c.sendall(OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "space-name": lambda c: c.sendall(OK + b"Content-Length : 5\r\n\r\nhello"),
    "no-name": lambda c: c.sendall(OK + b": value\r\nContent-Length: 0\r\n\r\n"),
    "bare-lf": lambda c: c.sendall(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"),
    "big-chunk": lambda c: c.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 32 + b"\r\n"),
    "chunk-junk": lambda c: c.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nokXX0\r\n\r\n"),
    "many-trailers": lambda c: endless(c, OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-T: " + b"a" * 1000 + b"\r\n"),
    "slow": lambda c: endless(c, OK + b"\r\n", b"tick\n", 0.05),
}


def read_head(c):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = c.recv(65536)
        if not piece:
            return None, data
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.decode("latin-1").split("\r\n"), rest


class Body:
    def __init__(self, c, rest):
        self.c, self.data = c, rest

    def more(self):
        piece = self.c.recv(65536)
        if not piece:
            raise EOFError
        self.data += piece

    def take(self, n):
        while len(self.data) < n:
            self.more()
        got, self.data = self.data[:n], self.data[n:]
        return got

    def line(self):
        while b"\r\n" not in self.data:
            self.more()
        got, _, self.data = self.data.partition(b"\r\n")
        return got

    def chunks(self):
        while size := int(self.line(), 16):
            yield self.take(size)
            self.line()
        self.line()


def read_body(c, rest, headers):
    body = Body(c, rest)
    if headers.get("transfer-encoding") == "chunked":
        data = b"".join(body.chunks())
    else:
        data = body.take(int(headers.get("content-length", 0)))
    return data, body.data


def websocket(c, headers):
    """Accepts, then sends every byte back as it came."""
    text = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(text.encode()).digest())
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while piece := c.recv(65536):
        # A client's frames are masked and a server's must not be: the mask is taken off.
        n = piece[1] & 127
        if n > 125 or len(piece) < 6 + n:
            break
        mask, data = piece[2:6], piece[6:6 + n]
        c.sendall(bytes([piece[0], n]) + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))


def serve(c, number):
    rest, asked = b"", 0
    while True:
        head, rest = read_head(c) if not rest else read_head(c)
        if not head:
            return
        asked += 1
        method, path, _ = head[0].split(" ")
        EVIL.append(path) if path.startswith("/evil") else None
        headers = {}
        pairs = [line.split(": ", 1) for line in head[1:]]
        for name, value in pairs:
            headers[name.lower()] = value
        if path.startswith("/raw/"):
            RAW[path[5:].partition("?")[0]](c)
            return
        if path.startswith("/ws"):
            return websocket(c, headers)
        if path.startswith("/hang"):
            time.sleep(3600)
        data, rest = read_body(c, rest, headers)
        answer = json.dumps({"method": method, "path": path, "headers": pairs, "connection": number, "asked": asked, "evil": len(EVIL),
                             "length": len(data), "sha256": hashlib.sha256(data).hexdigest()}).encode()
        c.sendall(OK + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(answer))
        if method != "HEAD":
            c.sendall(answer)
        if path.startswith("/last"):
            return


def one(c, number):
    try:
        serve(c, number)
    except (OSError, EOFError, KeyError, ValueError) as e:
        print(number, repr(e), flush=True)
    finally:
        c.close()


def main(port, address="127.0.0.1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
        listener.listen(128)
        print("listening", flush=True)
        number, waiting = 0, []
        while True:
            c, _ = listener.accept()
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number += 1
            try:
                threading.Thread(target=one, args=(c, number), daemon=True).start()
            except RuntimeError:  # no more threads: it stays open, and nobody answers
                waiting.append(c)


if __name__ == "__main__":
    main(*sys.argv[1:])
