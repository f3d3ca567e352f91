"""Files of envd over plain HTTP: every rule that E2B's SDKs rely on, one by one."""
import base64
import email.utils
import gzip
import hashlib
import http.client
import json
import os
import re
import time
import urllib.parse

import pytest

from support.client import Answer
from support.connect import Envd, open_envd, start
from support.daemon import Daemon, until
from support.e2b import DOMAIN
from support.e2b_plain import Sandbox

HOME = "/home/user"
OCTETS = "application/octet-stream"
BOUNDARY = "----a-boundary"
MIB = 1 << 20


@pytest.fixture(scope="module")
def shared(daemon):
    made = open_envd(daemon.api)
    yield made
    daemon.api.delete(f"/sandboxes/{made.id}")


@pytest.fixture
def envd(api, shared):
    """Each test as another peer, in the one sandbox."""
    return Envd(api, shared.id, shared.token)


@pytest.fixture
def place(envd, request):
    """A directory of the test's own, from the home."""
    return request.node.name.replace("[", "-").replace("]", "").replace("/", "-")


def query(path=None, **more):
    return "/files?" + urllib.parse.urlencode({**({} if path is None else {"path": path}), **more})


def get(envd, path, headers=None, **more):
    return envd.request("GET", query(path, **more), headers=headers)


def put(envd, path, data=b"text", headers=None, **more):
    return envd.request("POST", query(path, **more), data, {"Content-Type": OCTETS, **(headers or {})})


def form(*parts, boundary=BOUNDARY):
    """A body of parts (name, file name or None, bytes) and its header."""
    body = b""
    for name, file, data in parts:
        filename = "" if file is None else f'; filename="{file}"'
        body += (f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n'
                 f"Content-Type: {OCTETS}\r\n\r\n").encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def post(envd, *parts, path=None, headers=None):
    body, own = form(*parts)
    return envd.request("POST", query(path), body, {**own, **(headers or {})})


def refused(answer, status):
    """An error whose body says the same as its status."""
    answer.must(status)
    assert answer.json["code"] == status and answer.json["message"], answer
    return answer.json["message"]


def info(envd, path, user=None):
    return envd.unary("filesystem.Filesystem/Stat", {"path": path}, user).must(200).json["entry"]


# --- reading ---------------------------------------------------------------------------------------


def test_a_file_comes_back_as_it_was_written(envd, place):
    data = os.urandom(200000)
    put(envd, f"{place}/a.bin", data).must(200)
    answer = get(envd, f"{place}/a.bin").must(200)
    assert answer.body == data
    assert answer.headers["Content-Length"] == "200000"
    assert answer.headers["Content-Type"] == OCTETS
    assert answer.headers["Content-Disposition"] == 'inline; filename="a.bin"'
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name,said", [
    ('a"b\\c', 'inline; filename="a\\"b\\\\c"'),
    ("ü.txt", "inline; filename=\"__.txt\"; filename*=UTF-8''%C3%BC.txt"),
    ("a\nb", "inline; filename=\"a_b\"; filename*=UTF-8''a%0Ab"),
])
def test_a_name_of_any_kind_is_told_in_a_header(envd, name, said):
    put(envd, f"names/{name}").must(200)
    assert get(envd, f"names/{name}").must(200).headers["Content-Disposition"] == said


def test_an_empty_file_says_that_it_is_empty(envd, place):
    put(envd, f"{place}/empty", b"").must(200)
    for headers in {}, {"Accept-Encoding": "gzip"}:
        answer = get(envd, f"{place}/empty", headers).must(200)
        assert (answer.body, answer.headers["Content-Length"]) == (b"", "0")
        assert "Content-Encoding" not in answer.headers


def test_what_is_asked_for_as_gzip_comes_as_gzip(envd, place):
    data = b"line of text\n" * 100000
    put(envd, f"{place}/a", data).must(200)
    answer = get(envd, f"{place}/a", {"Accept-Encoding": "gzip, deflate"}).must(200)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.body) < len(data) // 10
    assert gzip.decompress(answer.body) == data


