"""Volumes: files that outlive sandboxes, for one sandbox at a time."""
import pytest

from support.daemon import Daemon, IS_ROOT


@pytest.fixture
def volume(api):
    if not IS_ROOT:
        assert api.post("/volumes", {"name": "data", "size": "16Mi"}).error(409)
        assert api.get("/volumes").must(200).json["items"] == []
        pytest.skip("volumes need root")
    value = api.post("/volumes", {"name": "data", "size": "16Mi"}).must(201).json
    yield value
    api.delete("/volumes/data").must(204, 404)


def mounted(api, path="/workspace/data", **fields):
    return api.post("/sandboxes", {"template": "bash", "volumes": [{"name": "data", "path": path, **fields}]})


def test_what_is_written_is_there_for_the_next(api, box, volume):
    assert volume["size"] == 16 << 20 and volume["status"] == "ready"
    assert api.get("/volumes/data").must(200).json == volume
    made = mounted(api).must(201).json
    assert made["volumes"] == [{"id": volume["id"], "name": "data", "path": "/workspace/data", "readOnly": False}]
    one = type(box)(api, made)
    assert one.run("echo kept > /workspace/data/a; cat /workspace/data/a")["stdout"] == "kept\n"
    assert one.id in mounted(api).error(409)
    assert one.id in api.delete("/volumes/data").error(409)
    one.delete().must(204)
    assert api.get(f"/sandboxes/{one.id}").must(200).json["volumes"] == made["volumes"]
    two = type(box)(api, mounted(api, "/mnt/data", readOnly=True).must(201).json)
    assert two.run("cat /mnt/data/a; echo x > /mnt/data/a || echo refused")["stdout"] == "kept\nrefused\n"
    two.delete().must(204)
    api.delete("/volumes/data").must(204)
    mounted(api).must(400)


def test_its_size_is_all_that_it_takes(api, box, volume):
    one = type(box)(api, mounted(api).must(201).json)
    assert one.run("head -c 64M /dev/zero > /workspace/data/big")["exitCode"] != 0
    assert int(one.run("stat -c %s /workspace/data/big")["stdout"]) < 16 << 20
    one.delete().must(204)


def test_a_stopped_sandbox_lets_go_and_takes_it_again(api, box, volume):
    one = type(box)(api, mounted(api).must(201).json)
    one.run("echo a > /workspace/data/a")
    api.post(f"{one.path}/stop").must(200)
    two = type(box)(api, mounted(api).must(201).json)
    two.run("echo b >> /workspace/data/a")
    assert two.id in api.post(f"{one.path}/start").error(409)
    two.delete().must(204)
    api.post(f"{one.path}/start").must(200)
    assert one.run("cat /workspace/data/a")["stdout"] == "a\nb\n"
    one.delete().must(204)


def test_names_sizes_paths_and_owners_are_checked(api, volume, key_for):
    api.post("/volumes", {"name": "data", "size": "16Mi"}).error(409)
    for bad in ({"name": "x"}, {"name": "x", "size": "1Mi"}, {"name": "x", "size": "2Ti"}, {"name": "A b", "size": "16Mi"},
                {"size": "16Mi"}):
        api.post("/volumes", bad).must(400)
    for path in ("/etc", "/workspace", "/workspace/../etc", "workspace/a", "/mnt", "/mnt/a/b", "/workspace/" + "a" * 200):
        mounted(api, path).must(400)
    api.post("/sandboxes", {"volumes": [{"name": "data", "path": "/mnt/a"}, {"name": "data", "path": "/mnt/b"}]}).must(400)
    stranger = key_for("user", owner="stranger")
    stranger.get("/volumes/data").error(404)
    stranger.delete("/volumes/data").error(404)
    mounted(stranger).must(400)


def test_volumes_outlive_every_kill():
    if not IS_ROOT:
        pytest.skip("volumes need root")
    with Daemon() as daemon:
        api = daemon.api
        api.post("/volumes", {"name": "data", "size": "16Mi"}).must(201)
        made = api.sandbox(volumes=[{"name": "data", "path": "/mnt/data"}])
        made.run("echo safe > /mnt/data/a; sync")
        daemon.kill("daemon", "launcher", "keeper")
        daemon.wait_ended()
        daemon.start()
        assert made.run("cat /mnt/data/a")["stdout"] == "safe\n"
        made.delete().must(204)
        made = api.sandbox(volumes=[{"name": "data", "path": "/mnt/data"}])
        assert made.run("cat /mnt/data/a")["stdout"] == "safe\n"
        made.delete().must(204)
        api.delete("/volumes/data").must(204)
