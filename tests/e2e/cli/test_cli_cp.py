"""Copying into a sandbox and out of it."""
import io
import os
import stat
import tarfile

import pytest


@pytest.fixture
def tree(tmp_path):
    """A directory with a bit of everything."""
    top = tmp_path / "src"
    (top / "sub" / "empty").mkdir(parents=True)
    (top / "a.txt").write_text("hello\n")
    (top / "a.txt").chmod(0o750)
    (top / "sub" / "big").write_bytes(os.urandom(3_000_000))
    (top / "none").touch()
    (top / "sub" / "link").symlink_to("../a.txt")
    return top


def shape(top):
    """Paths with what they are, for comparing."""
    found = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(top))] = (stat.S_IFMT(mode), None if path.is_symlink() else mode & 0o777, what)
    return found


def test_a_directory_goes_in_and_comes_out_the_same(cli, box, tree, tmp_path):
    cli.must("cp", tree, f"{box}:/workspace")
    assert cli.must("exec", box, "--", "cat", "/workspace/src/sub/link") == "hello\n"
    cli.must("cp", f"{box}:/workspace/src", tmp_path / "out")
    assert shape(tmp_path / "out") == shape(tree)


def test_a_directory_that_is_there_gets_the_source_inside(cli, box, tree, tmp_path):
    cli.must("cp", tree, f"{box}:/workspace/new")  # not there: takes the name
    assert cli.must("exec", box, "--", "ls", "/workspace/new") == "a.txt\nnone\nsub\n"
    cli.must("cp", f"{tree}/.", f"{box}:/workspace/new/flat")
    assert cli.must("exec", box, "--", "ls", "/workspace/new/flat") == "a.txt\nnone\nsub\n"
    (tmp_path / "here").mkdir()
    cli.must("cp", f"{box}:/workspace/new/sub/", tmp_path / "here")
    assert sorted(os.listdir(tmp_path / "here" / "sub")) == ["big", "empty"]  # the link would lead out


def test_a_file_keeps_its_mode_both_ways(cli, box, tree, tmp_path):
    cli.must("cp", tree / "a.txt", f"{box}:/workspace")
    cli.must("cp", tree / "a.txt", f"{box}:/workspace/deep/er/b.txt")
    assert cli.must("exec", box, "--", "stat", "-c", "%a", "/workspace/a.txt", "/workspace/deep/er/b.txt") == "750\n750\n"
    cli.must("cp", f"{box}:/workspace/a.txt", tmp_path)
    cli.must("cp", f"{box}:/workspace/a.txt", tmp_path / "named")
    for name in ("a.txt", "named"):
        assert (tmp_path / name).read_text() == "hello\n"
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "named", "src"]  # nothing half-made stays


def test_a_file_is_replaced(cli, box, tmp_path):
    (tmp_path / "f").write_text("new")
    cli.must("exec", box, "--", "sh", "-c", "echo old > /workspace/f")
    cli.must("cp", tmp_path / "f", f"{box}:/workspace/f")
    assert cli.must("exec", box, "--", "cat", "/workspace/f") == "new"
    (tmp_path / "f").write_text("mine")
    cli.must("cp", f"{box}:/workspace/f", tmp_path / "f")
    assert (tmp_path / "f").read_text() == "new"


def test_a_dash_is_standard_input_and_output(cli, box, tree):
    data = os.urandom(2_500_000)
    cli.must("cp", "-", f"{box}:/workspace/piped", input=data)
    assert cli.run("cp", f"{box}:/workspace/piped", "-").stdout == data
    cli.must("cp", tree, f"{box}:/workspace")
    names = tarfile.open(fileobj=io.BytesIO(cli.run("cp", f"{box}:/workspace/src", "-").stdout)).getnames()
    assert sorted(names) == ["a.txt", "none", "sub", "sub/big", "sub/empty", "sub/link"]


def test_the_entry_is_json(cli, box, tree):
    value = cli.json("cp", "--json", tree / "a.txt", f"{box}:/workspace/")
    assert value["path"] == "/workspace/a.txt" and value["mode"] == "0750" and value["size"] == 6


def test_names_with_odd_characters_survive(cli, box, tmp_path):
    name = "a b?#%&=\u00e9'\"\\"
    (tmp_path / name).write_text("odd")
    cli.must("cp", tmp_path / name, f"{box}:/workspace/{name}")
    cli.must("cp", f"{box}:/workspace/{name}", tmp_path / "back")
    assert (tmp_path / "back").read_text() == "odd"


def test_a_link_in_the_sandbox_is_followed_there_only(cli, box, tmp_path):
    cli.must("exec", box, "--", "sh", "-c", "cd /workspace; echo x > real; ln -s real file; mkdir d; touch d/in; ln -s d dir; ln -s /etc/hostname abs")
    cli.must("cp", f"{box}:/workspace/file", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x\n" and not (tmp_path / "file").is_symlink()
    cli.must("cp", f"{box}:/workspace/dir", tmp_path / "dir")
    assert os.listdir(tmp_path / "dir") == ["in"]
    done = cli.run("cp", f"{box}:/workspace", tmp_path / "all")
    assert done.returncode == 0
    assert b"left out link 'abs': it points to '/etc/hostname'" in done.stderr
    assert not os.path.lexists(tmp_path / "all" / "abs")
    assert os.readlink(tmp_path / "all" / "file") == "real"


def test_pipes_and_sockets_stay_behind(cli, box, tmp_path):
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "d" / "pipe")
    (tmp_path / "d" / "f").touch()
    done = cli.run("cp", tmp_path / "d", f"{box}:/workspace")
    assert done.returncode == 0 and b"left out" in done.stderr
    assert cli.must("exec", box, "--", "ls", "/workspace/d") == "f\n"


def test_what_is_wrong_is_said(cli, box, tmp_path, tree):
    assert "No such file" in cli.fails("cp", tmp_path / "nosuch", f"{box}:/workspace")[0]
    assert "No such file" in cli.fails("cp", f"{box}:/nosuch", tmp_path)[0]
    assert "there is no sandbox" in cli.fails("cp", "nosuch:/x", tmp_path)[0]
    assert "there is no sandbox" in cli.fails("cp", tree, "nosuch:/x")[0]
    assert "no side is a sandbox" in cli.fails("cp", "a", "b")[0]
    assert "both sides are sandboxes" in cli.fails("cp", "a:/x", "b:/x")[0]
    assert "begins with /" in cli.fails("cp", "a:x", tmp_path)[0]
    assert "names nothing" in cli.fails("cp", f"{box}:/workspace/..", tmp_path / "up")[0]
    assert "Read-only" in cli.fails("cp", tree / "a.txt", f"{box}:/usr/x")[0]
    assert "no directory" in cli.fails("cp", tree, f"{box}:/etc/hostname")[0]
    assert cli.fails("cp", f"{box}:/etc/hostname", tmp_path / "no" / "where")[0].startswith("holt: '")


def test_a_copy_that_breaks_off_leaves_nothing_of_the_file(cli, tmp_path):
    box = cli.must("sandbox", "create", "--memory", "64M", "--disk", "8M").strip()
    (tmp_path / "big").write_bytes(bytes(20 << 20))
    lines = cli.fails("cp", tmp_path / "big", f"{box}:/workspace/big")
    assert "No space left" in lines[0]
    assert cli.must("exec", box, "--", "ls", "-A", "/workspace") == ""
    cli.must("sandbox", "rm", box)
