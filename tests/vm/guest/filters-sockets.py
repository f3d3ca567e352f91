"""In a box: as many socket filters as go, all given back at once."""
import ctypes
import os
import socket
import struct

ATTACH_FILTER = 26
LENGTH = 400  # instructions, which a socket's memory for options has room for
program = ctypes.create_string_buffer(struct.pack("HBBI", 0x04, 0, 0, 1) * (LENGTH - 1) + struct.pack("HBBI", 0x06, 0, 0, 1), LENGTH * 8)
value = struct.pack("HxxxxxxP", LENGTH, ctypes.addressof(program))


def fill():
    """How many sockets with a filter there are; they stay open."""
    kept = []
    try:
        while len(kept) < 900:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            one.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, value)
            kept.append(one)
    except OSError:
        pass
    return kept


pipes = []
for _ in range(10):
    done, go = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(go[1])
        kept = fill()
        os.write(done[1], struct.pack("i", len(kept)))
        os.read(go[0], 1)  # until all have theirs
        os._exit(0)
    os.close(go[0])
    pipes.append((done, go))
print(sum(struct.unpack("i", os.read(done[0], 4))[0] for done, _ in pipes), "installed")
for _, go in pipes:
    os.close(go[1])
