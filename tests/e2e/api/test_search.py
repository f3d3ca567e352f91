"""Find, grep, replace and bundles of files: answers, limits, and trees and patterns of the worst kind."""
import base64
import concurrent.futures

import pytest

FILES = {
    "src/one.c": "int one;\nint two;\nchar three;\n",
    "src/two.h": "int four;\n",
    "src/vendor/five.c": "int five;\n",
    "notes.txt": "Nothing here\n",
}


@pytest.fixture
def tree(box):
    box.api.ask("PUT", f"{box.path}/bundle", {"files": [{"path": p, "content": t} for p, t in FILES.items()]}).must(200)
    return box


def find(box, **body):
    return box.api.post(f"{box.path}/find", body)


def grep(box, pattern, **body):
    return box.api.post(f"{box.path}/grep", {"pattern": pattern, **body})


def replace(box, pattern, replacement, **body):
    return box.api.post(f"{box.path}/replace", {"pattern": pattern, "replacement": replacement, **body})


def paths(answer):
    return [item["path"] for item in answer.must(200).json["items"]]


# --- find ----------------------------------------------------------------------------------------


def test_files_are_found_by_what_they_are(tree):
    assert paths(find(tree, name="*.c")) == ["/workspace/src/one.c", "/workspace/src/vendor/five.c"]
    assert paths(find(tree, name="*.c", exclude="vendor")) == ["/workspace/src/one.c"]
    assert paths(find(tree, name="src/*.h")) == ["/workspace/src/two.h"]
    assert paths(find(tree, type="directory")) == ["/workspace/src", "/workspace/src/vendor"]
    assert paths(find(tree, minSize=20)) == ["/workspace/src/one.c"]
    assert paths(find(tree, maxSize=10, type="file")) == ["/workspace/src/two.h", "/workspace/src/vendor/five.c"]
    assert paths(find(tree, depth=1, type="file")) == ["/workspace/notes.txt"]
    assert paths(find(tree, path="/workspace/notes.txt")) == ["/workspace/notes.txt"]
    tree.run("touch -d '2 days ago' notes.txt")
    assert paths(find(tree, olderThan="24h")) == ["/workspace/notes.txt"]
    assert "/workspace/notes.txt" not in paths(find(tree, newerThan="24h", type="file"))
    cut = find(tree, limit=2).must(200).json
    assert len(cut["items"]) == 2 and cut["truncated"]
    assert not find(tree).must(200).json["truncated"]


def test_what_cannot_be_searched_is_refused(tree):
    find(tree, path="relative").error(400, field="path")
    find(tree, path="/none").error(404)
    find(tree, limit=0).error(400, field="limit")
    find(tree, limit=10001).error(400, field="limit")
    find(tree, type="socket").error(400, field="type")
    grep(tree, "").error(400, field="pattern")
    grep(tree, "((", regex=True).error(400)
    grep(tree, "a\nb").error(400)
    grep(tree, "a", context=21).error(400, field="context")
    grep(tree, "a", lineBytes=4097).error(400, field="lineBytes")
    replace(tree, "(a)", "\\2", regex=True).error(400)
    tree.api.post(f"{tree.path}/replace", {"pattern": "a"}).error(400, field="replacement")


# --- grep ----------------------------------------------------------------------------------------


def test_lines_are_found_with_their_place_and_what_is_around(tree):
    got = grep(tree, "two").must(200).json
    assert got["items"] == [{"path": "/workspace/src/one.c", "line": 2, "column": 5, "text": "int two;",
                             "isMatch": True, "isCut": False}]
    assert (got["matches"], got["skipped"], got["truncated"]) == (1, 0, False)
    around = grep(tree, "two", context=1).must(200).json["items"]
    assert [(i["line"], i["isMatch"]) for i in around] == [(1, False), (2, True), (3, False)]
    assert grep(tree, "^int [a-z]+;$", regex=True).must(200).json["matches"] == 4
    assert grep(tree, "NOTHING").must(200).json["matches"] == 0
    assert grep(tree, "NOTHING", ignoreCase=True).must(200).json["matches"] == 1
    assert sorted(paths(grep(tree, "int", filesOnly=True, name="*.c"))) == [
        "/workspace/src/one.c", "/workspace/src/vendor/five.c"]
    assert grep(tree, "int", limit=2).must(200).json["truncated"]


