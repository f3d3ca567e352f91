"""`holt` as a person or a program uses it: every claim of its help, tried."""
import base64
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import uuid

import pytest

from support.local import BUILD, HOLT, processes_with, run, run_json


def until(condition, seconds=60):
    """Waits for what must happen, however slow the machine is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail("it did not happen")


# --- exit codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 124, 255])
def test_the_exit_code_is_the_command_s(code):
    done = run("exec", "--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def test_output_and_errors_stay_apart():
    done = run("exec", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


def test_a_missing_program_gives_127():
    done = run("exec", "--", "no-such-program")
    assert done.returncode == 127
    assert done.stderr == b"holt: exec 'no-such-program': No such file or directory\n"


def test_a_file_that_is_no_program_gives_126():
    done = run("exec", "--", "/etc/passwd")
    assert done.returncode == 126
    assert b"Permission denied" in done.stderr


@pytest.mark.parametrize("name, number", [("SEGV", 11), ("TERM", 15), ("KILL", 9)])
def test_a_signal_gives_128_and_its_number_with_the_reason(name, number):
    done = run("exec", "--", "sh", "-c", f"kill -{name} $$")
    assert done.returncode == 128 + number
    assert done.stderr == f"holt: killed by signal {number} ({name})\n".encode()


def test_a_timeout_gives_124_and_ends_everything_that_was_started():
    mark = "7" + str(uuid.uuid4().int)[:12]
    begun = time.monotonic()
    done = run("exec", "--timeout", "300ms", "--", "sh", "-c", f"setsid sleep {mark} & sleep {mark}")
    assert done.returncode == 124
    assert done.stderr == b"holt: timed out after 0.3 s (see --timeout)\n"
    assert time.monotonic() - begun < 30
    assert processes_with(mark) == []


def test_running_out_of_memory_gives_137_with_the_reason(needs_limits):
    done = run("exec", "--memory", "32M", "--", "python3", "-c", "x = bytearray(500 << 20)")
    assert done.returncode == 137
    assert b"out of memory (the limit is 32 MiB" in done.stderr


def test_a_closed_reader_ends_the_command():
    reader, writer = os.pipe()
    with subprocess.Popen([HOLT, "exec", "--", "yes"], stdout=writer, stdin=subprocess.DEVNULL) as p:
        os.close(writer)
        assert os.read(reader, 4) == b"y\ny\n"
        os.close(reader)
        assert p.wait(timeout=30) == 141


# --- JSON ----------------------------------------------------------------------------------------


def test_the_json_object_says_everything():
    r = run_json("--", "sh", "-c", "printf out; printf err >&2; exit 3")
    assert (r["exitCode"], r["signal"], r["stdout"], r["stderr"]) == (3, None, "out", "err")
    assert (r["timedOut"], r["truncated"], r["oomKilled"], r["cancelled"]) == (False,) * 4
    assert r["durationMs"] > 0 and r["cpuMs"] > 0 and r["peakMemoryBytes"] > 0
    assert r["outputBytes"] == 6
    assert r["start"]["kind"] in ("warm", "cold")
    assert set(r["start"]["stepsUs"]) == {"stock", "clone", "ready", "limits"}
    assert r["limits"]["memoryBytes"] == 256 << 20
    assert r["limits"]["cpuMilli"] == 500
    assert r["limits"]["pids"] == 64
    assert r["limits"]["timeoutMs"] == 30000
    assert isinstance(r["notEnforced"], list)
    assert (r["level"], r["net"]) == ("standard", "none")
    assert re.fullmatch("[a-z0-9]{20}", r["sandboxId"])


def test_limits_that_were_asked_for_are_reported_in_force():
    r = run_json("--memory", "64M", "--cpu", "250m", "--pids", "20", "--disk", "8M", "--timeout",
                 "5s", "--", "true")
    assert r["limits"]["memoryBytes"] == 64 << 20
    assert r["limits"]["cpuMilli"] == 250
    assert r["limits"]["pids"] == 20
    assert r["limits"]["diskBytes"] == 8 << 20
    assert r["limits"]["timeoutMs"] == 5000


def test_bytes_that_are_no_text_also_come_in_base64():
    r = run_json("--", "sh", "-c", r"printf 'a\377\000b'")
    assert r["stdout"] == "a\ufffd\x00b"
    assert base64.b64decode(r["stdoutBase64"]) == b"a\xff\x00b"
    assert "stderrBase64" not in r


def test_json_flags_a_timeout():
    r = run_json("--timeout", "200ms", "--", "sh", "-c", "printf begun; sleep 60")
    assert r["exitCode"] == 124 and r["timedOut"] and r["stdout"] == "begun"


def test_json_flags_a_signal():
    r = run_json("--", "sh", "-c", "kill -ABRT $$")
    assert r["exitCode"] == 134 and r["signal"] == "SIGABRT"


def test_json_flags_running_out_of_memory(needs_limits):
    r = run_json("--memory", "32M", "--", "python3", "-c", "x = bytearray(500 << 20)")
    assert r["exitCode"] == 137 and r["oomKilled"] and "out of memory" in r["reason"]


def test_output_is_cut_at_one_mebibyte_and_says_so():
    r = run_json("--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; exit 5")
    assert r["exitCode"] == 5 and r["truncated"]
    assert len(r["stdout"]) == 1 << 20
    assert r["outputBytes"] == 3000000


def test_the_output_limit_can_be_chosen():
    r = run_json("--output-limit", "10", "--", "sh", "-c", "printf 0123456789abcdef")
    assert r["stdout"] == "0123456789" and r["truncated"]
    done = run("exec", "--output-limit", "10", "--", "sh", "-c", "printf 0123456789abcdef")
    assert done.stdout == b"0123456789"


def test_a_failure_of_ours_is_json_as_well():
    done = run("exec", "--json", "--template", "/nonexistent", "--", "true")
    assert done.returncode == 125
    assert json.loads(done.stdout)["error"]["code"] == "ENOENT"


# --- input and output ----------------------------------------------------------------------------


def test_ten_megabytes_pass_through_unchanged():
    data = os.urandom(10_000_000)
    done = run("exec", "--", "cat", input=data)
    assert done.returncode == 0
    assert done.stdout == data


def test_input_that_nobody_reads_does_not_hang():
    done = run("exec", "--", "true", input=os.urandom(1_000_000))
    assert done.returncode == 0


def test_the_end_of_input_reaches_the_command():
    assert run("exec", "--", "wc", "-c", input=b"").stdout.strip() == b"0"


def test_a_slow_reader_holds_the_command_back():
    """What is not read stays in the box: the writer inside stops, and goes on when we read."""
    writer = ("import os,sys\nn = 0\nwhile n < 8 << 20:\n  n += os.write(1, b'x' * 65536)\n"
              "print('written', n, file=sys.stderr)")
    with subprocess.Popen([HOLT, "exec", "--", "python3", "-c", writer], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as p:
        assert len(p.stdout.read(1)) == 1
        time.sleep(1)
        assert select.select([p.stderr], [], [], 0)[0] == []
        out, err = p.communicate(timeout=60)
        assert len(out) + 1 == 8 << 20
        assert err == b"written 8388608\n"


def test_a_terminal_s_worth_of_lines_arrives_as_it_is_written():
    with subprocess.Popen([HOLT, "exec", "--", "sh", "-c", "echo one; read x; echo got $x"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        assert p.stdout.readline() == b"one\n"
        p.stdin.write(b"two\n")
        p.stdin.flush()
        assert p.stdout.readline() == b"got two\n"
        assert p.wait(timeout=30) == 0


# --- what the box is -----------------------------------------------------------------------------


def test_only_the_environment_that_was_given_is_there():
    env = dict(os.environ, SECRET="s3cret", PASSED="yes")
    done = run("exec", "--env", "A=1", "-e", "B=x=y", "-e", "PASSED", "-e", "UNSET_HERE", "--",
               "env", env=env)
    seen = dict(line.split("=", 1) for line in done.stdout.decode().splitlines())
    assert seen["A"] == "1" and seen["B"] == "x=y" and seen["PASSED"] == "yes"
    assert "SECRET" not in seen and "UNSET_HERE" not in seen
    assert seen["PATH"] == "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin:/usr/local/cargo/bin"


def test_the_working_directory_can_be_chosen():
    assert run("exec", "--workdir", "/usr/bin", "--", "pwd").stdout == b"/usr/bin\n"
    done = run("exec", "--workdir", "/nonexistent", "--", "pwd")
    assert done.returncode == 125
    assert b"/nonexistent" in done.stderr


def test_the_user_is_not_root_and_can_be_chosen():
    assert run("exec", "--", "id", "-u").stdout == b"1000\n"
    done = run("exec", "--user", "no-such-user", "--", "id")
    assert done.returncode == 125
    assert b"no-such-user" in done.stderr


def test_there_is_no_network_unless_it_is_asked_for():
    code = "print(len(open('/proc/net/dev').read().splitlines()) - 2)"
    inside = int(run("exec", "--", "python3", "-c", code).stdout)
    outside = len(pathlib.Path("/proc/net/dev").read_text().splitlines()) - 2
    assert inside <= 1
    assert int(run("exec", "--net", "host", "--", "python3", "-c", code).stdout) == outside


def test_the_system_is_read_only_and_the_workspace_is_not():
    done = run("exec", "--", "sh", "-c", "touch /usr/x 2>/dev/null && echo bad; "
               "touch /workspace/a /tmp/b ~/c && echo good")
    assert done.stdout == b"good\n"


def test_each_run_has_a_fresh_box():
    run("exec", "--", "sh", "-c", "echo mine > /workspace/left; echo mine > /tmp/left")
    assert run("exec", "--", "sh", "-c", "ls /workspace /tmp").stdout.split() == [
        b"/tmp:", b"/workspace:"]


def test_a_directory_can_be_the_root(tmp_path):
    busybox = shutil.which("busybox")
    if not busybox:
        pytest.skip("busybox is not installed")
    os.chmod(tmp_path, 0o755)
    (tmp_path / "bin").mkdir()
    shutil.copy(busybox, tmp_path / "bin" / "busybox")
    (tmp_path / "hello").write_text("from the directory\n")
    done = run("exec", "--template", tmp_path, "--", "/bin/busybox", "cat", "/hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"from the directory\n", b"")


def test_processes_are_limited(needs_limits):
    done = run("exec", "--pids", "8", "--", "sh", "-c",
               "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 5 & done; wait", timeout=60)
    assert done.returncode != 0
    assert b"fork" in done.stderr


def test_the_disk_is_limited():
    done = run("exec", "--disk", "4M", "--", "sh", "-c", "head -c 9000000 /dev/zero > /workspace/f")
    assert done.returncode != 0
    assert b"No space left" in done.stderr


def test_a_box_can_be_pinned(needs_limits, doctor):
    done = run("exec", "--pin", "0", "--", "grep", "Cpus_allowed_list", "/proc/self/status")
    assert done.stdout.split() == [b"Cpus_allowed_list:", b"0"]


def test_level_high_is_refused_with_the_reason_and_runs_nothing():
    done = run("exec", "--level", "high", "--", "echo", "ran")
    assert done.returncode == 125
    assert done.stdout == b""
    assert b"gVisor" in done.stderr


# --- signals and what is left behind -------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_box_and_leaves_nothing(number):
    mark = "8" + str(uuid.uuid4().int)[:12]
    with subprocess.Popen([HOLT, "exec", "--timeout", "0", "--", "sh", "-c",
                           f"setsid sleep {mark} & sleep {mark}; echo late"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as p:
        until(lambda: len(processes_with(mark)) >= 4)  # holt, sh and both
        children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
        p.send_signal(number)
        assert p.wait(timeout=30) == 128 + number
        assert p.stdout.read() == b""
    assert processes_with(mark) == []
    assert children and not any(pathlib.Path(f"/proc/{c}").exists() for c in children)


def test_a_command_that_ignores_signals_is_ended_all_the_same():
    mark = "9" + str(uuid.uuid4().int)[:12]
    with subprocess.Popen([HOLT, "exec", "--timeout", "0", "--", "sh", "-c",
                           f"trap '' INT TERM HUP; sleep {mark}; sleep {mark}"],
                          stdin=subprocess.DEVNULL) as p:
        until(lambda: len(processes_with(mark)) >= 3)
        p.send_signal(signal.SIGINT)
        assert p.wait(timeout=30) == 130
    assert processes_with(mark) == []


def test_killing_holt_itself_leaves_no_box():
    mark = "6" + str(uuid.uuid4().int)[:12]
    with subprocess.Popen([HOLT, "exec", "--timeout", "0", "--", "sleep", mark],
                          stdin=subprocess.DEVNULL) as p:
        until(lambda: len(processes_with(mark)) >= 2)
        p.kill()
        p.wait(timeout=30)
    until(lambda: processes_with(mark) == [])


# --- terminals -----------------------------------------------------------------------------------


class Terminal:
    """holt on a terminal that we hold the other end of."""

    def __init__(self, *args, rows=30, cols=100):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.process = subprocess.Popen([HOLT, "exec", "--tty", *args], stdin=self.slave,
                                        stdout=self.slave, stderr=self.slave, close_fds=True,
                                        env=dict(os.environ, TERM="vt220"))

    def resize(self, rows, cols, tell=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if tell:
            self.process.send_signal(signal.SIGWINCH)

    def type(self, text):
        os.write(self.master, text)

    def wait_for(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                pytest.fail(f"no {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.master, 65536)
        return re.search(pattern, self.seen)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=30)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    opened = []

    def start(*args, **kwargs):
        opened.append(Terminal(*args, **kwargs))
        return opened[-1]

    yield start
    for t in opened:
        t.close()


def test_the_command_gets_a_terminal_of_our_size(terminal):
    t = terminal("--", "sh", "-c", "tty; stty size; echo $TERM; exit 3", rows=31, cols=101)
    t.wait_for(rb"/dev/pts/\d+\r\n31 101\r\nvt220")
    assert t.process.wait(timeout=30) == 3


def test_a_new_size_reaches_the_command(terminal):
    t = terminal("--", "sh", "-c", "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.1; done")
    t.wait_for(rb"ready")
    t.resize(40, 120)
    t.wait_for(rb"40 120")
    assert t.process.wait(timeout=30) == 4


def test_control_c_goes_into_the_box(terminal):
    t = terminal("--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done")
    t.wait_for(rb"ready")
    t.type(b"\x03")
    t.wait_for(rb"caught")
    assert t.process.wait(timeout=30) == 5


def test_the_terminal_is_as_before_afterwards(terminal):
    t = terminal("--", "cat")
    t.type(b"typed\r")
    t.wait_for(rb"typed\r\ntyped")
    assert termios.tcgetattr(t.slave) != t.before
    t.type(b"\x04")
    assert t.process.wait(timeout=30) == 0
    assert termios.tcgetattr(t.slave) == t.before


# --- run-code ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang, code", [
    ("python", "import sys; print(6 * 7, sys.argv[1:])"),
    ("node", "console.log(6 * 7, JSON.stringify(process.argv.slice(-2)).replace(',', ', ').replace(/\"/g, \"'\"))"),
    ("bash", "echo $((6 * 7)) \"['$1', '$2']\""),
])
def test_code_runs_with_its_arguments(lang, code):
    done = run("run-code", "--lang", lang, "a", "b", input=code.encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"42 ['a', 'b']\n", b"")


@pytest.mark.parametrize("lang, code", [
    ("python", "import sys; sys.exit(9)"), ("node", "process.exit(9)"), ("bash", "exit 9")])
def test_code_s_exit_code_is_ours(lang, code):
    assert run("run-code", "--lang", lang, input=code.encode()).returncode == 9


def test_code_from_a_file_leaves_standard_input_to_the_program(tmp_path):
    (tmp_path / "main.py").write_text("print(input()[::-1])")
    done = run("run-code", "-l", "python", "-f", tmp_path / "main.py", input=b"olleh\n")
    assert done.stdout == b"hello\n"


@pytest.mark.parametrize("lang, comment", [("python", "#"), ("node", "//"), ("bash", "#")])
def test_long_code_runs_too(lang, comment):
    tail = {"python": "print('end')", "node": "console.log('end')", "bash": "echo end"}[lang]
    code = f"{comment} filler\n" * 40000 + tail
    assert run("run-code", "--lang", lang, input=code.encode()).stdout == b"end\n"


def test_a_traceback_arrives_whole():
    done = run("run-code", "--lang", "python", input=b"def f():\n  raise ValueError('no')\nf()")
    assert done.returncode == 1
    assert done.stderr.startswith(b"Traceback (most recent call last):")
    assert done.stderr.endswith(b"ValueError: no\n")


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("args, message", [
    (["exec"], "nothing to run"),
    (["exec", "--memory", "1K", "--", "true"], "--memory is out of range: '1K': wants a size"),
    (["exec", "--memory", "much", "--", "true"], "--memory does not accept 'much': wants a size"),
    (["exec", "--cpu", "x", "--", "true"], "--cpu does not accept 'x': wants a number of cores"),
    (["exec", "--timeout", "soon", "--", "true"], "--timeout does not accept 'soon': wants a time"),
    (["exec", "--net", "lan", "--", "true"], "--net does not accept 'lan': wants one of none, host"),
    (["exec", "--pids", "0", "--", "true"], "--pids is out of range: '0': wants a whole number, from 4"),
    (["exec", "--env", "=x", "--", "true"], "--env '=x': wants NAME=value"),
    (["exec", "--template", "nosuch", "--", "true"], "--template 'nosuch': wants 'host' or an existing"),
    (["exec", "--memry", "1G", "--", "true"], "unknown option '--memry': did you mean --memory?"),
    (["exec", "--json", "--tty", "--", "true"], "--json and --tty exclude each other"),
    (["run-code"], "--lang is missing: wants one of python, node, bash"),
    (["run-code", "--lang", "cobol"], "--lang does not accept 'cobol': wants one of python, node, bash"),
    (["run-code", "--lang", "bash", "-f", "/nonexistent"], "--file '/nonexistent': No such file"),
    (["bench", "--only", "everything"], "--only does not know 'everything'"),
    (["dcotor"], "unknown command 'dcotor'"),
])
def test_bad_input_is_named_in_one_line(args, message):
    done = run(*args)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 125
    assert lines[0].startswith("holt: " + message), lines
    assert all(line.startswith("hint: ") for line in lines[1:])


def test_hostile_text_cannot_reach_the_terminal():
    done = run("exec", "--template", "a\x1b[2Jb\nholt: forged", "--", "true")
    assert b"\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


# --- help, version, doctor -----------------------------------------------------------------------

COMMANDS = ["exec", "run-code", "doctor", "bench", "version", "help"]


def test_the_overview_names_every_command():
    done = run("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"\n  {name}".encode() in done.stdout
    assert run().returncode == 125


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name):
    done = run(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: holt {name} ".encode())
    assert b"--help" in done.stdout
    assert run("help", name).stdout == done.stdout


def test_the_manual_and_the_completions_know_every_command():
    manual = run("help", "--man").stdout
    assert manual.startswith(b".TH HOLT 1")
    for name in COMMANDS:
        assert f".SS holt {name} ".encode() in manual
    for shell in ["bash", "zsh", "fish"]:
        script = run("help", "--completion", shell).stdout
        assert all(name.encode() in script for name in COMMANDS)
    subprocess.run(["bash", "-n"], input=run("help", "--completion", "bash").stdout, check=True)


def test_completion_offers_commands_and_options():
    script = run("help", "--completion", "bash").stdout.decode()
    ask = ("COMP_WORDS=(holt {0}); COMP_CWORD={1}; _holt; echo ${{COMPREPLY[@]}}")
    for words, at, expected in [("ex", 1, "exec"), ("exec --mem", 2, "--memory")]:
        done = subprocess.run(["bash", "-c", script + ask.format(words, at)], capture_output=True)
        assert done.stdout.decode().strip() == expected


def test_version():
    done = run("--version")
    assert re.fullmatch(rb"holt \d+\.\d+\.\d+\n", done.stdout)
    assert json.loads(run("version", "--json").stdout)["version"] == done.stdout.decode().split()[1]


def test_the_doctor_builds_a_box_and_explains_what_is_bad(doctor):
    assert doctor["box"]["status"] == "ok"
    assert "ran /bin/true" in doctor["box"]["text"]
    for row in doctor.values():
        assert row["status"] in ("ok", "warn", "fail") and row["text"]
    text = run("doctor").stdout.decode()
    assert text.endswith("\nboxes work here\n")
    assert len(text.splitlines()) >= len(doctor)


def test_a_bench_of_one_row_is_json():
    done = run("bench", "--only", "live", "--n", "5", "--load-wait", "0", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert done.returncode == 0
    assert [r["group"] for r in rows] == ["live"]
    assert rows[0]["p50"] > 0 and rows[0]["referenceP50"] > 0 and rows[0]["n"] == 5


def test_a_bench_of_the_daemon_measures_the_daemon():
    done = run("bench", "--only", "audit", "--n", "5", "--load-wait", "0", "--json")
    assert done.returncode in (0, 1) and b"not found" not in done.stderr + done.stdout, done
    assert [r["p50"] > 0 for r in json.loads(done.stdout)["rows"]] == [True]


def test_standard_descriptors_may_be_closed():
    done = subprocess.run(["sh", "-c", f"exec 0<&- 2>&-; exec '{HOLT}' exec -- echo fine"],
                          capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"fine\n")


# --- as an ordinary user -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """Runs holt as a user without an account, when we are root."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("the whole suite runs as an ordinary user already")
    place = pathlib.Path("/tmp") / f"holt-e2e-{uuid.uuid4().hex}"
    place.mkdir(mode=0o755)
    for name in ["holt", "holt-launch", "holt-init", "holt-warm.so"]:
        if (BUILD / name).exists():
            shutil.copy(BUILD / name, place)

    def start(*args, **kwargs):
        return subprocess.run(["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups",
                               str(place / "holt"), *args], capture_output=True, timeout=60,
                              cwd="/", **kwargs)

    done = start("doctor", "--json")
    if not json.loads(done.stdout)["works"]:
        box = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "box"][0]
        shutil.rmtree(place)
        pytest.fail("rootless boxes do not work: " + box["text"])
    yield start
    shutil.rmtree(place)


