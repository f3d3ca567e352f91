"""Programs in a sandbox: their output, input, terminals and ends."""
import e2b
from world import failure, feature, takes


@feature("run")
def run(w):
    done = w.box.commands.run("echo out; echo err >&2")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "out\n", "err\n")


@feature("streamed output")
def streams(w):
    out, err = [], []
    w.box.commands.run("for i in 1 2 3; do echo $i; echo e$i >&2; done", on_stdout=out.append, on_stderr=err.append)
    assert "".join(out) == "1\n2\n3\n" and "".join(err) == "e1\ne2\ne3\n"


@feature("env, cwd")
def options(w):
    run_ = w.box.commands.run
    assert run_("echo $A $(pwd) $(whoami)", envs={"A": "b c"}, cwd="/tmp").stdout == "b c /tmp user\n"
    assert run_("pwd").stdout == "/home/user\n"


@feature("root and sudo")
def root(w):
    assert w.box.commands.run("whoami", user="root").stdout == "root\n"
    assert w.box.commands.run("sudo whoami").stdout == "root\n"


@feature("exit code")
def exit_code(w):
    error = failure(e2b.CommandExitException, w.box.commands.run, "echo no >&2; exit 3")
    assert (error.exit_code, error.stderr, error.error) == (3, "no\n", "exit status 3")


@feature("command timeout")
def command_timeout(w):
    error = failure(Exception, w.box.commands.run, "sleep 600", timeout=0.5)
    assert "Timeout" in type(error).__name__, repr(error)  # the SDK's own, or its transport's: both have the same bound


@feature("background")
def background(w):
    handle = w.box.commands.run("echo begun; sleep 0.2; echo done", background=True)
    assert handle.wait().stdout == "begun\ndone\n"


@feature("reconnect with replay")
def reconnect(w):
    commands = w.box.commands
    handle = commands.run("echo first; read line; echo last $line", background=True, stdin=True)
    handle.disconnect()
    again = commands.connect(handle.pid)
    commands.send_stdin(handle.pid, "word\n")
    assert again.wait().stdout == "first\nlast word\n"
    assert commands.connect(handle.pid).wait().stdout == "first\nlast word\n"


@feature("stdin")
def stdin(w):
    handle = w.box.commands.run('read a; echo "got $a"', background=True, stdin=True)
    w.box.commands.send_stdin(handle.pid, "line\n")
    assert handle.wait().stdout == "got line\n"


@feature("close stdin", lambda: takes("CommandHandle.close_stdin"))
def close_stdin(w):
    handle = w.box.commands.run("cat", background=True, stdin=True)
    handle.send_stdin("all of it")
    handle.close_stdin()
    assert handle.wait().stdout == "all of it"


@feature("streamed input", lambda: takes("sandbox_sync.commands.command.Commands.stream_input"))
def stream_input(w):
    handle = w.box.commands.run("head -n 2", background=True, stdin=True)
    w.box.commands.stream_input(handle.pid, iter(["one\n", b"two\n"]))
    assert handle.wait().stdout == "one\ntwo\n"


@feature("kill a command")
def kill_command(w):
    handle = w.box.commands.run("sleep 600", background=True, timeout=0)
    assert handle.kill() is True
    assert failure(e2b.CommandExitException, handle.wait).error == "signal: killed"
    assert w.box.commands.kill(999_999) is False


@feature("list commands")
def list_commands(w):
    handle = w.box.commands.run("sleep 601", background=True, envs={"A": "b"}, cwd="/tmp")
    found = next(item for item in w.box.commands.list() if item.pid == handle.pid)
    assert (found.cmd, found.args, found.cwd) == ("/bin/bash", ["-l", "-c", "sleep 601"], "/tmp")
    handle.kill()


@feature("3 MB of output")
def much_output(w):
    assert len(w.box.commands.run('head -c 3000000 /dev/zero | tr "\\0" x').stdout) == 3_000_000


@feature("kill while streaming")
def killed_while_streaming(w):
    box = w.create()
    handle = box.commands.run("echo on; sleep 600", background=True, timeout=0)
    box.kill()
    error = failure(Exception, handle.wait)
    assert not isinstance(error, e2b.CommandExitException), repr(error)


@feature("terminal")
def terminal(w):
    handle = w.box.pty.create(e2b.PtySize(rows=24, cols=80), timeout=0)
    w.box.pty.send_stdin(handle.pid, b"echo $((6*7))-$TERM; stty size; exit\n")
    seen = bytearray()
    handle.wait(on_pty=seen.extend)
    assert b"42-xterm-256color" in seen and b"24 80" in seen, seen


@feature("kill a terminal")
def kill_terminal(w):
    handle = w.box.pty.create(e2b.PtySize(rows=24, cols=80), timeout=0)
    assert w.box.pty.kill(handle.pid) is True
