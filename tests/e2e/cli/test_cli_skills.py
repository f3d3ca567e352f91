"""Skills from the command line and over REST."""
import pytest

from support.cli import Cli
from support.daemon import Daemon

HEAD = "---\nname: {0}\ndescription: What {0} is for\n---\n# {0}\n"


@pytest.fixture(scope="module")
def cli():
    """In the place where they are looked for unless told otherwise."""
    daemon = Daemon()
    with daemon:
        daemon.stop()
        for name in ("good", "other", "bad"):
            folder = daemon.state_dir / "skills" / name
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(HEAD.format("good" if name == "bad" else name))
        (daemon.state_dir / "skills").chmod(0o755)
        (daemon.state_dir / "skills/good/data.bin").write_bytes(b"\0" * 2048)
        daemon.start()
        yield Cli(daemon)


def test_skills_are_listed_and_what_was_left_out_is_said(cli):
    done = cli.run("skills", "ls")
    assert done.returncode == 0
    lines = [line.split(None, 4) for line in done.stdout.decode().splitlines()]
    assert [line[0] for line in lines] == ["NAME", "good", "other"]
    assert lines[1][-1].endswith("What good is for")
    assert "bad: left out: SKILL.md: name: is 'good', but its directory is 'bad'" in done.stderr.decode()
    listed = cli.json("skills", "ls", "--json")
    assert [(row["name"], row["files"]) for row in listed["items"]] == [("good", 2), ("other", 1)]
    assert [row["name"] for row in listed["problems"]] == ["bad"]


def test_a_skill_is_shown(cli):
    assert cli.must("skills", "show", "good") == HEAD.format("good")
    shown = cli.json("skills", "show", "good", "--json")
    assert shown["frontmatter"] == {"name": "good", "description": "What good is for"}
    assert [(row["path"], row["size"]) for row in shown["contents"]] == [("SKILL.md", len(HEAD.format("good"))),
                                                                         ("data.bin", 2048)]
    for name in ("none", "bad", "..", "../good"):
        assert any("no skill" in line or "not" in line for line in cli.fails("skills", "show", name))


def test_what_was_left_out_is_for_admins(cli):
    api = cli.daemon.api
    key = api.post("/keys", {"name": "viewer", "role": "viewer", "owner": "viewer"}).must(201).json
    listed = api.using(key["key"]).get("/skills").must(200).json
    assert [row["name"] for row in listed["items"]] == ["good", "other"]
    assert listed["problems"] == []
    api.delete(f"/keys/{key['id']}").must(204)


def test_a_folder_is_checked_without_a_daemon(cli, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    manifest = folder / "SKILL.md"
    manifest.write_text(HEAD.format("mine"))
    manifest.chmod(0o644)
    alone = cli.with_env(HOLT_URL="http://127.0.0.1:1", HOLT_API_KEY_FILE=None)
    assert alone.must("skills", "check", folder).startswith("mine: good, 1 files")
    manifest.write_text(HEAD.format("another"))
    assert "its directory is 'mine'" in alone.fails("skills", "check", folder, code=1)[0]
    assert "No such file" in alone.fails("skills", "check", tmp_path / "none", code=1)[0]
    assert "wants DIR" in alone.fails("skills", "check")[0]
