"""The audit log: what is in it, and that nobody changes it unnoticed."""
import contextlib
import sqlite3
import threading

from support.chain import all_lines, first_bad
from support.daemon import Daemon, until


def lines_of(api, **wanted):
    return [line for line in all_lines(api)[0]
            if all(line["data"].get(key, line.get(key)) == value for key, value in wanted.items())]


def test_every_change_and_every_refusal_is_a_line(api, key_for):
    anna, bob = key_for("user", owner="audit-anna"), key_for("viewer", owner="audit-bob")
    box = anna.sandbox()
    ran = box.run("true")
    bob.post("/sandboxes", {}).error(403)
    bob.get(box.path).error(404)
    api.using("holt_" + 40 * "1").get("/sandboxes").error(401)
    box.get()
    box.delete().must(204)
    until(lambda: lines_of(api, owner="audit-anna", method="DELETE"), 10, "the last line")
    mine = lines_of(api, owner="audit-anna")
    assert [(line["kind"], line["data"]["method"], line["data"]["status"]) for line in mine] == [
        ("call", "POST", 201), ("call", "POST", 200), ("call", "DELETE", 204)]
    assert mine[1]["data"]["route"] == "/api/v1/sandboxes/:id/execute" and mine[1]["data"]["sandbox"] == box.id
    assert [line["data"]["subject"] for line in mine] == [box.id, ran["executionId"], box.id]
    assert all(line["data"]["keyId"] and line["data"]["peer"].startswith("127.") for line in mine)
    denied = lines_of(api, owner="audit-bob")
    assert [(line["kind"], line["data"]["status"], line["data"]["code"]) for line in denied] == [
        ("denied", 403, "forbidden"), ("denied", 404, "not_found")]
    assert lines_of(api, kind="denied", status=401)
    lines, head = all_lines(api)
    assert first_bad(lines) is None
    assert head["isIntact"] and head["hash"] == lines[head["seq"] - 1]["hash"]


def test_a_line_names_what_the_call_made(api, box):
    made = {"/keys": ({"name": "subject"}, "id"), "/users": ({"name": "subject-user"}, "name"),
            f"{box.path}/contexts": ({"language": "bash"}, "contextId"), f"{box.path}/ports": ({"port": 3000}, "port"),
            f"{box.path}/executions": ({"command": "true", "background": True}, "executionId"),
            "/templates": ({"name": "subject-template", "from": "bash"}, "id")}
    subjects = [str(api.post(path, body).must(201, 202).json[field]) for path, (body, field) in made.items()]
    until(lambda: set(subjects) <= {line["data"].get("subject") for line in all_lines(api)[0]}, 10, "all subjects")
    api.delete("/templates/subject-template:1").must(204)


def test_only_who_may_sees_the_log(key_for):
    key_for("user", owner="audit-carl").get("/audit").error(403)


def test_a_page_can_be_asked_for_by_owner_kind_and_time(api, key_for):
    dora = key_for("user", owner="audit-dora")
    dora.sandbox().delete().must(204)
    until(lambda: len(lines_of(api, owner="audit-dora")) == 2, 10, "two lines")
    page = api.get("/audit?owner=audit-dora&kind=call&limit=1").must(200).json
    assert len(page["items"]) == 1 and page["nextCursor"]
    rest = api.get(f"/audit?owner=audit-dora&kind=call&cursor={page['nextCursor']}").must(200).json
    assert [item["data"]["method"] for item in rest["items"]] == ["DELETE"] and rest["nextCursor"] is None
    at = rest["items"][0]["at"]
    assert api.get(f"/audit?owner=audit-dora&from={at}").json["items"]
    assert api.get(f"/audit?owner=audit-dora&to={page['items'][0]['at']}").json["items"] == []
    api.get("/audit?from=yesterday").error(400, field="from")
    api.get("/audit?cursor=x").error(400, field="cursor")


