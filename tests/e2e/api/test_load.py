"""Many at once: no byte is lost, and no one is forgotten."""
import concurrent.futures
import hashlib
import time

from support.daemon import Daemon

SIZE = 1 << 20
PATTERN = "0123456789abcdef0123456789abcde"  # and a line end: 32 bytes


def test_two_hundred_executions_stream_a_mebibyte_each_and_lose_no_byte():
    boxes_count, each = 20, 10
    command = f"yes {PATTERN} | head -c {SIZE}"
    want = hashlib.sha256(((PATTERN + "\n") * (SIZE // 32)).encode()).hexdigest()
    with Daemon("--max-sandboxes", "50") as daemon:
        boxes = [daemon.api.sandbox(resources={"cpu": 2, "pids": 128}) for _ in range(boxes_count)]

        def follow(n):
            digest, position = hashlib.sha256(), 0
            with boxes[n % boxes_count].stream(command, timeout=600) as events:
                for event in events:
                    assert event.name in ("start", "output", "end"), event
                    if event.name == "output":
                        text = event.data["data"].encode()
                        digest.update(text)
                        position += len(text)
                        assert int(event.id) == position
                    elif event.name == "end":
                        assert (event.data["exitCode"], event.data["outputBytes"]) == (0, SIZE), event
            return digest.hexdigest()

        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(boxes_count * each) as crowd:
            digests = list(crowd.map(follow, range(boxes_count * each)))
        print(f"{boxes_count * each} MiB in {time.monotonic() - begin:.1f} s")
        assert digests == [want] * (boxes_count * each)


def test_sandboxes_made_used_and_ended_by_a_crowd(daemon):
    api = daemon.api

    def life(n):
        box = api.sandbox("bash", metadata={"n": str(n)})
        box.put("/workspace/f", str(n).encode()).must(201)
        assert box.run("cat f")["stdout"] == str(n)
        assert box.get()["metadata"] == {"n": str(n)}
        box.delete().must(204)
        return box.id

    with concurrent.futures.ThreadPoolExecutor(16) as crowd:
        ids = list(crowd.map(life, range(100)))
    assert len(set(ids)) == 100