@pytest.mark.parametrize("accept,coding", [("identity", None), ("gzip;q=0", None), ("*", None), ("br", None),
                                           ("gzip;q=0.5, identity;q=0.1", "gzip"), ("identity;q=0, *", "gzip")])
def test_the_encoding_is_chosen_by_what_is_accepted(envd, place, accept, coding):
    put(envd, f"{place}/a").must(200)
    answer = get(envd, f"{place}/a", {"Accept-Encoding": accept}).must(200)
    assert answer.headers.get("Content-Encoding") == coding


@pytest.mark.parametrize("headers", [{"Accept-Encoding": "br, identity;q=0"},
                                     {"Accept-Encoding": "gzip, identity;q=0", "Range": "bytes=0-1"}])
def test_no_encoding_that_is_accepted_is_406(envd, headers):
    put(envd, "some").must(200)
    assert refused(get(envd, "some", headers), 406) == "no acceptable encoding found, supported: [identity, gzip]"


def test_a_part_of_a_file_can_be_asked_for(envd, place):
    put(envd, f"{place}/a", b"0123456789").must(200)
    answer = get(envd, f"{place}/a", {"Range": "bytes=2-4", "Accept-Encoding": "gzip"}).must(206)
    assert (answer.body, answer.headers["Content-Range"]) == (b"234", "bytes 2-4/10")
    assert "Content-Encoding" not in answer.headers
    assert get(envd, f"{place}/a", {"Range": "bytes=-3"}).must(206).body == b"789"
    assert get(envd, f"{place}/a", {"Range": "bytes=20-"}).must(416).headers["Content-Range"] == "bytes */10"


def test_what_has_not_changed_is_not_sent_again(envd, place):
    put(envd, f"{place}/a").must(200)
    first = get(envd, f"{place}/a").must(200)
    assert get(envd, f"{place}/a", {"If-None-Match": first.headers["ETag"]}).must(304).body == b""
    assert get(envd, f"{place}/a", {"If-Modified-Since": first.headers["Last-Modified"]}).must(304).body == b""
    before = email.utils.formatdate(time.time() - 86400, usegmt=True)
    assert get(envd, f"{place}/a", {"If-Modified-Since": before}).must(200).body == b"text"
    assert get(envd, f"{place}/a", {"If-None-Match": '"another"'}).must(200).body == b"text"


def test_what_cannot_be_read_says_why(envd):
    assert "/tmp" in refused(get(envd, "/tmp"), 400)
    assert HOME in refused(get(envd, "nothing/here"), 404)
    refused(get(envd, "~joe/x"), 400)
    refused(get(envd, "x" * 300), 400)
    refused(envd.request("GET", "/files?path=%zz"), 400)


def test_a_device_or_a_pipe_is_not_read(envd, place):
    assert start(envd, f"mkdir -p {place} && mkfifo {place}/pipe").wait().exit["exitCode"] == 0
    refused(get(envd, f"{place}/pipe"), 400)
    refused(get(envd, "/dev/zero"), 400)


# --- writing ---------------------------------------------------------------------------------------


def test_one_file_is_the_body(envd, place):
    made = put(envd, f"{place}/deep/er/a.txt").must(200).json
    path = f"{HOME}/{place}/deep/er/a.txt"
    assert made == [{"path": path, "name": "a.txt", "type": "file"}]
    found = info(envd, path)
    assert (found["owner"], found["group"], found["permissions"]) == ("user", "user", "-rw-r--r--")
    assert info(envd, f"{place}/deep")["owner"] == "user"


def test_one_file_needs_a_path(envd):
    assert "path" in refused(envd.request("POST", "/files", b"x", {"Content-Type": OCTETS}), 400)


def test_several_files_are_parts(envd, place):
    made = post(envd, ("file", f"{place}/a", b"one"), ("other", "x", b"ignored"),
                ("file", f"{HOME}/{place}/d/b", b"two")).must(200).json
    assert [item["path"] for item in made] == [f"{HOME}/{place}/a", f"{HOME}/{place}/d/b"]
    assert get(envd, f"{place}/d/b").must(200).body == b"two"
    assert get(envd, "x").status == 404


