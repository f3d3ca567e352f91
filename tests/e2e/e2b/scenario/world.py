"""The sandboxes of one run of the scenario, the table of features, and what waits for what must happen."""
import http.client
import inspect
import os
import time
import urllib.parse

import e2b
from e2b import Sandbox

FEATURES = []
DAEMON = urllib.parse.urlsplit(os.environ["E2B_API_URL"])


class World:
    """The sandboxes of this run: one for all that leave it as it was."""

    def __init__(self):
        self.made, self.shared, self.mark = [], None, f"py-{os.getpid()}"

    @property
    def box(self):
        self.shared = self.shared or self.create()
        return self.shared

    def create(self, **opts):
        return self.keep(Sandbox.create("base", **{"timeout": 300, **opts}))

    def keep(self, box):
        self.made.append(box)
        return box

    def leave(self):
        for box in self.made:
            Sandbox.kill(box.sandbox_id)


def feature(name, *has):
    """`has`: what must hold of the SDK, asked when it is this feature's turn."""
    def add(function):
        FEATURES.append((name, has, function))
        return function
    return add


def takes(path, parameter=None):
    """Does the SDK have this call, with this parameter?"""
    target = e2b
    for part in path.split("."):
        target = getattr(target, part, None)
        if target is None:
            return False
    if not parameter:
        return True
    while hasattr(target, "__wrapped__"):
        target = target.__wrapped__
    return parameter in inspect.signature(getattr(target, "__func__", target)).parameters


def until(condition, what):
    end = time.monotonic() + 60
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not happen within 60 s"
        time.sleep(0.025)


def failure(kind, call, *args, **more):
    try:
        call(*args, **more)
    except kind as error:
        return error
    raise AssertionError("it did not fail")


def ask(url, method="GET", body=None, headers=None):
    """A request to the daemon for whatever host the URL names: sandboxes are not in this machine's DNS."""
    wanted = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(DAEMON.hostname, DAEMON.port, timeout=60)
    line.request(method, f"{wanted.path}?{wanted.query}", body=body, headers={"Host": wanted.netloc, **(headers or {})})
    answer = line.getresponse()
    return answer.status, answer.read()
