"""Requests made up from the contract, good and bad ones (schemathesis), against a real daemon.

None may be answered with a 5xx, or with a status, a type or a shape that the contract does not name. The same requests every time: what is random has a fixed seed.
"""
import os

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis import GenerationMode, checks

from contract.world import calm
from support import contract

EXAMPLES = int(os.environ.get("EXAMPLES", "20"))  # of each operation
SECONDS = 60

schemathesis.serializer.alias("application/x-tar", "application/octet-stream")
schema = schemathesis.openapi.from_dict(contract.document())
schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])

CHECKS = [checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
          checks.response_schema_conformance]


def test_the_document_is_valid():
    OpenAPIV31SpecValidator(contract.document()).validate()


def is_endless(context):
    """Event streams without an end, and WebSockets: an HTTP client would wait for ever."""
    operation = context.operation.definition.raw
    good = operation["responses"].get("200", {}).get("content", {})
    return list(good) == ["text/event-stream"] or operation.get("x-websocket", False)


def place(world, case):
    """Puts real things in the place of made-up ones, but for some: those are the 404s."""
    made_up = case.path_parameters or {}
    if not made_up or sum(len(str(value)) for value in made_up.values()) % 4 == 3:
        return
    path = case.operation.path
    if path.startswith("/api/v1/sandboxes/{id}"):
        made_up["id"] = world.sandbox()
    if "eid" in made_up:
        made_up["eid"] = world.running()
    if "kid" in made_up:
        made_up["kid"] = world.key()
    if "wid" in made_up:
        made_up["wid"] = world.webhook()
    if path.endswith("/files/{path}") and len(str(made_up.get("path"))) % 2:
        made_up["path"] = world.file()
    case.path_parameters = made_up


@schema.exclude(is_endless).parametrize()
@hypothesis.settings(max_examples=EXAMPLES, derandomize=True, deadline=None, database=None,
                     suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
def test_no_request_is_answered_in_another_way_than_the_contract_says(world, case):
    place(world, case)
    case.body = calm(case.body)
    if case.query and ("timeout" in case.query or "wait" in case.query):
        case.query = {name: value for name, value in case.query.items() if name not in ("timeout", "wait")}
    case.call_and_validate(base_url=f"http://127.0.0.1:{world.api.target.port}", checks=CHECKS,
                           headers={"Authorization": f"Bearer {world.api.key}"}, timeout=SECONDS)
    world.tidy()
