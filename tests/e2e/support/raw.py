"""Bytes on a socket: what no well-behaved client would send."""
import re
import socket
import time


class Raw:
    def __init__(self, port, seconds=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)

    def send(self, data):
        """What the server still takes; whether it took all."""
        try:
            self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
            return True
        except OSError:
            return False

    def trickle(self, data, pause):
        """A byte at a time, until the server has had enough."""
        for byte in data:
            if not self.send(bytes([byte])):
                return
            time.sleep(pause)

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def read_all(self):
        """Everything up to the end of the connection."""
        data = b""
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        return data

    def read_until(self, word):
        data = b""
        while word not in data:
            piece = self.socket.recv(65536)
            assert piece, data
            data += piece
        return data

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def statuses(data):
    """The status of each answer in what a connection gave."""
    return [int(number) for number in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]
