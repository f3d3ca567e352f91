"""template build and build from the command line."""
import os

import pytest

from support.daemon import until


@pytest.fixture
def clean(cli, daemon):
    yield
    for one in cli.json("template", "ls", "--json"):
        cli.must("template", "rm", one["id"])
    cli.must("build", "prune")
    until(lambda: not [x for x in daemon.leftovers() if "/layers/" in x], what="dropping layers")


FILE = """\
# a template of one's own
name: demo
from: bash
description: made of a file
env: {GREETING: hello}
resources: {memory: 256Mi, pids: 64}
steps:
  - ENV: {OTHER: "2"}
  - WORKDIR: /workspace/app
  - COPY: [src, .]
  - COPY: [one.txt, /workspace/renamed.txt]
  - RUN: |
      echo "$GREETING $OTHER" > made
      ls -1
  - RUN: [cat, /workspace/renamed.txt]
    timeout: 60
"""


@pytest.fixture
def context(tmp_path):
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "a").write_text("a")
    (tmp_path / "src" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "src" / "run.sh").chmod(0o755)
    (tmp_path / "one.txt").write_text("first\n")
    (tmp_path / "holt-template.yaml").write_text(FILE)
    return tmp_path


def build(cli, *args):
    done = cli.run("template", "build", *map(str, args))
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    if "freezer" in done.stderr:
        pytest.skip(done.stderr)
    return done


def test_a_file_becomes_a_template(cli, context, clean):
    done = build(cli, context / "holt-template.yaml")
    assert done.returncode == 0 and done.stdout == "demo:1\n", done
    assert "[5/6] RUN" in done.stderr and "deep\nmade\nrun.sh\n" in done.stderr and "first\n" in done.stderr
    box = cli.must("sandbox", "create", "--template", "demo").strip()
    assert cli.must("exec", box, "--", "sh", "-c", "cat made; ./run.sh; cat deep/a") == "hello 2\nran\na"
    cli.must("sandbox", "rm", box)
    os.utime(context / "one.txt", (1, 1))
    again = build(cli, context / "holt-template.yaml")
    assert again.stdout == "demo:2\n" and again.stderr.count("(cached)") == 4, again
    assert build(cli, "-q", "--no-cache", "--name", "other", context / "holt-template.yaml").stdout == "other:1\n"
    listed = cli.json("build", "ls", "--json")
    assert [(one["name"], one["status"]) for one in listed] == [("other", "ready"), ("demo", "ready"), ("demo", "ready")]
    assert "ready" in cli.must("build", "show", listed[0]["id"])
    cli.must("build", "cancel", *[one["id"] for one in listed])
    assert cli.json("build", "ls", "--json") == []


def test_a_template_leaves_the_commands_of_its_directory_alone(cli, context, clean):
    assert "yaml" not in cli.must("sandbox", "ls", cwd=context)
    done = cli.run("template", "build", "-q", cwd=context)
    if b"freezer" not in done.stderr:
        assert done.returncode == 0 and done.stdout == b"demo:1\n", done
    (context / "holt-template.yaml").rename(context / "holt.yaml")
    assert "called holt-template.yaml" in cli.fails("sandbox", "ls", cwd=context)[0]


def test_a_step_that_fails_shows_its_output_and_ends_with_1(cli, tmp_path, clean):
    file = tmp_path / "bad.yaml"
    file.write_text("name: demo\nfrom: bash\nsteps:\n  - RUN: 'echo why; printf \"\\033[31mred\"; exit 4'\n")
    for quiet in ([], ["-q"]):
        done = build(cli, *quiet, file)
        assert done.returncode == 1 and done.stdout == "", done
        assert "why\n" in done.stderr and "exit code 4" in done.stderr and "\033" not in done.stderr
    for one in cli.json("build", "ls", "--json"):
        cli.must("build", "cancel", one["id"])


@pytest.mark.parametrize("text, why", [
    ("name: [", "bad.yaml:"), ("a: &x 1\nb: *x", "anchors"), ("a: !!int 1", "tags"), ("- 1", "mapping"), ("", "mapping"),
    ("name: x\n---\nname: y", "second document"), ("[" * 30, "nested"), ("name: demo\nname: demo", "name"),
    ("name: demo\nsteps: [{RUN: x}, {NOPE: y}]", "step 2"), ("name: demo\nsteps: [{COPY: one}]", "COPY wants"),
    ("name: demo\nsteps: [{COPY: [../secret, /a]}]", "out of the context"), ("name: demo\nsteps: [{COPY: [/etc, /a]}]", "context"),
    ("name: demo\nsteps: [{COPY: [link, /a]}]", "out of the context"), ("name: demo\nsteps: [{COPY: [none, /a]}]", "none"),
    ("name: demo\nnope: 1", "nope"), ("name: demo\nsteps: [{WORKDIR: a/../../b}]", "WORKDIR"), ("x" * 300000, "too long"),
    ("name: \"\\0\"", "NUL"), ("name: python", "python"),
], ids=lambda text: text[:40])
def test_a_bad_file_is_refused_with_the_reason(cli, tmp_path, text, why):
    context = tmp_path / "context"
    context.mkdir()
    (tmp_path / "secret").write_text("no")
    (context / "link").symlink_to("../secret")
    (context / "bad.yaml").write_text(text)
    done = build(cli, context / "bad.yaml")
    assert done.returncode == 125 and done.stdout == "" and why in done.stderr, done


def test_a_template_without_steps_comes_from_a_file_and_options(cli, tmp_path, clean):
    file = tmp_path / "plain.yaml"
    file.write_text("from: bash\nenv: {A: x}\nresources: {memory: 64Mi}\n")
    assert cli.must("template", "create", "plain", "-f", str(file), "--workdir", "/tmp") == "plain:1\n"
    made = cli.json("template", "ls", "--json")[0]
    assert made["envNames"] == ["A"] and made["workdir"] == "/tmp" and made["resources"]["memory"] == 64 << 20
    cli.fails("template", "create", "plain", "-f", str(file), "--from", "python")
    cli.fails("template", "create", "plain", "-f", str(tmp_path / "none"))
