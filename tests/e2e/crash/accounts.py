"""What was written down about the deeds of a crash test: a line of the audit log for each, and usage that counts
each execution once."""
import time

from support.chain import all_lines, first_bad
from world import LIVE


def eventually(condition, seconds=20):
    """Whether it becomes true: rows and lines come a little behind the answers."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def check_audit(world):
    """The chain is whole. What a kill cut off before its line was written has one that says so."""
    known = set(world.boxes) | {ident for box in world.boxes.values() for ident in (*box.done, *(c.id for c in box.counters))}

    def missing():
        lines, head = all_lines(world.api)
        assert first_bad(lines) is None, f"line {first_bad(lines)} of the audit log does not fit"
        assert head["isIntact"], "the audit log's end is another"
        named = {line["data"].get("subject") for line in lines if line["kind"] == "call"}
        cut = sum(line["kind"] == "interrupted" for line in lines)
        return max(0, len(known - named) - cut)
    assert eventually(lambda: missing() == 0), f"{missing()} deeds have no line in the audit log"


def all_items(world, path):
    cursor = ""
    while cursor is not None:
        page = world.api.get(f"{path}limit=500{cursor and '&cursor=' + cursor}").must(200).json
        yield from page["items"]
        cursor = page["nextCursor"]


def ended(world, box):
    """Executions of it that have ended, whatever became of them."""
    return sum(item["status"] != "running" for item in all_items(world, f"/sandboxes/{box.id}/executions?"))


def check_usage(world):
    def counted():
        return {row["sandboxId"]: row["executions"] for row in all_items(world, "/usage?group=sandbox&")}
    for box in world.boxes.values():
        if box.states <= set(LIVE):
            assert eventually(lambda b=box: counted().get(b.id, 0) == ended(world, b)), \
                f"{box.id}: {counted().get(box.id, 0)} executions are counted, {ended(world, box)} have ended"


def check(world):
    check_audit(world)
    check_usage(world)
