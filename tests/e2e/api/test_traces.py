"""Traces: one from a request's head to the command in the box, as a collector gets it."""
import json
import re
import secrets

import pytest
from support.collector import Collector
from support.daemon import Daemon, until

PARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-(0[0-3])")
CREATE = "POST /api/v1/sandboxes"
EXECUTE = "POST /api/v1/sandboxes/:id/execute"


@pytest.fixture(scope="module")
def collector():
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def daemon(collector):
    env = {"HOLT_OTLP_ENDPOINT": collector.url, "HOLT_OTLP_HEADERS": "authorization=Bearer%20s3cret"}
    with Daemon("--otlp-service", "boxes", "--otlp-interval", "50ms", "--registry-pip", "http://127.0.0.1:1/simple/",
                "--registry-allow-private", env=env) as running:
        yield running


def parent(flags="01"):
    """A trace that begins with us: its id, our span's, the header."""
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    return trace, span, {"traceparent": f"00-{trace}-{span}-{flags}"}


def place(answer):
    """The trace and the span that an answer names."""
    return PARENT.fullmatch(answer.headers["traceparent"]).groups()


def of_name(spans, name):
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, spans
    return found[0]


def metric(api, result):
    text = api.get("/metrics").must(200).body.decode()
    found = re.search(rf'^holt_trace_spans_total{{result="{result}"}} (\d+)$', text, re.M)
    return int(found[1]) if found else 0


def test_one_trace_goes_from_the_request_into_the_box(api, collector):
    trace, ours, headers = parent()
    made = api.post("/sandboxes", {"useWarmPool": False}, headers=headers).must(201)
    box = made.json["id"]
    assert place(made)[0] == trace and place(made)[1] != ours
    ran = api.post(f"/sandboxes/{box}/execute", {"content": "echo $TRACEPARENT; exit 3", "type": "command"},
                   headers=headers).must(200)
    written = api.ask("PUT", f"/sandboxes/{box}/files/workspace/secret-name", body=b"secret content",
                      headers={**headers, "Content-Type": "application/octet-stream"}).must(201)
    spans = collector.wait(trace, lambda spans: sum(span.kind == 2 for span in spans) == 3)
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        assert span.resource["service.name"] == "boxes"
        assert span.start <= span.end
        if span.kind == 2:
            assert span.parent == ours
        else:
            above = by_id[span.parent]
            assert above.start <= span.start and span.end <= above.end, (above, span)
    servers = {span.name: span for span in spans if span.kind == 2}
    for answer, name, status in [(made, CREATE, 201), (ran, EXECUTE, 200),
                                 (written, "PUT /api/v1/sandboxes/:id/files/*path", 201)]:
        assert servers[name].id == place(answer)[1]
        assert servers[name].attributes["http.response.status_code"] == status
        assert servers[name].attributes["holt.request.id"] == answer.headers["X-Request-Id"]
        assert not servers[name].failed
        assert len([span for span in spans if span.name == "auth" and span.parent == servers[name].id]) == 1
    create = of_name(spans, "sandbox.create")
    assert create.parent == servers[CREATE].id and create.attributes["holt.sandbox.id"] == box
    claim = of_name(spans, "sandbox.claim")
    assert claim.parent == create.id and claim.attributes["holt.warm"] is False
    assert {span.name for span in spans if span.parent == claim.id} >= {"launch.clone", "launch.ready"}
    assert {span.name for span in spans if span.parent == create.id} == {"sandbox.claim", "guest.connect", "store.write"}
    run = of_name(spans, "execution")
    assert run.parent == servers[EXECUTE].id and not run.failed
    assert run.attributes["process.exit.code"] == 3 and run.attributes["holt.execution.id"] == ran.json["executionId"]
    assert ran.json["stdout"] == f"00-{trace}-{run.id}-01\n"
    assert of_name(spans, "file.write").parent == place(written)[1]
    api.delete(f"/sandboxes/{box}").must(204)
    assert not re.search("secret|exit 3", json.dumps([span.raw for span in spans]))


