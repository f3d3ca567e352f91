"""What ends while it is being ended: calls, streams and the daemon itself."""
import json

from support.daemon import Daemon, until
from support.mcp import Modern

STUBBORN = "trap 'touch /workspace/asked' TERM; touch /workspace/runs; while :; do sleep 0.2; done"


def is_there(daemon, box, name):
    return daemon.api.get(f"/sandboxes/{box}/files/workspace/{name}").status == 200


def test_the_daemon_ends_while_a_call_is_being_cancelled():
    with Daemon() as daemon:
        box = daemon.api.post("/sandboxes", {}).must(201).json["id"]
        modern = Modern(daemon)
        message = modern.message("tools/call", {"name": "exec", "arguments": {"command": STUBBORN, "sandbox_id": box}})
        connection = modern.connect()
        connection.request("POST", "/mcp", body=json.dumps(message), headers={
            **modern.headers(message), "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json", "Authorization": f"Bearer {modern.key}"})
        until(lambda: is_there(daemon, box, "runs"), what="the command")
        connection.close()  # nobody wants it any more
        until(lambda: is_there(daemon, box, "asked"), what="the signal")
        daemon.stop()
        assert daemon.complaints() == []
        daemon.start()
