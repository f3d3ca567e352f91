"""Executions in a sandbox from the command line: exec, logs, ps, kill, wait."""
import json
import os
import select
import signal
import socket
import subprocess
import time

import pytest

from support.cli import Cli
from support.daemon import Daemon, until


# --- how it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 124, 255])
def test_the_exit_code_is_the_command_s(cli, box, code):
    done = cli.run("exec", box, "--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_output_and_errors_stay_apart(cli, box):
    done = cli.run("exec", box, "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


def test_bytes_that_are_no_text_come_as_they_are(cli, box):
    done = cli.run("exec", box, "--", "sh", "-c", r"printf 'a\377\000\303b'")
    assert done.stdout == b"a\xff\x00\xc3b"


def test_a_missing_program_gives_127(cli, box):
    assert cli.fails("exec", box, "--", "no-such-program", code=127) == [
        "holt: exec 'no-such-program': No such file or directory"]


def test_a_file_that_is_no_program_gives_126(cli, box):
    assert "Permission denied" in cli.fails("exec", box, "--", "/etc/passwd", code=126)[0]


def test_a_missing_directory_is_no_missing_program(cli, box):
    cli.fails("exec", "--cwd", "/nonexistent", box, "--", "true", code=125)


@pytest.mark.parametrize("name, number", [("SEGV", 11), ("TERM", 15), ("KILL", 9)])
def test_a_signal_gives_128_and_its_number_with_the_reason(cli, box, name, number):
    assert cli.fails("exec", box, "--", "sh", "-c", f"kill -{name} $$", code=128 + number) == [
        f"holt: killed by signal {number} ({name})"]


def test_a_timeout_gives_124(cli, box):
    assert cli.fails("exec", "--timeout", "300ms", box, "--", "sleep", "60", code=124) == [
        "holt: timed out after 0.3 s (see --timeout)"]


def test_running_out_of_memory_gives_137_with_the_reason(cli, needs_limits):
    box = cli.must("sandbox", "create", "--memory", "48M").strip()
    lines = cli.fails("exec", box, "--", "python3", "-c", "x = bytearray(500 << 20)", code=137)
    assert "out of memory" in lines[0]
    cli.must("sandbox", "rm", box)


def test_a_sandbox_that_ends_interrupts_it(cli):
    box = cli.must("sandbox", "create", "--template", "bash").strip()
    with cli.begin("exec", box, "--", "sh", "-c", "echo on; sleep 60") as p:
        assert p.stdout.readline() == b"on\n"
        cli.must("sandbox", "rm", box)
        assert p.wait(60) == 125
        assert p.stderr.read().startswith(b"holt: interrupted: ")


def test_a_closed_reader_ends_the_command(cli, box):
    with cli.begin("exec", box, "--", "yes", stdin=subprocess.DEVNULL) as p:
        assert p.stdout.read(4) == b"y\ny\n"
        p.stdout.close()
        assert p.wait(60) == 141
    until(lambda: cli.json("ps", box, "--json")[0]["status"] != "running", what="the end")


# --- input and output ----------------------------------------------------------------------------


def test_ten_megabytes_pass_through_unchanged(cli, box):
    data = os.urandom(10_000_000)
    done = cli.run("exec", "--timeout", "60s", box, "--", "cat", input=data)
    assert done.returncode == 0 and done.stdout == data


def test_input_that_nobody_reads_does_not_hang(cli, box):
    assert cli.run("exec", box, "--", "true", input=os.urandom(1_000_000)).returncode == 0
    assert cli.run("exec", box, "--", "sh", "-c", "exec 0<&-; sleep 0.3", input=os.urandom(1_000_000)).returncode == 0


def test_the_end_of_input_reaches_the_command(cli, box):
    assert cli.must("exec", box, "--", "wc", "-c", input=b"").strip() == "0"
    assert cli.must("exec", box, "--", "wc", "-c", input=b"12345").strip() == "5"


def test_lines_arrive_as_they_are_written(cli, box):
    with cli.begin("exec", box, "--", "sh", "-c", "echo one; read x; echo got $x") as p:
        assert p.stdout.readline() == b"one\n"
        p.stdin.write(b"two\n")
        assert p.stdout.readline() == b"got two\n"
        assert p.wait(60) == 0


def test_a_slow_reader_holds_the_command_back(cli, box):
    writer = "i=0; while [ $i -lt 128 ]; do head -c 65536 /dev/zero; i=$((i+1)); done; echo written >&2"
    with cli.begin("exec", "--timeout", "60s", box, "--", "sh", "-c", writer, stdin=subprocess.DEVNULL) as p:
        assert len(p.stdout.read(1)) == 1
        time.sleep(1)
        assert select.select([p.stderr], [], [], 0)[0] == []
        out, err = p.communicate(timeout=60)
        assert len(out) + 1 == 128 * 65536 and err == b"written\n"


def test_environment_directory_and_user_are_told(cli, box):
    ours = cli.with_env(MINE="passed on")
    done = ours.must("exec", "-e", "A=1", "-e", "A=2", "-e", "MINE", "-e", "UNSET_HERE", "--cwd", "/tmp", box, "--",
                     "sh", "-c", 'echo "$A,$MINE,${UNSET_HERE-none}"; pwd; id -u')
    assert done.split("\n")[:3] == ["2,passed on,none", "/tmp", "1000"]
    assert cli.must("exec", "-u", "root", box, "--", "id", "-u") == "0\n"


def test_arguments_reach_the_program_as_they_are(cli, box):
    odd = ["a b", "", "'\"$HOME`", "-x", "--", "\u00e9\n"]
    assert cli.must("exec", box, "--", "printf", "[%s]", *odd) == "".join(f"[{a}]" for a in odd)


# --- signals -------------------------------------------------------------------------------------


def test_control_c_is_passed_on(cli, box):
    with cli.begin("exec", box, "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done") as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(signal.SIGINT)
        assert p.stdout.readline() == b"caught\n"
        assert p.wait(60) == 5


def test_a_second_control_c_ends_it(cli, box):
    with cli.begin("exec", box, "--", "sh", "-c", "trap 'echo again' INT; echo ready; while :; do sleep 0.1; done") as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(signal.SIGINT)
        assert p.stdout.readline() == b"again\n"
        p.send_signal(signal.SIGINT)
        assert p.wait(60) == 130
    assert cli.json("ps", box, "--json")[0]["status"] == "cancelled"


def test_being_told_to_stop_ends_the_command(cli, box):
    with cli.begin("exec", box, "--", "sh", "-c", "echo ready; sleep 60") as p:
        assert p.stdout.readline() == b"ready\n"
        p.send_signal(signal.SIGTERM)
        assert p.wait(60) == 143
    assert cli.json("ps", box, "--json")[0]["status"] == "cancelled"


# --- JSON and what does not go together ----------------------------------------------------------


def test_json_is_the_execution(cli, box):
    done = cli.run("exec", "--json", box, "--", "sh", "-c", "cat; echo err >&2; exit 3", input=b"in")
    value = json.loads(done.stdout)
    assert done.returncode == 3 and value["exitCode"] == 3
    assert (value["stdout"], value["stderr"]) == ("in", "err\n")


@pytest.mark.parametrize("option", [["--memory", "64M"], ["--template", "host"], ["--pids", "9"],
                                    ["--net", "host"], ["--level", "high"], ["--disk", "8M"],
                                    ["--pin", "0"], ["--cpu", "1"], ["--output-limit", "9"]])
def test_what_a_sandbox_has_settled_is_refused(cli, box, option):
    assert "is for a new box" in cli.fails("exec", *option, box, "--", "true")[0]


def test_options_that_exclude_each_other_are_refused(cli, box):
    assert "exclude" in cli.fails("exec", "-t", "--json", box, "--", "true")[0]
    assert "exclude" in cli.fails("exec", "-t", "--background", box, "--", "true")[0]
    assert "--timeout 0" in cli.fails("exec", "--timeout", "0", box, "--", "true")[0]
    assert "--background wants a sandbox" in cli.fails("exec", "--background", "--", "true")[0]
    assert cli.fails("exec", box, "--")[0] == "holt: nothing to run"


def test_options_behind_the_sandbox_are_refused_with_the_right_order(cli, box):
    assert cli.fails("exec", box, "--timeout", "5", "--", "true") == [
        f"holt: options stand before the sandbox: holt exec --timeout ... {box} -- COMMAND",
        f"hint: in a new box: holt exec -- {box} --timeout ..."]
    assert "options stand before" in cli.fails("exec", box, "-t", "--", "true")[0]
    assert cli.must("exec", box, "--", "echo", "-n", "--", "x") == "-- x"


def test_without_an_id_no_daemon_is_needed(cli):
    away = cli.with_env(HOLT_URL="http://127.0.0.1:1")
    assert away.must("exec", "--", "echo", "own box") == "own box\n"
    assert away.must("exec", "--", "echo", "--", "x") == "-- x\n"
    assert away.must("exec", "--", "echo", "-n", "--", "x") == "-- x"
    assert away.must("exec", "echo", "-n", "x") == "x"


# --- in the background ---------------------------------------------------------------------------


def test_an_execution_in_the_background_is_listed_followed_and_waited_for(cli, box):
    ident = cli.must("exec", "--background", box, "--", "sh", "-c", "echo one; sleep 1; echo two >&2; exit 9").strip()
    row = next(line for line in cli.must("ps", box).splitlines() if line.startswith(ident))
    assert row.split()[1:4] == ["command", "running", "-"]
    done = cli.run("logs", "--follow", box, ident)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"one\n", b"two\n")
    assert cli.run("wait", box, ident).returncode == 9
    assert cli.run("logs", box).stdout == b"one\n"
    rows = cli.json("ps", box, "--json")
    assert [r["executionId"] for r in rows] == [ident] and rows[0]["exitCode"] == 9


def test_logs_without_follow_show_what_there_is(cli, box):
    ident = cli.must("exec", "--background", box, "--", "sh", "-c", r"printf 'begun \303'; sleep 60").strip()
    until(lambda: cli.run("logs", box, ident).stdout == b"begun \xc3", what="its output")
    lines = [json.loads(line) for line in cli.must("logs", "--json", box, ident).splitlines()]
    assert [(one["stream"], one["data"]) for one in lines] == [("stdout", "begun ")]
    cli.must("kill", box, ident)
    assert cli.run("wait", box, ident).returncode == 143


def test_following_as_json_gives_a_line_a_piece(cli, box):
    ident = cli.must("exec", "--background", box, "--", "sh", "-c", "echo a; sleep 0.3; echo b >&2").strip()
    lines = [json.loads(line) for line in cli.must("logs", "-f", "--json", box, ident).splitlines()]
    assert lines == [{"stream": "stdout", "data": "a\n"}, {"stream": "stderr", "data": "b\n"}]


def test_output_that_was_not_kept_is_told(cli, box):
    cli.must("exec", box, "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x")
    done = cli.run("logs", box)
    assert done.stderr.startswith(b"holt: ") and b"bytes of output were not kept" in done.stderr
    omitted = int(done.stderr.split()[1])
    assert len(done.stdout) + omitted == 3000000


def test_nothing_was_run_yet(cli, box):
    assert cli.fails("logs", box)[0] == f"holt: nothing was run in '{box}' yet"
    assert "execution" in cli.fails("wait", box, "nosuch")[0]


def test_kill_sends_the_signal_that_was_named(cli, box):
    for given in ("INT", "SIGINT", "2"):
        ident = cli.must("exec", "--background", box, "--", "sh", "-c", "trap 'exit 4' INT; echo on; while :; do sleep 0.1; done").strip()
        until(lambda: cli.run("logs", box, ident).stdout == b"on\n", what="its start")
        assert cli.must("kill", box, ident, "-s", given) == ""
        assert cli.run("wait", box, ident).returncode == 4
    assert "signal" in cli.fails("kill", "-s", "NOSUCH", box, ident)[0].lower()


# --- the daemon goes and comes again -------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_an_execution_is_followed_across_a_restart_of_the_daemon():
    own = Daemon("--listen", f"127.0.0.1:{free_port()}")
    with own:
        cli = Cli(own)
        box = cli.must("sandbox", "create", "--template", "bash").strip()
        script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.5; done; exit 6"
        with cli.begin("exec", box, "--", "sh", "-c", script, stdin=subprocess.DEVNULL) as p:
            assert p.stdout.readline() == b"1\n"
            own.stop()
            own.start()
            out, err = p.communicate(timeout=60)
            assert (p.returncode, out, err) == (6, b"".join(b"%d\n" % i for i in range(2, 13)), b"")
