"""An MCP server on standard input and output, with tools that do what a test needs."""
import json
import os
import sys
import time

TOOLS = {
    "echo": {"properties": {"message": {"type": "string", "description": "what to say"}}, "required": ["message"]},
    "add": {"properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
    "fail": {"properties": {}},
    "wait": {"properties": {}},
    "large": {"properties": {"bytes": {"type": "integer"}}},
    "secret": {"properties": {}},
    "guarded": {"properties": {"n": {"type": "integer"}}},
    "forbidden": {"properties": {}},
    "grow": {"properties": {}},
}
OUTPUT = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
ABOUT = {"echo": "Says it \"\"\" again */ ", "add": "Adds two numbers."}
MARKS = os.environ.get("MARKS")  # a directory: what came is noted there


def note(name, text=""):
    if MARKS:
        with open(os.path.join(MARKS, name), "a") as f:
            f.write(text + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def call(name, arguments):
    if name == "echo":
        return text(arguments["message"])
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return text(str(total), structuredContent={"sum": total})
    if name == "fail":
        return text("it went wrong", isError=True)
    if name == "large":
        return text("x" * arguments["bytes"])
    if name == "secret":
        return text("ok" if os.environ.get("SECRET") == "of-the-server" else "none")
    if name == "grow":
        TOOLS["grown"] = {"properties": {}}
        send({"method": "notifications/tools/list_changed"})
        return text("grown")
    return text(name + json.dumps(arguments, sort_keys=True))


def listed():
    tools = []
    for name, schema in TOOLS.items():
        tool = {"name": name, "description": ABOUT.get(name, "Does " + name + "."),
                "inputSchema": {"type": "object", **schema}}
        if name == "add":
            tool["outputSchema"] = OUTPUT
        tools.append(tool)
    return {"tools": tools}


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "fake", "version": "1"}}
    if method == "tools/list":
        return listed()
    if method == "tools/call":
        note("called", json.dumps([params["name"], params.get("arguments")]))
        return None if params["name"] == "wait" else call(params["name"], params.get("arguments") or {})
    if method == "ping":
        return {}
    raise LookupError(method)


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        note("cancelled", json.dumps(message["params"]))
    if "id" not in message or "method" not in message:
        continue
    try:
        result = answer(message)
        if result is not None:
            send({"id": message["id"], "result": result})
    except LookupError:
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