def test_a_path_stands_for_the_name_of_a_part(envd, place):
    for file in None, "another/name":
        made = post(envd, ("file", file, b"one"), path=f"{place}/a").must(200).json
        assert made == [{"path": f"{HOME}/{place}/a", "name": "a", "type": "file"}]
    assert get(envd, "another/name").status == 404


def test_a_part_without_any_name_is_refused(envd):
    refused(post(envd, ("file", None, b"x")), 400)


def test_a_body_without_files_makes_none(envd):
    assert post(envd, ("other", "x", b"x")).must(200).json == []
    assert post(envd).must(200).json == []


@pytest.mark.parametrize("first,second", [("a", "a"), ("a", HOME + "/twice/../twice/a"), (HOME + "/twice/a", "a")])
def test_two_files_cannot_have_one_path(envd, first, second):
    place = lambda name: name if name.startswith("/") else f"twice/{name}"
    message = refused(post(envd, ("file", place(first), b"1"), ("file", place(second), b"2")), 400)
    assert "several files" in message


def test_two_parts_cannot_both_have_the_path(envd, place):
    refused(post(envd, ("file", "a", b"first"), ("file", "b", b"second"), path=f"{place}/a"), 400)
    assert get(envd, f"{place}/a").must(200).body == b"first"


def test_contents_that_look_like_a_boundary_stay_as_they_are(envd, place):
    data = f"\r\n--{BOUNDARY[:-1]}\r\n--{BOUNDARY}".encode()[:-1] + b"\r\n\r\r\n" * 3000
    post(envd, ("file", f"{place}/a", data)).must(200)
    assert get(envd, f"{place}/a").must(200).body == data


def test_a_body_in_chunks_is_as_good(envd, place):
    body, headers = form(("file", f"{place}/a", b"x" * 100000), ("file", f"{place}/b", b"y"))
    pieces = [body[at:at + 997] for at in range(0, len(body), 997)]
    envd.request("POST", "/files", iter(pieces), headers).must(200)
    assert get(envd, f"{place}/a").must(200).body == b"x" * 100000
    assert get(envd, f"{place}/b").must(200).body == b"y"


def test_a_large_file_passes_through(envd, place):
    data = os.urandom(MIB) * 24
    post(envd, ("file", f"{place}/a", data)).must(200)
    assert hashlib.sha256(get(envd, f"{place}/a").must(200).body).digest() == hashlib.sha256(data).digest()


def test_a_body_may_be_gzip(envd, place):
    data = b"some text\n" * 100000
    put(envd, f"{place}/a", gzip.compress(data), {"Content-Encoding": "gzip"}).must(200)
    assert get(envd, f"{place}/a").must(200).body == data
    body, headers = form(("file", f"{place}/b", data), ("file", f"{place}/c", b"c"))
    envd.request("POST", "/files", gzip.compress(body[:1000]) + gzip.compress(body[1000:]),
                 {**headers, "Content-Encoding": "gzip"}).must(200)
    assert get(envd, f"{place}/b").must(200).body == data
    assert get(envd, f"{place}/c").must(200).body == b"c"


@pytest.mark.parametrize("body,coding", [(b"no gzip at all", "gzip"), (gzip.compress(b"x" * 100000)[:-9], "gzip"),
                                         (gzip.compress(b"x") + b"more", "gzip"), (b"x", "br")],
                         ids=["other", "cut", "more", "unknown"])
def test_a_body_that_cannot_be_unpacked_changes_nothing(envd, place, body, coding):
    put(envd, f"{place}/a", b"old").must(200)
    refused(put(envd, f"{place}/a", body, {"Content-Encoding": coding}), 400)
    assert get(envd, f"{place}/a").must(200).body == b"old"


@pytest.mark.parametrize("cut", [5, 200, 100, 60])
def test_a_form_that_breaks_off_changes_nothing(envd, place, cut):
    put(envd, f"{place}/a", b"old").must(200)
    body, headers = form(("file", f"{place}/a", b"new" * 100))
    refused(envd.request("POST", "/files", body[:-cut], headers), 400)
    assert get(envd, f"{place}/a").must(200).body == b"old"


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "multipart/form-data; boundary=" + "b" * 71,
                                  "multipart/mixed; boundary=x"])