def test_rootless_runs_a_command(ordinary):
    done = ordinary("exec", "--", "sh", "-c", "id -u; echo err >&2; exit 6", input=b"")
    assert (done.returncode, done.stdout, done.stderr) == (6, b"1000\n", b"err\n")


def test_a_limit_that_cannot_hold_is_said(ordinary):
    checks = json.loads(ordinary("doctor", "--json").stdout)["checks"]
    if [c for c in checks if c["name"] == "limits"][0]["status"] == "ok":
        pytest.skip("all limits hold here")
    done = ordinary("exec", "--memory", "64M", "--json", "--", "true", input=b"")
    assert b"--memory is not enforced here" in done.stderr
    assert "memory" in json.loads(done.stdout)["notEnforced"]
    assert b"not enforced" not in ordinary("exec", "--", "true", input=b"").stderr


def test_rootless_passes_bytes_through(ordinary):
    data = os.urandom(1_000_000)
    assert ordinary("exec", "--", "cat", input=data).stdout == data


def test_rootless_times_out(ordinary):
    assert ordinary("exec", "--timeout", "200ms", "--", "sleep", "60", input=b"").returncode == 124


def test_rootless_runs_code(ordinary):
    assert ordinary("run-code", "--lang", "python", input=b"print(1)").stdout == b"1\n"


def test_rootless_has_a_private_workspace(ordinary):
    done = ordinary("exec", "--", "sh", "-c", "touch /workspace/a /tmp/b ~/c && ls /workspace", input=b"")
    assert (done.returncode, done.stdout) == (0, b"a\n")
