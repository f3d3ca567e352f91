"""What is the same on every route: bodies, errors, headers, lists; health, metrics, settings."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from support import machine
from support.daemon import HOLT, Daemon, until

REQUEST_ID = re.compile(r"^[a-z0-9]{20}$")


# --- bodies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    b"{", b"no", b'{"name":}', b'{"name":"a"', b"\xff\xfe", b'{"name":"\xff"}', b'{"name":"a","name":"b"}',
    b"[]", b'"x"', b"7", b"null", b"[" * 5000, b'{"a":' * 2000, b'{"timeout":1e999}', b'{"name":"a"} x',
    b"{'name':'a'}", b'{"name":"a",}', b"\xef\xbb\xbf{}"])
def test_what_is_no_json_object_is_refused(api, text):
    answer = api.ask("POST", "/sandboxes", body=text, headers={"Content-Type": "application/json"})
    assert answer.status == 400 and answer.json["error"]["code"] == "invalid_request", answer


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                                  "application/json2", "json", "multipart/form-data; boundary=x"])
def test_a_json_body_says_that_it_is_one(api, kind):
    headers = {"Content-Type": kind} if kind else {}
    api.ask("POST", "/sandboxes", body=b"{}", headers=headers).error(415)


def test_a_content_type_may_have_parameters_and_any_case(api):
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"):
        answer = api.ask("POST", "/sandboxes", body=b'{"template":"none"}', headers={"Content-Type": kind})
        answer.error(400, field="template")


def test_a_body_that_is_too_long_is_refused_however_it_comes(api):
    text = b'{"name":"' + b"a" * (1 << 20) + b'"}'
    api.ask("POST", "/sandboxes", body=text, headers={"Content-Type": "application/json"}).error(413)
    answer = api.ask("POST", "/sandboxes", body=iter([text[:700000], text[700000:]]),
                     headers={"Content-Type": "application/json"})
    answer.error(413)


def test_units_are_read_as_documented(api):
    for timeout, seconds in ((30, 30), (1.5, 1.5), ("2500ms", 2.5), ("30s", 30), ("10m", 600), ("2h", 7200)):
        value = api.post("/sandboxes", {"template": "bash", "timeout": timeout}).must(201).json
        assert value["timeout"] == seconds
        api.delete(f"/sandboxes/{value['id']}").must(204)
    for memory, size in ((134217728, 134217728), ("256Mi", 256 << 20), ("1G", 1 << 30)):
        value = api.post("/sandboxes", {"template": "bash", "resources": {"memory": memory}}).must(201).json
        assert value["resources"]["memory"] in (size, 10 ** 9 if memory == "1G" else size)
        api.delete(f"/sandboxes/{value['id']}").must(204)


# --- headers -------------------------------------------------------------------------------------


def test_every_answer_has_an_id_of_its_own(api):
    answers = [api.get("/healthz"), api.get("/user"), api.get("/nothing"), api.using(None).get("/user"),
               api.post("/sandboxes", {"x": 1})]
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert all(REQUEST_ID.match(ident) for ident in ids) and len(set(ids)) == len(ids)


@pytest.mark.parametrize("sent, back", [("abc-1.2:3_X", True), ("a" * 128, True), ("a" * 129, False),
                                        ("with space", False), ("ü", False), ("", False)])
def test_a_client_s_own_id_comes_back_when_it_is_harmless(api, daemon, sent, back):
    answer = api.get("/user", headers={"X-Request-Id": sent.encode("utf-8")}).must(200)
    assert answer.headers.get("X-Client-Request-Id") == (sent if back else None)
    if back:
        until(lambda: f"client_request={sent}" in daemon.log(), what="the record")


def test_one_connection_carries_many_requests(api):
    connection = api.connect()
    for _ in range(50):
        api.get("/user", connection=connection).must(200)
        api.get("/nothing", connection=connection).must(404)
        api.post("/sandboxes", {"x": 1}, connection=connection).must(400)
    connection.close()


# --- health and metrics --------------------------------------------------------------------------


def test_health_needs_no_key(api):
    nobody = api.using(None)
    version = nobody.get("/healthz").must(200).json
    assert sorted(version) == ["service", "status", "version"] and version["status"] == "ok"
    assert nobody.get("/readyz").must(200).json == {"status": "ok", "checks": {"launcher": "ok", "store": "ok"}}
    value = nobody.get("/health").must(200).json
    assert (value["status"], value["version"]) == ("ok", version["version"])
    assert nobody.ask("HEAD", "/healthz").must(200).body == b""


def samples(text):
    """Prometheus text as {name{labels}: value}; insists on its grammar."""
    found, kinds = {}, {}
    line_form = re.compile(r'^([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)$')
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds and kind in ("counter", "gauge", "histogram")
            kinds[name] = kind
        elif not line.startswith("#"):
            match = line_form.match(line)
            assert match, line
            base = re.sub(r"_(bucket|sum|count)$", "", match.group(1))
            assert match.group(1) in kinds or kinds.get(base) == "histogram", line
            assert line.rpartition(" ")[0] not in found, line
            found[line.rpartition(" ")[0]] = float(match.group(3))
    return found


def test_metrics_are_well_formed_and_count(api, key_for):
    before = samples(api.get("/metrics").must(200).body.decode())
    box = api.sandbox()
    box.run("true")
    box.begin("sleep 100")
    api.coming_from("127.0.0.77").using(None).get("/user").error(401)
    key_for("viewer").delete(box.path).error(403)
    answer = api.get("/metrics").must(200)
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    after = samples(answer.body.decode())

    def grew(name):
        return after.get(name, 0) - before.get(name, 0)
    assert grew('holt_denials_total{reason="unauthenticated"}') == 1
    assert grew('holt_denials_total{reason="forbidden"}') == 1
    assert grew('holt_sandboxes{state="running"}') == 1 and grew("holt_executions_running") == 1
    assert sum(grew(name) for name in after if name.startswith("holt_executions_total")) == 1
    assert after["process_resident_memory_bytes"] > 1 << 20 and after["process_open_fds"] > 3
    assert after["holt_metrics_lost_total"] == 0
    assert grew('holt_http_request_seconds_count{route="/api/v1/sandboxes",method="POST",status="2xx"}') == 1
    for name, value in after.items():
        if 'le="+Inf"' in name:
            count = name.replace("_bucket", "_count").replace(',le="+Inf"', "").replace('{le="+Inf"}', "")
            assert after[count] == value, name
    box.delete().must(204)


def test_ids_in_paths_make_no_series(api):
    for n in range(30):
        api.get(f"/sandboxes/none{n}").must(404)
        api.get(f"/strange{n}").must(404)
    text = api.get("/metrics").body.decode()
    assert "none7" not in text and "strange7" not in text


def test_the_pool_is_shown(api):
    value = api.get("/pool").must(200).json
    assert [sorted(item) for item in value["items"]] == \
        [["building", "claimed", "givenUp", "hits", "missed", "misses", "problem", "ready", "stuck", "target", "template"]] * len(value["items"])
    row = next(item for item in value["items"] if item["template"] == "python")
    assert row["target"] >= 2
    until(lambda: next(item for item in api.get("/pool").json["items"] if item["template"] == "python")["ready"] >= 1)
    box = api.sandbox("python")
    assert box.value["start"] == "warm"
    box.delete().must(204)


# --- other origins -------------------------------------------------------------------------------


def test_pages_of_other_origins_are_kept_out_unless_they_are_listed(api):
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = api.using(None).ask("OPTIONS", "/sandboxes", headers=preflight)
    assert not any(name.lower().startswith("access-control") for name in answer.headers)
    answer = api.get("/user", headers={"Origin": "https://app.example"}).must(200)
    assert "Access-Control-Allow-Origin" not in answer.headers
    with Daemon("--cors-origins", "https://app.example,http://localhost:3000", "--metrics-public") as other:
        api = other.api
        answer = api.using(None).ask("OPTIONS", "/sandboxes", headers=preflight).must(204)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
        answer = api.get("/user", headers={"Origin": "http://localhost:3000"}).must(200)
        assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
        assert "Origin" in answer.headers["Vary"]
        answer = api.get("/user", headers={"Origin": "https://evil.example"}).must(200)
        assert "Access-Control-Allow-Origin" not in answer.headers
        answer = api.using(None).ask("OPTIONS", "/sandboxes", headers={**preflight, "Origin": "https://evil.example"})
        assert answer.status == 403 and "Access-Control-Allow-Origin" not in answer.headers
        api.using(None).get("/metrics").must(200)


# --- secrets -------------------------------------------------------------------------------------


def test_secrets_are_in_no_log_no_metric_no_process_and_no_sandbox():
    value = "s3cr3t-0f-the-sandbox"
    with Daemon("--log-level", "debug") as daemon:
        api, keys = daemon.api, [daemon.key]
        keys.append(api.post("/keys", {"name": "x", "role": "user"}).must(201).json["key"])
        box = api.using(keys[1]).sandbox("python", env={"PASSWORD": value})
        box.code("python", "import os; os.environ['PASSWORD']")
        box.run("true", env={"PASSWORD": value}, stdin=value)
        from support.sockets import Socket
        with Socket(api, f"{box.path}/stream", by="token") as socket:
            socket.send({"type": "ping"})
            socket.next("pong")
        api.get("/user", headers={"X-API-Key": keys[0], "X-Request-Id": "mine"}).must(200)
        api.get(f"/sandboxes?token={keys[0]}&limit=x").must(400)
        api.get(f"{box.path}/files/etc/none?token={keys[1]}").must(404)
        seen = {"log": daemon.log(), "metrics": api.get("/metrics").body.decode(),
                "list": api.get("/sandboxes").body.decode() + api.get(box.path).body.decode()}
        seen["a sandbox's environment"] = box.run("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'",
                                                  env={"PASSWORD": "x"})["stdout"].replace(value, "")
        for pid in machine.pids():
            for name in ("cmdline", "environ"):
                try:
                    seen[f"{name} of {pid}"] = (machine.PROC / str(pid) / name).read_text(errors="replace")
                except OSError:
                    pass
        for where, text in seen.items():
            for key in keys:
                assert key not in text and key[5:] not in text, f"a key is in the {where}"
            if "of" not in where:
                assert value not in text, f"an environment's value is in the {where}"
        assert "DEBUG" in daemon.log() or " debug " in daemon.log()


# --- settings ------------------------------------------------------------------------------------


def run(*args, **more):
    env = {name: text for name, text in os.environ.items() if not name.startswith("HOLT_")}
    env.update(more.pop("env", {}))
    return subprocess.run([HOLT, *args], capture_output=True, text=True, timeout=30, env=env, **more)


def test_config_show_tells_every_value_and_where_it_came_from(tmp_path):
    file = tmp_path / "holt.yaml"
    file.write_text("max_sandboxes: 7\npool_min: 1\n")
    file.chmod(0o600)
    done = run("config", "show", "--config", str(file), "--pool-min", "3", cwd=tmp_path,
               env={"HOLT_EXEC_TIMEOUT": "5s", "HOLT_API_KEY": "holt_" + "a" * 40})
    assert done.returncode == 0, done
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert " 7" in rows["max_sandboxes"] and "holt.yaml" in rows["max_sandboxes"]
    assert " 3" in rows["pool_min"] and "5s" in rows["exec_timeout"]
    assert "***" in rows["api_key"] and "a" * 40 not in done.stdout


@pytest.mark.parametrize("flags, word", [
    (["--listen", "0.0.0.0:0"], "insecure"), (["--pool-min", "x"], "pool"), (["--no-such"], "--no-such"),
    (["--tls-cert", "/dev/null"], "tls"), (["--sandbox-timeout", "48h"], "timeout"),
    (["--cors-origins", "nonsense"], "origin"), (["--listen", "nonsense"], "listen")])
def test_a_daemon_with_bad_settings_does_not_start(tmp_path, flags, word):
    done = run("serve", "--state-dir", str(tmp_path / "s"), *flags)
    assert done.returncode not in (0, -11, -6) and word in done.stderr.lower(), done
    assert "Sanitizer" not in done.stderr


def test_two_daemons_never_share_a_state_directory(daemon):
    done = run("serve", "--state-dir", str(daemon.state_dir), "--listen", "127.0.0.1:0")
    assert done.returncode != 0 and "use" in done.stderr, done
    daemon.api.get("/readyz").must(200)


def test_a_port_in_use_is_told(daemon, tmp_path):
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:3]:
        if parent != pathlib.Path("/tmp"):
            parent.chmod(0o755)
    done = run("serve", "--state-dir", str(tmp_path / "s"), "--listen", f"127.0.0.1:{daemon.port}")
    assert done.returncode != 0 and "in use" in done.stderr.lower(), done


def test_logs_can_be_json():
    with Daemon("--log-format", "json") as daemon:
        daemon.api.get("/nothing").must(404)
        until(lambda: "404" in daemon.log(), what="the record")
        lines = [json.loads(line) for line in daemon.log().splitlines()]
        assert any(line.get("status") == 404 for line in lines), lines
