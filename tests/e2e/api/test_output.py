"""Output: pages from a position on, events, reconnecting, and what a slow reader does to it."""
import base64
import hashlib
import time

import pytest

from support.daemon import Daemon, until

SNOW = "☃ü€𝄞" * 3


def gather(execution, start=0, **query):
    """All output from there on, by pages: chunks joined by stream, and the positions."""
    streams, omitted = {"stdout": b"", "stderr": b""}, 0
    while True:
        page = execution.output(start, encoding="base64", wait="20s", **query)
        assert page["from"] == start and page["executionId"] == execution.id
        position = start + page["omitted"]
        for chunk in page["chunks"]:
            data = base64.b64decode(chunk["data"])
            assert chunk["seq"] == position and data
            streams[chunk["stream"]] += data
            position += len(data)
        assert page["next"] == position <= page["end"]
        omitted += page["omitted"]
        if page["done"]:
            return streams, omitted, position
        start = page["next"]


# --- pages ---------------------------------------------------------------------------------------


def test_a_page_is_as_documented(box):
    running = box.begin("printf 42; printf err >&2")
    running.wait()
    page = running.output()
    assert list(page) == ["executionId", "chunks", "from", "next", "begin", "end", "omitted", "done"]
    assert {(chunk["stream"], chunk["data"]) for chunk in page["chunks"]} == {("stdout", "42"), ("stderr", "err")}
    assert (page["from"], page["next"], page["begin"], page["end"], page["omitted"], page["done"]) == \
        (0, 5, 0, 5, 0, True)
    page = running.output(3)
    assert page["next"] == 5 and sum(len(chunk["data"]) for chunk in page["chunks"]) == 2
    page = running.output(5)
    assert (page["chunks"], page["done"]) == ([], True)


def test_following_a_running_program_loses_and_doubles_nothing(box):
    running = box.begin("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; done; echo bad >&2")
    streams, omitted, _ = gather(running)
    assert omitted == 0
    assert streams["stdout"] == b"".join(b"%d\n" % n for n in range(1, 2001))
    assert streams["stderr"] == b"bad\n"


def test_wait_waits_for_the_next_output_and_no_longer(box):
    running = box.begin("sleep 0.5; echo now; sleep 100")
    begin = time.monotonic()
    assert running.output(0, wait="10s")["chunks"][0]["data"] == "now\n"
    assert 0.2 < time.monotonic() - begin < 9
    begin = time.monotonic()
    page = running.output(4, wait="300ms")
    assert page["chunks"] == [] and not page["done"] and time.monotonic() - begin >= 0.29
    assert running.output(4)["chunks"] == []


@pytest.mark.parametrize("query, field", [("from=x", "from"), ("from=-1", "from"), ("wait=61s", "wait"),
                                          ("encoding=x", "encoding"), ("wait=x", "wait")])
def test_a_bad_position_is_named(box, query, field):
    running = box.begin("true")
    box.api.get(f"{running.path}/output?{query}").error(400, field=field)


