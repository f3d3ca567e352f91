"""Filesystem.Filesystem of envd, call by call, with plain requests."""
import concurrent.futures
import re
import threading

import pytest

from support.connect import Cut, Envd, open_envd, start
from support.daemon import until

HOME = "/home/user"
OCTETS = {"Content-Type": "application/octet-stream"}


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
    name = re.sub(r"[^a-z0-9_]", "-", request.node.name)
    call(envd, "MakeDir", path=name)
    return name


def ask(envd, name, user=None, **value):
    return envd.unary(f"filesystem.Filesystem/{name}", value, user)


def call(envd, name, **value):
    return ask(envd, name, **value).must(200).json


def refused(answer, status, code):
    answer.must(status)
    assert answer.json["code"] == code and answer.json["message"], answer
    return answer.json["message"]


def write(envd, path, data=b"text"):
    envd.request("POST", f"/files?path={path}", data, OCTETS).must(200)


def shell(envd, line):
    done = start(envd, line).wait()
    assert done.exit["exitCode"] == 0, done.stderr
    return done.stdout.decode()


def stat(envd, path):
    return call(envd, "Stat", path=path)["entry"]


def paths(envd, path, **more):
    return [entry["path"] for entry in call(envd, "ListDir", path=path, **more)["entries"]]


# --- what a file is --------------------------------------------------------------------------------


def test_all_of_a_file_is_told(envd, place):
    write(envd, f"{place}/a.txt", b"hello")
    shell(envd, f"touch -d 2001-02-03T04:05:06.123456789Z {place}/a.txt; chmod 640 {place}/a.txt")
    assert stat(envd, f"{place}/a.txt") == {
        "name": "a.txt", "type": "FILE_TYPE_FILE", "path": f"{HOME}/{place}/a.txt", "size": "5", "mode": 0o640,
        "permissions": "-rw-r-----", "owner": "user", "group": "user", "modifiedTime": "2001-02-03T04:05:06.123456789Z"}


@pytest.mark.parametrize("path,kind,permissions", [("/tmp", "FILE_TYPE_DIRECTORY", "dtrwxrwxrwx"),
                                                   ("/dev/null", "FILE_TYPE_UNSPECIFIED", "Dcrw-rw-rw-"),
                                                   ("/", "FILE_TYPE_DIRECTORY", "drwxr-xr-x")])
def test_kinds_of_files_have_their_letters(envd, path, kind, permissions):
    entry = stat(envd, path)
    assert (entry["type"], entry["permissions"], entry["path"]) == (kind, permissions, path)


def test_a_link_is_told_with_what_it_leads_to(envd, place):
    write(envd, f"{place}/file")
    shell(envd, f"cd {place}; chmod 600 file; mkdir dir; ln -s file to-file; ln -s ../{place}/dir to-dir; "
                "ln -s to-file twice; ln -s nowhere lost; ln -s round round")
    told = {entry["name"]: entry for entry in call(envd, "ListDir", path=place)["entries"]}
    for name, kind, target, mode in (("to-file", "FILE", "file", 0o600), ("to-dir", "DIRECTORY", "dir", 0o755),
                                     ("twice", "FILE", "file", 0o600), ("lost", "UNSPECIFIED", "lost", 0),
                                     ("round", "UNSPECIFIED", "round", 0)):
        assert told[name] == stat(envd, f"{place}/{name}")
        assert told[name]["type"] == f"FILE_TYPE_{kind}"
        assert told[name]["symlinkTarget"] == f"{HOME}/{place}/{target}"
        assert told[name]["mode"] == mode
        assert told[name]["permissions"] == "Lrwxrwxrwx"
    assert "symlinkTarget" not in told["file"]


def test_an_owner_without_a_name_is_a_number(envd, place, needs_root):
    write(envd, f"{place}/a")
    shell(envd, f"sudo chown 1234:root {place}/a")
    assert (stat(envd, f"{place}/a")["owner"], stat(envd, f"{place}/a")["group"]) == ("1234", "root")


def test_what_is_not_there_is_not_found(envd):
    assert HOME in refused(ask(envd, "Stat", path="nothing"), 404, "not_found")
    refused(ask(envd, "Stat", path="/etc/passwd/x"), 400, "invalid_argument")
    refused(ask(envd, "Stat", path="~joe"), 400, "invalid_argument")
    refused(ask(envd, "Stat", path="x" * 256), 400, "invalid_argument")
    refused(ask(envd, "Stat", path="x" * 5000), 400, "invalid_argument")


def test_a_user_that_there_is_not_is_unauthenticated(envd):
    for name in "Stat", "ListDir", "MakeDir", "Remove":
        refused(ask(envd, name, user="joe", path="x"), 401, "unauthenticated")
    refused(ask(envd, "Move", user="joe", source="x", destination="y"), 401, "unauthenticated")
    assert stat(envd, "")["path"] == HOME
    assert ask(envd, "Stat", user="user", path="~").must(200).json["entry"]["path"] == HOME


