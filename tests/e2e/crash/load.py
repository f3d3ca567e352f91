"""A mixed load: several clients that use every kind of object and write down what was acknowledged."""
import http.client
import os
import random
import threading
import time

from support.client import Box
from world import Counter, read_on

BOXES_MAX = 8
COUNTERS_MAX = 2  # in each sandbox
REFUSALS = (503,)  # what a daemon may say that is busy with itself: nothing was done


class Lost(Exception):
    """The answer did not come: nobody knows what happened."""


class Client:
    """One thread. Files of a name are written by one client only, so their order is known."""

    def __init__(self, world, number, seed):
        self.world, self.api, self.number = world, world.api, number
        self.chance = random.Random(f"{seed}/{number}")
        self.made = 0

    def ask(self, method, path, value=None, body=None):
        try:
            return self.api.ask(method, path, value, body=body, seconds=60)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            raise Lost from problem

    def step(self):
        live = self.world.live()
        actions = [(self.create, 2 if len(live) < BOXES_MAX else 0)]
        if live:
            actions += [(self.count, 2), (self.read, 6), (self.upload, 5), (self.download, 3), (self.run, 4),
                        (self.pause, 1), (self.patch, 1), (self.cancel, 1), (self.delete, 1 if len(live) > 3 else 0)]
        action = self.chance.choices([row[0] for row in actions], [row[1] for row in actions])[0]
        if action == self.create:
            self.create()
        else:
            box = self.chance.choice(live)
            action(box, Box(self.api, {"id": box.id}))

    def judge(self, box, what, answer, *good):
        """True when it was done. A sandbox that another client pauses or deletes refuses with reason."""
        if answer.status in good:
            return True
        allowed = REFUSALS + ((409,) if box.states != {"running"} else ()) + ((404,) if box.may_be_gone else ())
        if answer.status not in allowed:
            self.world.wrong(f"{what} of {box.id} ({sorted(box.states)}): {answer}")
        return False

    def create(self):
        self.made += 1
        name = f"c{self.number}-{self.made}-{self.chance.randrange(1 << 30)}"
        template = self.chance.choice(["bash", "bash", "python"])
        try:
            answer = self.ask("POST", "/sandboxes", {"template": template, "name": name, "timeout": "2h",
                                                     "resources": {"memory": "64Mi", "pids": 40}})
        except Lost:
            self.world.unsure_names.add(name)
            raise
        if answer.status == 201:
            self.world.add(answer.json["id"], name)
        elif answer.status not in REFUSALS:
            self.world.wrong(f"create: {answer}")

    def count(self, box, handle):
        if len(box.counters) >= COUNTERS_MAX:
            return
        width = self.chance.choice(Counter.WIDTHS)
        answer = self.ask("POST", f"{handle.path}/executions", {"command": Counter.command(width), "background": True})
        if self.judge(box, "count", answer, 202):
            box.counters.append(Counter(answer.json["executionId"], width))

    def read(self, box, handle):
        for counter in box.counters[:]:
            try:
                complaint = read_on(self.api, handle.path, counter)
            except (OSError, http.client.HTTPException, ValueError) as problem:
                raise Lost from problem
            if complaint and not complaint.startswith("<503") and not counter.is_cancelled and not box.may_be_gone:
                self.world.wrong(f"{box.id}: counter {counter.id}: {complaint}")

    def upload(self, box, handle):
        name = f"/workspace/{self.number}/{self.chance.randrange(4)}"
        size = self.chance.choice([0, 100, 5000, 300000])
        data = self.chance.randbytes(size // 2) + os.urandom(size - size // 2)
        contents = box.files.setdefault(name, [None])
        contents.append(data)  # from now on it may have either
        answer = self.ask("PUT", handle.file(name), body=data)
        if self.judge(box, "upload", answer, 200, 201):
            contents[:] = [data]

    def download(self, box, handle):
        mine = [name for name in box.files if name.startswith(f"/workspace/{self.number}/")]
        if not mine:
            return
        name = self.chance.choice(mine)
        answer = self.ask("GET", handle.file(name))
        if answer.status == 404 and None in box.files[name]:
            return
        if self.judge(box, "download", answer, 200) and answer.body not in box.files[name]:
            self.world.wrong(f"{box.id}{name} has {len(answer.body)} bytes that nobody wrote")

    def run(self, box, handle):
        text = f"{self.chance.randrange(1 << 40)}\n"
        answer = self.ask("POST", f"{handle.path}/execute", {"type": "command", "content": f"echo {text}"})
        if self.judge(box, "run", answer, 200):
            if answer.json["stdout"] == text:
                box.done[answer.json["executionId"]] = text
            elif not box.may_be_gone:
                self.world.wrong(f"run in {box.id}: {answer}")

    def pause(self, box, handle):
        for what, state in (("pause", "paused"), ("resume", "running")):
            box.states = box.states | {"paused", "running"}
            answer = self.ask("POST", f"{handle.path}/{what}")
            if answer.status not in REFUSALS:
                self.judge(box, what, answer, 200)

    def patch(self, box, handle):
        wanted = {"n": str(self.chance.randrange(1 << 30)), "by": str(self.number)}
        with self.world.lock:
            box.metadata = box.metadata + [wanted]
        answer = self.ask("PATCH", handle.path, {"metadata": wanted})
        self.judge(box, "patch", answer, 200)

    def cancel(self, box, handle):
        if len(box.counters) < COUNTERS_MAX or self.chance.random() < 0.5:
            return
        counter = self.chance.choice(box.counters)
        counter.is_cancelled = True
        answer = self.ask("DELETE", f"{handle.path}/executions/{counter.id}")
        if self.judge(box, "cancel", answer, 204) and counter in box.counters:
            box.counters.remove(counter)

    def delete(self, box, handle):
        box.states = box.states | {"stopped"}
        answer = self.ask("DELETE", handle.path)
        if answer.status in (204, 404):
            box.states = {"stopped"}
        elif answer.status not in REFUSALS:
            self.world.wrong(f"delete of {box.id}: {answer}")


class Load:
    """Clients that work while the gate is open and stand still while it is closed."""

    def __init__(self, world, seed, count=4):
        self.world, self.open, self.is_over = world, threading.Event(), False
        self.lost = self.steps = 0
        self.threads = [threading.Thread(target=self.work, args=(Client(world, n, seed),), daemon=True)
                        for n in range(count)]
        self.idle = [threading.Event() for _ in range(count)]
        for event in self.idle:
            event.set()
        for thread in self.threads:
            thread.start()

    def work(self, client):
        while not self.is_over:
            if not self.open.wait(0.1):
                continue
            self.idle[client.number].clear()
            try:
                if self.open.is_set():
                    client.step()
                    self.steps += 1
            except Lost:
                self.lost += 1
                time.sleep(0.02)
            except Exception as problem:  # a defect of the test or of an answer: the check tells it
                self.world.wrong(f"client {client.number}: {problem!r}")
            finally:
                self.idle[client.number].set()

    def run(self):
        self.open.set()

    def halt(self):
        """Returns when nobody is doing anything."""
        self.open.clear()
        for event in self.idle:
            assert event.wait(120), "a client hangs"

    def finish(self):
        self.halt()
        self.is_over = True
        for thread in self.threads:
            thread.join(10)
