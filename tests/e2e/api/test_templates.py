"""Templates: those that are built in, and one's own with variables, limits and files."""
import os

import pytest


# A first command in a box of each built-in template, which prints 42.
FIRST = {"python": "python3 -c 'print(6 * 7)'", "node": "node -e 'console.log(6 * 7)'", "bash": "echo $((6 * 7))",
         "base": "node -e 'console.log(6 * 7)'", "e2b": "sudo true; touch ~/mine; echo $((6 * 7))"}


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
    assert sorted(names) == sorted(FIRST)
    for name in names + ["python:3.11", "nodejs"]:
        one = api.get(f"/templates/{name}").must(200).json
        assert one["builtIn"] and one == api.get(f"/runtimes/{name}").must(200).json
    api.get("/runtimes/cobol").error(404)
    api.get("/templates/cobol").error(404)
    api.delete("/templates/python").error(409)


@pytest.mark.parametrize("name", sorted(FIRST))
def test_a_built_in_template_runs_a_first_command(api, name):
    """Twice: the second box is one that was built while nobody waited for it."""
    for _ in range(2):
        made = api.sandbox(name)
        value = made.run(FIRST[name], timeout=300)
        assert value["stdout"] == "42\n", value
        made.delete().must(204)


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
    {"name": "A b"}, {"name": "x" * 64}, {"from": "cobol"}, {"snapshot": "none"}, {"from": "bash", "snapshot": "x"},
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


@pytest.mark.parametrize("field, value, said", [
    ("user", "a b", "user"),
    ("user", "-x", "user"),
    ("user", "x" * 33, "user"),
    ("workdir", "relative", "workdir"),
    ("workdir", "/a/../b", "workdir"),
    ("workdir", "/" + "x" * 300, "workdir"),
    ("writablePaths", ["/a", "b"], "writablePaths"),
    ("writablePaths", ["/a/"], "writablePaths"),
    ("writablePaths", ["/"], "writablePaths"),
    ("writablePaths", ["/proc/x"], "writablePaths"),
    ("writablePaths", ["/dev"], "writablePaths"),
    ("writablePaths", ["/a:/b"], "writablePaths"),
    ("writablePaths", ["/a b"], "writablePaths"),
    ("writablePaths", [""], "writablePaths"),
    ("writablePaths", ["/" + "p" * 250 + str(n) for n in range(5)], "writablePaths"),
    ("writablePaths", ["/a//b"], "writablePaths"),
    ("writablePaths", [f"/p{n}" for n in range(17)], "writablePaths"),
    ("preload", ["os.system('x')"], "preload"),
    ("preload", [f"m{n}" for n in range(33)], "preload"),
    ("preload", ["m" * 120] * 12, "preload"),
    ("start", {}, "start.command"),
    ("start", {"command": "x", "readyPort": 70000}, "start.readyPort"),
    ("start", {"command": "x", "readyHttp": "/"}, "start.readyHttp"),
    ("start", {"command": "x", "readyHttp": "/a b", "readyPort": 80}, "start.readyHttp"),
    ("start", {"command": "x", "readyHttp": "a", "readyPort": 80}, "start.readyHttp"),
    ("start", {"command": "x", "readyCommand": "y", "readyPort": 80}, "start"),
    ("start", {"command": "x", "timeout": 0.5}, "start.timeout"),
    ("start", {"command": "x", "timeout": 601}, "start.timeout"),
    ("start", {"command": "x" * 8193}, "start.command"),
    ("securityLevel", "high", "securityLevel"),
    ("security", {"syscalls": "strict"}, "security"),
    ("rootKind", "layers", "rootKind"),
])
def test_what_cannot_be_said_is_refused_by_name(api, field, value, said):
    refused = api.post("/templates", {"name": "bad", field: value}).must(400)
    assert said in refused.json["error"]["message"] or refused.json["error"]["details"] == {"field": said}, refused


def test_modules_are_for_templates_in_which_a_python_waits(api):
    assert "preload" in api.post("/templates", {"name": "bad", "from": "bash", "preload": ["json"]}).error(400, field="preload")


def test_names_that_are_addresses_are_refused(api):
    for name in ("builds", "files"):
        api.post("/templates", {"name": name}).error(400, field="name")


