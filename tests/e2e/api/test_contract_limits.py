"""Every bound that the contract names is reached, and every code of an error.

What is tried is read from the contract itself: a route or a field that is added is tried without a word
here. A code that is added needs a request in the table below.
"""
import pytest

from support import contract
from support.daemon import Daemon

MADE_UP = "a" * 20
JSON_MAX = 1 << 20  # max_json: a longer body is another error


# --- bodies --------------------------------------------------------------------------------------


def schema_of(ref):
    return contract.document()["components"]["schemas"][ref.rsplit("/", 1)[1]]


def types_of(schema):
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def good(schema):
    """The least that a schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = (types_of(schema) or ["string"])[0]
    if kind == "array":
        return [good(schema.get("items", {}))] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    return {"string": "a" * max(schema.get("minLength", 0), 1), "boolean": True, "object": fill(schema)}[kind]


def fill(schema):
    return {name: good(schema["properties"][name]) for name in schema.get("required", [])}


def beyond(schema):
    """Values that a schema does not take, each just beyond one of its bounds."""
    kinds = types_of(schema)
    if "enum" in schema:
        yield "no such choice"
    if not kinds:
        return
    if "null" not in kinds:
        yield None
    yield from {"string": [7, {}], "boolean": ["x", 7], "integer": ["no number", []], "number": ["no number", []],
                "array": ["x", {}], "object": ["x", []]}[kinds[0]]
    if "maximum" in schema:
        yield schema["maximum"] + (1 if kinds[0] == "integer" else 0.5)
    if schema.get("minimum", 0) > 0:
        yield schema["minimum"] - (1 if kinds[0] == "integer" else 0.001)
    if "maxLength" in schema and schema["maxLength"] < JSON_MAX // 2 and "enum" not in schema:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("minLength", 0) > 0:
        yield "a" * (schema["minLength"] - 1)
    if "maxItems" in schema and isinstance(schema.get("items"), dict):
        yield [good(schema["items"])] * (schema["maxItems"] + 1)
    if schema.get("minItems", 0) > 0:
        yield [good(schema["items"])] * (schema["minItems"] - 1)
    if "maxProperties" in schema:
        yield {f"k{n}": "v" for n in range(schema["maxProperties"] + 1)}
    if isinstance(schema.get("additionalProperties"), dict):
        yield {"k": 7}
        yield {"k": "v" * (schema["additionalProperties"]["maxLength"] + 1)}


def wrongs(schema, before=""):
    """(path of the field, body) of every way to be wrong in one place."""
    for name, part in schema.get("properties", {}).items():
        for value in beyond(part):
            yield before + name, {**fill(schema), name: value}
        for path, value in wrongs(part, f"{before}{name}.") if "properties" in part else ():
            yield path, {**fill(schema), name: value}
    yield before + "noSuchField", {**fill(schema), "noSuchField": 1}
    for name in schema.get("required", []):
        yield before + name, {key: value for key, value in fill(schema).items() if key != name}


def path_of(template):
    return "/".join(MADE_UP if part.startswith("{") else part for part in template.split("/"))


WITH_BODY = [(method.upper(), template, operation["requestBody"]["content"]["application/json"]["schema"]["$ref"])
             for method, _, template, operation in contract.operations()
             if "application/json" in operation.get("requestBody", {}).get("content", {})]


@pytest.mark.parametrize("method, template, ref", WITH_BODY)
def test_every_bound_of_every_field_is_held(api, method, template, ref):
    tried = 0
    for field, body in wrongs(schema_of(ref)):
        answer = api.ask(method, path_of(template), body)
        assert answer.status == 400, (field, str(body)[:300], answer)
        details = answer.json["error"]["details"]
        assert details and details["field"].startswith(field), (field, str(body)[:300], answer)
        tried += 1
    assert tried > 2


def test_a_body_longer_than_max_json_is_refused(api):
    api.post("/sandboxes", {"name": "a" * JSON_MAX}).error(413)


# --- queries -------------------------------------------------------------------------------------


def beyond_query(schema):
    if "enum" in schema:
        yield "nosuch"
    if schema["type"] == "boolean":
        yield "perhaps"
    if schema["type"] == "integer":
        yield from ("x", "-1", "1.5", "", str(schema["maximum"] + 1))
        if schema["minimum"] > 0:
            yield str(schema["minimum"] - 1)
    if "pattern" in schema:
        yield from ("x", "-1", "1e400h", "100000h")
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("minLength", 0) > 0:
        yield "a" * (schema["minLength"] - 1)


WITH_QUERY = [(method.upper(), template, [p for p in operation["parameters"] if p["in"] == "query"])
              for method, _, template, operation in contract.operations()
              if any(p["in"] == "query" for p in operation["parameters"])]


@pytest.mark.parametrize("method, template, parameters", WITH_QUERY, ids=lambda value: str(value)[:60])
def test_every_bound_of_every_query_parameter_is_held(api, method, template, parameters):
    for parameter in parameters:
        for value in beyond_query(parameter["schema"]):
            answer = api.ask(method, f"{path_of(template)}?{parameter['name']}={value}")
            assert answer.status == 400, (parameter["name"], value[:100], answer)
            assert answer.json["error"]["details"] == {"field": parameter["name"]}, answer


# --- codes ---------------------------------------------------------------------------------------


def too_many_sandboxes():
    with Daemon("--max-sandboxes", "1", "--pool-min", "0", "--pool-max", "0") as daemon:
        daemon.api.sandbox()
        return daemon.api.post("/sandboxes", {"template": "bash"})


def over_quota():
    with Daemon("--quota-sandboxes", "1") as daemon:
        made = daemon.api.post("/keys", {"name": "k", "role": "user", "owner": "somebody"}).must(201).json
        user = daemon.api.using(made["key"])
        user.sandbox()
        return user.post("/sandboxes", {"template": "bash"})


def too_many_executions(box):
    """128 at once is what a sandbox may have."""
    for _ in range(129):
        answer = box.api.post(f"{box.path}/executions", {"argv": ["/bin/sleep", "100"], "background": True})
        if answer.status != 202:
            return answer
    return answer


def nothing_listens(box):
    box.api.post(f"{box.path}/ports", {"port": 4000}).must(201)
    return box.api.get(f"{box.path}/ports/4000/")


def silence():
    """Something takes the connection and never says a word."""
    code = "import socket, time; s = socket.create_server(('127.0.0.1', 4001)); print('on', flush=True); time.sleep(300)"
    with Daemon("--port-answer-timeout", "1s") as daemon:
        box = daemon.api.sandbox()
        box.begin(argv=["python3", "-c", code]).wait_for_output("on")
        box.api.post(f"{box.path}/ports", {"port": 4001}).must(201)
        return box.api.get(f"{box.path}/ports/4001/")


# code: a request that is answered with it. None: no request leads there, and a unit test has it instead: an
# error that no table knows (test_api.c).
CODES = {
    "invalid_request": lambda api, box, key_for: api.post("/sandboxes", {"timeout": "soon"}),
    "unauthorized": lambda api, box, key_for: api.coming_from("127.77.0.1").using("holt_" + "0" * 40).get("/user"),
    "forbidden": lambda api, box, key_for: key_for("viewer").post("/sandboxes"),
    "not_found": lambda api, box, key_for: api.get("/sandboxes/" + MADE_UP),
    "conflict": lambda api, box, key_for: api.put(f"{box.path}/files/workspace", b"x"),
    "rate_limited": lambda api, box, key_for: too_many_sandboxes(),
    "service_unavailable": lambda api, box, key_for: too_many_executions(api.sandbox(resources={"pids": 400})),
    "quota_exceeded": lambda api, box, key_for: over_quota(),
    "bad_gateway": lambda api, box, key_for: nothing_listens(box),
    "gateway_timeout": lambda api, box, key_for: silence(),
    "internal_error": None,
}


def published_codes():
    return contract.document()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]


def test_the_table_above_has_every_code():
    assert set(published_codes()) == set(CODES)


@pytest.mark.parametrize("code", sorted(code for code, request in CODES.items() if request))
def test_every_code_can_be_reached(api, box, key_for, code):
    answer = CODES[code](api, box, key_for)
    assert answer.json["error"]["code"] == code, answer
