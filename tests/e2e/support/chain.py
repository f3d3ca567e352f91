"""The audit log's chain, computed by somebody else."""
import calendar
import hashlib
import json
import time


def millis(iso):
    head, _, rest = iso.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(head, "%Y-%m-%dT%H:%M:%S")) * 1000 + int((rest + "000")[:3] or 0)


def line_hash(prev, line):
    total = hashlib.sha256(prev + line["seq"].to_bytes(8, "big") + millis(line["at"]).to_bytes(8, "big"))
    data = json.dumps(line["data"], separators=(",", ":"), ensure_ascii=False)
    for text in (line["owner"], line["kind"], data):
        raw = text.encode()
        total.update(len(raw).to_bytes(8, "big") + raw)
    return total.digest()


def all_lines(api):
    lines, cursor = [], ""
    while True:
        page = api.get(f"/audit?limit=100{cursor}").must(200).json
        lines += page["items"]
        if not page["nextCursor"]:
            return lines, page["head"]
        cursor = "&cursor=" + page["nextCursor"]


def first_bad(lines):
    """The number of the first line that does not fit, or None."""
    prev = bytes(32)
    for number, line in enumerate(lines, 1):
        prev = line_hash(prev, line)
        if line["seq"] != number or line["hash"] != prev.hex():
            return number
    return None