def test_all_that_is_said_is_shown_and_handed_on(api, template):
    said = {"user": "1000", "workdir": "/tmp", "writableRoot": True, "preload": ["json", "decimal"],
            "start": {"command": "sleep 600", "readyCommand": "true", "timeout": 5}}
    value = template(description="all of it", securityLevel="custom", security={"proc": "processes"}, **said)
    assert value["user"] == "1000" and value["workdir"] == "/tmp" and value["writableRoot"]
    assert value["preload"] == ["json", "decimal"] and value["source"] == "host"
    assert value["start"] == {"command": "sleep 600", "readyCommand": "true", "readyPort": None,
                              "readyHttp": None, "timeout": 5}
    assert value["securityLevel"] == "custom"
    same = {"user", "workdir", "writableRoot", "preload", "start", "securityLevel"}
    child = template(**{"from": "own"})
    assert {k: child[k] for k in same} == {k: value[k] for k in same}
    assert template(**{"from": "own", "workdir": "/"})["workdir"] == "/"
    assert api.get("/templates/own:1").must(200).json == value


def test_built_in_ones_are_listed_when_asked_for(api, template):
    template(**{"from": "bash"})
    listed = api.get("/templates?builtIn=true").must(200).json
    assert {one["name"] for one in listed["items"]} == {"base", "bash", "e2b", "node", "python"}
    assert all(one["builtIn"] for one in listed["items"]) and listed["nextCursor"] is None
    assert [one["name"] for one in api.get("/templates?builtIn=0").must(200).json["items"]] == ["own:1"]
    api.get("/templates?builtIn=x").must(400)


def test_user_and_directory_are_those_of_commands_that_name_none(api, box, template):
    name = "root" if os.geteuid() == 0 else "user"  # without privilege a box has one user
    template(**{"from": "bash", "user": name, "workdir": "/tmp"})
    one = type(box)(api, api.post("/sandboxes", {"template": "own"}).must(201).json)
    assert one.run("pwd")["stdout"] == "/tmp\n"
    assert one.run("id -un")["stdout"].strip() == name
    assert one.run("pwd", cwd="/")["stdout"] == "/\n"
    one.delete().must(204)


def test_a_user_that_the_box_does_not_have_is_told_by_the_command(api, box, template):
    template(**{"from": "bash", "user": "nosuch"})
    one = type(box)(api, api.post("/sandboxes", {"template": "own"}).must(201).json)
    answer = api.post(f"{one.path}/execute", {"type": "command", "content": "id"})
    assert b"nosuch" in answer.body, answer
    one.delete().must(204)


def test_a_sandbox_names_its_template_for_as_long_as_it_lives(api, box, template, daemon):
    value = template(**{"from": "bash", "env": {"V": "1"}, "workdir": "/tmp"})
    made = api.post("/sandboxes", {"template": "own"}).must(201).json
    assert made["template"] == "own:1" and made["runtime"] == "bash"
    found = api.get("/sandboxes?template=own:1").must(200).json["items"]
    assert made["id"] in [one["id"] for one in found] and box.id not in [one["id"] for one in found]
    one = type(box)(api, made)
    api.delete(f"/templates/{value['id']}").must(204)
    forks = api.post(f"{one.path}/fork", {"count": 1})
    if forks.status != 409:  # this machine can keep files
        fork = forks.must(201).json["items"][0]
        assert fork["template"] == "own:1" and fork["runtime"] == "bash"
        assert type(box)(api, fork).run("pwd; echo $V")["stdout"] == "/tmp\n1\n"
        api.delete(f"/sandboxes/{fork['id']}").must(204)
        api.post(f"{one.path}/stop").must(200)
        started = api.post(f"{one.path}/start").must(200).json
        assert started["template"] == "own:1"
        kept = api.post(f"{one.path}/snapshots", {}).must(201).json
        assert kept["template"] == "own:1"
        third = api.post("/sandboxes", {"snapshot": kept["id"]}).must(201).json
        assert third["template"] == "own:1" and third["runtime"] == "bash"
        api.delete(f"/sandboxes/{third['id']}").must(204)
        api.delete(f"/snapshots/{kept['id']}").must(204)
    daemon.stop()
    daemon.start()
    again = api.get(one.path).must(200).json
    assert again["template"] == "own:1" and again["runtime"] == "bash"
    assert one.run("pwd; echo $V")["stdout"] == "/tmp\n1\n"
    one.delete().must(204)
    ended = api.get(one.path).must(200).json
    assert ended["template"] == "own:1" and ended["runtime"] == "bash"