def test_a_body_of_another_kind_is_refused(envd, kind):
    refused(envd.request("POST", query("a"), b"x", {"Content-Type": kind}), 400)


def test_a_client_that_leaves_changes_nothing(envd, place):
    put(envd, f"{place}/a", b"old").must(200)
    connection = envd.api.connect()
    connection.putrequest("POST", query(f"{place}/a"))
    for name, value in {**envd.headers(None, {}), "Content-Type": OCTETS, "Content-Length": "1000000"}.items():
        connection.putheader(name, value)
    connection.endheaders(b"new" * 1000)
    until(lambda: any(".holt-" in name for name in names(envd, place)), what="the write")
    connection.close()
    until(lambda: names(envd, place) == ["a"], what="the end of the write")
    assert get(envd, f"{place}/a").must(200).body == b"old"


def names(envd, path):
    entries = envd.unary("filesystem.Filesystem/ListDir", {"path": path}).must(200).json["entries"]
    return [entry["name"] for entry in entries]


def test_a_directory_cannot_be_written(envd):
    refused(put(envd, "/tmp"), 400)
    refused(put(envd, "/etc/passwd/x"), 400)


def test_a_file_keeps_its_mode(envd, place):
    put(envd, f"{place}/a").must(200)
    assert start(envd, f"chmod 700 {place}/a").wait().exit["exitCode"] == 0
    put(envd, f"{place}/a", b"#!/bin/sh").must(200)
    assert info(envd, f"{place}/a")["permissions"] == "-rwx------"


# --- users and paths -------------------------------------------------------------------------------


def test_paths_begin_at_the_users_home(envd):
    for path in "at-home", "~/at-home", "./x/../at-home", HOME + "/at-home", HOME + "//at-home/":
        assert put(envd, path).must(200).json[0]["path"] == HOME + "/at-home", path


def test_a_user_that_there_is_not_is_401(envd):
    assert "joe" in refused(get(envd, "x", username="joe"), 401)
    assert "joe" in refused(put(envd, "x", username="joe"), 401)


def test_root_has_a_home_of_its_own(envd, needs_root):
    made = put(envd, "of-root", username="root").must(200).json
    assert made[0]["path"] == "/root/of-root"
    assert info(envd, "/root/of-root")["owner"] == "root"


def test_the_user_writes_anywhere_and_owns_what_he_makes(envd, needs_root):
    assert put(envd, "/0").must(200).json == [{"path": "/0", "name": "0", "type": "file"}]
    put(envd, "/opt/made/by/user").must(200)
    assert info(envd, "/0")["owner"] == info(envd, "/opt/made/by")["owner"] == "user"
    assert get(envd, "/root/.nothing").status == 404
    put(envd, "/root/secret", username="root").must(200)
    assert get(envd, "/root/secret").must(200).body == b"text"


def test_a_template_without_sudo_gives_no_rights_of_root(api, needs_root):
    envd = open_envd(api, template="bash")
    try:
        refused(put(envd, "/etc/x"), 403)
        put(envd, "own").must(200)
    finally:
        api.delete(f"/sandboxes/{envd.id}").must(204)


def test_roots_rights_end_at_the_box(envd, needs_root):
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/self/mem",
                 "/sys/kernel/x", "/dev/null", "/dev/x/y"):
        assert put(envd, path, b"1").status in (400, 403, 404), path
        assert put(envd, path, b"1", username="root").status in (400, 403, 404), path
    for path in "/proc/kcore", "/proc/1/mem", "/dev/mem", "/dev/kmsg":
        assert get(envd, path).status in (400, 403, 404), path
    put(envd, "/usr/bin/of-the-box-alone").must(200)
    assert not os.path.lexists("/usr/bin/of-the-box-alone")
    put(envd, "/etc/passwd.new", b"x").must(200)
    assert not os.path.lexists("/etc/passwd.new")