def test_the_collectors_token_is_sent_and_not_shown(api, daemon, collector):
    api.get("/user").must(200)
    until(lambda: collector.headers, 30, "a request")
    assert {headers["authorization"] for headers in collector.headers} == {"Bearer s3cret"}
    assert not any("traceparent" in headers for headers in collector.headers)
    assert "s3cret" not in daemon.log()


def test_without_a_parent_a_trace_begins_here(api, collector):
    answer = api.get("/sandboxes").must(200)
    trace, span, flags = place(answer)
    assert flags == "03"
    server = of_name(collector.wait_names(trace, "GET /api/v1/sandboxes"), "GET /api/v1/sandboxes")
    assert server.id == span and server.parent is None


@pytest.mark.parametrize("value", ["", "ff-{t}-{s}-01", "00-{t}-{s}-01-x", "00-{z}-{s}-01", "00-{T}-{s}-01", "00-{t}-{s}"])
def test_a_parent_that_is_none_is_as_if_there_were_none(api, value):
    trace = secrets.token_hex(15) + "ab"
    header = value.format(t=trace, T=trace.upper(), s=secrets.token_hex(8), z=32 * "0")
    assert place(api.get("/user", headers={"traceparent": header}).must(200))[0] != trace


def test_a_parent_of_a_later_version_is_taken(api):
    trace = secrets.token_hex(16)
    answer = api.get("/user", headers={"traceparent": f"cc-{trace}-{secrets.token_hex(8)}-01-what-comes"}).must(200)
    assert place(answer)[0] == trace


def test_what_the_caller_does_not_sample_is_not_told(api, collector, box):
    trace, _, headers = parent("00")
    ran = api.post(f"/sandboxes/{box.id}/execute", {"content": "echo -$TRACEPARENT-", "type": "command"},
                   headers=headers).must(200)
    assert place(ran)[0] == trace and place(ran)[2] == "00"
    assert ran.json["stdout"] == "--\n"
    after = place(api.get("/user").must(200))[0]
    collector.wait_names(after, "GET /api/v1/user")
    assert collector.spans(trace) == []


def test_the_users_own_variable_is_left_alone(api, box):
    _, _, headers = parent()
    ran = api.post(f"/sandboxes/{box.id}/execute", {"content": "echo $TRACEPARENT", "type": "command",
                                                  "env": {"TRACEPARENT": "mine"}}, headers=headers).must(200)
    assert ran.json["stdout"] == "mine\n"


def test_strangers_do_not_choose_to_be_told_of(api, collector):
    trace, _, headers = parent()
    answer = api.using("holt_" + 40 * "0").get("/user", headers=headers)
    answer.error(401)
    other = api.using("holt_" + 40 * "0").get("/user")
    other.error(401)
    refused = of_name(collector.wait_names(place(other)[0], "GET /api/v1/user"), "GET /api/v1/user")
    assert refused.attributes["http.response.status_code"] == 401
    assert collector.spans(trace) == []


def test_what_goes_wrong_is_said(api, collector, box):
    trace, _, headers = parent()
    ran = api.post(f"/sandboxes/{box.id}/execute", {"content": "sleep 60", "type": "command", "timeout": 1},
                   headers=headers).must(200)
    assert ran.json["timedOut"]
    api.get(f"/sandboxes/{box.id}/files/no/such/file", headers=headers).must(404)
    spans = collector.wait_names(trace, "execution", "file.stat")
    run, file = of_name(spans, "execution"), of_name(spans, "file.stat")
    assert run.failed and run.attributes["holt.execution.timed_out"] is True
    assert file.failed and file.raw["status"]["message"] == "No such file or directory"


def test_runs_of_a_context_are_spans(api, collector, box):
    trace, _, headers = parent()
    context = api.post(f"/sandboxes/{box.id}/contexts", {"language": "bash"}).must(201).json["contextId"]
    api.post(f"/sandboxes/{box.id}/contexts/{context}/run", {"code": "true"}, headers=headers).must(200)
    run = of_name(collector.wait_names(trace, "context.run"), "context.run")
    assert run.attributes["holt.context.id"] == context and run.attributes["holt.run.status"] == "ok"


