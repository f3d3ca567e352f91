"""Files: whole and in parts, conditions, lists, changes, and everything that must stay inside."""
import concurrent.futures
import hashlib
import os
import socket
import time
import urllib.parse

import pytest

from support.daemon import IS_ROOT, until

BIG = 64 << 20


def put(box, name, data=b"data", **query):
    return box.put(name, data, **query).must(200, 201)


# --- writing and reading -------------------------------------------------------------------------


def test_a_file_comes_back_as_it_was_written(box):
    data = bytes(range(256)) * 100
    answer = put(box, "/workspace/a.bin", data)
    entry = answer.json
    assert answer.status == 201 and answer.headers["ETag"].startswith('"')
    assert list(entry) == ["path", "type", "size", "mode", "uid", "gid", "mtime", "target"]
    assert (entry["path"], entry["type"], entry["size"], entry["mode"], entry["uid"], entry["gid"],
            entry["target"]) == ("/workspace/a.bin", "file", len(data), "0644", 1000, 1000, None)
    got = box.read("/workspace/a.bin").must(200)
    assert got.body == data
    assert got.headers["Content-Type"] == "application/octet-stream"
    assert got.headers["Content-Length"] == str(len(data))
    assert got.headers["Accept-Ranges"] == "bytes" and got.headers["Last-Modified"].endswith(" GMT")
    assert got.headers["ETag"] == answer.headers["ETag"]
    head = box.api.ask("HEAD", box.file("/workspace/a.bin")).must(200)
    assert head.body == b"" and head.headers["Content-Length"] == str(len(data))
    assert put(box, "/workspace/a.bin", b"new").status == 200
    assert box.read("/workspace/a.bin").body == b"new"
    assert box.run("cat a.bin")["stdout"] == "new"


def test_an_empty_file_is_a_file(box):
    assert put(box, "/workspace/empty", b"").status == 201
    got = box.read("/workspace/empty").must(200)
    assert (got.body, got.headers["Content-Length"]) == (b"", "0")


def test_a_chunked_upload_is_as_good(box):
    box.api.put(box.file("/workspace/c"), iter([b"one ", b"two ", b"three"])).must(201)
    assert box.read("/workspace/c").body == b"one two three"


def test_modes_parents_and_owners(box):
    assert put(box, "/workspace/x.sh", b"#!/bin/sh\necho ran\n", mode="0755").json["mode"] == "0755"
    assert box.run("./x.sh")["stdout"] == "ran\n"
    assert put(box, "/workspace/p/q/r.txt").json["path"] == "/workspace/p/q/r.txt"
    box.put("/workspace/n/o/p.txt", b"x", parents=0).error(404)
    box.put("/workspace/bad", b"x", mode="rwx").error(400, field="mode")
    box.put("/workspace/bad", b"x", mode="17777").error(400, field="mode")
    box.put("/workspace/bad", b"x", parents="maybe").error(400, field="parents")
    if IS_ROOT:  # a box of an ordinary user has one user
        assert put(box, "/tmp/root", user="0").json["uid"] == 0
    else:
        box.put("/tmp/root", b"x", user="0").error(403)
    assert put(box, "/tmp/named", user="1000").json["uid"] == 1000
    box.put("/etc/passwd", b"x").error(403)
    box.put("/workspace/x", b"x", user="nosuchuser").must(400, 403, 404)


def test_64_mib_go_there_and_back(api):
    box = api.sandbox(resources={"memory": "256Mi", "disk": "128Mi"})
    block = os.urandom(1 << 20)
    digest = hashlib.sha256()
    for _ in range(BIG >> 20):
        digest.update(block)
    box.api.put(box.file("/workspace/big"), (block for _ in range(BIG >> 20)),
                headers={"Content-Length": str(BIG)}).must(201)
    assert box.run("sha256sum big", timeout=60)["stdout"].split()[0] == digest.hexdigest()
    got = box.read("/workspace/big").must(200)
    assert hashlib.sha256(got.body).hexdigest() == digest.hexdigest()
    box.delete().must(204)


def test_a_file_larger_than_the_disk_is_refused_and_leaves_nothing(api):
    box = api.sandbox(resources={"memory": "64Mi", "disk": "8Mi"})
    put(box, "/workspace/old", b"old")
    box.put("/workspace/old", b"x" * (20 << 20)).error(409)
    assert box.read("/workspace/old").body == b"old"
    assert [item["path"] for item in box.listing(depth=2).json["items"]] == ["/workspace/old"]
    put(box, "/workspace/new", b"x" * (4 << 20))
    box.delete().must(204)


