"""Ports, templates, network, volumes, secrets, and what the SDK says when something is wrong."""
import asyncio

import e2b
from e2b import Sandbox
from world import ask, failure, feature, takes, until


@feature("ports by getHost")
def port(w):
    w.box.files.write("site/index.html", "hello from inside")
    server = w.box.commands.run("cd site && exec python3 -m http.server 8123", background=True, timeout=0)
    url = f"http://{w.box.get_host(8123)}/index.html"
    answer = until(lambda: (lambda got: got if got[0] != 502 else None)(ask(url)), "the server in the sandbox")
    assert answer == (200, b"hello from inside"), answer
    server.kill()


@feature("network rules", lambda: takes("Sandbox.update_network"))
def network(w):
    w.create().update_network({"deny_out": ["0.0.0.0/0"]})


@feature("template build")
def build(w):
    name = f"holt-test-{w.mark}"
    steps = e2b.Template().from_template("base").run_cmd("echo built > ~/built.txt")
    e2b.Template.build(steps, name)
    box = w.keep(Sandbox.create(name, timeout=120))
    assert box.commands.run("cat ~/built.txt").stdout == "built\n"
    box.kill()


@feature("volumes", lambda: takes("Volume.create"))
def volume(w):
    made = e2b.Volume.create(f"test-{w.mark}")
    box = w.create(volume_mounts={"/mnt/v": made})
    box.commands.run("echo there > /mnt/v/f")
    box.kill()
    other = w.create(volume_mounts={"/mnt/v": made})
    assert other.commands.run("cat /mnt/v/f").stdout == "there\n"
    other.kill()
    assert e2b.Volume.destroy(made.volume_id) is True


@feature("files of volumes", lambda: takes("Volume.write_file"))
def volume_files(w):
    made = e2b.Volume.create(f"files-{w.mark}")
    made.make_dir("/a/b", force=True)
    assert made.write_file("/a/b/f", "from outside").path == "/a/b/f"
    made.write_file("/bytes", b"\0\xff\1", mode=0o600)
    assert made.get_info("/bytes").mode == 0o600
    assert bytes(made.read_file("/bytes", format="bytes")) == b"\0\xff\1"
    box = w.create(volume_mounts={"/mnt/v": made})
    assert box.commands.run("cat /mnt/v/a/b/f; echo inside > /mnt/v/g").stdout == "from outside"
    assert made.read_file("/g") == "inside\n"
    box.kill()
    assert [item.path for item in made.list("/a", depth=2)] == ["/a/b", "/a/b/f"]
    assert made.update_metadata("/g", mode=0o640).mode == 0o640
    made.remove("/a")
    assert made.exists("/a") is False
    failure(e2b.NotFoundException, made.read_file, "/a")
    assert e2b.Volume.connect(made.volume_id).read_file("/g") == "inside\n"
    assert e2b.Volume.destroy(made.volume_id) is True


@feature("secrets", lambda: takes("Secret.create"))
def secret(w):
    name = f"test_{w.mark}".replace("-", "_")
    made = e2b.Secret.create(name, "very quiet", metadata={"for": "tests"})
    assert e2b.Secret.exists(name) is True
    changed = e2b.Secret.update(made.secret_id, "quieter")
    assert (changed.version, changed.metadata) == (made.version + 1, {"for": "tests"})
    assert e2b.Secret.get_info(name) == changed
    pages, found = e2b.Secret.list(limit=1), []
    while pages.has_next:
        found += [one.secret_id for one in pages.next_items()]
    assert made.secret_id in found
    assert e2b.Secret.destroy(name) is True
    assert e2b.Secret.exists(name) is False


@feature("error: no such sandbox")
def no_sandbox(w):
    failure(e2b.NotFoundException, Sandbox.connect, "nosuchsandbox0000")


@feature("error: no such template")
def no_template(w):
    assert "no-such-template" in str(failure(e2b.SandboxException, Sandbox.create, "no-such-template"))


@feature("error: bad key")
def bad_key(w):
    failure(e2b.AuthenticationException, Sandbox.create, "base", api_key="e2b_" + "0" * 40)


@feature("error: bad directory")
def bad_directory(w):
    assert "/no/such" in str(failure(e2b.SandboxException, w.box.commands.run, "true", cwd="/no/such"))


@feature("the asynchronous client")
def asynchronous(w):
    async def work():
        box = w.keep(await e2b.AsyncSandbox.create("base", timeout=120))
        done = await asyncio.gather(*[box.commands.run(f"echo {i}") for i in range(10)])
        assert [item.stdout for item in done] == [f"{i}\n" for i in range(10)]
        await box.files.write("f", "x")
        assert await box.files.read("f") == "x"
    asyncio.run(work())
