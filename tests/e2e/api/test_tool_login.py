"""Others' MCP servers that want to know who we are: logins, client credentials, tokens of a file."""
import json
import urllib.error
import urllib.parse
import urllib.request

import pytest
from support.authority import Authority
from support.cli import Cli
from support.daemon import Daemon, until


def servers_of(tmp, **rows):
    file = tmp / "servers.json"
    file.write_text(json.dumps({"mcpServers": rows}))
    file.chmod(0o600)
    return file


def state(api, name):
    rows = api.get("/tools/servers").must(200).json["items"]
    return next(row for row in rows if row["name"] == name)


def wait_ready(api, name="tracker"):
    until(lambda: state(api, name)["status"] == "ready", what=f"a connection to {name}")


def call(api, name="tracker"):
    return api.post(f"/tools/{name}/echo/call", {}).must(200).json["content"]


def login(daemon, name="tracker"):
    """With the command, and a browser that follows where it is sent."""
    with Cli(daemon).begin("mcp", "login", name) as running:
        url = running.stdout.readline().decode().strip()
        with urllib.request.urlopen(url, timeout=60) as page:
            assert b"logged in" in page.read()
        assert running.wait(60) == 0, running.stderr.read()
    return url


@pytest.fixture(scope="module")
def authority():
    with Authority() as running:
        yield running


@pytest.fixture(scope="module")
def daemon(authority, tmp_path_factory):
    rows = {"tracker": {"url": authority.mcp_url, "auth": {"type": "login"}},
            "open": {"url": authority.mcp_url}}
    with Daemon("--mcp-servers-file", servers_of(tmp_path_factory.mktemp("login"), **rows)) as running:
        yield running


def test_nobody_is_logged_in_before_somebody_was(daemon):
    until(lambda: state(daemon.api, "tracker")["status"] == "waiting", what="the refusal")
    assert "holt mcp login" in state(daemon.api, "tracker")["error"]
    assert "log in" in daemon.api.post("/tools/tracker/echo/call", {}).error(503)


def test_a_login_is_for_all_calls_and_outlasts_a_restart(daemon, authority):
    url = login(daemon)
    assert url.startswith(authority.issuer + "/authorize?")
    wait_ready(daemon.api)
    assert call(daemon.api) == [{"type": "text", "text": "hello"}]
    logins = len(authority.requests("/authorize"))
    daemon.stop()
    daemon.start()
    wait_ready(daemon.api)
    assert call(daemon.api) == [{"type": "text", "text": "hello"}]
    assert len(authority.requests("/authorize")) == logins


def test_a_token_that_has_ended_is_refreshed_and_the_new_one_kept(daemon, authority):
    login(daemon)
    wait_ready(daemon.api)
    for _ in range(2):  # the second time with what the first refresh has given
        authority.tokens.clear()
        assert call(daemon.api) == [{"type": "text", "text": "hello"}]
    assert [form["grant_type"] for form in authority.forms()[-2:]] == ["refresh_token"] * 2
    daemon.stop()
    authority.tokens.clear()
    daemon.start()
    wait_ready(daemon.api)


def test_nothing_that_is_secret_is_logged_or_told(daemon, authority):
    login(daemon)
    wait_ready(daemon.api)
    authority.codes.clear()
    shown = daemon.log() + json.dumps(daemon.api.get("/tools/servers").json)
    shown += daemon.api.get("/audit?limit=500").body.decode() + daemon.api.get("/metrics").body.decode()
    seen = authority.secrets() | {form["code"] for form in authority.forms() if "code" in form}
    assert not [text for text in seen if text in shown]


def test_what_a_browser_brings_must_be_an_answer_to_what_was_asked(daemon, authority):
    with Cli(daemon).begin("mcp", "login", "tracker") as running:
        url = running.stdout.readline().decode().strip()
        back = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["redirect_uri"][0]
        for wrong, status in ((back + "?code=x&state=guess", 400), (back.replace("callback", "favicon.ico"), 404),
                              (back + "?" + "x" * 20000, None), (back, 404)):
            with pytest.raises((urllib.error.HTTPError, OSError)) as failed:
                urllib.request.urlopen(wrong, timeout=60)
            assert status is None or failed.value.code == status
        asked = len(authority.requests("/token"))
        with urllib.request.urlopen(url, timeout=60) as page:  # it was still open
            assert b"logged in" in page.read()
        assert running.wait(60) == 0
    assert len(authority.requests("/token")) == asked + 1


