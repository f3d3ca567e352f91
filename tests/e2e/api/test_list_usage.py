"""A list of sandboxes with what each takes just now: one request, however many there are."""
import pytest
from support.daemon import until


def test_a_list_says_what_each_sandbox_takes(api, box):
    other = api.sandbox()
    items = {item["id"]: item for item in api.get("/sandboxes?usage=true").must(200).json["items"]}
    for one in (box, other):
        usage = items[one.id]["usage"]
        assert usage["processes"] >= 0 and usage["memory"] >= 0 and usage["cpuSeconds"] >= 0
        assert set(usage) == set(api.get(f"{one.path}/usage").must(200).json)
    other.delete().must(204)
    assert "usage" not in api.get("/sandboxes").must(200).json["items"][0]
    assert "usage" not in api.get("/sandboxes?usage=false").must(200).json["items"][0]
    api.get("/sandboxes?usage=maybe").error(400, field="usage")


def test_what_has_no_box_takes_nothing(api, box):
    api.post(f"{box.path}/pause").must(200)
    found = {item["id"]: item for item in api.get("/sandboxes?usage=true").must(200).json["items"]}
    assert found[box.id]["usage"] is not None
    api.post(f"{box.path}/resume").must(200)
    gone = api.sandbox()
    gone.delete().must(204)
    found = {item["id"]: item for item in api.get("/sandboxes?usage=true&status=all").must(200).json["items"]}
    assert found[gone.id]["usage"] is None and found[box.id]["usage"] is not None


def test_pages_with_usage_go_on_where_they_ended(api, box):
    more = [api.sandbox() for _ in range(2)]
    seen, cursor = [], ""
    while cursor is not None:
        page = api.get(f"/sandboxes?usage=true&limit=1{cursor and '&cursor=' + cursor}").must(200).json
        assert len(page["items"]) <= 1 and all("usage" in item for item in page["items"])
        seen += [item["id"] for item in page["items"]]
        cursor = page["nextCursor"]
    assert {box.id, *(one.id for one in more)} <= set(seen) and len(seen) == len(set(seen))
    for one in more:
        one.delete().must(204)


def test_work_shows(api, box):
    if api.get("/usage").must(200).json["cpuFrom"] != "boxes":
        pytest.skip("boxes are not metered on this machine")
    started = api.post(f"{box.path}/executions", {"command": "while :; do :; done", "background": True}).must(202).json

    def seconds():
        items = api.get("/sandboxes?usage=true&limit=500").must(200).json["items"]
        return next(item["usage"]["cpuSeconds"] for item in items if item["id"] == box.id)

    first = seconds()
    until(lambda: seconds() > first + 0.05, 60, "its work")
    api.post(f"{box.path}/executions/{started['executionId']}/cancel").must(204)