def test_what_is_no_text_is_told_and_long_lines_are_cut(box):
    box.put("/workspace/bin", b"\0needle\n").must(201)
    box.put("/workspace/long", b"a" * 100000 + b"\n" + b"b" * 5000 + b"needle" + b"c" * 5000 + b"\n").must(201)
    box.put("/workspace/odd", b"\xff\xfeneedle\n").must(201)
    got = grep(box, "needle", lineBytes=100).must(200).json
    assert got["skipped"] == 1 and got["matches"] == 2
    long = next(i for i in got["items"] if i["path"].endswith("long"))
    assert long["isCut"] and len(long["text"]) <= 100 and "needle" in long["text"] and long["column"] == 5001
    assert next(i for i in got["items"] if i["path"].endswith("odd"))["text"] == "\ufffd\ufffdneedle"


def test_trees_of_the_worst_kind_are_searched(box):
    box.run("mkdir -p d/e; ln -s . d/loop; ln -s / d/root; ln -s /proc d/proc; mkfifo d/fifo;"
            "ln -s /dev/zero d/zero; truncate -s 1T d/holes; chmod 0 d/e; echo needle > d/plain")
    got = grep(box, "needle", path="/workspace/d").must(200).json
    assert [i["path"] for i in got["items"]] == ["/workspace/d/plain"]
    everything = paths(find(box, path="/", name="plain", type="file"))
    assert [p for p in everything if not p.startswith("/usr/")] == ["/workspace/d/plain"]
    assert find(box, path="/proc/self", name="status").must(200).json["items"]
    box.run("chmod 755 d/e")


@pytest.mark.parametrize("pattern", [
    "(" * 40 + "a" + "+)" * 40,
    "(" * 10 + "a" + "{1,255})" * 10,
    "((((a*)*)*)*)*$",
    "(a|aa|aaa)*b(a|aa|aaa)*c",
])
def test_patterns_of_the_worst_kind_end(box, pattern):
    box.put("/workspace/f", (b"a" * 60000 + b"\n") * 20).must(201)
    answer = grep(box, pattern, regex=True)
    assert answer.status in (200, 400), answer.json
    if answer.status == 400:
        assert "pattern" in answer.json["error"]["message"] or "processor time" in answer.json["error"]["message"]
    assert box.run("echo fine")["stdout"] == "fine\n"  # and the box has not noticed


# --- replace -------------------------------------------------------------------------------------


def test_text_is_replaced_in_many_files(tree):
    plan = replace(tree, "int", "long", path="/workspace/src", name="*.c", dryRun=True).must(200).json
    assert plan["files"] == 2 and plan["replacements"] == 3 and plan["dryRun"]
    assert tree.read("/workspace/src/one.c").body.decode() == FILES["src/one.c"]
    tree.run("chmod 640 src/one.c")
    done = replace(tree, "int", "long", path="/workspace/src", name="*.c").must(200).json
    assert done["files"] == 2 and done["replacements"] == 3 and not done["dryRun"] and not done["truncated"]
    assert sorted((i["path"], i["replacements"]) for i in done["items"]) == [
        ("/workspace/src/one.c", 2), ("/workspace/src/vendor/five.c", 1)]
    assert tree.run("cat src/one.c; stat -c %a src/one.c")["stdout"] == "long one;\nlong two;\nchar three;\n640\n"
    assert tree.run("cat src/two.h")["stdout"] == "int four;\n"
    replace(tree, "([a-z]+) ([a-z]+);", "\\2: \\1", regex=True, path="/workspace/src/two.h").must(200)
    assert tree.run("cat src/two.h")["stdout"] == "four: int\n"
    replace(tree, "one;\nlong two", "both", path="/workspace/src/one.c").must(200)
    assert tree.run("cat src/one.c")["stdout"] == "long both;\nchar three;\n"
    assert tree.run("ls -A src | wc -l")["stdout"] == "3\n"  # nothing lies about