def tampered(daemon, *statements):
    """The first bad line after somebody has worked on the stopped daemon's database; and its head."""
    daemon.stop()
    database = sqlite3.connect(daemon.state_dir / "data" / "holt.db")
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    daemon.start()
    lines, head = all_lines(daemon.api)
    return first_bad(lines), head, lines


def test_tampering_is_found():
    with Daemon() as daemon:
        for _ in range(4):
            daemon.api.sandbox().delete().must(204)
        until(lambda: len(all_lines(daemon.api)[0]) == 8, 10, "eight lines")
        assert first_bad(all_lines(daemon.api)[0]) is None
        assert tampered(daemon)[0] is None  # a start alone changes nothing
        where = "FROM journal WHERE stream = 'audit'"
        row = ("UPDATE journal SET text = replace(text, '201', '200') WHERE stream = 'audit' AND seq = 3",
               "UPDATE journal SET text = replace(text, '\"status\":200', '\"status\":201') "
               "WHERE stream = 'audit' AND seq = 3")
        assert tampered(daemon, row[0])[0] == 3
        assert tampered(daemon, row[1])[0] is None
        bad, head, _ = tampered(daemon, f"DELETE {where} AND seq = 5")
        assert bad == 5 and head["isIntact"]  # the chain knows, its end is as it was
    with Daemon() as daemon:
        for _ in range(3):
            daemon.api.sandbox().delete().must(204)
        until(lambda: len(all_lines(daemon.api)[0]) == 6, 10, "six lines")
        bad, head, lines = tampered(daemon, f"DELETE {where} AND seq > 4")
        assert len(lines) == 4 and head["seq"] == 6 and not head["isIntact"]
        events = daemon.api.get("/security-events?kind=security.audit_tampered").must(200).json["items"]
        assert len(events) == 1
        # what is missing stays missing
        daemon.api.sandbox().delete().must(204)
        until(lambda: len(all_lines(daemon.api)[0]) == 6, 10, "two more lines")
        assert first_bad(all_lines(daemon.api)[0]) == 5


def test_a_killed_daemon_leaves_a_log_that_goes_on():
    with Daemon() as daemon:
        box = daemon.api.sandbox()
        box.run("true")
        until(lambda: len(all_lines(daemon.api)[0]) == 2, 10, "two lines")
        daemon.kill("keeper", "daemon", "launcher")
        daemon.wait_ended()
        daemon.start()
        box.delete().must(204)
        until(lambda: len(all_lines(daemon.api)[0]) == 3, 10, "another line")
        lines, head = all_lines(daemon.api)
        assert first_bad(lines) is None and head["isIntact"]


def test_a_call_that_a_kill_cut_short_has_a_line():
    with Daemon() as daemon:
        box = daemon.api.sandbox()

        def wait():
            with contextlib.suppress(Exception):
                box.run("sleep 1000")
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: any(one["status"] == "running" for one in daemon.api.get(f"{box.path}/executions").json["items"]),
              20, "the execution")
        daemon.kill("keeper", "daemon", "launcher")
        daemon.wait_ended()
        thread.join()
        daemon.start()
        cut = until(lambda: lines_of(daemon.api, kind="interrupted"), 10, "the line")
        assert len(cut) == 1 and cut[0]["data"]["route"] == "/api/v1/sandboxes/:id/execute"
        assert cut[0]["data"]["sandbox"] == box.id and cut[0]["data"]["requestId"] and cut[0]["owner"]
        daemon.stop()
        daemon.start()
        box.delete().must(204)
        until(lambda: lines_of(daemon.api, method="DELETE"), 10, "the next line")
        lines, head = all_lines(daemon.api)
        assert [line["kind"] for line in lines] == ["call", "interrupted", "call"]
        assert first_bad(lines) is None and head["isIntact"]


def test_without_the_setting_nothing_is_kept():
    with Daemon(env={"HOLT_AUDIT": "false"}) as daemon:
        daemon.api.sandbox().delete().must(204)
        daemon.api.get("/audit").error(404)
