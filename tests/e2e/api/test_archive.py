"""Tar streams, both ways, with real tar files and hostile ones."""
import io
import os
import tarfile

import pytest


def packed(*members, **more):
    """A tar of (name, content or type) pairs."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", **more) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                tar.addfile(info)
    return raw.getvalue()


def unpacked(data):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        return {member.name.rstrip("/"): (tar.extractfile(member).read() if member.isfile() else member)
                for member in tar}


def unpack(box, data, path="/workspace"):
    return box.api.put(f"{box.path}/archive?path={path}", data)


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_goes_in_and_comes_out(box, kind):
    long_name = "/".join(["directory" * 5] * 5) + "/file"
    files = {"a.txt": b"a", "d/b.bin": os.urandom(100000), long_name: b"long", "empty": b"", "ü☃.txt": b"u"}
    if kind == tarfile.USTAR_FORMAT:
        files.pop(long_name)
    data = packed(*files.items(), ("d/link", (tarfile.SYMTYPE, "../a.txt")), format=kind)
    assert unpack(box, data).must(200).json == {"path": "/workspace", "count": len(files) + 1}
    assert box.run("cat a.txt d/link")["stdout"] == "aa"
    answer = box.api.get(f"{box.path}/archive").must(200)
    assert answer.headers["Content-Type"] == "application/x-tar"
    got = {name.removeprefix("./"): content for name, content in unpacked(answer.body).items()}
    for name, content in files.items():
        assert got[name] == content, name
    assert got["d/link"].issym() and got["d/link"].linkname == "../a.txt"


def test_a_single_file_and_missing_parents(box):
    assert unpack(box, packed(("x", b"x")), "/workspace/new/place").must(200).json["count"] == 1
    assert box.read("/workspace/new/place/x").body == b"x"
    answer = box.api.get(f"{box.path}/archive?path=/workspace/new/place/x").must(200)
    assert list(unpacked(answer.body).values()) == [b"x"]
    box.api.get(f"{box.path}/archive?path=/nowhere").error(404)


@pytest.mark.parametrize("members", [
    [("../out", b"x")], [("/etc/out", b"x")], [("a/../../out", b"x")],
    [("l", (tarfile.SYMTYPE, "/")), ("l/etc/out", b"x")],
    [("l", (tarfile.SYMTYPE, "../..")), ("l/out", b"x")],
    [("h", (tarfile.LNKTYPE, "/etc/passwd"))], [("h", (tarfile.LNKTYPE, "../../etc/passwd"))],
    [("dev", (tarfile.CHRTYPE, ""))], [("dev", (tarfile.BLKTYPE, ""))]])
def test_a_hostile_archive_writes_nothing_elsewhere(box, members):
    answer = unpack(box, packed(*members), "/workspace/sub")
    assert answer.status in (200, 400, 403, 404, 409), answer
    outside = box.run("ls /out /etc/out /workspace/out /tmp/out 2>/dev/null; ls -ld /etc/passwd")["stdout"]
    assert outside.count("\n") == 1, outside
    assert not os.path.exists("/out") and not os.path.exists("/etc/out")
    assert box.run("find /workspace -type b -o -type c")["stdout"] == ""


@pytest.mark.parametrize("data", [b"no tar at all" * 100, b"\x00" * 100, packed(("a", b"x" * 5000))[:3000],
                                  b"\xff" * 1024])
def test_what_is_no_tar_stream_is_refused(box, data):
    answer = unpack(box, data)
    assert answer.status in (400, 200), answer
    if answer.status == 200:
        assert answer.json["count"] == 0


def test_archives_go_from_one_sandbox_to_another(api, box):
    box.run("mkdir -p tree/deep; head -c 3000000 /dev/urandom > tree/deep/r; chmod 700 tree/deep; echo x > tree/x")
    want = box.run("find tree -type f -exec sha256sum {} + | sort")["stdout"]
    data = api.get(f"{box.path}/archive").must(200).body
    other = api.sandbox()
    unpack(other, data).must(200)
    assert other.run("find tree -type f -exec sha256sum {} + | sort")["stdout"] == want
    assert other.run("stat -c %a tree/deep")["stdout"] == "700\n"
    other.delete().must(204)