def test_what_may_not_be_changed_is_told(tree):
    tree.run("chmod 444 notes.txt; printf 'Nothing\\0' > bin")
    done = replace(tree, "Nothing", "Something", path="/workspace").must(200).json
    assert done["files"] == 0
    assert sorted(s["path"] for s in done["skipped"]) == ["/workspace/bin", "/workspace/notes.txt"]
    assert replace(tree, "root", "toor", path="/etc/passwd").must(200).json["files"] == 0
    assert replace(tree, "int", "x", limit=1).must(200).json["truncated"]


def test_two_replaces_at_once_lose_nothing(box):
    box.put("/workspace/f", b"a" * 1000).must(201)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda i: replace(box, "a" * 10, f"{i}" * 10, path="/workspace/f"), range(4)))
    done = [a.must(200).json for a in answers]
    data = box.read("/workspace/f").body
    assert len(data) == 1000 and b"a" not in data and len(set(data)) == 1  # one of them, whole
    assert sum(d["files"] for d in done) >= 1


# --- bundles -------------------------------------------------------------------------------------


def test_several_files_go_in_and_come_out(box):
    binary = bytes(range(256))
    files = [{"path": "a/b/text.txt", "content": "höher\n"},
             {"path": "run.sh", "content": "#!/bin/sh\necho ran\n", "mode": "0755"},
             {"path": "bin", "content": base64.b64encode(binary).decode(), "encoding": "base64"},
             {"path": "empty", "content": ""}]
    assert box.api.ask("PUT", f"{box.path}/bundle", {"files": files}).must(200).json == {"path": "/workspace", "count": 4}
    assert box.run("./run.sh")["stdout"] == "ran\n"
    got = box.api.post(f"{box.path}/bundle", {"paths": ["a/b/text.txt", "/workspace/bin", "none", "a", "empty"]})
    text, raw, none, directory, empty = got.must(200).json["files"]
    assert (text["content"], text["encoding"], text["size"], text["error"]) == ("höher\n", "text", 7, None)
    assert raw["encoding"] == "base64" and base64.b64decode(raw["content"]) == binary
    assert none["content"] is None and none["error"]["code"] == "not_found" and none["path"] == "none"
    assert directory["error"]["code"] == "conflict"
    assert empty["content"] == "" and empty["size"] == 0


def test_a_bundle_stays_below_its_path(box):
    def put(*files, **body):
        return box.api.ask("PUT", f"{box.path}/bundle", {"files": list(files), **body})

    put({"path": "/etc/x", "content": ""}).error(400, field="files")
    put({"path": "../x", "content": ""}).error(400)
    put({"path": "a", "content": "!", "encoding": "base64"}).error(400, field="files")
    put({"path": "a", "content": "", "mode": "4755"}).error(400, field="files")
    put(path="/workspace").error(400, field="files")
    box.run("ln -s /tmp link")
    assert put({"path": "link/x", "content": "x"}).status >= 400
    assert box.run("ls /tmp/x 2>&1 || true")["stdout"] != "/tmp/x\n"


def test_a_bundle_that_is_too_large_says_which_part(box):
    box.run("head -c 5000000 /dev/zero > a; cp a b; echo c > c")
    files = box.api.post(f"{box.path}/bundle", {"paths": ["a", "b", "c"]}).must(200).json["files"]
    assert files[0]["size"] == 5000000 and files[0]["encoding"] == "base64"
    assert files[1]["content"] is None and files[1]["error"]["code"] == "invalid_request"
    assert files[2]["content"] == "c\n"


def test_only_who_may_write_replaces(tree, key_for):
    viewer = key_for("viewer", owner="admin")
    viewer.post(f"{tree.path}/grep", {"pattern": "int"}).must(200)
    viewer.post(f"{tree.path}/find", {}).must(200)
    viewer.post(f"{tree.path}/replace", {"pattern": "int", "replacement": "x"}).error(403)
    viewer.ask("PUT", f"{tree.path}/bundle", {"files": [{"path": "a", "content": ""}]}).error(403)
    other = key_for("user", owner="team-b")
    other.post(f"{tree.path}/grep", {"pattern": "int"}).error(404)
