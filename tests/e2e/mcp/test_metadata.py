"""Where clients of ours find out whose tokens are taken here (RFC 9728)."""
import http.client
import json
import re

import pytest
from support.authority import Authority
from support.daemon import Daemon
from support.mcp import Modern
from support.provider import AUDIENCE, ISSUER, Provider

PLACE = "/.well-known/oauth-protected-resource"
BASE = "https://holt.example"


@pytest.fixture(scope="module")
def provider():
    with Provider() as running:
        running.add("ES256", "one")
        yield running


def flags(provider, audience):
    return ["--jwt-issuer", ISSUER, "--jwt-audience", audience, "--jwt-jwks", provider.url, "--public-url", BASE]


@pytest.fixture(scope="module")
def taking(provider):
    with Daemon(*flags(provider, BASE)) as running:
        yield running


def about(daemon, path, status=200):
    """Whoever asks: no key is needed for it."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    connection.request("GET", PLACE + path)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    assert answer.status == status, body
    return body


def ask(daemon, key):
    peer = Modern(daemon, key=key)
    message = peer.message("server/discover")
    return peer.ask("POST", message, peer.headers(message))


def test_a_refusal_says_where_tokens_come_from(taking, provider):
    refused = ask(taking, "holt_wrong")
    assert refused.status == 401
    where = re.fullmatch(r'Bearer resource_metadata="(.*)"', refused.headers["WWW-Authenticate"])
    assert where and where[1] == f"{BASE}{PLACE}/mcp"
    said = about(taking, "/mcp")
    assert said["authorization_servers"] == [ISSUER]
    assert said["bearer_methods_supported"] == ["header"]
    # A token for what stands there as the resource is one that is taken, and no other.
    assert ask(taking, provider.keys[0].token("anna", aud=said["resource"])).status == 200
    assert ask(taking, provider.keys[0].token("anna", aud="https://other.example")).status == 401


def test_each_address_has_a_resource_of_its_own_unless_the_audience_is_one(taking, provider):
    assert about(taking, "")["resource"] == about(taking, "/sandboxes/x/mcp")["resource"] == BASE
    with Daemon(*flags(provider, "holt")) as named:
        for path in ("/mcp", "/sandboxes/x/mcp"):
            assert about(named, path)["resource"] == BASE + path
        assert about(named, "")["resource"] == BASE + "/mcp"


def test_without_an_identity_provider_there_is_none(daemon):
    about(daemon, "/mcp", status=404)
    assert ask(daemon, "holt_wrong").headers["WWW-Authenticate"] == 'Bearer realm="holt"'


def test_a_published_client_logs_in_by_itself(clients, provider):
    asked = []

    def mint(form):
        asked.append(form["resource"])
        return provider.keys[0].token("anna", iss=authority.issuer)

    with Authority(mint=mint) as authority:
        with Daemon("--jwt-issuer", authority.issuer, "--jwt-audience", AUDIENCE, "--jwt-jwks", provider.url) as running:
            url = f"http://127.0.0.1:{running.port}/mcp"
            done = clients.node(clients.HERE / "scenario/oauth.mjs", MCP_URL=url)
            assert done.returncode == 0, done.stderr[-4000:]
            assert asked == [url]  # as the metadata says
            owners = {item["owner"] for item in running.api.get("/sandboxes").must(200).json["items"]}
            assert {owner.partition("~")[2] for owner in owners} == {"anna"}