def test_a_killed_upload_leaves_the_old_file_and_nothing_else(box):
    put(box, "/workspace/f", b"old")
    for name in ("/workspace/f", "/workspace/never"):
        raw = socket.create_connection(("127.0.0.1", box.api.target.port))
        raw.sendall((f"PUT /api/v1{box.file(name)} HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n"
                     f"Authorization: Bearer {box.api.key}\r\n\r\n").encode() + b"x" * 400000)
        time.sleep(0.2)
        raw.close()
    time.sleep(0.2)
    assert box.read("/workspace/f").body == b"old"
    until(lambda: [item["path"] for item in box.listing(depth=3).json["items"]] == ["/workspace/f"],
          what="cleaning up")


def test_the_largest_body_is_a_setting():
    from support.daemon import Daemon
    with Daemon("--max-body", "100K", "--max-json", "2K") as daemon:
        box = daemon.api.sandbox()
        put(box, "/workspace/a", b"x" * 102400)
        box.put("/workspace/b", b"x" * 102401).error(413)
        box.api.put(box.file("/workspace/c"), iter([b"x" * 60000] * 2)).error(413)
        box.api.put(f"{box.path}/archive", b"x" * 200000).error(413)
        box.execute("x" * 3000).error(413)
        # What was begun of the refused ones is undone behind the answer.
        until(lambda: [item["path"] for item in box.listing().json["items"]] == ["/workspace/a"],
              what="nothing but the file that fits")


# --- parts and conditions ------------------------------------------------------------------------


@pytest.mark.parametrize("wanted, status, content, header", [
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
    ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"),
    ("bytes=-100", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=8-100", 206, b"89", "bytes 8-9/10"),
    ("bytes=10-", 416, None, "bytes */10"),
    ("bytes=-0", 416, None, "bytes */10"),
    ("bytes=5-2", 200, b"0123456789", None),
    ("bytes=0-1,4-5", 200, b"0123456789", None),
    ("bytes=a-b", 200, b"0123456789", None),
    ("lines=0-1", 200, b"0123456789", None),
    ("bytes=99999999999999999999-", 200, b"0123456789", None)])
def test_ranges(box, wanted, status, content, header):
    put(box, "/workspace/ten", b"0123456789")
    got = box.read("/workspace/ten", headers={"Range": wanted})
    if "9999" in wanted and got.status == 416:  # as good: nothing of it is there
        return
    assert (got.status, got.headers.get("Content-Range")) == (status, header)
    if content is None:
        got.error(416)
    else:
        assert got.body == content and got.headers["Content-Length"] == str(len(content))


def test_if_range_and_if_none_match(box):
    tag = put(box, "/workspace/ten", b"0123456789").headers["ETag"]
    got = box.read("/workspace/ten", headers={"Range": "bytes=0-3", "If-Range": tag})
    assert (got.status, got.body) == (206, b"0123")
    got = box.read("/workspace/ten", headers={"Range": "bytes=0-3", "If-Range": '"other"'})
    assert (got.status, got.body) == (200, b"0123456789")
    got = box.read("/workspace/ten", headers={"If-None-Match": tag})
    assert (got.status, got.body, got.headers["ETag"]) == (304, b"", tag)
    assert box.read("/workspace/ten", headers={"If-None-Match": f'"a", {tag}'}).status == 304
    assert box.read("/workspace/ten", headers={"If-None-Match": "*"}).status == 304
    assert box.read("/workspace/ten", headers={"If-None-Match": '"other"'}).status == 200
    box.run("echo changed > ten")
    assert box.read("/workspace/ten", headers={"If-None-Match": tag}).status == 200


def test_writes_under_conditions(box):
    tag = put(box, "/workspace/f", b"one").headers["ETag"]
    box.put("/workspace/f", b"two", headers={"If-None-Match": "*"}).error(412)
    box.put("/workspace/f", b"two", headers={"If-Match": '"other"'}).error(412)
    box.put("/workspace/g", b"two", headers={"If-Match": tag}).error(412)
    assert box.read("/workspace/f").body == b"one"
    new = box.put("/workspace/f", b"two", headers={"If-Match": tag}).must(200).headers["ETag"]
    assert new != tag
    box.put("/workspace/f", b"three", headers={"If-Match": tag}).error(412)
    box.put("/workspace/g", b"new", headers={"If-None-Match": "*"}).must(201)


def test_of_many_writers_with_one_version_one_wins(box):
    tag = put(box, "/workspace/f", b"one").headers["ETag"]
    with concurrent.futures.ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda i: box.put("/workspace/f", b"%d" % i * 100_000, headers={"If-Match": tag}), range(8)))
    assert sorted(answer.status for answer in answers) == [200] + 7 * [412]
    winner = [answer.status for answer in answers].index(200)
    assert box.read("/workspace/f").body == b"%d" % winner * 100_000
    assert box.run("ls -A")["stdout"] == "f\n"


