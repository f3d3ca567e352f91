"""Access tokens of an identity provider: who they let in, as whom, and for how long."""
import datetime
import hashlib
import itertools
import os
import time
import urllib.parse

import jwt
import pytest
from support.daemon import Daemon, until
from support.provider import AUDIENCE, ISSUER, Key, Provider

# Owners of tokens: what the issuer's name says, and what the token says.
SPACE = hashlib.sha256(ISSUER.encode()).hexdigest()[:8] + "~"
FLAGS = ["--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-role-claim", "role", "--jwt-skew", "2"]


@pytest.fixture(scope="module")
def provider():
    with Provider() as running:
        for alg in ("RS256", "ES256", "EdDSA"):
            running.add(alg, alg.lower())
        yield running


@pytest.fixture(scope="module")
def daemon(provider):
    with Daemon(*FLAGS, "--jwt-jwks", provider.url) as running:
        yield running


@pytest.mark.parametrize("alg", ["RS256", "ES256", "EdDSA"])
def test_a_token_of_each_algorithm_lets_its_owner_in(api, provider, alg):
    key = next(key for key in provider.keys if key.alg == alg)
    user = api.using(key.token("anna@example.org")).get("/user").must(200).json
    assert user["owner"] == f"{SPACE}anna@example.org" and user["role"] == "user"
    assert "admin" not in user["scopes"]


def test_keys_of_ours_go_on_beside_tokens(api):
    assert api.get("/user").must(200).json["role"] == "admin"
    api.using("holt_" + 40 * "0").get("/user").error(401)


def test_a_token_owns_nothing_of_a_local_owner_of_its_name(api, provider, key_for):
    for name, local in (("admin", api), ("eve", key_for("user", owner="eve"))):
        box = local.sandbox(name=f"of-{name}")
        theirs = api.using(provider.keys[2].token(name))
        assert theirs.get("/user").must(200).json["owner"] == SPACE + name
        for ident in (box.id, f"of-{name}"):
            theirs.get(f"/sandboxes/{ident}").error(404)
            theirs.delete(f"/sandboxes/{ident}").error(404)
        for what in ("/sandboxes", "/keys", "/volumes", "/webhooks", "/events", "/usage"):
            assert theirs.get(what).must(200).json["items"] == [], what
        own = theirs.sandbox(name=f"of-{name}")  # the name is free: it is another owner's
        assert local.get(f"/sandboxes/of-{name}").must(200).json["id"] == box.id
        own.delete().must(204)
        box.delete().must(204)


def test_no_local_name_is_in_the_space_of_a_provider(api):
    for name in ("~anna", "a~anna", "anna~", "0123456~anna", "0123456G~anna", SPACE, f"{SPACE}~anna", f"{SPACE}a~b"):
        api.post("/users", {"name": name}).error(400, field="name")
        api.post("/keys", {"name": "x", "owner": name}).error(400, field="owner")
    for name in ("a\nb", "\u007f"):
        api.post("/keys", {"name": "x", "owner": name}).error(400, field="owner")


def test_an_owner_of_a_token_can_have_a_record_quotas_and_be_shut_out(api, provider):
    name = f"{SPACE}auth0|5f7c8ec7"
    theirs = api.using(provider.keys[2].token("auth0|5f7c8ec7"))
    api.post("/users", {"name": name, "quota": {"sandboxes": 1}}).must(201)
    box = theirs.sandbox()
    assert theirs.post("/sandboxes", {"template": "bash"}).status in (403, 409, 429)
    assert theirs.get("/user").must(200).json["quota"]["sandboxes"] == 1
    kinds = [event["kind"] for event in theirs.get("/events").must(200).json["items"]]
    assert "sandbox.created" in kinds or kinds, kinds
    assert api.get(f"/usage?user={urllib.parse.quote(name)}&group=user").must(200)
    box.delete().must(204)
    api.patch(f"/users/{urllib.parse.quote(name)}", {"status": "disabled"}).must(200)
    theirs.get("/user").error(401)
    api.delete(f"/users/{urllib.parse.quote(name)}").must(204)
    theirs.get("/user").must(200)


def test_who_is_named_so_by_the_operator_is_the_local_owner(provider):
    """The way for those whose sandboxes, volumes and templates are from before, or who have keys as well."""
    with Daemon(*FLAGS, "--jwt-jwks", provider.url, "--jwt-local-owners", "old-anna,bob") as daemon:
        api = daemon.api
        assert api.using(provider.keys[2].token("old-anna")).get("/user").must(200).json["owner"] == "old-anna"
        assert api.using(provider.keys[2].token("admin")).get("/user").must(200).json["owner"] == f"{SPACE}admin"