def test_a_link_leads_nowhere_but_into_the_box(envd, place, needs_root):
    made = start(envd, f"mkdir {place}; cd {place}; ln -s /proc/1/root out; ln -s /../../../../etc/hostname up; "
                       "ln -s /proc/self/exe exe; ln -s /proc/1/cwd cwd").wait()
    assert made.exit["exitCode"] == 0
    for name in "out/etc/passwd", "exe", "cwd/x":
        assert get(envd, f"{place}/{name}").status in (400, 403, 404), name
    for name in "out/etc/x", "cwd/x":
        assert put(envd, f"{place}/{name}").status in (400, 403, 404), name
    put(envd, f"{place}/up", b"of the box").must(200)
    assert open("/etc/hostname", "rb").read() != b"of the box"
    assert get(envd, "/etc/hostname").must(200).body == b"of the box"


# --- metadata --------------------------------------------------------------------------------------


def put_with(envd, path, status=200, **metadata):
    answer = put(envd, path, headers={f"X-Metadata-{key}": value for key, value in metadata.items()})
    if answer.status == 501 and "6.6" in answer.json["message"]:
        pytest.skip("this kernel keeps no attributes of files in memory")
    return answer.must(status)


def test_metadata_is_kept_with_the_file(envd, place):
    made = put_with(envd, f"{place}/a", Author="joe", purpose="a test").json
    assert made[0]["metadata"] == {"author": "joe", "purpose": "a test"}
    assert info(envd, f"{place}/a")["metadata"] == {"author": "joe", "purpose": "a test"}
    listed = envd.unary("filesystem.Filesystem/ListDir", {"path": place}).must(200).json["entries"]
    assert listed[0]["metadata"] == {"author": "joe", "purpose": "a test"}
    seen = start(envd, f"python3 -c \"import os; print(os.getxattr('{place}/a', 'user.e2b.author'))\"").wait()
    assert seen.stdout == b"b'joe'\n"


def test_each_upload_replaces_all_metadata(envd, place):
    put_with(envd, f"{place}/a", one="1", two="2")
    put_with(envd, f"{place}/a", two="3")
    assert info(envd, f"{place}/a")["metadata"] == {"two": "3"}
    put(envd, f"{place}/a").must(200)
    assert "metadata" not in info(envd, f"{place}/a")


def test_all_files_of_a_form_get_the_metadata(envd, place):
    put_with(envd, f"{place}/probe", k="v")
    post(envd, ("file", f"{place}/a", b"1"), ("file", f"{place}/b", b"2"), headers={"X-Metadata-K": "v"}).must(200)
    assert info(envd, f"{place}/a")["metadata"] == info(envd, f"{place}/b")["metadata"] == {"k": "v"}


def test_attributes_of_others_are_no_metadata(envd, place):
    put_with(envd, f"{place}/a", k="v")
    done = start(envd, f"python3 -c \"import os; os.setxattr('{place}/a', 'user.mine', b'x')\"").wait()
    assert done.exit["exitCode"] == 0
    assert info(envd, f"{place}/a")["metadata"] == {"k": "v"}


def test_metadata_of_any_length_is_kept(envd, place):
    for length in range(160, 176):
        put_with(envd, f"{place}/a", k="v" * length)
        assert info(envd, f"{place}/a")["metadata"] == {"k": "v" * length}


def test_the_limits_of_metadata_are_held(envd, place):
    put_with(envd, f"{place}/a", **{"k" * 246: "v"})
    put_with(envd, f"{place}/a", 400, **{"k" * 247: "v"})
    put_with(envd, f"{place}/a", k="v" * (4096 - len("user.e2b.k")))
    put_with(envd, f"{place}/a", 400, k="v" * (4097 - len("user.e2b.k")))
    put_with(envd, f"{place}/a", 400, k="\xe4")


# --- composing -------------------------------------------------------------------------------------


def compose(envd, **value):
    return envd.request("POST", "/files/compose", json.dumps(value), {"Content-Type": "application/json"})