# --- lists and changes ---------------------------------------------------------------------------


def test_a_listing_is_sorted_and_as_deep_as_asked(box):
    for name in ("b/c/d.txt", "a.txt", "b/x"):
        put(box, f"/workspace/{name}")
    box.run("ln -s /etc/passwd link; mkfifo pipe; chmod 700 b")
    value = box.listing().must(200).json
    assert list(value) == ["path", "items", "truncated"]
    assert (value["path"], value["truncated"]) == ("/workspace", False)
    assert [(item["path"], item["type"], item["target"]) for item in value["items"]] == [
        ("/workspace/a.txt", "file", None), ("/workspace/b", "directory", None),
        ("/workspace/link", "symlink", "/etc/passwd"), ("/workspace/pipe", "other", None)]
    assert value["items"][1]["mode"] == "0700"
    names = [item["path"][11:] for item in box.listing(depth=2).json["items"]]
    assert names == ["a.txt", "b", "b/c", "b/x", "link", "pipe"]
    names = [item["path"][11:] for item in box.listing(depth=64).json["items"]]
    assert names == ["a.txt", "b", "b/c", "b/c/d.txt", "b/x", "link", "pipe"]
    assert box.listing(path="/workspace/b").json["items"][0]["path"] == "/workspace/b/c"
    for depth in ("0", "65", "x"):
        box.listing(depth=depth).error(400, field="depth")
    box.listing(path="/nowhere").error(404)
    box.listing(path="/workspace/a.txt").must(200, 409)


def test_ten_thousand_entries_and_no_more(box):
    box.run("mkdir many; cd many; seq 1 10050 | xargs touch", timeout=30)
    value = box.listing(path="/workspace/many").must(200).json
    assert (len(value["items"]), value["truncated"]) == (10000, True)


def test_a_list_has_an_end_whatever_its_names_are_like(box):
    """Each of these bytes is six in JSON, and the directory is told with every entry of it."""
    odd = "/".join([chr(1) * 200] * 10)
    made = box.run("d=$(printf '\\001%.0s' $(seq 200)); d=$d/$d/$d/$d/$d/$d/$d/$d/$d/$d\n"
                   "mkdir -p \"$d\" && cd \"$d\" && touch $(seq 7000)")
    assert made["exitCode"] == 0, made
    answer = box.api.get(f"{box.path}/files?path=/workspace/{urllib.parse.quote(odd)}").must(200)
    assert answer.json["truncated"] and 1000 < len(answer.json["items"]) < 7000
    assert len(answer.body) < 56 << 20


def test_stat_is_an_entry_of_anything(box):
    put(box, "/workspace/a.txt", b"abc")
    box.run("ln -s a.txt link; ln -s nowhere dangling")

    def stat(name):
        return box.read(name, stat=1)
    assert stat("/workspace").must(200).json["type"] == "directory"
    assert stat("/workspace/a.txt").json["size"] == 3
    assert (stat("/workspace/link").json["type"], stat("/workspace/link").json["target"]) == ("symlink", "a.txt")
    assert stat("/workspace/dangling").json["target"] == "nowhere"
    stat("/workspace/none").error(404)
    box.read("/workspace").error(409)
    box.read("/workspace/dangling").error(404)
    assert box.read("/workspace/link").body == b"abc"


def test_directories_moves_and_removals(box):
    def change(name, **body):
        return box.api.post(box.file(name), body)
    entry = change("/workspace/d/e/f", op="mkdir", mode="0750").must(201).json
    assert (entry["path"], entry["type"], entry["mode"]) == ("/workspace/d/e/f", "directory", "0750")
    put(box, "/workspace/d/one", b"one")
    put(box, "/workspace/two", b"two")
    entry = change("/workspace/d/one", op="move", to="/workspace/new/place/one").must(200).json
    assert entry["path"] == "/workspace/new/place/one"
    change("/workspace/two", op="move", to="/workspace/new/place/one").must(200)
    assert box.read("/workspace/new/place/one").body == b"two"
    change("/workspace/two", op="move", to="/workspace/three").error(404)
    change("/workspace/d", op="move", to="/workspace/d/e/inside").must(400, 409)
    change("/workspace/d", op="rename", to="/workspace/x").error(400, field="op")
    change("/workspace/d", op="move").error(400, field="to")
    change("/workspace/d", op="move", to="").error(400, field="to")
    change("/workspace/d", op="mkdir", mode="99").error(400, field="mode")
    box.api.delete(box.file("/workspace/d")).error(409)
    box.api.delete(box.file("/workspace/d", recursive=1)).must(204)
    box.api.delete(box.file("/workspace/d")).error(404)
    box.api.delete(box.file("/workspace/new/place/one")).must(204)
    box.api.delete(box.file("/workspace/new/place")).must(204)
    box.api.delete(box.file("/etc/passwd")).error(403)


