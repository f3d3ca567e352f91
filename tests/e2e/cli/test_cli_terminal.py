"""Terminals in a sandbox: exec -t and shell, on a terminal of our own."""
import signal
import termios

from support.daemon import until


def test_the_command_gets_a_terminal_of_our_size(cli, box):
    with cli.terminal("exec", "-it", box, "--", "sh", "-c", "tty; stty size; echo $TERM; exit 3", rows=31, cols=101) as t:
        t.wait_for(rb"/dev/pts/\d+\r\n31 101\r\nvt220")
        assert t.wait() == 3


def test_a_new_size_reaches_the_command(cli, box):
    with cli.terminal("exec", "-t", box, "--", "sh", "-c", "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.1; done") as t:
        t.wait_for(rb"ready")
        t.resize(40, 120)
        t.wait_for(rb"40 120")
        assert t.wait() == 4


def test_control_c_goes_into_the_sandbox(cli, box):
    with cli.terminal("exec", "-t", box, "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done") as t:
        t.wait_for(rb"ready")
        t.type(b"\x03")
        t.wait_for(rb"caught")
        assert t.wait() == 5


def test_the_terminal_is_as_before_afterwards(cli, box):
    with cli.terminal("exec", "-t", box, "--", "cat") as t:
        t.type(b"typed\r")
        t.wait_for(rb"typed\r\ntyped")
        assert termios.tcgetattr(t.slave) != t.before
        t.type(b"\x04")
        assert t.wait() == 0
        assert termios.tcgetattr(t.slave) == t.before


def test_a_command_that_is_over_at_once_is_shown_all_the_same(cli, box):
    for _ in range(5):
        with cli.terminal("exec", "-t", box, "--", "echo", "quick") as t:
            t.wait_for(rb"quick\r\n")
            assert t.wait() == 0


def test_input_that_is_no_terminal_ends_it(cli, box):
    done = cli.run("exec", "-t", box, "--", "cat", input=b"line\n")
    assert done.returncode == 0 and done.stdout.count(b"line\r\n") == 2


def test_much_output_comes_whole(cli, box):
    with cli.terminal("exec", "-t", box, "--", "seq", "100000") as t:
        t.wait_for(rb"\r\n99999\r\n100000\r\n")
        assert t.wait() == 0


def test_a_terminal_of_exec_ends_with_it(cli, box):
    with cli.terminal("exec", "-t", box, "--", "sh", "-c", "echo ready; sleep 60") as t:
        t.wait_for(rb"ready")
        t.process.send_signal(signal.SIGTERM)
        assert t.wait() == 143
    until(lambda: cli.json("ps", box, "--json")[0]["status"] != "running", what="its end")


def test_a_shell_can_be_left_and_gone_on_in(cli, box):
    with cli.terminal("shell", box) as t:
        t.type(b"X=kept; echo on''ce\r")
        t.wait_for(rb"once\r\n")
        t.type(b"~.")
        found = t.wait_for(rb"left the terminal running\r?\nhint: holt shell --attach (\w+) " + box.encode())
        assert t.wait() == 0
        assert termios.tcgetattr(t.slave) == t.before
    with cli.terminal("shell", "--attach", found.group(1).decode(), box) as t:
        t.wait_for(rb"once\r\n")
        t.type(b"echo $X tw''ice; exit 8\r")
        t.wait_for(rb"kept twice\r\n")
        assert t.wait() == 8


def test_tildes_that_mean_nothing_to_us_go_on(cli, box):
    with cli.terminal("exec", "-t", box, "--", "sh", "-c", "stty -echo; echo ready; cat") as t:
        t.wait_for(rb"ready")
        t.type(b"a~.b\r")
        t.wait_for(rb"a~\.b\r\n")
        t.type(b"~x\r")
        t.wait_for(rb"~x\r\n")
        t.type(b"~~.\r")
        t.wait_for(rb"~\.\r\n")
        t.type(b"\x04")
        assert t.wait() == 0


def test_what_has_no_terminal_cannot_be_attached_to(cli, box):
    ident = cli.must("exec", "--background", box, "--", "sleep", "60").strip()
    lines = cli.fails("shell", "--attach", "nosuch", box)
    assert lines[0].startswith("holt: ")
    cli.must("kill", box, ident)


def test_what_takes_longer_than_a_second_says_so_on_a_terminal(cli, box):
    ident = cli.must("exec", "--background", box, "--", "sleep", "2").strip()
    with cli.terminal("wait", box, ident) as t:
        t.wait_for(rb"waiting for the execution's end \(1 s\)")
        assert t.wait() == 0
        t.wait_for(rb"\r\x1b\[K$")  # and takes it away again
    assert cli.run("wait", box, ident).stderr == b""
