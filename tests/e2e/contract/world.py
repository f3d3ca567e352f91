"""Things that are really there, for requests that are otherwise made up.

A made-up id is only ever 404. So about every other request is about a sandbox, an execution, a file
of a daemon of its own; whatever an earlier request did to them, they are made anew when they are gone.
"""
from support.daemon import until


class World:
    def __init__(self, api):
        self.api = api
        self.box = None
        self.execution = None
        self.started = 0

    def sandbox(self):
        status = self.box and self.api.get(f"/sandboxes/{self.box}/status")
        state = status.json["status"] if status and status.status == 200 else None
        if state == "paused":
            self.api.post(f"/sandboxes/{self.box}/resume").must(200, 409)
        elif state != "running":
            self.box = self.api.sandbox("bash", timeout="1h").id
            self.execution = None
        return self.box

    def running(self):
        """An execution that waits for input, with a terminal or without."""
        box = self.sandbox()
        answer = self.execution and self.api.get(f"/sandboxes/{box}/executions/{self.execution}")
        if not answer or answer.status != 200 or answer.json["status"] != "running":
            self.started += 1
            body = {"command": "cat", "stdin": True, "background": True, "timeout": "3s",
                    "pty": self.started % 2 == 0}
            made = self.api.post(f"/sandboxes/{box}/executions", body).must(202, 409, 429, 503)
            self.execution = made.json["executionId"] if made.status == 202 else "a" * 20
        return self.execution

    def key(self):
        return self.api.post("/keys", {"name": "to be revoked", "role": "viewer"}).must(201).json["id"]

    def webhook(self):
        """One that leads nowhere: its address is not public."""
        made = self.api.post("/webhooks", {"name": "made-up", "url": "https://127.0.0.1:9/", "events": ["pool.*"]})
        made.must(201, 409, 429)
        items = self.api.get("/webhooks?limit=500").must(200).json["items"]
        for item in items[4:]:
            self.api.delete(f"/webhooks/{item['id']}").must(204, 404, 409)
        return items[0]["id"] if items else "a" * 20

    def file(self):
        box = self.sandbox()
        self.api.put(f"/sandboxes/{box}/files/workspace/some", b"text\n" * 100).must(200, 201, 404, 409, 429)
        return "workspace/some"

    def tidy(self):
        """No more than a handful of sandboxes at once."""
        items = self.api.get("/sandboxes?limit=500").must(200).json["items"]
        for item in items if len(items) > 5 else []:
            if item["id"] != self.box:
                self.api.delete(f"/sandboxes/{item['id']}").must(204, 404, 409, 503)

    def leave(self):
        """What outlives sandboxes goes too."""
        def builds(*states):
            return [b for b in self.api.get("/templates/builds?limit=500").must(200).json["items"] if b["status"] in states]

        for one in builds("waiting", "building"):
            self.api.delete(f"/templates/builds/{one['id']}").must(204, 404, 409)
        until(lambda: not builds("waiting", "building"), what="the end of builds")
        self.api.delete("/templates/cache").must(204)
        for one in self.api.get("/templates?limit=500").must(200).json["items"]:
            if one["layers"]:
                self.api.delete(f"/templates/{one['id']}").must(204, 404)
        for path in ("/sandboxes", "/snapshots", "/volumes", "/webhooks"):
            answer = self.api.get(path + "?limit=500")
            for item in answer.json["items"] if answer.status == 200 else []:
                self.api.delete(f"{path}/{item['id']}").must(204, 404)


def calm(body):
    """A body without what makes one request last: waiting is tested elsewhere."""
    if isinstance(body, dict) and "timeout" in body and not isinstance(body["timeout"], (bool, dict, list)):
        body = {**body, "timeout": 1 if _seconds(body["timeout"]) > 1 else body["timeout"]}
    return body


def _seconds(value):
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str):
        return 0
    for unit, factor in units.items():
        number = value.removesuffix(unit)
        if number != value and number.replace(".", "", 1).isdigit():
            return float(number) * factor
    return float(value) if value.replace(".", "", 1).isdigit() and value.isascii() else 0