# --- directories -----------------------------------------------------------------------------------


def test_a_list_goes_as_deep_as_asked(envd, place):
    for path in "b/c/d", "a", "b.txt":
        write(envd, f"{place}/{path}")
    top = f"{HOME}/{place}"
    assert paths(envd, place) == paths(envd, place, depth=0) == [f"{top}/a", f"{top}/b", f"{top}/b.txt"]
    assert paths(envd, place, depth=2) == [f"{top}/a", f"{top}/b", f"{top}/b/c", f"{top}/b.txt"]
    assert paths(envd, f"./{place}/", depth=9) == [f"{top}/a", f"{top}/b", f"{top}/b/c", f"{top}/b/c/d", f"{top}/b.txt"]


def test_a_list_follows_a_link_to_its_top_and_no_other(envd, place):
    write(envd, f"{place}/real/sub/a")
    shell(envd, f"cd {place}; ln -s real link; ln -s sub real/again")
    top = f"{HOME}/{place}/link"
    assert paths(envd, f"{place}/link", depth=5) == [f"{top}/again", f"{top}/sub", f"{top}/sub/a"]


def test_what_is_no_directory_is_not_listed(envd, place):
    write(envd, f"{place}/a")
    refused(ask(envd, "ListDir", path=f"{place}/a"), 400, "invalid_argument")
    refused(ask(envd, "ListDir", path=f"{place}/b"), 404, "not_found")
    refused(ask(envd, "ListDir", path=place, depth=257), 400, "invalid_argument")
    refused(ask(envd, "ListDir", path=place, depth=-1), 400, "invalid_argument")


def test_more_than_can_be_told_is_an_error(envd, place):
    shell(envd, f"cd {place}; seq 10001 | xargs touch")
    assert "10000" in refused(ask(envd, "ListDir", path=place), 429, "resource_exhausted")
    shell(envd, f"rm {place}/1")
    assert len(paths(envd, place)) == 10000
    call(envd, "Remove", path=place)


def test_a_directory_is_made_once(envd, place):
    entry = call(envd, "MakeDir", path=f"{place}/a/b")["entry"]
    assert (entry["path"], entry["type"], entry["owner"]) == (f"{HOME}/{place}/a/b", "FILE_TYPE_DIRECTORY", "user")
    refused(ask(envd, "MakeDir", path=f"{place}/a/b"), 409, "already_exists")
    refused(ask(envd, "MakeDir", path="/"), 409, "already_exists")
    write(envd, f"{place}/file")
    refused(ask(envd, "MakeDir", path=f"{place}/file"), 400, "invalid_argument")
    refused(ask(envd, "MakeDir", path=f"{place}/file/x"), 400, "invalid_argument")


def test_a_move_makes_the_way_and_replaces(envd, place):
    write(envd, f"{place}/a", b"new")
    write(envd, f"{place}/x/y/b", b"old")
    entry = call(envd, "Move", source=f"{place}/a", destination=f"{place}/x/y/b")["entry"]
    assert (entry["path"], entry["size"]) == (f"{HOME}/{place}/x/y/b", "3")
    call(envd, "Move", source=f"{place}/x", destination=f"{place}/n/m")
    assert paths(envd, place, depth=4)[-1] == f"{HOME}/{place}/n/m/y/b"
    refused(ask(envd, "Move", source=f"{place}/x", destination=f"{place}/z"), 404, "not_found")
    refused(ask(envd, "Move", source=f"{place}/n", destination=f"{place}/n/m/inside"), 400, "invalid_argument")


def test_a_removal_takes_all_and_minds_nothing_missing(envd, place):
    write(envd, f"{place}/a/b/c")
    shell(envd, f"ln -s /etc {place}/a/link; chmod 0 {place}/a/b")
    for _ in range(2):
        assert call(envd, "Remove", path=f"{place}/a") == {}
    assert paths(envd, place) == []
    assert stat(envd, "/etc/passwd")["name"] == "passwd"
    refused(ask(envd, "Remove", path="/"), 400, "invalid_argument")


# --- messages --------------------------------------------------------------------------------------


def test_a_message_that_is_none_is_refused(envd):
    for body in b"", b"[]", b"{", b'{"path": 5}', b'{"path": "a\\u0000b"}':
        refused(envd.unary("filesystem.Filesystem/Stat", body), 400, "invalid_argument")
    assert envd.unary("filesystem.Filesystem/Stat", {"path": "/", "later": {"x": 1}}).status == 200
    refused(ask(envd, "Chown", path="/"), 404, "unimplemented")


