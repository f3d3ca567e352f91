"""What a crash test knows to be true: everything the daemon has acknowledged, and what it may or may not
have done when an answer was lost. Compares that with what the daemon says."""
import base64
import threading
import time

from support.client import Box

LIVE = ("running", "paused")
PASSING = ("creating", "pausing", "resuming", "stopping")


class Counter:
    """A program in the background that counts, and how far its output has been read. Whatever happens to
    the daemon, the next byte read follows the last one. Wide numbers are soon more than the box keeps."""
    WIDTHS = (1, 400)

    def __init__(self, ident, width):
        self.id, self.width, self.lock = ident, width, threading.Lock()
        self.position, self.number, self.rest = 0, 0, b""
        self.is_cancelled = False

    @staticmethod
    def command(width):
        return f"i=0; while :; do i=$((i+1)); printf '%0{width}d\\n' $i; sleep 0.02; done"

    def feed(self, page):
        """A page of output; the complaint, or None."""
        if page["omitted"] or page["from"] != self.position:
            return f"{page['omitted']} bytes are lost at {self.position}"
        for chunk in page["chunks"]:
            data = base64.b64decode(chunk["data"])
            if chunk["seq"] != self.position or chunk["stream"] != "stdout":
                return f"at {self.position} comes {chunk['seq']} of {chunk['stream']}"
            self.position += len(data)
            self.rest += data
        *lines, self.rest = self.rest.split(b"\n")
        for line in lines:
            if line != b"%0*d" % (self.width, self.number + 1):
                return f"behind {self.number} comes {line[:40]!r}"
            self.number += 1
        return None


class Sandbox:
    def __init__(self, ident, name):
        self.id, self.name = ident, name
        self.files = {}       # path: the contents it may have
        self.counters = []
        self.done = {}        # execution: its output
        self.metadata = [{}]  # what it may be
        self.states = {"running"}  # what it may be in

    @property
    def may_be_gone(self):
        return "stopped" in self.states

    @property
    def is_gone(self):
        return self.states == {"stopped"}


class World:
    def __init__(self, daemon):
        self.daemon, self.api = daemon, daemon.api
        self.lock = threading.Lock()
        self.boxes = {}
        self.unsure_names = set()  # creations whose answer was lost
        self.wrongs = []

    def wrong(self, text):
        with self.lock:
            self.wrongs.append(text)

    def add(self, ident, name):
        with self.lock:
            self.boxes[ident] = Sandbox(ident, name)

    def live(self):
        with self.lock:
            return [box for box in self.boxes.values() if not box.may_be_gone]

    # --- the check: nothing else runs, and the daemon has recovered ------------------------------

    def check(self, files=True):
        self.check_list()
        for box in list(self.boxes.values()):
            if self.check_state(box) in LIVE:
                self.check_live(box, files)
        assert not self.wrongs, "\n".join(self.wrongs)

    def check_list(self):
        """The list has every live sandbox, and none that nobody asked for."""
        listed = {item["id"]: item for item in self.api.get("/sandboxes?limit=500").must(200).json["items"]}
        for ident, item in listed.items():
            if ident in self.boxes:
                if self.boxes[ident].is_gone:
                    self.wrong(f"{ident} was deleted and is {item['status']}")
            elif item["name"] in self.unsure_names:
                self.add(ident, item["name"])  # its answer was lost, it is there
            else:
                self.wrong(f"{ident} {item['name']} was asked for by nobody")
        for box in self.boxes.values():
            if not box.may_be_gone and box.id not in listed:
                self.wrong(f"{box.id} is not listed")
        self.unsure_names.clear()

    def check_state(self, box):
        end = time.monotonic() + 20
        answer = self.api.get(f"/sandboxes/{box.id}")
        while answer.status == 200 and answer.json["status"] in PASSING and time.monotonic() < end:
            time.sleep(0.02)
            answer = self.api.get(f"/sandboxes/{box.id}")
        if answer.status != 200:
            self.wrong(f"{box.id}: {answer}")
            return None
        value = answer.json
        if value["status"] not in box.states:
            self.wrong(f"{box.id} is {value['status']} ({value['reason']}), not {sorted(box.states)}")
        if value["status"] == "stopped" and value["reason"] != "deleted":
            self.wrong(f"{box.id} stopped: {value['reason']}")
        if value["status"] in LIVE and value["metadata"] not in box.metadata:
            self.wrong(f"{box.id} has {value['metadata']}, not one of {box.metadata}")
        box.states, box.metadata = {value["status"]}, [value["metadata"]]
        return value["status"]

    def check_live(self, box, files):
        handle = Box(self.api, {"id": box.id})
        if box.states == {"paused"}:
            self.api.post(f"{handle.path}/resume").must(200)
            box.states = {"running"}
        self.check_executions(box, handle)
        for name, contents in box.files.items() if files else ():
            answer = handle.read(name)
            found = answer.body if answer.status == 200 else None
            if found not in contents:
                self.wrong(f"{box.id}{name} is {answer}, not one of {[str(c)[:60] for c in contents]}")
            contents[:] = [found]
        if handle.execute("echo works").must(200).json["stdout"] != "works\n":
            self.wrong(f"{box.id} does not work")

    def check_executions(self, box, handle):
        listed, cursor = {}, ""
        while cursor is not None:
            page = self.api.get(f"{handle.path}/executions?limit=200" + (f"&cursor={cursor}" if cursor else "")).must(200)
            for item in page.json["items"]:
                if item["executionId"] in listed:
                    self.wrong(f"{box.id}: execution {item['executionId']} is listed twice")
                listed[item["executionId"]] = item
            cursor = page.json["nextCursor"]
        for ident, text in box.done.items():
            item = listed.get(ident)
            if not item or item["status"] != "completed" or item["exitCode"] != 0:
                self.wrong(f"{box.id}: {ident} said {text!r} and is now {item}")
        for ident in list(box.done)[-2:]:
            answer = self.api.get(f"{handle.path}/executions/{ident}")
            if answer.status != 200 or answer.json["stdout"] != box.done[ident]:
                self.wrong(f"{box.id}: {ident} said {box.done[ident]!r} and is now {answer}")
        for counter in box.counters:
            self.check_counter(box, handle, counter, listed.get(counter.id))

    def check_counter(self, box, handle, counter, item):
        """It is there; its output goes on where it was read last, and is still being written."""
        if not item:
            return self.wrong(f"{box.id}: counter {counter.id} is not listed")
        if counter.is_cancelled:
            return None
        if item["status"] != "running":
            return self.wrong(f"{box.id}: counter {counter.id} is {item}")
        complaint = read_on(self.api, handle.path, counter, wait="20s")
        if complaint:
            self.wrong(f"{box.id}: counter {counter.id}: {complaint}")
        return None

    def forget_gone(self):
        """What is known to have ended needs no look in every round."""
        with self.lock:
            for ident in [box.id for box in self.boxes.values() if box.is_gone]:
                del self.boxes[ident]


def read_on(api, path, counter, wait="0"):
    """More of a counter's output; the complaint, or None."""
    with counter.lock:
        before = counter.position
        answer = api.get(f"{path}/executions/{counter.id}/output?from={before}&encoding=base64&wait={wait}")
        if answer.status != 200:
            return str(answer)
        complaint = counter.feed(answer.json)
        if not complaint and wait != "0" and counter.position == before:
            complaint = f"nothing follows {before}: {answer}"
        return complaint
