"""Contexts from the command line."""
import signal


def test_a_context_keeps_its_state_between_commands(cli, box):
    ident = cli.must("context", "create", "--language", "bash", "--name", "sh", box).strip()
    cli.must("context", "run", box, ident, "cd /tmp; X=3")
    assert cli.must("context", "run", box, "sh", "echo $X $PWD") == "3 /tmp\n"
    assert cli.run("context", "run", box, "sh", "echo bad >&2; (exit 7)").returncode == 7
    assert "sh" in cli.must("context", "ls", box)
    assert cli.must("context", "rm", box, "sh") == "sh\n"
    assert cli.must("context", "ls", "--json", box).strip() == "[]"


def test_a_loop_runs_what_it_reads_and_leaves_nothing(cli):
    answer = cli.run("repl", "--language", "python",
                     input=b"x = 20\ndef f(a):\n    return a * 2\n\nf(x)\n1/0\n")
    assert answer.stdout == b"40\n" and b"ZeroDivisionError" in answer.stderr
    assert answer.returncode == 1
    assert cli.must("sandbox", "ls", "--quiet") == ""


def test_ctrl_c_interrupts_what_runs_and_the_loop_goes_on(cli, box):
    with cli.terminal("repl", box, controls=True) as terminal:
        terminal.wait_for(rb">>> ")
        terminal.type(b"x = 41\r")
        terminal.wait_for(rb">>> ")
        terminal.type(b"import time; print('be' + 'gun'); time.sleep(600)\r")
        terminal.wait_for(rb"begun")  # shown while it runs
        terminal.type(b"\x03")
        terminal.wait_for(rb"KeyboardInterrupt")
        terminal.wait_for(rb">>> ")
        terminal.type(b"x + 1\r")
        terminal.wait_for(rb"\r\n42\r\n")
        terminal.wait_for(rb">>> ")
        terminal.type(b"\x04")
        assert terminal.wait() == 0
    assert cli.json("context", "ls", "--json", box) == []


def test_ctrl_c_takes_back_what_was_typed(cli, box):
    with cli.terminal("repl", box, controls=True) as terminal:
        terminal.wait_for(rb">>> ")
        terminal.type(b"def f():\r")
        terminal.wait_for(rb"\.\.\. ")
        terminal.type(b"\x03")
        terminal.wait_for(rb"\n>>> ")
        terminal.type(b"print('o' + 'n')\r")
        terminal.wait_for(rb"on\r\n")
        terminal.wait_for(rb">>> ")
        terminal.type(b"\x04")
        assert terminal.wait() == 0


def test_a_loop_that_is_told_to_end_leaves_nothing(cli):
    process = cli.begin("repl", "--language", "python")
    process.stdin.write(b"import time; print('begun', flush=True); time.sleep(600)\n")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert cli.must("sandbox", "ls", "--quiet") == ""


def test_a_run_is_interrupted_too_and_its_context_stays(cli, box):
    cli.must("context", "create", "--name", "calc", box)
    process = cli.begin("context", "run", box, "calc", "x = 1; import time; print('begun', flush=True); time.sleep(600)")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGINT
    assert cli.must("context", "run", box, "calc", "x") == "1\n"
    assert cli.json("context", "run", "--json", box, "calc", "x")["results"][0]["text"] == "1"
    assert cli.run("context", "run", "--timeout", "1s", box, "calc", "time.sleep(600)").returncode == 124
