"""Security profiles: what they say, what is refused, and that a stricter box is stricter."""
import pytest

from support.client import Box

SOCKETS = "import socket; socket.socket(socket.AF_INET); print('made')"
UNIX = "import socket; socket.socket(socket.AF_UNIX); print('made')"
MEMFD = "import os; os.memfd_create('x'); print('made')"


def test_profiles_say_what_they_set(api):
    items = {p["name"]: p for p in api.get("/profiles").must(200).json["items"]}
    assert list(items) == ["standard", "high", "custom"]
    assert items["standard"]["isAvailable"] and items["standard"]["reason"] is None
    assert not items["high"]["isAvailable"] and "gVisor" in items["high"]["reason"]
    assert all(p["mayLoosen"] == [] for p in items.values())
    settings = {s["name"]: s for s in items["custom"]["settings"]}
    assert settings["syscalls"]["choices"] == ["standard", "strict"]
    assert settings["network"]["choices"] == ["none"]
    assert api.get("/profiles/high").must(200).json == items["high"]
    api.get("/profiles/none").error(404)


def test_high_is_refused_and_says_why(api):
    assert "gVisor" in api.post("/sandboxes", {"securityLevel": "high"}).error(400, field="securityLevel")


@pytest.mark.parametrize("security", [
    {"syscalls": "all"}, {"proc": "whole"}, {"network": "host"}, {"capabilities": "some"}, {"privileges": "new"},
    {"syscalls": "none"}, {"engine": "gvisor"},
])
def test_nothing_can_be_loosened(api, security):
    api.post("/sandboxes", {"securityLevel": "custom", "security": security}).error(400, field="security")


def test_only_custom_takes_settings(api):
    api.post("/sandboxes", {"security": {"syscalls": "strict"}}).error(400, field="security")
    api.post("/sandboxes", {"securityLevel": "custom", "security": {"other": "x"}}).error(400, field="security.other")


def test_no_way_to_a_box_makes_it_weaker(api):
    made = api.sandbox(name="strict-one", securityLevel="custom", security={"proc": "processes"})
    plain = api.sandbox(name="plain-one")
    try:
        again = {"template": "bash", "getOrCreate": True, "securityLevel": "custom"}
        same = api.post("/sandboxes", {**again, "name": "strict-one", "security": {"proc": "processes"}}).must(200)
        assert same.json["id"] == made.id
        api.post("/sandboxes", {**again, "name": "strict-one", "security": {"syscalls": "strict"}}).error(409)
        api.post("/sandboxes", {**again, "name": "plain-one", "security": {"proc": "processes"}}).error(409)
        fork = api.post(f"{made.path}/fork", {})
        for child in fork.json["items"] if fork.status == 201 else []:
            assert child["securityLevel"] == "custom"
            box = Box(api, child)
            assert box.run("ls /proc/meminfo")["exitCode"] != 0
            box.delete().must(204)
    finally:
        made.delete().must(204)
        plain.delete().must(204)


def test_a_stricter_box_is_stricter(api, python):
    assert python.run(f'python3 -c "{MEMFD}"')["stdout"] == "made\n"
    assert python.run("ls /proc/meminfo")["exitCode"] == 0
    with_calls = api.sandbox("python", securityLevel="custom", security={"syscalls": "strict"})
    try:
        assert with_calls.value["securityLevel"] == "custom"
        assert with_calls.run(f'python3 -c "{MEMFD}"')["exitCode"] != 0
        assert with_calls.run(f'python3 -c "{SOCKETS}"')["exitCode"] != 0
        assert with_calls.run(f'python3 -c "{UNIX}"')["stdout"] == "made\n"
        assert with_calls.run("ls /proc/meminfo")["exitCode"] == 0
    finally:
        with_calls.delete().must(204)
    with_proc = api.sandbox("python", securityLevel="custom", security={"proc": "processes"})
    try:
        assert with_proc.run("ls /proc/meminfo")["exitCode"] != 0
        assert with_proc.run("ls /proc/self/status")["exitCode"] == 0
        assert with_proc.run(f'python3 -c "{SOCKETS}"')["stdout"] == "made\n"
        listed = api.get("/sandboxes").must(200).json["items"]
        assert {s["id"]: s["securityLevel"] for s in listed}[with_proc.id] == "custom"
    finally:
        with_proc.delete().must(204)