def test_several_files_become_one(envd, place):
    put(envd, f"{place}/1", b"one ").must(200)
    put(envd, f"{place}/2", b"two").must(200)
    made = compose(envd, source_paths=[f"{place}/1", f"~/{place}/2"], destination=f"{place}/new/all").must(200).json
    assert made == {"path": f"{HOME}/{place}/new/all", "name": "all", "type": "file"}
    assert get(envd, f"{place}/new/all").must(200).body == b"one two"
    assert get(envd, f"{place}/1").status == get(envd, f"{place}/2").status == 404


def test_what_cannot_be_composed_stays(envd, place):
    put(envd, f"{place}/1", b"one").must(200)
    refused(compose(envd, source_paths=[f"{place}/1", f"{place}/2"], destination=f"{place}/all"), 404)
    refused(compose(envd, source_paths=[f"{place}/1", "/tmp"], destination=f"{place}/all"), 400)
    refused(compose(envd, source_paths=[], destination=f"{place}/all"), 400)
    refused(compose(envd, source_paths=[f"{place}/1"]), 400)
    refused(compose(envd, source_paths=["x" * 4000] * 20, destination=f"{place}/all"), 400)
    refused(compose(envd, source_paths=[f"{place}/1"], destination="x", username="joe"), 401)
    assert names(envd, place) == ["1"]


# --- who may ---------------------------------------------------------------------------------------


def signature(envd, path, operation, user="", expires=None):
    text = f"{path}:{operation}:{user}:{envd.token}" + (f":{expires}" if expires else "")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.fixture
def stranger(api):
    """Somebody who has nothing but an address."""
    class Stranger:
        def request(self, method, path, body=None, headers=None):
            connection = api.connect()
            try:
                connection.request(method, path, body=body, headers=headers or {})
                response = connection.getresponse()
                return Answer(response.status, response.headers, response.read())
            finally:
                connection.close()
    return Stranger()


def test_without_the_sandboxs_token_nobody_gets_in(api, envd):
    for token in None, "", "x" * 60, envd.id + "0" * 40:
        other = Envd(api, envd.id, token)
        refused(get(other, "x"), 401)
        refused(put(other, "x"), 401)
        refused(compose(other, source_paths=["x"], destination="y"), 401)
        refused(other.request("GET", "/envs"), 401)
        refused(other.request("GET", "/metrics"), 401)


def test_a_signed_address_is_enough(envd, stranger, place):
    path, soon = f"{place}/a", int(time.time()) + 3600
    put(envd, path).must(200)
    signed = signature(envd, path, "read")
    assert stranger.request("GET", query(path, signature=signed)).must(200).body == b"text"
    signed = signature(envd, path, "read", "user", soon)
    address = query(path, username="user", signature=signed, signature_expiration=soon)
    assert stranger.request("GET", address).must(200).body == b"text"
    body, headers = form(("file", "x", b"by address"))
    signed = signature(envd, path, "write")
    stranger.request("POST", query(path, signature=signed), body, headers).must(200)
    assert get(envd, path).must(200).body == b"by address"


def test_a_signature_is_good_for_what_was_signed(envd, stranger, place):
    path, past = f"{place}/a", int(time.time()) - 10
    put(envd, path).must(200)
    signed = signature(envd, path, "read")
    for address in (query(path + "b", signature=signed), query(path, signature=signed, username="root"),
                    query(path, signature=signed, signature_expiration=past + 3600),
                    query(path, signature="v1_" + "A" * 43), query(path, signature="")):
        assert stranger.request("GET", address).must(401).json == {"code": 401, "message": "invalid signature"}
    body, headers = form(("file", "x", b"x"))
    wrong = stranger.request("POST", query(path, signature=signed), body, headers).must(401)
    assert wrong.json == {"code": 401, "message": "invalid signature"}
    late = query(path, signature=signature(envd, path, "read", expires=past), signature_expiration=past)
    assert stranger.request("GET", late).must(401).json == {"code": 401, "message": "signature is already expired"}


CANDIDATES, SEARCHES = 64, 50  # sandboxes that are tried for an address that names none; such searches of a second, after failures


