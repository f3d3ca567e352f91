"""Templates: those that are built in, and one's own with variables, limits and files."""
import pytest


@pytest.fixture
def template(api):
    made = []

    def make(**fields):
        value = api.post("/templates", {"name": "own", **fields}).must(201).json
        made.append(value["id"])
        return value

    yield make
    for ident in made:
        api.delete(f"/templates/{ident}").must(204, 404)


def test_the_catalogue_is_there_under_both_names(api):
    names = [one["name"] for one in api.get("/runtimes").must(200).json["items"]]
    assert sorted(names) == ["base", "bash", "node", "python"]
    for name in names + ["python:3.11", "nodejs"]:
        one = api.get(f"/templates/{name}").must(200).json
        assert one["builtIn"] and one == api.get(f"/runtimes/{name}").must(200).json
    api.get("/runtimes/cobol").error(404)
    api.get("/templates/cobol").error(404)
    api.delete("/templates/python").error(409)


def test_variables_and_limits_are_the_sandboxes(api, box, template):
    value = template(**{"from": "bash", "env": {"A": "1", "B": "2"}, "resources": {"memory": "128Mi", "pids": 20}})
    assert value["name"] == "own:1" and value["from"] == "bash" and value["envNames"] == ["A", "B"]
    made = api.post("/sandboxes", {"template": "own", "env": {"B": "3"}}).must(201).json
    assert made["resources"]["memory"] == 128 << 20 and made["resources"]["pids"] == 20
    one = type(box)(api, made)
    assert one.run("echo $A $B")["stdout"] == "1 3\n"
    one.delete().must(204)


def test_files_come_from_a_snapshot(api, box, template):
    box.run("mkdir -p /workspace/tool; echo built > /workspace/tool/a")
    taken = api.post(f"{box.path}/snapshots", {})
    if taken.status == 409:
        pytest.skip(taken.json["error"]["message"])
    ident = taken.must(201).json["id"]
    assert template(snapshot=ident)["layers"] == 1
    api.delete(f"/snapshots/{ident}").must(204)
    one = type(box)(api, api.post("/sandboxes", {"template": "own"}).must(201).json)
    assert one.run("cat /workspace/tool/a; echo more > /workspace/tool/b")["stdout"] == "built\n"
    api.post(f"{one.path}/stop").must(200)
    api.post(f"{one.path}/start").must(200)
    assert one.run("cat /workspace/tool/*")["stdout"] == "built\nmore\n"
    one.delete().must(204)


def test_versions_count_up_and_the_newest_is_meant(api, box, template):
    template(**{"from": "bash", "env": {"V": "1"}})
    template(**{"from": "own", "env": {"V": "2"}})
    assert template(**{"from": "own:1"})["name"] == "own:3"

    def version(name):
        one = type(box)(api, api.post("/sandboxes", {"template": name}).must(201).json)
        text = one.run("echo $V")["stdout"].strip()
        one.delete().must(204)
        return text

    assert [version(name) for name in ("own:1", "own:2", "own:3", "own:latest", "own")] == ["1", "2", "1", "1", "1"]
    api.delete("/templates/own:3").must(204)
    assert version("own") == "2"
    assert [one["name"] for one in api.get("/templates").must(200).json["items"]] == ["own:2", "own:1"]


@pytest.mark.parametrize("fields", [
    {"name": "A b"}, {"name": "x" * 41}, {"from": "cobol"}, {"snapshot": "none"}, {"from": "bash", "snapshot": "x"},
    {"env": {"1": "x"}}, {"resources": {"memory": 1}}, {"other": 1}])
def test_what_cannot_be_is_refused(api, fields):
    api.post("/templates", {"name": "bad", **fields}).must(400)
    api.get("/templates/bad").error(404)


def test_names_and_owners_are_kept_apart(api, template, key_for):
    api.post("/templates", {"name": "python"}).error(409)
    template()
    stranger = key_for("user", owner="stranger")
    stranger.get("/templates/own").error(404)
    stranger.delete("/templates/own").error(404)
    stranger.post("/sandboxes", {"template": "own"}).must(400)
