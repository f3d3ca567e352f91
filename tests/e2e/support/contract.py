"""The published contract: every answer that a test gets is held against it.

The document is what `holt openapi` prints. Where it leaves room for answers to grow, tests do not: a
field that no schema names is a mistake.
"""
import functools
import json
import os
import re
import subprocess
import urllib.parse

import jsonschema

from support.local import HOLT

# Of any request that is no good HTTP, whatever it was for: the document says so once.
ANYWHERE = {405, 408, 411, 414, 417, 431, 501, 505}
METHODS = ("get", "put", "post", "patch", "delete")


@functools.cache
def document():
    done = subprocess.run([HOLT, "openapi"], stdout=subprocess.PIPE, check=True, env=os.environ | {"LANG": "C.UTF-8"})
    return json.loads(done.stdout)


def closed(schema):
    """The same schema without room for more."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(part) for name, part in schema.items()}
    if "properties" in made and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


@functools.cache
def operations():
    """(method, pattern of the path, template, operation), those with fewer parameters first."""
    found = []
    for template, methods in document()["paths"].items():
        pattern = re.sub(r"\\{path\\}$", ".*", re.escape(template))
        pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", pattern))
        for method in METHODS:
            if method in methods:
                found.append((method, pattern, template, methods[method]))
    return sorted(found, key=lambda row: row[2].count("{"))


def find(method, path):
    """The operation and its template; None for what there is none for."""
    method = "get" if method == "HEAD" else method.lower()
    path = urllib.parse.urlsplit(path).path
    for one, pattern, template, operation in operations():
        if one == method and pattern.fullmatch(path):
            return template, operation
    return None


@functools.cache
def validator(ref):
    schemas = closed({"schemas": document()["components"]["schemas"]})
    return jsonschema.Draft202012Validator({"$ref": ref, "components": schemas})


def check(method, path, status, headers, body):
    """Insists that the contract allows this answer."""
    found = find(method, path)
    if not found or status in ANYWHERE:
        return
    template, operation = found
    where = f"{method} {template}: {status}"
    answers = operation["responses"]
    assert str(status) in answers, f"{where} is in no contract: {body[:300]!r}"
    content = answers[str(status)].get("content", {})
    kind = headers.get("Content-Type", "").partition(";")[0]
    if not content or method == "HEAD":
        assert method == "HEAD" or not body, f"{where} has a body: {body[:300]!r}"
        return
    kinds = {name.partition(";")[0]: name for name in content}
    assert kind in kinds, f"{where} has the type {kind!r}, not one of {sorted(kinds)}"
    schema = content[kinds[kind]].get("schema", {})
    if kind == "application/json" and "$ref" in schema:
        problems = list(validator(schema["$ref"]).iter_errors(json.loads(body)))
        assert not problems, f"{where}: {[(list(p.path), p.message) for p in problems]} in {body[:600]!r}"


# --- which operations were used ------------------------------------------------------------------

USED = set()  # (method, template) of what answered with success, of every daemon so far


def note_used(metrics):
    """From the daemon's own count of requests: it sees WebSockets and raw sockets too."""
    for line in metrics.splitlines():
        if line.startswith("holt_http_request_seconds_count{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels["status"] in ("1xx", "2xx") and not line.endswith(" 0"):
                USED.add((labels["method"].lower(), re.sub(r"[:*](\w+)", r"{\1}", labels["route"])))


def unused():
    return sorted({(method, template) for method, _, template, _ in operations()} - USED)