def ends_of(*keys):
    return [datetime.datetime.fromisoformat(key["expiresAt"].replace("Z", "+00:00")).timestamp() for key in keys]


def test_keys_made_by_an_expiring_key_or_token_end_no_later(api, provider, box):
    made = api.post("/keys", {"name": "short", "owner": "admin", "role": "admin", "expiresIn": "1h"}).must(201).json
    maker, token = api.using(made["key"]), provider.keys[2].token("carl", exp=int(time.time()) + 100)
    for client, end in ((maker, ends_of(made)[0]), (api.using(token), time.time() + 110)):
        for path in ("/keys", "/user/apikeys"):
            for body in ({"name": "x"}, {"name": "x", "expiresIn": "9000h"}):
                assert ends_of(client.post(path, body).must(201).json)[0] <= end
    assert ends_of(maker.post(f"{box.path}/tokens", {}).must(201).json)[0] <= ends_of(made)[0]
    child = maker.post("/keys", {"name": "x", "expiresIn": "10s"}).must(201).json
    assert ends_of(child)[0] < ends_of(made)[0] - 3000
    assert api.post("/keys", {"name": "lasting"}).must(201).json["expiresAt"] is None


def test_keys_made_by_an_expiring_key_end_when_it_is_revoked():
    with Daemon() as daemon:
        api = daemon.api
        box = api.sandbox()
        made = api.post("/keys", {"name": "short", "role": "admin", "expiresIn": "1h"}).must(201).json
        maker = api.using(made["key"])
        child = maker.post("/keys", {"name": "child", "role": "admin"}).must(201).json
        grandchild = api.using(child["key"]).post("/keys", {"name": "grandchild"}).must(201).json
        token = maker.post(f"{box.path}/tokens", {}).must(201).json
        lasting = api.post("/keys", {"name": "lasting"}).must(201).json
        every = [made, child, grandchild, token]
        for key in every:
            api.using(key["key"]).get("/user").must(200)
        with api.using(token["key"]).events("GET", f"{box.path}/watch", seconds=30) as events:
            api.delete(f"/keys/{made['id']}").must(204)
            for _ in events:
                pass  # until the daemon ends it
        for _ in range(2):  # and after a restart
            for key in every:
                api.using(key["key"]).get("/user").error(401)
            api.using(lasting["key"]).get("/user").must(200)
            listed = {key["id"] for key in api.get("/keys").must(200).json["items"]}
            assert not listed & {key["id"] for key in every}
            daemon.stop()
            daemon.start()


def test_owners_of_tokens_have_their_own_sandboxes(api, provider):
    anna, bob = (api.using(provider.keys[2].token(owner)) for owner in ("anna", "bob"))
    box = anna.sandbox()
    assert box.execute("echo of anna").must(200).json["stdout"] == "of anna\n"
    bob.get(f"/sandboxes/{box.id}").error(404)
    assert [row["id"] for row in anna.get("/sandboxes").must(200).json["items"]] == [box.id]
    assert bob.get("/sandboxes").must(200).json["items"] == []
    box.delete().must(204)


def test_a_token_reaches_its_owner_s_ports(api, provider):
    anna, bob = (api.using(provider.keys[2].token(owner)) for owner in ("anna", "bob"))
    box = anna.sandbox()
    anna.post(f"{box.path}/ports", {"port": 3000}).must(201)
    assert "nothing listens there" in anna.get(f"{box.path}/ports/3000/").error(502, "bad_gateway")
    bob.get(f"{box.path}/ports/3000/").error(404)
    for who, status in ((anna, 502), (bob, 404)):
        who.ask("GET", f"{box.path}/tcp/3000", headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}).must(status)
    box.delete().must(204)


def test_what_is_wrong_with_a_token_is_refused_and_said(api, provider):
    key = provider.keys[2]
    now = int(time.time())
    for claims, words in [({"aud": "another"}, "audience"), ({"iss": "https://evil.example"}, "issuer"),
                          ({"exp": now - 10}, "expired"), ({"exp": None}, "no exp"), ({"nbf": now + 60}, "not yet"),
                          ({"iat": now + 60}, "not yet"), ({"sub": "../root"}, "owner"), ({"sub": None}, "owner")]:
        assert words in api.using(key.token(**claims)).get("/user").error(401)
    stranger = Key("EdDSA", key.kid)
    assert "signature" in api.using(stranger.token()).get("/user").error(401)
    hmac = jwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "exp": now + 60}, "x" * 32, "HS256",
                      headers={"kid": key.kid})
    assert "alg" in api.using(hmac).get("/user").error(401)


