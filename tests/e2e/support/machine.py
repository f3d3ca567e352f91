"""What is there on this machine: processes, control groups, mounts. Reads /proc, changes nothing but
what a failed test has left behind."""
import contextlib
import os
import pathlib
import signal
import time

PROC = pathlib.Path("/proc")
GROUPS = pathlib.Path("/sys/fs/cgroup")


def stat_of(pid):
    """The fields of /proc/PID/stat behind the name, or None: state is [0], parent [1], start [19]."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def identity(pid):
    """A pid and when it began: pids come again, these pairs do not."""
    stat = stat_of(pid)
    return (pid, stat[19]) if stat else (pid, None)


def is_alive(who):
    stat = stat_of(who[0])
    return bool(stat) and stat[19] == who[1] and stat[0] != "Z"


def pids():
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def children_of(parent):
    found = []
    for pid in pids():
        stat = stat_of(pid)
        if stat and int(stat[1]) == parent and stat[0] != "Z":
            found.append(pid)
    return found


def command_of(pid):
    """Its words, each with a NUL behind it; none of one that is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def program_of(pid):
    """The last part of the program's path as it was started."""
    return os.path.basename(command_of(pid).split(b"\0")[0].decode(errors="replace"))


def groups_named(word):
    """Control groups of this name, in every hierarchy."""
    found = []
    for place, names, _ in os.walk(GROUPS):
        found += [os.path.join(place, name) for name in names if word in name]
        names[:] = [name for name in names if word not in name]
    return found


def processes_in_group(word):
    found = []
    for pid in pids():
        try:
            if word in (PROC / str(pid) / "cgroup").read_text():
                found.append(pid)
        except OSError:
            pass
    return found


def kill_group(word):
    """Ends what a failed test left, and removes its groups."""
    for _ in range(100):
        left = processes_in_group(word)
        for group in groups_named(word):
            for place, _, _ in os.walk(group, topdown=False):
                thaw(pathlib.Path(place))
                try:
                    os.rmdir(place)
                except OSError:
                    pass
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if not left and not groups_named(word):
            return
        time.sleep(0.05)


def thaw(group):
    for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        try:
            (group / name).write_text(text)
        except OSError:
            pass


def loop_images():
    """Files that loop devices carry."""
    found = []
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # let go meanwhile
            found.append(path.read_text().strip())
    return found


def mounts():
    return (PROC / "self" / "mountinfo").read_text().splitlines()


def memory_of(pid):
    """Resident bytes."""
    for line in (PROC / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
