"""Files, lines and profiles from the command line."""


def test_files_and_lines_are_found(cli, box):
    cli.must("exec", box, "--", "sh", "-c",
             "mkdir -p src/dep; printf 'one\\ntwo\\nthree\\n' > src/a.txt; echo Two > src/dep/b.txt; "
             "printf 'x' > \"src/$(printf 'odd\\033[31m')\"")
    assert sorted(cli.must("find", box, "--name", "*.txt").split()) == [
        "/workspace/src/a.txt", "/workspace/src/dep/b.txt"]
    assert cli.must("find", box, "/workspace/src", "--type", "directory").split() == ["/workspace/src/dep"]
    assert "\x1b" not in cli.must("find", box, "--name", "odd*")  # no name moves the cursor
    assert cli.must("grep", box, "two") == "/workspace/src/a.txt:2:two\n"
    assert cli.must("grep", "-C", "1", box, "two") == (
        "/workspace/src/a.txt-1-one\n/workspace/src/a.txt:2:two\n/workspace/src/a.txt-3-three\n")
    assert sorted(cli.must("grep", "-i", "-l", "-E", box, "^two$").split()) == [
        "/workspace/src/a.txt", "/workspace/src/dep/b.txt"]
    assert cli.must("grep", box, "Two", "/workspace/src", "--exclude", "a.txt") == "/workspace/src/dep/b.txt:1:Two\n"
    assert cli.json("grep", box, "two", "--json")["matches"] == 1
    none = cli.run("grep", box, "absent")
    assert (none.returncode, none.stdout) == (1, b"")
    assert "regular expression" in cli.fails("grep", "-E", box, "((")[0]


def test_profiles_are_shown(cli):
    text = cli.must("profile", "show")
    assert "standard" in text and "gVisor" in text and "syscalls" in text
    one = cli.must("profile", "show", "standard").splitlines()
    assert one[0].split()[:3] == ["PROFILE", "SETTING", "VALUE"] and all(l.startswith("standard") for l in one[1:])
    assert [p["name"] for p in cli.json("profile", "show", "--json")["items"]] == ["standard", "high", "custom"]
    assert "no profile" in cli.fails("profile", "show", "none")[0]
