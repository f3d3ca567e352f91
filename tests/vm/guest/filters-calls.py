"""In a box: as many system call filters as go, all given back at once."""
import ctypes
import os
import struct

SET_SECCOMP, SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
LENGTH = 100  # instructions
libc = ctypes.CDLL(None)
program = ctypes.create_string_buffer(struct.pack("HBBI", 0x04, 0, 0, 1) * (LENGTH - 1) + struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000),
                                      LENGTH * 8)
value = ctypes.create_string_buffer(struct.pack("HxxxxxxP", LENGTH, ctypes.addressof(program)))


def fill():
    """How many filters this process has got."""
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    number = 0
    while number < 200 and libc.prctl(SET_SECCOMP, MODE_FILTER, value, 0, 0) == 0:
        number += 1
    return number


pipes = []
for _ in range(20):
    done, go = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(go[1])
        os.write(done[1], struct.pack("i", fill()))
        os.read(go[0], 1)  # until all have theirs
        os._exit(0)
    os.close(go[0])
    pipes.append((done, go))
print(sum(struct.unpack("i", os.read(done[0], 4))[0] for done, _ in pipes), "installed")
for _, go in pipes:
    os.close(go[1])