def test_what_was_given_up_is_counted(box):
    running = box.begin("head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    running.wait()
    page = running.output(10)
    assert page["omitted"] == page["begin"] - 10 > 1900000
    streams, omitted, position = gather(running)
    assert position == 3000004 and omitted + len(streams["stdout"]) == 3000004
    assert streams["stdout"].endswith(b"xend\n")


def test_a_character_is_never_cut_between_two_pages(python):
    code = f"import sys,time\nfor b in {SNOW!r}.encode():\n sys.stdout.buffer.write(bytes([b])); " \
           "sys.stdout.flush(); time.sleep(0.01)"
    running = python.begin(code=code, language="python")
    start, text = 0, ""
    while True:
        page = running.output(start, wait="10s")
        text += "".join(chunk["data"] for chunk in page["chunks"])
        start = page["next"]
        if page["done"]:
            break
    assert text == SNOW


# --- events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["stream", "accept"])
def test_an_execution_as_events(box, how):
    body = {"type": "command", "content": "echo 42; sleep 0.1; echo bad >&2; exit 3"}
    if how == "stream":
        body["stream"] = True
    headers = {"Accept": "text/event-stream" if how == "accept" else "*/*"}
    with box.api.events("POST", f"{box.path}/execute", body, headers=headers) as events:
        start = events.next("start").data
        assert start["status"] == "running" and "stdout" not in start and start["sandboxId"] == box.id
        first = events.next("output")
        assert (first.data, first.id) == ({"stream": "stdout", "data": "42\n"}, "3")
        second = events.next("output")
        assert (second.data, second.id) == ({"stream": "stderr", "data": "bad\n"}, "7")
        end = events.next("end").data
        assert (end["status"], end["exitCode"], end["executionId"]) == ("completed", 3, start["executionId"])
        assert "stdout" not in end
        assert list(events) == []


def test_a_character_is_never_cut_between_two_events(python):
    code = f"import sys,time\nfor b in {SNOW!r}.encode() + b'\\xe2\\x98':\n" \
           " sys.stdout.buffer.write(bytes([b])); sys.stdout.flush(); time.sleep(0.005)"
    body = {"code": code, "language": "python", "stream": True}
    with python.api.events("POST", f"{python.path}/executions", body) as events:
        events.next("start")
        pieces = [event.data["data"] for event in events if event.name == "output"]
    assert "".join(pieces).rstrip("\ufffd") == SNOW and pieces[-1].endswith("\ufffd")


def test_events_can_carry_exact_bytes(python):
    body = {"code": "import os; os.write(1, bytes(range(256)))", "language": "python", "stream": True}
    with python.api.events("POST", f"{python.path}/executions?encoding=base64", body) as events:
        data = b"".join(base64.b64decode(event.data["data"]) for event in events if event.name == "output")
    assert data == bytes(range(256))


def test_a_client_that_comes_back_continues_where_it_was(box):
    running = box.begin("i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i; sleep 0.002; done")
    text, last, rounds = "", None, 0
    while True:
        rounds += 1
        with running.events(last=last) as events:
            ended = False
            for count, event in enumerate(events):
                if event.name == "output":
                    text, last = text + event.data["data"], event.id
                    assert int(last) == len(text)
                ended = event.name == "end"
                if not ended and count >= 5 and rounds < 8:
                    break
        if ended:
            break
    assert text == "".join(f"{n}\n" for n in range(1, 401)) and rounds > 1


def test_a_gap_is_told(box):
    running = box.begin("head -c 3000000 /dev/zero | tr '\\0' x")
    running.wait()
    with running.events() as events:
        kinds = [event for event in events]
    names = [event.name for event in kinds]
    gap = next(event for event in kinds if event.name == "gap").data["omitted"]
    size = sum(len(event.data["data"]) for event in kinds if event.name == "output")
    assert gap + size == 3000000 and names[-1] == "end" and names.count("gap") == 1
    assert names.index("gap") < names.index("output")


def test_any_number_of_readers_see_the_same(box):
    running = box.begin("read x; i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo $i; done", stdin=True)
    streams = [running.events() for _ in range(10)]
    running.stdin(b"go\n").must(200)
    texts = set()
    for events in streams:
        texts.add("".join(event.data["data"] for event in events if event.name == "output"))
        events.close()
    assert texts == {"".join(f"{n}\n" for n in range(1, 501))}


def test_no_more_than_64_streams_for_one_sandbox(box):
    running = box.begin("sleep 100")
    streams = [running.events() for _ in range(64)]
    with pytest.raises(AssertionError, match="429"):
        running.events()
    assert box.api.get(f"{running.path}/output", headers={"Accept": "text/event-stream"}).status == 429
    streams.pop().close()
    until(lambda: box.api.get(running.path).status == 200)

    def again():
        try:
            streams.append(running.events())
            return True
        except AssertionError:
            return False
    until(again, what="room for another stream")
    for events in streams:
        events.close()


def test_a_slow_reader_holds_the_process_back_and_loses_nothing(box):
    with box.stream("yes 0123456789abcde | head -c 8000000; echo; echo end", timeout=100) as events:
        running = events.next("start").data["executionId"]
        time.sleep(1.5)  # meanwhile it would have written everything
        value = box.api.get(f"{box.path}/executions/{running}").must(200).json
        assert value["status"] == "running" and value["outputBytes"] < 8000000
        digest, size = hashlib.sha256(), 0
        for event in events:
            assert event.name in ("output", "end"), event
            if event.name == "output":
                digest.update(event.data["data"].encode())
                size += len(event.data["data"])
            else:
                assert event.data["exitCode"] == 0
    expected = (b"0123456789abcde\n" * 500000)[:8000000] + b"\nend\n"
    assert (size, digest.hexdigest()) == (len(expected), hashlib.sha256(expected).hexdigest())


def test_a_stream_whose_sandbox_ends_is_told(api):
    box = api.sandbox()
    with box.stream("echo on; sleep 100") as events:
        events.next("start")
        events.next("output")
        box.delete().must(204)
        end = events.next("end").data
        assert end["status"] in ("interrupted", "cancelled") and end["exitCode"] is None


# --- all together --------------------------------------------------------------------------------


def test_what_is_kept_of_all_together_is_bounded_and_a_stream_is_whole():
    """Six that want 600 kB each share a megabyte: the newest of each, flagged; who follows loses nothing."""
    said = "".join(f"{n:05}\n" for n in range(1, 100001))
    with Daemon("--max-output=1M") as daemon:
        box = daemon.api.sandbox()
        running = [box.begin("seq -f %05.0f 1 100000; sleep 100") for _ in range(6)]
        for one in running:
            until(lambda: one.get()["outputBytes"] == len(said), what="all output")
        states = [one.get() for one in running]
        kept = [len(one["stdout"]) for one in states]
        assert sum(kept) <= (1 << 20) + 6 * (64 << 10), kept
        for state in states:
            assert state["stdout"] and said.endswith(state["stdout"])
            assert state["truncated"] == (len(state["stdout"]) < len(said))
            assert state["omittedBytes"] == len(said) - len(state["stdout"])
        assert any(state["truncated"] for state in states)
        with box.stream("seq -f %05.0f 1 100000") as events:
            streamed = "".join(event.data["data"] for event in events if event.name == "output")
        assert streamed == said
        for one in running:
            one.cancel().must(204)
