"""A daemon that an attacker has taken over: what he can do from inside of it. His code is system calls that the test makes in every
thread of the running daemon."""
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from support import inject, machine
from support.daemon import BUILD, HOLT, IS_ROOT, Daemon, until

HERE = pathlib.Path(__file__).resolve()
NOBODY = "65533"
PROGRAMS = ("holt", "holt-launch", "holt-init", "holt-warm.so")
AS_USER = HERE.parents[2] / "support" / "as-user"
AF_UNIX, AF_INET, AF_NETLINK, AF_PACKET, SOCK_STREAM, SOCK_DGRAM, SOCK_RAW = 1, 2, 16, 17, 1, 2, 3
AT_FDCWD = -100
PROT_READ, PROT_EXEC, MAP_PRIVATE = 1, 4, 2
CLONE_NEWUSER, CLONE_NEWNS, SIGCHLD = 0x10000000, 0x20000, 17
IS_SANITIZED = b"__asan_init" in pathlib.Path(HOLT).read_bytes()
PTRACE_ATTACH, PR_SET_DUMPABLE, PR_SET_PTRACER, SO_ATTACH_FILTER = 16, 4, 0x59616D61, 26


def status_of(tid):
    lines = pathlib.Path(f"/proc/{tid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


class AsUser(Daemon):
    """Root starts it as somebody else, so that it runs without privilege and root can still look into it."""

    def __init__(self, *flags, **more):
        super().__init__(*flags, **more)
        programs = self.dir / "programs"
        programs.mkdir()
        for name in PROGRAMS:
            shutil.copy2(BUILD / name, programs)
        self.program = str(programs / "holt")
        self.env = {"HOME": str(self.dir), "TMPDIR": str(self.dir), "XDG_RUNTIME_DIR": str(self.dir)}
        os.chown(self.dir, int(NOBODY), int(NOBODY))
        for path in (self.log_file, self.out_file):
            path.touch()

    def start(self, wait=True):
        real = subprocess.Popen
        subprocess.Popen = lambda command, **rest: real([str(AS_USER), NOBODY, *command], **rest)
        try:
            return super().start(wait)
        finally:
            subprocess.Popen = real

    def parts(self):
        top = [pid for pid in descendants(self.process.pid) if machine.program_of(pid) == "holt"]
        found = {"daemon": top[-1]} if top else {}
        found.update({"keeper": top[0]} if len(top) > 1 else {})
        launchers = [pid for pid in descendants(self.process.pid) if machine.program_of(pid) == "holt-launch"]
        found.update({"launcher": launchers[0]} if launchers else {})
        return found

    def stop(self):
        self.note_parts()
        os.kill(self.parts().get("keeper", self.parts()["daemon"]), 15)
        assert self.wait_ended() == 0


def descendants(pid):
    found = []
    for child in machine.children_of(pid):
        found += [child, *descendants(child)]
    return found


@pytest.fixture(scope="module", params=["root", "user"])
def victim(request):
    """The daemon with threads of every kind: the store's, and those that make sandboxes."""
    if not IS_ROOT:
        pytest.skip("only root can take it over: it is not dumpable")
    with (Daemon if request.param == "root" else AsUser)() as daemon:
        sandbox = daemon.api.sandbox()
        assert sandbox.run("echo ready")["stdout"] == "ready\n"
        sandbox.delete()
        yield daemon


def each_thread(daemon, body):
    """body(thread) in every thread that waits in a system call, which all of them do sooner or later."""
    pid = daemon.parts()["daemon"]
    tids = inject.threads(pid)
    assert len(tids) > 1
    for tid in tids:
        until(lambda tid=tid: inject.is_in_system_call(tid), what="a thread that waits")
        with inject.stopped(tid) as thread:
            body(thread)


def test_no_thread_reads_the_rest_of_the_machine(victim):
    canary = victim.dir / "canary"
    canary.write_text("a file that everybody may read")
    canary.chmod(0o644)

    def body(thread):
        for path in (canary, "/etc/hostname", "/etc/passwd", "/proc/1/status", "/proc/version",
                     f"/proc/{os.getpid()}/cmdline"):
            assert thread.read_file(str(path)) == "EACCES", path
        for path in ("/", "/etc", "/home", "/root", "/tmp", "/usr/bin", "/proc", victim.dir):
            got = thread.try_call("openat", AT_FDCWD, str(path), os.O_RDONLY | os.O_DIRECTORY, 0)
            assert got == "EACCES", path
        for flags in (os.O_WRONLY | os.O_CREAT, os.O_RDWR):
            assert thread.try_call("openat", AT_FDCWD, str(canary), flags, 0o600) == "EACCES"
        assert thread.try_call("openat", AT_FDCWD, str(victim.dir / "new"), os.O_WRONLY | os.O_CREAT, 0o600) in (
            "EACCES", "EROFS")

    each_thread(victim, body)


def test_the_state_directory_is_still_its_own(victim):
    def body(thread):
        assert thread.read_file(str(victim.state_dir / "data" / "secret")) not in ("EACCES", "EPERM")
        fd = thread.call("openat", AT_FDCWD, str(victim.state_dir / "data"), os.O_RDONLY | os.O_DIRECTORY, 0)
        assert fd >= 0
        thread.call("close", fd)
        assert thread.try_call("openat", AT_FDCWD, str(victim.state_dir / "boxes"), os.O_RDONLY | os.O_DIRECTORY,
                               0) == "EACCES"

    each_thread(victim, body)


def test_what_is_written_there_is_not_run(victim):
    """Nor mapped to be. An ordinary user has no mounts of its own that could say so."""
    if isinstance(victim, AsUser):
        pytest.skip("without privilege there is no mount of its own")
    path = str(victim.state_dir / "data" / "program")

    def body(thread):
        fd = thread.call("openat", AT_FDCWD, path, os.O_RDWR | os.O_CREAT, 0o700)
        assert fd >= 0
        got = thread.try_call("mmap", 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0)
        thread.call("close", fd)
        assert got == "EPERM"

    each_thread(victim, body)
    os.unlink(path)


NOTHING = struct.pack("q", 0)


def refused():
    """Calls that no daemon makes, with arguments that the kernel would otherwise take, or find fault with later."""
    own = os.getpid()
    return [
        ("execve", "/bin/true", NOTHING, NOTHING),
        ("execveat", AT_FDCWD, "/bin/true", NOTHING, NOTHING, 0),
        ("fork",), ("vfork",), ("clone", SIGCHLD, 0), ("clone", CLONE_NEWUSER | SIGCHLD, 0),
        ("unshare", CLONE_NEWUSER), ("unshare", CLONE_NEWNS), ("setns", 0, 0),
        ("mount", "none", "/tmp", "tmpfs", 0, 0), ("chroot", "/"), ("open_tree", AT_FDCWD, "/", 0),
        ("ptrace", PTRACE_ATTACH, own, 0, 0), ("process_vm_readv", own, NOTHING, 0, NOTHING, 0, 0),
        ("pidfd_open", own, 0), ("pidfd_getfd", 0, 0, 0), ("kill", own, 0), ("tgkill", own, own, 0),
        ("socket", AF_PACKET, SOCK_RAW, 0), ("socket", AF_INET, SOCK_RAW, 1), ("socket", AF_UNIX, SOCK_STREAM, 0),
        ("socket", AF_NETLINK, SOCK_RAW, 15), ("socket", 38, 5, 0),
        ("bpf", 0, NOTHING, 8), ("userfaultfd", 0), ("io_uring_setup", 1, bytes(120)), ("perf_event_open", bytes(120), 0, -1, -1, 0),
        ("keyctl", 0, 0, 0), ("open_by_handle_at", 0, NOTHING, 0), ("init_module", NOTHING, 0, ""), ("setuid", 0),
        ("memfd_create", "x", 0), ("mmap", 0, 4096, 7, 0x22, -1, 0), ("setsockopt", 0, 1, SO_ATTACH_FILTER, bytes(16), 16),
        # A sanitizer's run time looks for leaks with these; tests/unit/test_confine.c asks the filter without one.
        *([] if IS_SANITIZED else [("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0), ("prctl", PR_SET_PTRACER, own, 0, 0, 0)]),
    ]


def test_calls_that_a_daemon_does_not_make_are_refused(victim):
    def body(thread):
        for call in refused():
            got = thread.try_call(*call)
            assert got in ("EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT"), f"{call}: {got or 'done'}"

    each_thread(victim, body)


def test_calls_that_it_makes_are_not(victim):
    def body(thread):
        for call in (("socket", AF_INET, SOCK_STREAM, 0), ("socket", AF_INET, SOCK_DGRAM, 17), ("socket", AF_NETLINK, SOCK_RAW, 0)):
            fd = thread.call(*call)
            assert fd >= 0, call
            thread.call("close", fd)

    each_thread(victim, body)


@pytest.mark.skipif(not IS_ROOT, reason="only root can take it over: it is not dumpable")
def test_one_that_listens_on_a_unix_socket_reaches_no_other():
    daemon = Daemon()
    place = daemon.dir / "run"
    place.mkdir()
    shutil.chown(place, "nobody")
    daemon.flags = ["--listen", f"unix:{place}/sock"]
    daemon.start(wait=False)
    until(lambda: "listens on" in daemon.out_file.read_text() or daemon.process.poll() is not None, 60, "the socket")

    def body(thread):
        assert thread.try_call("socket", AF_UNIX, SOCK_STREAM, 0) == "ENOSYS"

    try:
        each_thread(daemon, body)
    finally:
        daemon.note_parts()
        daemon.stop()
        daemon.discard()


def check_statuses(daemon):
    pid = daemon.parts()["daemon"]
    for tid in inject.threads(pid):
        status = status_of(tid)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), tid
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(status[name], 16) == 0, name
        if IS_ROOT and status["Uid"].split()[0] != NOBODY:
            assert int(status["CapBnd"], 16) == 0
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text() if IS_ROOT else "Max core file size 0 0"
    assert [line.split()[-3:-1] for line in limits.splitlines() if line.startswith("Max core file size")] in (
        [["0", "0"]], [["size", "0"]]), limits


def test_every_thread_is_confined(victim):
    check_statuses(victim)


def test_every_thread_is_confined_here(daemon):
    """Whoever runs this test: the daemon that the others use."""
    check_statuses(daemon)
    pid = daemon.parts()["daemon"]
    if not IS_ROOT:  # it is ours, but nobody but root looks into it
        with pytest.raises(PermissionError):
            pathlib.Path(f"/proc/{pid}/environ").read_bytes()