def test_a_claim_alone_makes_nobody_admin(api, provider):
    key = provider.keys[2]
    assert api.using(key.token(role="admin")).get("/user").must(200).json["role"] == "user"
    viewer = api.using(key.token(role="viewer"))
    assert viewer.get("/user").must(200).json["role"] == "viewer"
    viewer.post("/sandboxes", {}).error(403)


def test_scopes_of_a_token_narrow_what_it_may(api, provider):
    reader = api.using(provider.keys[2].token(scope="openid sandbox:read"))
    assert reader.get("/user").must(200).json["scopes"] == ["sandbox:read"]
    reader.get("/sandboxes").must(200)
    reader.post("/sandboxes", {}).error(403)


def test_a_stream_ends_when_its_token_does(api, provider):
    token = provider.keys[2].token("carl", exp=int(time.time()) + 2)
    box = api.using(provider.keys[2].token("carl")).sandbox()
    with api.using(token).events("GET", f"/sandboxes/{box.id}/watch") as events:
        for _ in events:
            pass
    box.delete().must(204)


def test_a_token_and_a_key_together_are_refused(api, provider):
    api.using(provider.keys[2].token()).get("/user", headers={"X-API-Key": api.key}).error(401)


def test_unknown_keys_do_not_flood_the_provider():
    with Provider() as provider:
        old = provider.add("ES256", "old")
        with Daemon(*FLAGS, "--jwt-jwks", provider.url) as daemon:
            api = daemon.api
            api.using(old.token()).get("/user").must(200)
            until(lambda: provider.asked == 1, 5, "one question")
            # made up names: the provider was asked only just now, and is left alone
            for kid in range(20):
                assert "not known" in api.coming_from(f"127.9.0.{kid + 1}").using(
                    Key("EdDSA", f"k{kid}").token()).get("/user").error(401)
            assert provider.asked == 1


def test_keys_rotate_without_a_refusal():
    with Provider() as provider:
        old = provider.add("ES256", "old")
        with Daemon(*FLAGS, "--jwt-jwks", provider.url, "--jwt-refresh", "1s") as daemon:
            api = daemon.api
            api.using(old.token()).get("/user").must(200)
            # the provider fails: what is known goes on to be known
            provider.status = 500
            asked = provider.asked
            unknown = itertools.count(1)
            until(lambda: api.coming_from(f"127.9.1.{next(unknown) % 250 + 1}").using(
                Key("EdDSA", "made up").token()).get("/user").error(401) and provider.asked > asked, what="a question")
            api.using(old.token()).get("/user").must(200)
            provider.status = 200
            provider.keys.clear()
            new = provider.add("ES256", "new")
            until(lambda: api.coming_from(f"127.9.2.{next(unknown) % 250 + 1}").using(
                new.token()).get("/user").status == 200, what="the new key")
            api.using(old.token()).get("/user").error(401)


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path):
    provider = Provider()
    first = provider.add("RS256", "first")
    path = tmp_path / "jwks.json"
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == tmp_path.stat().st_uid and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)

    def write():
        (tmp_path / "next").write_text(provider.jwks())
        os.chmod(tmp_path / "next", 0o644)
        os.replace(tmp_path / "next", path)

    write()
    with Daemon(*FLAGS, "--jwt-jwks", str(path)) as daemon:
        daemon.api.using(first.token()).get("/user").must(200)
        provider.keys.clear()
        second = provider.add("EdDSA", "second")
        write()
        time.sleep(1.1)
        daemon.api.using(second.token()).get("/user").must(200)
        daemon.api.using(first.token()).get("/user").error(401)
        path.write_text("not JSON")
        time.sleep(1.1)
        daemon.api.using(Key("EdDSA", "third").token()).get("/user").error(401)
        daemon.api.using(second.token()).get("/user").must(200)


def test_an_admin_by_token_needs_the_setting_too():
    with Provider() as provider:
        key = provider.add("EdDSA", "k")
        with Daemon(*FLAGS, "--jwt-jwks", provider.url, "--jwt-admin") as daemon:
            assert daemon.api.using(key.token(role="admin")).get("/user").must(200).json["role"] == "admin"
            assert daemon.api.using(key.token()).get("/user").must(200).json["role"] == "user"
