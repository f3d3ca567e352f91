"""System calls in another process's threads, as code that has taken the process over would make them. Needs the right to trace it:
root. x86-64."""
import contextlib
import ctypes
import errno
import os

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
SINGLESTEP, GETREGS, SETREGS, DETACH = 9, 12, 13, 17
SEIZE, INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000
SYSCALL_INSTRUCTION = b"\x0f\x05"
RED_ZONE, ROOM = 4096, 8192  # bytes below the stack pointer: what is not touched, and what texts may take

NUMBERS = {"read": 0, "close": 3, "mmap": 9, "socket": 41, "connect": 42, "setsockopt": 54, "clone": 56, "fork": 57, "vfork": 58, "execve": 59,
           "kill": 62, "ptrace": 101, "setuid": 105, "prctl": 157, "chroot": 161, "mount": 165, "reboot": 169, "init_module": 175,
           "tgkill": 234, "keyctl": 250, "openat": 257, "unshare": 272, "perf_event_open": 298, "open_by_handle_at": 304,
           "setns": 308, "process_vm_readv": 310, "memfd_create": 319, "bpf": 321, "execveat": 322, "userfaultfd": 323,
           "io_uring_setup": 425, "open_tree": 428, "pidfd_open": 434, "clone3": 435, "openat2": 437, "pidfd_getfd": 438}


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
        "ds es fs gs").split()]


def ptrace(request, tid, address=None, data=None):
    if LIBC.ptrace(request, tid, address, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace {request:#x} of {tid}: {os.strerror(code)}")


def threads(pid):
    return sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))


class Thread:
    """One that is stopped in a system call. Every call returns what the kernel does: a number, or -errno."""

    def __init__(self, tid):
        self.tid = tid

    def registers(self):
        found = Registers()
        ptrace(GETREGS, self.tid, None, ctypes.addressof(found))
        return found

    def call(self, name, *args):
        """Texts and bytes are put below its stack."""
        before = self.registers()
        with open(f"/proc/{self.tid}/mem", "r+b", buffering=0) as memory:
            memory.seek(before.rip - 2)
            assert memory.read(2) == SYSCALL_INSTRUCTION, "the thread is not in a system call"
            values = self.place(memory, before.rsp - RED_ZONE - ROOM, args)
        now = Registers.from_buffer_copy(before)
        now.rax, now.orig_rax, now.rip = NUMBERS[name], 2**64 - 1, before.rip - 2
        for register, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), values + [0] * (6 - len(values))):
            setattr(now, register, value % 2**64)
        ptrace(SETREGS, self.tid, None, ctypes.addressof(now))
        ptrace(SINGLESTEP, self.tid)
        _, status = os.waitpid(self.tid, WALL)
        assert os.WIFSTOPPED(status), f"{name} ended the process: {status:#x}"
        result = ctypes.c_longlong(self.registers().rax).value
        ptrace(SETREGS, self.tid, None, ctypes.addressof(before))
        return result

    @staticmethod
    def place(memory, at, args):
        values = []
        for arg in args:
            if isinstance(arg, str):
                arg = arg.encode() + b"\0"
            if isinstance(arg, bytes):
                memory.seek(at)
                memory.write(arg)
                values.append(at)
                at += (len(arg) + 15) & ~15
            else:
                values.append(arg)
        return values

    def try_call(self, name, *args):
        """"EACCES" or another error's name; "" when the kernel did it."""
        result = self.call(name, *args)
        return errno.errorcode.get(-result, str(result)) if -4096 < result < 0 else ""

    def read_file(self, path):
        """The beginning of a file, or the name of the error."""
        fd = self.call("openat", -100, path, os.O_RDONLY | os.O_CLOEXEC, 0)
        if fd < 0:
            return errno.errorcode[-fd]
        try:
            with open(f"/proc/{self.tid}/fd/{fd}", "rb") as file:
                return file.read(200)
        finally:
            self.call("close", fd)


@contextlib.contextmanager
def stopped(tid):
    ptrace(SEIZE, tid)
    try:
        ptrace(INTERRUPT, tid)
        os.waitpid(tid, WALL)
        yield Thread(tid)
    finally:
        with contextlib.suppress(OSError):
            ptrace(DETACH, tid, None, None)


def is_in_system_call(tid):
    """Sleeps in the kernel, so that it stops behind the instruction that called it."""
    with open(f"/proc/{tid}/syscall", encoding="ascii") as file:
        return file.read().split()[0].isdigit()