# --- what must stay inside -----------------------------------------------------------------------


def test_links_lead_nowhere_but_inside(box, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    box.run(f"ln -s {secret} a; ln -s / root; ln -s ../../../../../../.. up; ln -s loop loop; ln -s /proc/1/root p")
    box.read("/workspace/a").error(404)
    box.read(f"/workspace/root{secret}").error(404)
    box.read(f"/workspace/up{secret}").error(404)
    assert box.read("/workspace/p/etc/hostname").status in (403, 404, 400, 409)
    box.read("/workspace/loop").error(400)
    box.put("/workspace/root/workspace/in", b"inside").must(201)
    assert box.run("cat in")["stdout"] == "inside"
    box.run(f"mkdir -p /tmp{tmp_path}; ln -s {tmp_path} dir")
    assert box.put("/workspace/dir/planted", b"x").status in (201, 403, 404, 409)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]


@pytest.mark.parametrize("path", ["%2e%2e/%2e%2e/etc/passwd", "workspace/..%2f..%2fetc", "..", "workspace/../../x",
                                  "workspace/a%00b", "workspace//a", "workspace/" + "n" * 256,
                                  "d/" * 2500 + "x", "workspace/%ff", "workspace/%zz", "%2f%2fetc"])
def test_strange_paths_are_answered_and_never_leave_the_box(box, path):
    answer = box.api.put(f"{box.path}/files/{path}", b"strange")
    assert answer.status in (201, 400, 403, 404, 409, 414), answer
    if answer.status != 201:
        answer.json["error"]["code"]
    box.api.get(f"{box.path}/files/{path}").must(200, 400, 403, 404, 409, 414)
    assert not os.path.exists("/x") and not os.path.exists("/workspace")


def test_any_name_a_file_can_have(box):
    for name in ("white space", "new\nline", "%percent", "☃", "q?u#e&r=y", "-rf", "n" * 255):
        path = f"/workspace/{name}"
        put(box, path, name.encode())
        assert box.read(path).body == name.encode()
        assert path in [item["path"] for item in box.listing().json["items"]]
    raw = "/api/v1" + box.path + "/files/workspace/" + urllib.parse.quote(b"\xff\xfe")
    assert box.api.put(raw, b"raw").status in (201, 400)


def test_files_of_the_kernel_have_no_size_and_come_anyway(box):
    got = box.read("/proc/self/status").must(200)
    assert b"Name:" in got.body and got.headers["Transfer-Encoding"] == "chunked"


def test_devices_and_pipes_do_not_hang_the_server(box):
    box.run("mkfifo pipe")
    assert box.read("/workspace/pipe").status in (400, 403, 409)
    assert box.put("/workspace/pipe/x", b"x").status in (400, 409)
    assert box.api.get(box.file("/dev/zero")).status in (400, 403, 409)


# --- watching ------------------------------------------------------------------------------------


def test_a_watch_tells_what_happens(box):
    with box.api.events("GET", f"{box.path}/watch?path=/workspace&recursive=1") as events:
        assert events.next("start").data == {"path": "/workspace"}
        box.run("mkdir sub")
        seen = {}

        def follow(name, path):
            """Up to this event, whatever comes before it."""
            for event in events:
                seen.setdefault(event.name, set()).add(event.data["path"])
                if (event.name, event.data["path"]) == (name, path):
                    return

        follow("create", "sub")
        box.run("echo a > sub/a; mv sub/a sub/b; chmod 600 sub/b; rm sub/b")
        follow("remove", "sub/b")
        assert "sub/a" in seen["create"] and "sub/a" in seen["write"]
        assert "sub/b" in seen["chmod"] and seen["rename"] & {"sub/a", "sub/b"}


def test_a_watch_ends_with_its_sandbox(api):
    box = api.sandbox()
    with api.events("GET", f"{box.path}/watch") as events:
        events.next("start")
        box.delete().must(204)
        assert events.next("end").data["reason"]
        assert list(events) == []
    box = api.sandbox()
    api.get(f"{box.path}/watch?path=/nowhere").error(404)
    api.get(f"{box.path}/watch?recursive=perhaps").error(400, field="recursive")
    box.delete().must(204)
