"""Skills over REST: what agents are given, by name."""
import hashlib

import pytest

from support.daemon import Daemon

TEXT = "---\nname: one\ndescription: What it is for\nlicense: MIT\n---\n# One\n"


@pytest.fixture(scope="module")
def skilled():
    daemon = Daemon("--skills-dir", "skills")
    for name in ("one", "two"):
        folder = daemon.dir / "skills" / name
        folder.mkdir(parents=True, mode=0o755)
        (folder / "SKILL.md").write_text(TEXT)
    with daemon:
        yield daemon.api


def test_skills_are_listed_with_what_was_left_out(skilled):
    listed = skilled.get("/skills").must(200).json
    assert listed["items"] == [{"name": "one", "description": "What it is for", "files": 1, "bytes": len(TEXT)}]
    assert [row["name"] for row in listed["problems"]] == ["two"]


def test_a_skill_has_its_instructions_and_the_sums_of_its_files(skilled):
    skill = skilled.get("/skills/one").must(200).json
    assert skill["text"] == TEXT
    assert skill["frontmatter"]["license"] == "MIT"
    assert skill["contents"] == [{"path": "SKILL.md", "size": len(TEXT), "mimeType": "text/markdown",
                                  "sha256": hashlib.sha256(TEXT.encode()).hexdigest()}]


@pytest.mark.parametrize("name", ["two", "none", "%2e%2e", "one%2fSKILL.md", "ONE"])
def test_what_is_not_there_is_not_found(skilled, name):
    skilled.get(f"/skills/{name}").error(404)


def test_a_daemon_without_skills_has_an_empty_list(api):
    assert api.get("/skills").must(200).json == {"items": [], "problems": []}


def test_a_key_without_the_right_to_read_sees_nothing(skilled):
    key = skilled.post("/keys", {"name": "no files", "role": "user", "scopes": ["exec"]}).must(201).json
    skilled.using(key["key"]).get("/skills").error(403)
    skilled.using(key["key"]).get("/skills/one").error(403)
    skilled.delete(f"/keys/{key['id']}").must(204)
