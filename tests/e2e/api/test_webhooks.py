"""Webhooks against a real receiver: signed, in order, at least once, whatever happens in between."""
import itertools
import socket

import pytest

from support.daemon import Daemon, until
from support.receiver import Receiver

FLAGS = ("--webhook-allow-private", "--webhook-retry", "20ms", "--webhook-timeout", "1s")
NAMES = (f"hook-{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def served():
    with Daemon(*FLAGS) as daemon:
        yield daemon


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server


@pytest.fixture
def anna(served):
    """An owner of their own for each test: nobody hears of another test's events."""
    owner = f"owner-{next(NAMES)}"
    key = served.api.post("/keys", {"name": "hooks", "role": "user", "owner": owner}).must(201).json
    client = served.api.using(key["key"])
    client.owner = owner
    return client


def make(client, url, **more):
    return client.post("/webhooks", {"name": next(NAMES), "url": url, **more}).must(201).json


def cause(client, count=1):
    """So many events of the kind key.created, without a box."""
    return [client.post("/user/apikeys", {"name": f"made {n}"}).must(201).json["id"] for n in range(count)]


def look(client, hook):
    return client.get(f"/webhooks/{hook['id']}").must(200).json


def test_events_are_signed_and_in_order(anna, receiver):
    hook = make(anna, receiver.url, events=["key.*", "webhook.deleted"])
    assert hook["secret"].startswith("whsec_") and hook["status"] == "active"
    made = cause(anna, 8)
    got = receiver.wait_for(8)
    assert [one.json["data"]["subject"] for one in got] == made
    assert [one.seq for one in got] == sorted(one.seq for one in got)
    for one in got:
        assert one.is_signed_with(hook["secret"]) and not one.is_signed_with("x" * 20)
        assert one.kind == one.json["kind"] == "key.created" and one.json["owner"] == anna.owner
        assert one.headers["Content-Type"] == "application/json"
        assert one.headers["Holt-Delivery"] == f"{hook['id']}.{one.seq}" and one.headers["Holt-Webhook"] == hook["id"]
    # as the page of events has it
    page = {item["seq"]: item for item in anna.get("/events?limit=1000").must(200).json["items"]}
    assert all(one.json == page[one.seq] for one in got)
    shown = until(lambda: (now := look(anna, hook))["delivered"] == 8 and now, 10, "the count")
    assert "secret" not in shown and shown["failed"] == 0 and shown["deliveredAt"] and shown["lastError"] == ""
    assert all("secret" not in item for item in anna.get("/webhooks").must(200).json["items"])
    deliveries = anna.get(f"/webhooks/{hook['id']}/deliveries").must(200).json["items"]
    assert [one["status"] for one in deliveries] == ["delivered"] * 8 and deliveries[0]["httpStatus"] == 204
    assert deliveries[0]["seq"] == got[-1].seq


def test_what_fails_is_tried_again_in_its_order(anna, receiver):
    hook = make(anna, receiver.url, events=["key.created"])

    def hang_up(handler):
        handler.connection.shutdown(socket.SHUT_RDWR)

    receiver.answers.extend([500, 302, 404, hang_up, receiver.stall, 204])
    made = cause(anna, 2)
    got = receiver.wait_for(7)
    assert [one.json["data"]["subject"] for one in got] == [made[0]] * 6 + [made[1]]
    assert len({one.headers["Holt-Delivery"] for one in got}) == 2
    shown = until(lambda: (now := look(anna, hook))["delivered"] == 2 and now, 10, "both")
    assert shown["failed"] == 5 and shown["status"] == "active" and shown["missed"] == 0
    assert anna.get(f"/webhooks/{hook['id']}/deliveries").must(200).json["items"][1]["attempts"] == 6


def test_a_server_that_is_away_gets_everything_later(anna):
    receiver = Receiver()
    hook = make(anna, receiver.url, events=["key.created"])
    receiver.stop()
    made = cause(anna, 30)  # more than wait in memory
    shown = until(lambda: (now := look(anna, hook))["status"] == "failing" and now, 10, "failing")
    assert "onnection refused" in shown["lastError"]
    assert [item["status"] for item in anna.get("/webhooks").must(200).json["items"]] == ["failing"]
    receiver.start(receiver.port)
    try:
        got = receiver.wait_for(30)
        assert [one.json["data"]["subject"] for one in got] == made
        assert all("missed" not in one.json for one in got)
    finally:
        receiver.stop()


def test_one_that_does_not_answer_delays_nobody(anna, receiver):
    with Receiver() as slow:
        slow.status = slow.stall
        for _ in range(6):
            make(anna, slow.url, events=["key.created"])
        make(anna, receiver.url, events=["key.created"])
        cause(anna, 5)
        slow.wait_for(6)
        # all of them hang, and each of these comes at once: in less than one of their time limits
        receiver.wait_for(5)


def test_patterns_and_owners(served, anna, receiver):
    with Receiver() as other, Receiver() as everybody:
        make(anna, receiver.url, events=["key.revoked", "webhook.*"])
        bob = served.api.post("/keys", {"name": "b", "role": "user", "owner": anna.owner + "-b"}).must(201).json
        bob = served.api.using(bob["key"])
        make(bob, other.url)
        admins = make(served.api, everybody.url, events=["key.revoked"], allOwners=True)
        anna.post("/webhooks", {"name": "all", "url": receiver.url, "allOwners": True}).error(403)
        ident = cause(anna)[0]
        anna.delete(f"/user/apikeys/{ident}").must(204)
        mine = cause(bob)[0]
        assert {one.kind for one in receiver.wait_for(2)} == {"webhook.created", "key.revoked"}
        assert until(lambda: [one for one in other.got if one.kind == "key.created"], 10, "bob's own")
        assert {one.json["owner"] for one in other.got} == {anna.owner + "-b"}
        assert mine in {one.json["data"]["subject"] for one in other.got}
        assert until(lambda: [one for one in everybody.got if one.json["data"]["subject"] == ident], 10, "the admin's")
        served.api.delete(f"/webhooks/{admins['id']}").must(204)
        # another owner's is not there at all
        hook = make(anna, receiver.url)
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/deliveries")):
            bob.ask(method, f"/webhooks/{hook['id']}{path}", {} if method == "PATCH" else None).error(404)
        assert hook["id"] not in [item["id"] for item in bob.get("/webhooks").must(200).json["items"]]
        assert look(served.api, hook)["owner"] == anna.owner


def test_gone_is_disabled_and_can_be_enabled(anna, receiver):
    hook = make(anna, receiver.url, events=["key.created", "webhook.disabled"])
    receiver.answers.append(410)
    first = cause(anna)[0]
    until(lambda: look(anna, hook)["status"] == "gone", 10, "gone")
    until(lambda: anna.get("/events?kind=webhook.disabled").must(200).json["items"], 10, "its event")
    last = cause(anna)[0]
    assert len(receiver.got) == 1 and look(anna, hook)["enabled"] is False
    anna.patch(f"/webhooks/{hook['id']}", {"enabled": True}).must(200)
    got = receiver.wait_for(4)[1:]
    assert [one.json["data"]["subject"] for one in got] == [first, hook["id"], last]
    assert got[1].kind == "webhook.disabled"


def test_one_that_is_disabled_keeps_its_place(anna, receiver):
    hook = make(anna, receiver.url, events=["key.created"], enabled=False)
    made = cause(anna, 2)
    assert anna.post(f"/webhooks/{hook['id']}/test").must(200).json["delivered"] is True
    assert [one.kind for one in receiver.got] == ["webhook.ping"]
    anna.patch(f"/webhooks/{hook['id']}", {"enabled": True}).must(200)
    assert [one.json["data"].get("subject") for one in receiver.wait_for(3)[1:]] == made
    anna.patch(f"/webhooks/{hook['id']}", {"enabled": False}).must(200)
    late = cause(anna)[0]
    other = make(anna, receiver.url, events=["key.created"])
    last = cause(anna)[0]
    until(lambda: any(one.json["data"].get("subject") == last for one in receiver.got), 10, "the other's")
    assert late not in [one.json["data"].get("subject") for one in receiver.got]
    assert look(anna, hook)["status"] == "disabled" and look(anna, other)["status"] == "active"


def test_a_new_secret_signs_what_is_tried_again(anna, receiver):
    hook = make(anna, receiver.url, events=["key.created"], secret="my-own-secret-of-20")
    assert "secret" not in hook
    receiver.status = 500
    cause(anna)
    assert receiver.wait_for(1)[0].is_signed_with("my-own-secret-of-20")
    new = anna.patch(f"/webhooks/{hook['id']}", {"rotateSecret": True}).must(200).json["secret"]
    receiver.status = 204
    until(lambda: look(anna, hook)["delivered"] == 1, 10, "the delivery")
    assert receiver.got[-1].is_signed_with(new) and not receiver.got[-1].is_signed_with("my-own-secret-of-20")
    assert "secret" not in look(anna, hook)
    for body in ({"secret": "short"}, {"secret": "has a blank inside it"}, {"secret": "x" * 20, "rotateSecret": True}):
        anna.patch(f"/webhooks/{hook['id']}", body).error(400, field="secret")


def test_one_that_is_given_up_is_said(receiver):
    with Daemon("--webhook-give-up", "200ms", *FLAGS) as daemon:
        hook = make(daemon.api, receiver.url, events=["key.created"])
        receiver.answers.extend([500] * 5)
        receiver.status = 500
        made = cause(daemon.api, 2)
        until(lambda: look(daemon.api, hook)["givenUp"] == 2, 30, "giving up")
        receiver.status = 204
        last = cause(daemon.api)[0]
        got = until(lambda: [one for one in receiver.got if one.json["data"]["subject"] == last], 10, "the next")
        assert got[0].json["missed"] == 2
        shown = until(lambda: (now := look(daemon.api, hook))["delivered"] == 1 and now, 10, "the count")
        assert shown["missed"] == 2 and shown["status"] == "active"
        states = {item["seq"]: item for item in
                  daemon.api.get(f"/webhooks/{hook['id']}/deliveries").must(200).json["items"]}
        assert [item["status"] for item in states.values()] == ["delivered", "given_up", "given_up"]
        assert all(item["attempts"] >= 5 for item in list(states.values())[1:])
        # and only once
        before = len(receiver.got)
        cause(daemon.api)
        assert "missed" not in receiver.wait_for(before + 1)[-1].json
        metrics = daemon.api.get("/metrics").must(200).body.decode()
        assert 'holt_webhook_deliveries_total{result="given_up"} 2' in metrics
        assert "holt_webhook_queue_age_seconds" in metrics
        assert made


def test_nothing_is_lost_by_a_kill(receiver):
    with Daemon(*FLAGS) as daemon:
        hook = make(daemon.api, receiver.url, events=["key.created"])
        first = cause(daemon.api, 3)
        receiver.wait_for(3)
        receiver.status = 500
        second = cause(daemon.api, 25)
        until(lambda: second[-1] in [item["data"]["subject"] for item in
                                     daemon.api.get("/events?limit=1000").must(200).json["items"]], 10, "the log")
        receiver.wait_for(5)
        daemon.kill("keeper", "daemon", "launcher")
        daemon.wait_ended()
        receiver.status = 204
        before = len(receiver.got)
        daemon.start()
        third = cause(daemon.api, 2)
        until(lambda: receiver.got[-1].json["data"]["subject"] == third[-1], 30, "the last one")
        after = [one.json["data"]["subject"] for one in receiver.got[before:]]
        # some of what was delivered just before may come twice, all of the rest comes once, in order
        assert after[-27:] == second + third and set(after[:-27]) <= set(first)
        assert all(one.is_signed_with(hook["secret"]) and "missed" not in one.json for one in receiver.got)


def test_a_deletion_ends_it_also_while_one_is_under_way(served, anna, receiver):
    hook = make(anna, receiver.url, events=["key.created"])
    receiver.status = receiver.stall
    cause(anna, 3)
    receiver.wait_for(1)
    anna.delete(f"/webhooks/{hook['id']}").must(204)
    anna.get(f"/webhooks/{hook['id']}").error(404)
    receiver.over.set()
    receiver.status = 204
    make(anna, receiver.url, events=["key.revoked"])
    ident = cause(anna)[0]
    anna.delete(f"/user/apikeys/{ident}").must(204)
    assert [one.kind for one in receiver.wait_for(2)] == ["key.created", "key.revoked"]


def test_the_webhooks_of_a_user_go_with_them(served, anna, receiver):
    name = anna.owner + "-u"
    served.api.post("/users", {"name": name}).must(201)
    key = served.api.post("/keys", {"name": "u", "role": "user", "owner": name}).must(201).json
    hook = make(served.api.using(key["key"]), receiver.url, events=["user.*"])
    served.api.patch(f"/users/{name}", {"status": "disabled"}).must(200)
    served.api.patch(f"/users/{name}", {"status": "active"}).must(200)
    assert [one.json["data"]["status"] for one in receiver.wait_for(2)] == ["disabled", "active"]
    served.api.delete(f"/users/{name}").must(204)
    until(lambda: served.api.get(f"/webhooks/{hook['id']}").status == 404, 10, "its end")


def test_values_that_are_refused(served, anna, receiver):
    good = {"name": "good", "url": receiver.url}
    for field, value in (("url", "ftp://example.com/"), ("url", "https://"), ("url", "https://user:pw@example.com/"),
                         ("url", "https://example.com/#part"), ("url", "https://example.com/ x"), ("url", "/relative"),
                         ("url", "https://example.com/\r\nX: y"), ("url", "https://" + 2100 * "a"), ("url", ""),
                         ("events", ["nothing.*"]), ("events", ["sandbox.create*"]), ("events", ["*.created"]),
                         ("events", [""]), ("events", ["sandbox.created"] * 33), ("events", "sandbox.*"),
                         ("secret", "short"), ("secret", 300 * "x"), ("name", "bad/name"), ("enabled", "yes")):
        anna.post("/webhooks", {**good, field: value}).must(400)
    anna.post("/webhooks", good).must(201)
    anna.post("/webhooks", good).must(409)
    for n in range(31):
        anna.post("/webhooks", {"name": f"more-{n}", "url": receiver.url, "events": ["pool.*"]}).must(201)
    anna.post("/webhooks", {"name": "too-many", "url": receiver.url}).must(429)
    viewer = served.api.post("/keys", {"name": "v", "role": "viewer", "owner": anna.owner}).must(201).json
    served.api.using(viewer["key"]).get("/webhooks").error(403)


# --- where it may lead ------------------------------------------------------------------------------

PRIVATE = ["127.0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1",
           "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]",
           "[2002:7f00:1::]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1"]


def test_private_addresses_are_not_reached(receiver):
    with Daemon("--webhook-timeout", "5s") as daemon:
        api = daemon.api
        api.post("/webhooks", {"name": "plain", "url": receiver.url}).error(400, field="url")
        for host in PRIVATE:
            hook = make(api, f"https://{host}:{receiver.port}/", events=["webhook.ping"])
            answer = api.post(f"/webhooks/{hook['id']}/test").must(200).json
            assert answer["delivered"] is False and answer["httpStatus"] is None, host
            assert "public" in answer["error"], (host, answer)
            api.delete(f"/webhooks/{hook['id']}").must(204)
        assert receiver.got == []


def test_redirects_are_not_followed(anna, receiver):
    def redirect(handler):
        handler.send_response(307)
        handler.send_header("Location", f"http://127.0.0.1:{receiver.port}/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    hook = make(anna, receiver.url, events=["webhook.ping"])
    receiver.answers.append(redirect)
    answer = anna.post(f"/webhooks/{hook['id']}/test").must(200).json
    assert answer["delivered"] is False and answer["httpStatus"] == 307 and "redirect" in answer["error"]
    assert len(receiver.got) == 1


def test_secrets_and_bodies_stay_out_of_the_log(served, anna, receiver):
    secret = "a-secret-that-nobody-sees"
    hook = make(anna, receiver.url, events=["key.created"], secret=secret)
    receiver.answers.extend([500, 500])
    cause(anna)
    receiver.wait_for(3)
    assert secret not in served.log() and "?a=b" not in served.log()
    for path in (f"/webhooks/{hook['id']}", "/webhooks", f"/webhooks/{hook['id']}/deliveries"):
        assert secret.encode() not in anna.get(path).must(200).body
    served.api.delete(f"/webhooks/{hook['id']}").must(204)


def test_forgotten_events_are_said(receiver):
    with Daemon("--event-retention", "1s", *FLAGS) as daemon:
        hook = make(daemon.api, receiver.url, events=["key.created"], enabled=False)
        cause(daemon.api, 5)
        until(lambda: not daemon.api.get("/events?limit=10").must(200).json["items"], 60, "forgetting")
        daemon.api.patch(f"/webhooks/{hook['id']}", {"enabled": True}).must(200)
        cause(daemon.api)
        assert receiver.wait_for(1)[0].json["missed"] >= 5


def test_who_is_no_admin_any_more_hears_of_nobody_else(served, anna, receiver):
    name = anna.owner + "-admin"
    served.api.post("/users", {"name": name, "role": "admin"}).must(201)
    key = served.api.post("/keys", {"name": "a", "role": "admin", "owner": name}).must(201).json
    boss = served.api.using(key["key"])
    hook = make(boss, receiver.url, events=["key.revoked", "user.updated"], allOwners=True)
    first, second = cause(anna, 2)
    anna.delete(f"/user/apikeys/{first}").must(204)
    receiver.wait_for(1)
    served.api.patch(f"/users/{name}", {"role": "user"}).must(200)
    anna.delete(f"/user/apikeys/{second}").must(204)
    own = boss.post("/user/apikeys", {"name": "own", "role": "user"}).must(201).json["id"]
    boss.delete(f"/user/apikeys/{own}").must(204)
    until(lambda: receiver.got[-1].json["data"]["subject"] == own, 10, "their own")
    assert [one.json["data"]["subject"] for one in receiver.got] == [first, name, own]
    assert look(served.api, hook)["missed"] == 0
    served.api.delete(f"/users/{name}").must(204)