def test_an_alias_stands_for_one_version_until_it_is_moved(api, template):
    first = template(**{"from": "bash", "env": {"V": "1"}})
    second = template(**{"from": "bash", "env": {"V": "2"}})
    put = api.ask("PUT", "/templates/own/aliases/prod", {"version": 1}).must(200).json
    assert put["name"] == "own:prod" and put["template"] == "own:1" and put["alias"] == "prod"
    assert api.get("/templates/own:prod").must(200).json["id"] == first["id"]
    made = api.post("/sandboxes", {"template": "own:prod"}).must(201).json
    assert made["template"] == "own:1"
    api.delete(f"/sandboxes/{made['id']}").must(204)
    # Never dangling: what it stands for stays.
    assert "own:prod" in api.delete("/templates/own:1").error(409)
    api.ask("PUT", "/templates/own/aliases/prod", {"version": 2}).must(200)
    assert api.get("/templates/own:prod").must(200).json["id"] == second["id"]
    assert template(**{"from": "own:prod"})["envNames"] == ["V"]
    api.delete("/templates/own:1").must(204)
    listed = api.get("/templates/own/aliases").must(200).json["items"]
    assert [(one["alias"], one["template"]) for one in listed] == [("prod", "own:2")]
    api.delete("/templates/own/aliases/prod").must(204)
    api.get("/templates/own:prod").error(404)
    api.delete("/templates/own/aliases/prod").error(404)
    assert api.get("/templates/own/aliases").must(200).json["items"] == []


@pytest.mark.parametrize("alias", ["7", "1a", "Prod", "a" * 64, "a%20b"])
def test_some_words_are_no_aliases(api, template, alias):
    template(**{"from": "bash"})
    api.ask("PUT", f"/templates/own/aliases/{alias}", {"version": 1}).must(400)


def test_an_alias_of_nothing_is_refused(api, template):
    template(**{"from": "bash"})
    api.ask("PUT", "/templates/own/aliases/prod", {"version": 2}).error(404)
    api.ask("PUT", "/templates/other/aliases/prod", {"version": 1}).error(404)
    api.ask("PUT", "/templates/own/aliases/prod", {"version": 0}).must(400)
    api.ask("PUT", "/templates/own/aliases/prod", {}).must(400)


def test_latest_is_the_newest_until_somebody_says_otherwise(api, template):
    first = template(**{"from": "bash", "env": {"V": "1"}})
    api.ask("PUT", "/templates/own/aliases/latest", {"version": 1}).must(200)
    second = template(**{"from": "bash", "env": {"V": "2"}})
    assert api.get("/templates/own:latest").must(200).json["id"] == first["id"]
    api.delete("/templates/own/aliases/latest").must(204)
    assert api.get("/templates/own:latest").must(200).json["id"] == second["id"]


@pytest.mark.parametrize("start", ["warm", "cold"])
def test_paths_can_be_written_to_in_a_root_that_cannot(api, box, template, start):
    template(**{"from": "bash", "writablePaths": ["/opt/data", "/var/lib/app"]})
    one = type(box)(api, api.post("/sandboxes", {"template": "own", "useWarmPool": start == "warm"}).must(201).json)
    # Those that are not there are made, for the box's user.
    assert one.run("echo a > /opt/data/x && mkdir /var/lib/app/d && echo b > /var/lib/app/d/y && cat /opt/data/x")["stdout"] == "a\n"
    for path in ("/opt/x", "/etc/x", "/usr/x", "/var/lib/x", "/x"):
        assert one.run(f"touch {path}")["exitCode"] != 0, path
    assert one.run("mv /opt/data /opt/other; rm -rf /opt/data; ls -d /opt/data")["stdout"] == "/opt/data\n"
    one.run("echo a > /opt/data/x")
    stopped = api.post(f"{one.path}/stop")
    if stopped.status != 409:
        api.post(f"{one.path}/start").must(200)
        assert one.run("cat /opt/data/x /var/lib/app/d/y; touch /opt/x")["stdout"] == "a\nb\n"
    one.delete().must(204)


def test_all_of_the_root_can_be_written_to_when_the_template_says_so(api, box, template):
    if os.geteuid() != 0:
        pytest.skip("without privilege the files of the machine belong to nobody in the box")
    template(**{"from": "bash", "writableRoot": True, "user": "root"})
    one = type(box)(api, api.post("/sandboxes", {"template": "own"}).must(201).json)
    assert one.run("echo x > /etc/mine && cat /etc/mine && echo y > /opt/mine")["stdout"] == "x\n"
    stopped = api.post(f"{one.path}/stop")
    if stopped.status != 409:
        api.post(f"{one.path}/start").must(200)
        assert one.run("cat /etc/mine /opt/mine")["stdout"] == "x\ny\n"
    one.delete().must(204)
