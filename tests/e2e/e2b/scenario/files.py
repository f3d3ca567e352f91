"""Files of a sandbox."""
import e2b
from world import ask, failure, feature, takes, until

BYTES = bytes(i * 7 % 256 for i in range(70_000))


@feature("files as text")
def text(w):
    assert w.box.files.write("a/b.txt", "grüße").path == "/home/user/a/b.txt"
    assert w.box.files.read("a/b.txt") == "grüße"
    w.box.files.write("empty", "")
    assert w.box.files.read("empty") == ""


@feature("files as bytes")
def bytes_(w):
    w.box.files.write("bytes", BYTES)
    assert w.box.files.read("bytes", format="bytes") == bytearray(BYTES)


@feature("files as streams")
def stream(w):
    w.box.files.write("stream", BYTES)
    assert b"".join(w.box.files.read("stream", format="stream")) == BYTES


@feature("many files at once")
def many(w):
    made = w.box.files.write_files([{"path": "many/1", "data": "one"}, {"path": "many/2", "data": "two"}])
    assert len(made) == 2 and w.box.files.read("many/2") == "two"


@feature("gzip", lambda: takes("sandbox_sync.filesystem.filesystem.Filesystem.write", "gzip"))
def gzip(w):
    data = "again and again " * 10_000
    w.box.files.write("zipped", data, gzip=True)
    assert w.box.files.read("zipped", gzip=True) == data


@feature("octet streams", lambda: takes("sandbox_sync.filesystem.filesystem.Filesystem.write", "use_octet_stream"))
def octets(w):
    w.box.files.write("octets", BYTES, use_octet_stream=True)
    assert w.box.files.read("octets", format="bytes") == bytearray(BYTES)


@feature("metadata of files", lambda: takes("sandbox_sync.filesystem.filesystem.Filesystem.write", "metadata"))
def metadata_(w):
    w.box.files.write("marked", "x", metadata={"colour": "red"})
    assert w.box.files.get_info("marked").metadata == {"colour": "red"}


@feature("list, rename, remove")
def manage(w):
    files = w.box.files
    assert files.make_dir("dir/inner") is True
    assert files.make_dir("dir/inner") is False
    files.write("dir/inner/f", "123")
    assert sorted(entry.path for entry in files.list("dir", depth=2)) == [
        "/home/user/dir/inner", "/home/user/dir/inner/f"]
    assert files.rename("dir/inner/f", "dir/g").path == "/home/user/dir/g"
    files.remove("dir")
    assert files.exists("dir") is False


@feature("info of files")
def file_info(w):
    w.box.files.write("told", "12345")
    w.box.commands.run("chmod 640 told")
    told = w.box.files.get_info("told")
    assert (told.size, told.permissions, told.owner, told.group) == (5, "-rw-r-----", "user", "user")


@feature("files that are missing")
def missing(w):
    failure(e2b.NotFoundException, w.box.files.read, "not/there")
    assert w.box.files.exists("not/there") is False


def watched(w, folder, name, **opts):
    w.box.files.make_dir(f"{folder}/inner")
    handle = w.box.files.watch_dir(folder, **opts)
    w.box.files.write(f"{folder}/{name}", "x")
    seen = []

    def look():
        seen.extend(handle.get_new_events())
        return [event for event in seen if event.name == name and event.type == e2b.FilesystemEventType.WRITE]

    found = until(look, "the event")
    handle.stop()
    return found[0]


@feature("watch")
def watch(w):
    watched(w, "watched", "f")


@feature("watch a tree")
def watch_tree(w):
    watched(w, "watched-deep", "inner/f", recursive=True)


@feature("watch with entries", lambda: takes("sandbox_sync.filesystem.filesystem.Filesystem.watch_dir", "include_entry"))
def watch_entries(w):
    event = watched(w, "watched-entry", "f", include_entry=True)
    assert event.entry.path == "/home/user/watched-entry/f"


@feature("signed URLs")
def signed(w):
    w.box.files.write("shared.txt", "for all")
    good = w.box.download_url("shared.txt", use_signature_expiration=600)
    assert ask(good) == (200, b"for all")
    url = w.box.upload_url("sent.txt")
    assert ask(url, "POST", b"by link", {"Content-Type": "application/octet-stream"})[0] == 200
    assert w.box.files.read("sent.txt") == "by link"