def checks_of(daemon):
    """How often a signature was compared with what a sandbox's token makes."""
    text = daemon.api.get("/metrics").must(200).body.decode()
    found = re.search(r"^holt_signature_checks_total (\S+)$", text, re.M)
    return int(float(found.group(1))) if found else 0


def fetch(daemon, address, **headers):
    connection = daemon.api.coming_from("127.77.1.1").connect()
    connection.request("GET", address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read())
    connection.close()
    return answer


def test_what_a_signature_costs_does_not_grow_with_the_sandboxes():
    with Daemon("--domain", DOMAIN) as daemon:
        made = [Sandbox(daemon.api) for _ in range(CANDIDATES + 6)]
        first, last = (Envd(daemon.api, box.id, box.made["envdAccessToken"]) for box in (made[0], made[-1]))
        wrong = query("a", signature="v1_" + "A" * 43)
        before = checks_of(daemon)
        refused(fetch(daemon, wrong), 401)
        assert checks_of(daemon) - before == CANDIDATES
        before = checks_of(daemon)
        refused(fetch(daemon, wrong, E2b_Sandbox_Id=first.id), 401)
        refused(fetch(daemon, wrong, Host=f"49983-{first.id}.{DOMAIN}"), 401)
        assert checks_of(daemon) - before == 2
        # Who is among the last that were used is found; the others by their name, always.
        put(last, "a").must(200)
        assert fetch(daemon, query("a", signature=signature(last, "a", "read"))).must(200).body == b"text"
        signed = query("a", signature=signature(first, "a", "read"))
        assert refused(fetch(daemon, signed), 401) == "invalid signature"
        fetch(daemon, signed, Host=f"49983-{first.id}.{DOMAIN}").must(404)  # let in, and there is no such file
        put(first, "a").must(200)
        assert fetch(daemon, signed).must(200).body == b"text"
        # Many failures make nobody's address bad, and cost no more than the searches of a second each second.
        began, before = time.monotonic(), checks_of(daemon)
        statuses = {fetch(daemon, wrong).status for _ in range(400)}
        allowed = 20 + SEARCHES * (2 + time.monotonic() - began)
        assert statuses == {401, 429} and checks_of(daemon) - before <= CANDIDATES * allowed
        fetch(daemon, signed, Host=f"49983-{first.id}.{DOMAIN}").must(200)
        until(lambda: fetch(daemon, signed).status == 200, what="a search")
        for box in made:
            box.kill()


def test_the_oldest_clients_send_the_token_alone(envd, stranger):
    put(envd, "by-token").must(200)
    answer = stranger.request("GET", query("by-token"), headers={"X-Access-Token": envd.token})
    assert answer.must(200).body == b"text"


def test_what_is_of_the_orchestrator_is_not_there(envd):
    for name in "init", "freeze", "unfreeze", "collapse", "fsfreeze", "fsthaw", "upgrade":
        refused(envd.request("POST", f"/{name}"), 404)


# --- what envd tells -------------------------------------------------------------------------------


def test_variables_and_measures_can_be_asked_for(api):
    envd = open_envd(api, envVars={"A": "b"})
    try:
        envd.request("GET", "/health").must(204)
        assert envd.request("GET", "/envs").must(200).json["A"] == "b"
        told = envd.request("GET", "/metrics").must(200).json
        assert told["ts"] > 0 and told["cpu_count"] >= 1 and told["mem_total"] > 0
        assert told["mem_total_mib"] == told["mem_total"] // MIB
        assert set(told) == {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "mem_total_mib",
                             "mem_used_mib", "disk_used", "disk_total"}
    finally:
        api.delete(f"/sandboxes/{envd.id}").must(204)
    for path in "/health", "/envs", query("x"):
        assert envd.request("GET", path).must(502).json == {
            "sandboxId": envd.id, "message": "The sandbox was not found", "code": 502}