def test_an_installation_of_packages_is_a_span(api, collector, python):
    trace, _, headers = parent()
    api.post(f"/sandboxes/{python.id}/packages", {"manager": "pip", "packages": ["no-such-thing"], "timeout": 30},
             headers=headers).must(200)  # nobody is there to install from, which takes its command a moment to say
    spans = collector.wait_names(trace, "package.install")
    install = of_name(spans, "package.install")
    assert install.attributes["holt.package.manager"] == "pip" and install.attributes["holt.package.count"] == 1
    assert of_name(spans, "execution").parent == install.id
    assert "no-such-thing" not in json.dumps([span.raw for span in spans])


def test_a_build_and_its_steps_are_spans(api, daemon, collector):
    trace, _, headers = parent()
    steps = [{"type": "RUN", "args": ["true"]}, {"type": "ENV", "args": ["A", "1"]}, {"type": "RUN", "args": ["exit 4"]}]
    built = api.post("/templates/builds", {"name": "traced", "from": "bash", "steps": steps}, headers=headers).must(202)
    spans = collector.wait_names(trace, "template.build")
    build = of_name(spans, "template.build")
    assert build.failed and build.attributes["holt.build.id"] == built.json["id"]
    found = sorted((span for span in spans if span.name == "build.step"), key=lambda span: span.start)
    assert all(span.parent == build.id for span in found)
    assert found[-1].failed and found[0].attributes["holt.build.type"] == "RUN"
    ended = api.get(f"/templates/builds/{built.json['id']}").must(200).json
    assert ended["status"] == "failed" and len(found) == 1 + sum(step["status"] == "done" for step in ended["steps"])
    api.delete("/templates/cache").must(204)
    until(lambda: not [left for left in daemon.leftovers() if "/layers/" in left], what="dropping layers")


def test_forks_are_spans_of_one(api, collector, box):
    trace, _, headers = parent()
    answer = api.post(f"/sandboxes/{box.id}/fork", {"count": 2}, headers=headers)
    if answer.status != 201:
        pytest.skip(f"this machine cannot: {answer.body}")
    for one in answer.json["items"]:
        api.delete(f"/sandboxes/{one['id']}").must(204)
    spans = collector.wait_names(trace, "sandbox.fork", "POST /api/v1/sandboxes/:id/fork")
    fork = of_name(spans, "sandbox.fork")
    assert of_name(spans, "layer.take").parent == fork.id
    assert sum(span.name == "sandbox.create" and span.parent == fork.id for span in spans) == 2


def test_a_background_execution_is_told_of_when_it_ends(api, collector, box):
    trace, _, headers = parent()
    started = api.post(f"/sandboxes/{box.id}/executions", {"command": "read x", "background": True, "stdin": True},
                       headers=headers).must(201, 202).json
    spans = collector.wait_names(trace, "store.write", "execution.start")
    assert not [span for span in spans if span.name == "execution"]
    api.delete(f"/sandboxes/{box.id}/executions/{started['executionId']}").must(200, 202, 204)
    run = of_name(collector.wait_names(trace, "execution"), "execution")
    assert run.attributes["holt.execution.result"] == "cancelled"


SERVER = """
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({k.lower(): v for k, v in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("traceparent", "the box's")
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", 8000), H).serve_forever()
"""


def reach(api, path, headers):
    """As a client of the port, whose answers are no part of the contract."""
    connection = api.connect()
    connection.request("GET", "/api/v1" + path, headers={"Authorization": f"Bearer {api.key}", **headers})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, json.loads(body) if answer.status == 200 else None


