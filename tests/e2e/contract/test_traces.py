"""What a collector gets is OTLP: read with the protocol's own schema, no field unknown."""
import base64
import json
import secrets

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from support.collector import Collector
from support.daemon import Daemon


def parse(body):
    """The protocol writes ids as hex; protobuf's own JSON would have base64."""
    value = json.loads(body)
    for resource in value["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(value, ExportTraceServiceRequest(), ignore_unknown_fields=False)


def test_what_is_sent_is_what_the_protocol_says():
    trace, ours = secrets.token_hex(16), secrets.token_hex(8)
    headers = {"traceparent": f"00-{trace}-{ours}-01"}
    with Collector() as collector, Daemon("--otlp-endpoint", collector.url, "--otlp-interval", "50ms") as daemon:
        box = daemon.api.post("/sandboxes", {}, headers=headers).must(201).json["id"]
        daemon.api.post(f"/sandboxes/{box}/execute", {"content": "exit 3", "type": "command"}, headers=headers).must(200)
        daemon.api.get(f"/sandboxes/{box}/files/none", headers=headers).must(404)
        collector.wait_names(trace, "sandbox.create", "execution", "file.stat", "GET /api/v1/sandboxes/:id/files/*path")
        spans = [span for body in collector.bodies for resource in parse(body).resource_spans
                 for scope in resource.scope_spans for span in scope.spans if span.trace_id.hex() == trace]
    assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) == 8 for span in spans)
    kinds = {span.name: span.kind for span in spans}
    assert kinds["POST /api/v1/sandboxes"] == trace_pb2.Span.SPAN_KIND_SERVER
    assert kinds["execution"] == trace_pb2.Span.SPAN_KIND_INTERNAL
    failed = [span.name for span in spans if span.status.code == trace_pb2.Status.STATUS_CODE_ERROR]
    assert failed == ["file.stat"]
    code = next(a.value.int_value for span in spans for a in span.attributes if a.key == "process.exit.code")
    assert code == 3