def test_a_browser_may_ask_where_the_operator_lets_it():
    with Daemon("--cors-origins", "https://a.example") as daemon:
        envd = open_envd(daemon.api)
        put(envd, "a").must(200)
        wanted = "e2b-sandbox-id,e2b-sandbox-port,x-access-token,connect-protocol-version,keepalive-ping-interval"
        asks = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": wanted}
        for path in "/files", "/filesystem.Filesystem/Stat", "/process.Process/Start", "/v2/sandboxes":
            connection = daemon.api.connect()
            connection.request("OPTIONS", path, headers=asks)
            response = connection.getresponse()
            allowed = response.headers["Access-Control-Allow-Headers"].lower().split(", ")
            assert response.status == 204 and set(wanted.split(",")) <= set(allowed), path
            connection.close()
        answer = get(envd, "a", {"Origin": "https://a.example"}).must(200)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert "Content-Disposition" in answer.headers["Access-Control-Expose-Headers"]
        assert sorted(answer.headers.get_all("Vary")) == ["Accept-Encoding", "Origin"]
        answer = get(envd, "a", {"Origin": "https://b.example"}).must(200)
        assert "Access-Control-Allow-Origin" not in answer.headers


# --- limits ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow():
    """A daemon that takes little at once."""
    with Daemon("--max-body", "1Mi") as running:
        yield running


def test_no_more_is_taken_than_the_configuration_says(narrow):
    envd = open_envd(narrow.api)
    put(envd, "fits", b"x" * MIB).must(200)
    for body, headers in ((b"x" * (MIB + 1), {}), (iter([b"x" * 65536] * 17), {}),
                          (gzip.compress(b"x" * (MIB + 1)), {"Content-Encoding": "gzip"})):
        answer = put(envd, "larger", body, headers)
        assert "1048576" in refused(answer, 413)
    assert get(envd, "larger").status == 404
    narrow.api.delete(f"/sandboxes/{envd.id}").must(204)


def test_a_full_disk_is_507(api):
    box = api.sandbox("e2b", resources={"disk": "16Mi"})
    try:
        envd = adopt(api, box.id)
        put(envd, "a", b"old").must(200)
        message = refused(put(envd, "a", gzip.compress(bytes(40 * MIB)), {"Content-Encoding": "gzip"}), 507)
        assert message == "not enough disk space available"
        assert get(envd, "a").must(200).body == b"old"
        assert names(envd, ".") == ["a"]
    finally:
        box.delete().must(204)


def adopt(api, ident):
    """A sandbox that E2B's control plane did not make, as its clients connect to it."""
    connection = api.connect()
    headers = {"X-API-Key": "e2b_" + api.key.removeprefix("holt_"), "Content-Type": "application/json"}
    connection.request("POST", f"/sandboxes/{ident}/connect", json.dumps({"timeout": 600}), headers)
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read()).must(200)
    connection.close()
    return Envd(api, ident, answer.json["envdAccessToken"])


def test_more_parts_than_allowed_are_refused(envd):
    body = b"".join(f"--x\r\n\r\n{number}\r\n".encode() for number in range(1025)) + b"--x--"
    refused(envd.request("POST", "/files", body, {"Content-Type": "multipart/form-data; boundary=x"}), 400)


def test_a_slow_reader_does_not_fill_the_daemon(envd, place):
    data = os.urandom(MIB) * 24
    put(envd, f"{place}/a", data).must(200)
    connection = envd.api.connect()
    connection.request("GET", query(f"{place}/a"), headers=envd.headers(None, {"Accept-Encoding": "gzip"}))
    response = connection.getresponse()
    assert response.read(10)[:2] == b"\x1f\x8b"
    get(envd, f"{place}/a", {"Range": "bytes=0-9"}).must(206)  # others are served meanwhile
    rest = response.read()
    assert len(rest) > len(data) // 24
    connection.close()


def test_a_download_ends_with_its_sandbox(api):
    envd = open_envd(api)
    put(envd, "a", os.urandom(MIB) * 24).must(200)
    connection = envd.api.connect()
    connection.request("GET", query("a"), headers=envd.headers(None, {}))
    response = connection.getresponse()
    response.read(10)
    api.delete(f"/sandboxes/{envd.id}").must(204)
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        while response.read(MIB):
            pass
        raise ConnectionResetError  # all had been on its way already
    connection.close()
