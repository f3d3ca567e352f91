"""How many there may be of what the contract's schemas do not count: each limit is reached, said, and left again."""
import contextlib

from support.daemon import Daemon, until


def too_many(answer, status, word):
    """Refused for their number, and the text says so."""
    assert answer.status == status, answer
    assert word in answer.json["error"]["message"], answer


def test_exposed_ports_of_a_sandbox(box):
    for port in range(2000, 2064):
        box.api.post(f"{box.path}/ports", {"port": port}).must(201)
    too_many(box.api.post(f"{box.path}/ports", {"port": 3000}), 429, "64 ports")
    box.api.post(f"{box.path}/ports", {"port": 2000, "public": True}).must(200, 201)
    box.api.delete(f"{box.path}/ports/2000").must(204)
    box.api.post(f"{box.path}/ports", {"port": 3000}).must(201)


def test_streams_of_a_sandbox(box):
    execution = box.begin("exec sleep 100")
    with contextlib.ExitStack() as open_ones:
        last = [open_ones.enter_context(execution.events()) for _ in range(64)][-1]
        assert "64 open streams" in refusal(execution)
        last.close()
        until(lambda: not refusal(execution), what="room for another")
    execution.cancel().must(204)


def refusal(execution):
    """What is said instead of a stream."""
    try:
        execution.events().close()
    except AssertionError as refused:
        return str(refused)
    return ""


def test_contexts_of_a_sandbox_and_runs_that_wait_for_one(api):
    box = api.sandbox(resources={"memory": "512Mi", "pids": 200})
    made = [box.api.post(f"{box.path}/contexts", {"language": "bash"}).must(201).json for _ in range(16)]
    too_many(box.api.post(f"{box.path}/contexts", {"language": "bash"}), 429, "in this sandbox")
    box.api.delete(f"{box.path}/contexts/{made[0]['contextId']}").must(204)
    until(lambda: box.api.post(f"{box.path}/contexts", {"language": "bash"}).status == 201, what="room for another")

    path = f"{box.path}/contexts/{made[1]['contextId']}/run"
    with contextlib.ExitStack() as open_ones:
        open_ones.enter_context(box.api.events("POST", path, {"code": "sleep 100"}))
        code = ": " + "x" * (900 << 10)
        for _ in range(4):  # 4 MiB of code may wait
            open_ones.enter_context(box.api.events("POST", path, {"code": code}))
        too_many(box.api.post(path, {"code": code}), 429, "in this sandbox")
    box.delete().must(204)


def test_results_of_a_run_are_cut_and_said(python):
    ident = python.api.post(f"{python.path}/contexts", {"language": "python"}).must(201).json["contextId"]
    answer = python.api.post(f"{python.path}/contexts/{ident}/run",
                             {"code": "for _ in range(12): display('x' * (1 << 20))"}).must(200)
    assert len(answer.body) < 9 << 20 and answer.json["truncated"]
    again = python.api.post(f"{python.path}/contexts/{ident}/run", {"code": "1 + 1"}).must(200).json
    assert again["results"] == [{"isMain": True, "text": "2"}]


def test_input_that_a_program_does_not_read(box):
    execution = box.begin("exec sleep 100", stdin=True)
    fill = b"x" * (1 << 20)
    assert box.api.post(f"{execution.path}/stdin", body=fill + b"x").status in (400, 413)
    with contextlib.ExitStack() as open_ones:
        answers = []
        for _ in range(40):  # each may wait for the one before
            connection = open_ones.enter_context(contextlib.closing(box.api.connect(60)))
            connection.request("POST", f"/api/v1{execution.path}/stdin", body=b"x" * (200 << 10),
                               headers={"Authorization": f"Bearer {box.api.key}"})
            answers.append(connection)
        until(lambda: box.api.post(f"{execution.path}/stdin", body=b"x" * (200 << 10), seconds=10).status in (429, 503),
              what="the limit")
        execution.cancel().must(204)
        assert {c.getresponse().status for c in answers} <= {200, 202, 204, 409, 429, 503}


def test_conditions_of_a_list(api):
    good = "&".join(f"metadata.k{n}=v" for n in range(16))
    api.get(f"/sandboxes?{good}").must(200)
    api.get(f"/sandboxes?{good}&metadata.k16=v").error(400, field="metadata")


def test_keys_of_an_owner():
    """More are an admin's to make."""
    with Daemon() as daemon:
        first = daemon.api.post("/keys", {"name": "first", "role": "user", "owner": "many"}).must(201).json["key"]
        owner = daemon.api.using(first)
        with contextlib.closing(owner.connect(60)) as connection:
            for n in range(999):
                owner.ask("POST", "/keys", {"name": f"k{n}", "role": "user"}, connection=connection).must(201)
            too_many(owner.post("/keys", {"name": "one more", "role": "user"}), 429, "keys")
        daemon.api.post("/keys", {"name": "one more", "role": "user", "owner": "many"}).must(201)
