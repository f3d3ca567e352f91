"""Contexts from the command line."""


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