def test_another_issuer_s_answer_is_refused(daemon, authority):
    api = daemon.api
    url = api.post("/tools/servers/tracker/login", {"redirect_uri": "http://127.0.0.1:9/cb"}).must(200).json["url"]
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)
    asked = len(authority.requests("/token"))
    wrong = urllib.parse.urlencode({"code": "x", "state": query["state"][0], "iss": "https://evil.example"})
    assert "does not come from" in api.post("/tools/servers/tracker/login/finish", {"query": wrong}).error(
        502, "bad_gateway")
    assert len(authority.requests("/token")) == asked


def test_logins_are_for_admins_and_for_servers_that_want_one(daemon):
    api = daemon.api
    user = api.using(api.post("/keys", {"name": "u", "role": "user", "owner": "uma"}).must(201).json["key"])
    here = {"redirect_uri": "http://127.0.0.1:9/cb"}
    user.post("/tools/servers/tracker/login", here).error(403)
    user.post("/tools/servers/tracker/login/finish", {"query": "x"}).error(403)
    user.delete("/tools/servers/tracker/login").error(403)
    api.post("/tools/servers/nobody/login", here).error(404)
    api.post("/tools/servers/open/login", here).error(409)
    for wrong in ("http://evil.example/cb", "https://127.0.0.1/cb", "ftp://127.0.0.1/", "http://127.0.0.1.evil.example/"):
        api.post("/tools/servers/tracker/login", {"redirect_uri": wrong}).error(400)
    api.post("/tools/servers/tracker/login", {"redirect_uri": "x" * 300}).error(400, field="redirect_uri")
    api.post("/tools/servers/tracker/login/finish", {"query": "x" * 9000}).error(400, field="query")
    api.post("/tools/servers/tracker/login/finish", {"query": "code=1&state=2"}).error(400)


def test_a_logout_forgets_everything(daemon, authority):
    login(daemon)
    wait_ready(daemon.api)
    Cli(daemon).must("mcp", "logout", "tracker")
    daemon.stop()
    daemon.start()
    until(lambda: state(daemon.api, "tracker")["status"] == "waiting", what="the refusal")
    assert authority.requests("/mcp")[-1][3].get("Authorization") is None


# --- without anybody ---------------------------------------------------------------------------


def test_client_credentials_and_tokens_of_files_need_nobody():
    daemon = Daemon(env={"TRACKER_TOKEN": "at-of-a-file"})
    with Authority(apart=True) as authority:
        secret, fixed, vouched = (daemon.dir / name for name in ("secret", "token", "jwt"))
        secret.write_text("s3cr3t-of-a-client\n")
        fixed.write_text("at-of-a-file\n")
        vouched.write_text("jwt-of-a-workload")
        for file in (secret, fixed, vouched):
            file.chmod(0o644)  # the daemon is an account of its own
        authority.tokens.add("at-of-a-file")
        own = {"type": "client_credentials", "client_id": "me", "client_secret_file": str(secret)}
        rows = {"own": {"url": authority.mcp_url, "auth": {**own, "issuer": authority.issuer}},
                "fixed": {"url": authority.mcp_url, "auth": {"type": "bearer", "token_file": str(fixed)}},
                "named": {"url": authority.mcp_url, "auth": {"type": "bearer", "token": "${TRACKER_TOKEN}"}},
                "vouched": {"url": authority.mcp_url, "auth": {"type": "workload", "token_file": str(vouched),
                                                               "issuer": authority.issuer}},
                "elsewhere": {"url": authority.mcp_url, "auth": {**own, "issuer": "https://other.example"}},
                "unbound": {"url": authority.mcp_url, "auth": own},
                "private": {"url": authority.mcp_url, "auth": {"type": "login"}}}
        daemon.flags += ["--mcp-servers-file", servers_of(daemon.dir, **rows)]
        with daemon:
            for name in ("own", "fixed", "named", "vouched"):
                wait_ready(daemon.api, name)
                assert call(daemon.api, name) == [{"type": "text", "text": "hello"}]
            for name, why in (("elsewhere", "not the issuer"), ("unbound", "auth.issuer")):
                until(lambda name=name: state(daemon.api, name)["error"], what="the refusal")
                assert why in state(daemon.api, name)["error"]
            # What a server names may not lead into networks of ours, unless the operator says so.
            until(lambda: state(daemon.api, "private")["error"], what="the refusal")
            assert "public" in state(daemon.api, "private")["error"]
            assert not [text for text in ("s3cr3t", "at-of-a-file", "jwt-of-a") if text in daemon.log()]
        shown = [row for row in authority.asked if b"s3cr3t" in row[4]
                 or "s3cr3t" in json.dumps(row[3]) or "Basic" in json.dumps(row[3])]
        assert {row[2] for row in shown} == {"/token"} and {row[0] for row in shown} == {"as"}