def test_a_server_in_the_box_is_told_of_the_proxys_span(api, collector, box):
    api.post(f"/sandboxes/{box.id}/executions", {"argv": ["python3", "-c", SERVER], "background": True}).must(201, 202)
    api.post(f"/sandboxes/{box.id}/ports", {"port": 8000}).must(201)
    path = f"/sandboxes/{box.id}/ports/8000/"
    until(lambda: reach(api, path, {})[1], 60, "the server")
    trace, ours, headers = parent()
    many = ",".join(f"vendor{n}={'v' * 100}" for n in range(30))
    for state, wanted in [("a=1 , b@c=2", "a=1,b@c=2"), (many, ",".join(many.split(",")[:4])), ("Not=One", None)]:
        got, seen = reach(api, path, {**headers, "tracestate": state})
        assert seen.get("tracestate") == wanted
        assert PARENT.fullmatch(seen["traceparent"])[1] == trace
        assert got.headers.get_all("traceparent") == [got.headers["traceparent"]] and place(got)[0] == trace
    proxy = collector.wait(trace, lambda spans: sum(span.name == "proxy" for span in spans) == 3)
    told = PARENT.fullmatch(seen["traceparent"])[2]
    mine = next(span for span in proxy if span.id == told)
    assert mine.name == "proxy" and mine.kind == 3 and mine.parent == place(got)[1]
    assert mine.attributes["http.response.status_code"] == 200


def test_a_huge_state_is_no_harm(api):
    _, _, headers = parent()
    api.get("/user", headers={**headers, "tracestate": ",".join(f"k{n}=v" for n in range(2000))}).must(200)
    api.get("/user", headers={**headers, "tracestate": "k=" + 8000 * "v"}).must(200)


def test_the_access_log_names_the_trace(api, daemon):
    trace, _, headers = parent()
    request = api.get("/user", headers=headers).must(200).headers["X-Request-Id"]
    line = until(lambda: next((line for line in daemon.log().splitlines() if request in line), None), 20, "the line")
    assert f"trace_id={trace}" in line


def test_what_is_sent_is_counted(api, collector):
    until(lambda: metric(api, "sent") >= 10, 30, "a count")
    assert metric(api, "dropped") == 0 and metric(api, "refused") == 0


def test_a_collector_that_is_busy_gets_them_later(api, collector):
    collector.answers[:] = [503, (429, {"Retry-After": "0"})]
    trace = place(api.get("/user").must(200))[0]
    collector.wait_names(trace, "GET /api/v1/user")
    assert collector.answers == []


def test_a_share_of_the_traces_a_restart_and_a_dead_collector():
    with Collector() as collector:
        with Daemon("--otlp-endpoint", collector.url, "--otlp-sample", "0", "--otlp-interval", "50ms") as daemon:
            assert place(daemon.api.get("/user").must(200))[2] == "02"
            last = parent()
            daemon.api.get("/user", headers=last[2]).must(200)
            daemon.stop()  # what is known is sent before the end
            assert {span.trace for span in collector.spans()} == {last[0]}
            daemon.start()
            again = parent()
            daemon.api.get("/user", headers=again[2]).must(200)
            collector.wait_names(again[0], "GET /api/v1/user")
            collector.die()
            for _ in range(20):
                daemon.api.get("/user", headers=parent()[2]).must(200)
            until(lambda: "traces do not reach the collector" in daemon.log(), 30, "the complaint")
            daemon.api.get("/user").must(200)


def test_without_a_collector_nothing_is_said_and_nothing_is_changed():
    with Daemon() as daemon:
        trace, _, headers = parent()
        answer = daemon.api.get("/user", headers=headers).must(200)
        assert answer.headers["traceparent"] is None
        box = daemon.api.sandbox()
        ran = daemon.api.post(f"/sandboxes/{box.id}/execute", {"content": "echo -$TRACEPARENT-", "type": "command"},
                              headers=headers).must(200)
        assert ran.json["stdout"] == "--\n"
        assert trace not in daemon.log()


def test_settings_that_cannot_be_are_refused_at_the_start():
    for env, words in [({"HOLT_OTLP_ENDPOINT": "collector:4318"}, "otlp_endpoint"),
                       ({"HOLT_OTLP_ENDPOINT": "http://127.0.0.1:1", "HOLT_OTLP_HEADERS": "tok3n"}, "otlp_headers"),
                       ({"HOLT_OTLP_ENDPOINT": "http://192.0.2.1", "HOLT_OTLP_HEADERS": "a=tok3n"}, "https://")]:
        daemon = Daemon(env=env)
        daemon.start(wait=False)
        assert daemon.process.wait(60) != 0
        assert words in daemon.log() and "tok3n" not in daemon.log()
        daemon.discard()