def test_without_the_token_nothing_is_told(api, envd):
    other = Envd(api, envd.id, "x" * 60)
    for name in ("Stat", "ListDir", "MakeDir", "Move", "Remove", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher"):
        refused(ask(other, name, path="/"), 401, "unauthenticated")
    with pytest.raises(AssertionError, match="401"):
        other.stream("filesystem.Filesystem/WatchDir", {"path": "/"})


# --- watching --------------------------------------------------------------------------------------


def watch(envd, path, headers=None, **value):
    stream = envd.stream("filesystem.Filesystem/WatchDir", {"path": path, **value}, headers=headers)
    first = next(stream, None)
    assert first == {"start": {}}, (first, stream.end)
    return stream


def happened(stream, name, kind):
    """The next event, which must be this one."""
    event = next(stream)["filesystem"]
    assert (event["name"], event["type"]) == (name, f"EVENT_TYPE_{kind}"), event
    return event


def test_every_kind_of_change_is_told(envd, place):
    with watch(envd, place) as stream:
        shell(envd, f"cd {place}; : > a; echo x >> a; chmod 600 a; mv a b; rm b; mkdir d; touch d/inside; mkdir end")
        for name, kind in (("a", "CREATE"), ("a", "WRITE"), ("a", "CHMOD"), ("a", "RENAME"), ("b", "CREATE"),
                           ("b", "REMOVE"), ("d", "CREATE"), ("end", "CREATE")):
            assert "entry" not in happened(stream, name, kind)


def test_a_file_that_is_sent_is_told_as_written(envd, place):
    write(envd, f"{place}/a", b"old")
    with watch(envd, place) as stream:
        write(envd, f"{place}/a", b"new")
        for kind in ("CREATE", "CHMOD", "WRITE"):
            happened(stream, "a", kind)


def test_a_recursive_watch_looks_into_all_that_comes(envd, place):
    call(envd, "MakeDir", path=f"{place}/sub")
    with watch(envd, place, recursive=True) as stream:
        write(envd, f"{place}/sub/a")
        for kind in ("CREATE", "CHMOD", "WRITE"):
            happened(stream, "sub/a", kind)
        shell(envd, f"mkdir -p {place}/n/m/last")
        seen = []
        while "n/m/last" not in seen:  # what is found and what is told may be one thing twice
            seen.append(next(stream)["filesystem"]["name"])
        assert list(dict.fromkeys(seen)) == ["n", "n/m", "n/m/last"]


def test_an_event_has_its_entry_when_asked(envd, place):
    with watch(envd, place, includeEntry=True) as stream:
        call(envd, "MakeDir", path=f"{place}/d")
        assert happened(stream, "d", "CREATE")["entry"] == stat(envd, f"{place}/d")
        call(envd, "Remove", path=f"{place}/d")
        assert "entry" not in happened(stream, "d", "REMOVE")


def test_a_watch_whose_directory_goes_ends(envd, place):
    with watch(envd, place) as stream:
        call(envd, "Remove", path=place)
        assert [event["filesystem"]["name"] for event in stream][-1:] in ([], ["."])
        assert stream.end == {}


def test_what_is_no_directory_is_not_watched(envd, place):
    write(envd, f"{place}/a")
    for path, code in (f"{place}/a", "invalid_argument"), (f"{place}/b", "not_found"), ("~joe", "invalid_argument"):
        with envd.stream("filesystem.Filesystem/WatchDir", {"path": path}) as stream:
            assert list(stream) == [] and stream.end["error"]["code"] == code
        assert ask(envd, "CreateWatcher", path=path).json["code"] == code


def test_a_quiet_watch_is_kept_alive(envd, place):
    with watch(envd, place, headers={"Keepalive-Ping-Interval": "1"}) as stream:
        assert [next(stream), next(stream)] == [{"keepalive": {}}] * 2
        call(envd, "MakeDir", path=f"{place}/d")
        assert any("filesystem" in message for message in stream)  # between two of them


def test_a_watch_lasts_as_long_as_it_was_to(envd, place):
    with envd.stream("filesystem.Filesystem/WatchDir", {"path": place}, headers={"Connect-Timeout-Ms": "300"}) as stream:
        assert list(stream)[1:] == []
        assert stream.end["error"]["code"] == "deadline_exceeded"
    answer = envd.stream("filesystem.Filesystem/WatchDir", {"path": place}, headers={"Connect-Timeout-Ms": "soon"})
    assert list(answer) == [] and answer.end["error"]["code"] == "invalid_argument"


def test_a_sandbox_that_is_killed_cuts_its_watches(api):
    envd = open_envd(api)
    with watch(envd, "/tmp") as stream:
        api.delete(f"/sandboxes/{envd.id}").must(204)
        with pytest.raises(Cut):
            list(stream)
    envd.request("GET", "/health").must(502)


# --- watchers --------------------------------------------------------------------------------------


@pytest.fixture
def watcher(envd, place):
    made = []

    def make(path=place, **more):
        made.append(call(envd, "CreateWatcher", path=path, **more)["watcherId"])
        return made[-1]

    yield make
    for ident in made:
        ask(envd, "RemoveWatcher", watcherId=ident)


def events(envd, ident):
    return [(event["name"], event["type"].removeprefix("EVENT_TYPE_"))
            for event in call(envd, "GetWatcherEvents", watcherId=ident)["events"]]


def test_a_watcher_keeps_what_happens_until_it_is_asked(envd, place, watcher):
    ident, other = watcher(), watcher(recursive=True)
    assert events(envd, ident) == []
    call(envd, "MakeDir", path=f"{place}/a/b")
    seen = []
    until(lambda: seen.extend(events(envd, other)) or ("a/b", "CREATE") in seen, what="the event")
    assert list(dict.fromkeys(seen)) == [("a", "CREATE"), ("a/b", "CREATE")]
    assert until(lambda: events(envd, ident), what="the event") == [("a", "CREATE")]
    assert events(envd, ident) == []


def test_a_watcher_tells_entries_when_asked(envd, place, watcher):
    ident = watcher(includeEntry=True)
    call(envd, "MakeDir", path=f"{place}/d")
    told = until(lambda: call(envd, "GetWatcherEvents", watcherId=ident)["events"], what="the event")
    assert told == [{"name": "d", "type": "EVENT_TYPE_CREATE", "entry": stat(envd, f"{place}/d")}]


def test_a_watcher_that_was_ended_is_gone(envd, watcher):
    ident = watcher()
    assert call(envd, "RemoveWatcher", watcherId=ident) == {}
    for name in "RemoveWatcher", "GetWatcherEvents":
        refused(ask(envd, name, watcherId=ident), 404, "not_found")
    refused(ask(envd, "GetWatcherEvents", watcherId="x" * 200), 404, "not_found")


def test_a_watcher_of_a_directory_that_goes_tells_the_rest_first(envd, place, watcher):
    ident = watcher()
    call(envd, "MakeDir", path=f"{place}/d")
    call(envd, "Remove", path=place)
    seen = []

    def is_gone():
        answer = ask(envd, "GetWatcherEvents", watcherId=ident)
        if answer.status == 200:
            seen.extend(event["name"] for event in answer.json["events"])
        return answer.status == 404

    until(is_gone, what="its end")
    assert seen[:1] == ["d"]


def test_a_watcher_that_nobody_asks_says_that_it_lost_some(envd, place, watcher):
    ident = watcher()
    many = "import os\nfor i in range(5000): os.mkdir('d'), os.rmdir('d')"

    def is_lossy():
        shell(envd, f'cd {place}; python3 -c "{many}"')
        answer = ask(envd, "GetWatcherEvents", watcherId=ident)
        while answer.status == 200 and answer.json["events"]:
            assert len(answer.json["events"]) <= 4096
            answer = ask(envd, "GetWatcherEvents", watcherId=ident)
        return answer if answer.status != 200 else None

    refused(until(is_lossy, what="a loss"), 500, "data_loss")
    call(envd, "MakeDir", path=f"{place}/again")
    until(lambda: ("again", "CREATE") in events(envd, ident), what="the event")


def test_there_are_only_so_many_watchers(api):
    envd = open_envd(api)
    try:
        made = [call(envd, "CreateWatcher", path="/tmp")["watcherId"] for _ in range(16)]
        assert "16" in refused(ask(envd, "CreateWatcher", path="/tmp"), 429, "resource_exhausted")
        call(envd, "RemoveWatcher", watcherId=made[0])
        call(envd, "CreateWatcher", path="/tmp")
    finally:
        api.delete(f"/sandboxes/{envd.id}").must(204)


def test_streams_and_requests_do_not_wait_for_each_other(envd, place):
    streams = [watch(envd, place) for _ in range(8)]
    workers = [threading.Thread(target=call, args=(envd, "MakeDir"), kwargs={"path": f"{place}/{number}"})
               for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for stream in streams:
        seen = {next(stream)["filesystem"]["name"] for _ in range(8)}
        assert seen == {str(number) for number in range(8)}
        stream.close()


def test_many_at_once_wait_for_each_other(envd, place):
    """More than a sandbox takes at once: what has no room waits, and nobody is refused."""
    with concurrent.futures.ThreadPoolExecutor(100) as side_by_side:
        made = list(side_by_side.map(lambda number: ask(envd, "MakeDir", path=f"{place}/{number}").status, range(150)))
        found = list(side_by_side.map(lambda number: ask(envd, "Stat", path=f"{place}/{number}").status, range(150)))
    assert set(made) == set(found) == {200}
