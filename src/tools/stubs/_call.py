"""Calls tools outside this sandbox, over the one socket that leads there.

The sandbox needs no network and holds no key for it: who may call what is decided outside.
"""

import json
import os
import socket
import threading

SOCKET = "/holt/tools.sock"

_local = threading.local()


class ToolError(Exception):
    """A tool failed, or was refused. `code` is JSON-RPC's, or None when the tool itself failed."""

    def __init__(self, message, code=None, data=None, result=None):
        super().__init__(message)
        self.code = code
        self.data = data
        self.result = result


def _close():
    for thing in (getattr(_local, "file", None), getattr(_local, "socket", None)):
        if thing is not None:
            thing.close()
    _local.file = _local.socket = None


def _is_open():
    """One of this process's own, that its other end has not closed meanwhile."""
    s = getattr(_local, "socket", None)
    if s is None or _local.pid != os.getpid():
        return False
    try:
        s.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _connect():
    if _is_open():
        return
    _close()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        s.connect(SOCKET)
    except OSError as e:
        s.close()
        raise ToolError("this sandbox has no tools: " + str(e)) from e
    _local.socket, _local.file, _local.pid = s, s.makefile("rb"), os.getpid()
    _local.id = 0


def request(method, params):
    """One request, and its result; ToolError for an error."""
    _connect()
    _local.id += 1
    message = {"jsonrpc": "2.0", "id": _local.id, "method": method, "params": params}
    try:
        _local.socket.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")
        line = _local.file.readline()
    except BaseException as e:  # also an interrupt: the answer would be taken for another's
        _close()
        if isinstance(e, OSError):
            raise ToolError("the connection to the tools is lost: " + str(e)) from e
        raise
    if not line.endswith(b"\n"):
        _close()
        raise ToolError("the connection to the tools is lost")
    answer = json.loads(line)
    if "error" in answer:
        error = answer["error"]
        raise ToolError(error.get("message", ""), error.get("code"), error.get("data"))
    return answer["result"]


def call(server, tool, arguments):
    """Calls a tool by its names. What is `...` among the arguments was not given.

    Returns what the tool says in structure, or its text, or else its content as it came.
    """
    given = {name: value for name, value in arguments.items() if value is not ...}
    result = request("tools/call", {"server": server, "name": tool, "arguments": given})
    content = result.get("content") or []
    text = "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
    if result.get("isError"):
        raise ToolError(text or "the tool failed", result=result)
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    if all(part.get("type") == "text" for part in content):
        return text
    return content


def search(query="", detail="summary"):
    """Tools that fit the words best; detail is "name", "summary" or "full"."""
    return request("tools/search", {"query": query, "detail": detail})["tools"]
