"""The contract: what is published is what is there, and all of it is tried by these tests.

That every answer keeps to it is checked where answers arrive: support/contract.py.
"""
import json

import pytest

from support import contract
from support.daemon import IS_ROOT


def test_the_daemon_publishes_what_the_program_prints(api):
    assert api.using(None).get("/openapi.json").must(200).json == contract.document()


def test_the_document_is_openapi_3_1():
    document = contract.document()
    assert document["openapi"] == "3.1.0"
    names = [operation["operationId"] for _, _, _, operation in contract.operations()]
    assert len(names) == len(set(names)) > 30
    for _, _, template, operation in contract.operations():
        assert operation["summary"] and operation["tags"], template


def test_every_reference_leads_somewhere():
    document = contract.document()
    schemas = document["components"]["schemas"]
    text = json.dumps(document)
    for part in text.split('"$ref": "')[1:]:
        ref = part.split('"', 1)[0]
        assert ref.removeprefix("#/components/schemas/") in schemas, ref


def test_every_schema_is_used():
    text = json.dumps(contract.document())
    for name in contract.document()["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


@pytest.mark.parametrize("status, body", [
    (200, b'{"items":[]}'), (200, b'{"items":[],"nextCursor":null,"more":1}'), (200, b'{"items":1,"nextCursor":null}'),
    (418, b"{}"), (200, b"[]")])
def test_what_breaks_the_contract_is_noticed(status, body):
    with pytest.raises(AssertionError):
        contract.check("GET", "/api/v1/keys", status, {"Content-Type": "application/json"}, body)


@pytest.mark.last
def test_every_operation_of_the_contract_is_used_by_some_test(daemon, whole_suite):
    daemon.note_used()
    # Volumes need root.
    assert [use for use in contract.unused() if IS_ROOT or "/volumes" not in use[1]] == []
