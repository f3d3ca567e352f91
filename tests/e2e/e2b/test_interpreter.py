"""E2B's code interpreter: contexts, and code whose lines come as it runs, with plain requests."""
import concurrent.futures
import http.client
import importlib.util
import json
import shutil

import pytest

from support.daemon import until
from support.e2b_plain import Sandbox


@pytest.fixture(scope="module")
def box(daemon):
    with Sandbox(daemon.api, envVars={"OF_BOX": "box"}) as made:
        yield made


def kinds(lines):
    return [line["type"] for line in lines]


def main_of(lines):
    """The main result, of code that went well."""
    assert "error" not in kinds(lines), lines
    [main] = [line for line in lines if line["type"] == "result" and line["is_main_result"]]
    return main


def text_of(lines, stream="stdout"):
    return "".join(line["text"] for line in lines if line["type"] == stream)


def needs(*modules):
    missing = [m for m in modules if not importlib.util.find_spec(m)]
    return pytest.mark.skipif(bool(missing), reason=f"this machine's Python has no {', '.join(missing)}")


# --- lines ------------------------------------------------------------------------------------------


def test_lines_are_as_the_protocol_has_them(box):
    context = box.contexts.ask("POST", "/contexts", {}).must(200).json
    answer = box.ask_run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7", context_id=context["id"])
    lines = answer.lines()
    assert lines[0] == {"type": "number_of_executions", "execution_count": 1}
    assert lines[-1] == {"type": "end_of_execution"}
    assert {"type": "result", "text": "42", "is_main_result": True} in lines  # the two streams have no order
    assert text_of(lines) == "out\n" and text_of(lines, "stderr") == "err\n"
    assert {line["timestamp"][-1] for line in lines if line["type"] in ("stdout", "stderr")} == {"Z"}
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert box.run("1", context_id=context["id"])[0]["execution_count"] == 2
    box.contexts.ask("DELETE", f"/contexts/{context['id']}").must(200)


def test_an_error_says_its_name_value_and_traceback(box):
    lines = box.run("def f():\n    raise KeyError('nope')\nf()")
    assert kinds(lines) == ["number_of_executions", "error", "end_of_execution"]
    error = lines[1]
    assert error["name"] == "KeyError" and error["value"] == "'nope'"
    assert "in f" in error["traceback"] and error["traceback"].endswith("KeyError: 'nope'\n")


@pytest.mark.parametrize("code, text", [
    ("'plain'", "plain"), ('"it\'s"', "it's"), ("'a\\nb'", "a\\nb"), ("['x']", "['x']"), ("b'x'", "b'x'"), ("''", ""),
    ("\"'\"", "'"),
])
def test_a_string_is_shown_without_its_quotes(box, code, text):
    assert main_of(box.run(code))["text"] == text


def test_what_is_displayed_is_not_the_main_result(box):
    lines = box.run("class Rich:\n"
                    "    def __repr__(self): return 'rich'\n"
                    "    def _repr_html_(self): return '<b>x</b>'\n"
                    "    def _repr_markdown_(self): return '*x*'\n"
                    "    def _repr_svg_(self): return '<svg/>'\n"
                    "    def _repr_latex_(self): return '$x$'\n"
                    "    def _repr_json_(self): return {'a': 1}\n"
                    "    def _repr_javascript_(self): return 'x()'\n"
                    "    def _repr_png_(self): return b'png'\n"
                    "    def _repr_jpeg_(self): return b'jpg'\n"
                    "    def _repr_pdf_(self): return b'pdf'\n"
                    "display('first')\nRich()")
    shown, main = [line for line in lines if line["type"] == "result"]
    assert shown == {"type": "result", "text": "first", "is_main_result": False}
    assert main == {"type": "result", "text": "rich", "html": "<b>x</b>", "markdown": "*x*", "svg": "<svg/>",
                    "latex": "$x$", "json": {"a": 1}, "javascript": "x()", "png": "cG5n", "jpeg": "anBn",
                    "pdf": "cGRm", "is_main_result": True}


def test_a_silent_run_says_that_it_lives(box):
    """Five seconds without a line: the first is a keepalive, long before the end."""
    connection, response = box.code.open("POST", "/execute", {"code": "import time; time.sleep(3600)"})
    first = json.loads(response.readline())
    connection.close()  # which interrupts it
    assert first == {"type": "keepalive"}
    assert main_of(box.run("1 + 1"))["text"] == "2"


def test_output_that_is_cut_within_a_character_arrives_whole(box):
    code = ("import os, time\nfor b in 'é€😀'.encode():\n    os.write(1, bytes([b]))\n    time.sleep(0.02)")
    assert text_of(box.run(code)) == "é€😀"


@needs("matplotlib")
def test_charts_have_the_fields_that_clients_read(daemon):
    with Sandbox(daemon.api) as box:
        code = ("import matplotlib.pyplot as plt\n{}\nplt.title('T'); plt.xlabel('x (s)'); plt.ylabel('y')\nplt.show()")
        of = lambda plot: [line for line in box.run(code.format(plot)) if line["type"] == "result"][0]["chart"]
        line = of("plt.plot([1, 2], [3, 4], label='up')")
        assert {"type", "title", "x_label", "y_label", "x_unit", "y_unit", "x_ticks", "x_tick_labels", "x_scale",
                "y_ticks", "y_tick_labels", "y_scale", "elements"} == set(line)
        assert (line["type"], line["title"], line["x_label"], line["x_unit"]) == ("line", "T", "x (s)", "s")
        assert line["elements"] == [{"label": "up", "points": [[1, 3], [2, 4]]}]
        assert of("plt.scatter([1], [2])")["type"] == "scatter"
        bars = of("plt.bar(['a', 'b'], [1, 2])")
        assert [(e["label"], e["value"], e["group"]) for e in bars["elements"]] == [("a", 1, ""), ("b", 2, "")]
        pie = of("plt.pie([1, 3], labels=['p', 'q'])")
        assert [(e["label"], round(e["angle"]), e["radius"]) for e in pie["elements"]] == [("p", 90, 1), ("q", 270, 1)]
        whisker = of("plt.boxplot([[1, 2, 3, 4, 100]])")["elements"][0]
        assert {"label", "min", "first_quartile", "median", "third_quartile", "max", "outliers"} == set(whisker)
        assert of("plt.subplots(1, 2)")["type"] == "superchart"


@needs("pandas")
def test_a_frame_has_its_data(daemon):
    with Sandbox(daemon.api) as box:
        main = main_of(box.run("import pandas\npandas.DataFrame({'a': [1, 2], 'b': ['x', None]})"))
        assert main["data"] == {"a": [1, 2], "b": ["x", None]} and "<table" in main["html"]


# --- languages and contexts ---------------------------------------------------------------------------


@pytest.mark.parametrize("language, code, text", [
    (None, "print(6 * 7)", "42\n"), ("python", "print(6 * 7)", "42\n"), ("Python", "print(6 * 7)", "42\n"),
    ("javascript", "console.log(6 * 7)", "42\n"), ("js", "console.log(6 * 7)", "42\n"),
    ("typescript", "const n: number = 42; console.log(n)", "42\n"), ("ts", "console.log(<number>42)", "42\n"),
    ("deno", "const n: number = 42; console.log(n)", "42\n"), ("bash", "echo $((6 * 7))", "42\n"),
    pytest.param("r", "cat(6 * 7, '\\n', sep = '')", "42\n", marks=pytest.mark.skipif(
        not shutil.which("Rscript"), reason="this machine has no R")),
    pytest.param("java", "System.out.println(6 * 7)", "42\n", marks=pytest.mark.skipif(
        not shutil.which("jshell"), reason="this machine has no JDK")),
])
def test_languages_and_their_aliases(box, language, code, text):
    assert text_of(box.run(code, **({"language": language} if language else {}))) == text


@pytest.mark.skipif(not shutil.which("jshell"), reason="this machine has no JDK")
def test_java_shows_strings_and_sees_variables_as_properties(box):
    java = lambda code, **more: box.run(code, language="java", **more)
    lines = java('System.out.println("Hello, World!")')
    assert [line["text"] for line in lines if line["type"] == "stdout"] == ["Hello, World!", "\n"]
    assert main_of(java('"a" + "b"'))["text"] == "ab"
    for show in ('System.getProperty("{}", "none")', 'Objects.requireNonNullElse(System.getenv("{}"), "none")'):
        assert main_of(java(show.format("OF_BOX")))["text"] == "box"
        assert main_of(java(show.format("OF_BOX"), env_vars={"OF_BOX": "run"}))["text"] == "run"
        assert main_of(java(show.format("OF_BOX")))["text"] == "box"
        assert main_of(java(show.format("ONCE"), env_vars={"ONCE": "yes"}))["text"] == "yes"
        assert main_of(java(show.format("ONCE")))["text"] == "none"


def test_typescript_is_run_by_deno_where_a_template_has_it(daemon):
    with Sandbox(daemon.api) as box:
        deno = "#!/bin/sh\nfor file; do :; done\nRUN_BY=\"$1\" exec node \"$file\"\n"
        box.run(f"import os\nopen('deno', 'w').write({deno!r})\n!sudo install -m 755 deno /usr/local/bin/deno")
        assert main_of(box.run("const by: string = process.env.RUN_BY; by", language="ts"))["text"] == "run"
        assert main_of(box.run("await Promise.resolve(by + 1)", language="deno"))["text"] == "run1"


def test_the_cells_of_an_agent_that_installs_first(box):
    """As smolagents' executor has them: a command, tools, variables, the answer as an exception."""
    assert "error" not in kinds(box.run("!pip install nothing-of-this-name"))
    assert "error" not in kinds(box.run("vars_dict = {'a': [1, 2]}\nlocals().update(vars_dict)"))
    assert main_of(box.run("sum(a)"))["text"] == "3"
    lines = box.run("class FinalAnswerException(BaseException):\n    def __init__(self, value):\n        self.value = value\n"
                    "raise FinalAnswerException('safe:3')")
    [error] = [line for line in lines if line["type"] == "error"]
    assert (error["name"], error["value"]) == ("FinalAnswerException", "safe:3")


@pytest.mark.parametrize("language", ["cobol", "julia"])
def test_a_language_that_is_not_there_is_named(box, language):
    answer = box.ask_run("1", language=language)
    assert answer.status == 400 and language in answer.body.decode()
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert box.contexts.ask("POST", "/contexts", {"language": language}).status == 400


def test_the_default_contexts_are_there_before_anybody_asks(daemon):
    with Sandbox(daemon.api) as box:
        found = box.contexts.ask("GET", "/contexts").must(200).json
        assert [(c["language"], c["cwd"]) for c in found] == [("python", "/home/user"), ("javascript", "/home/user")]
        assert all(set(c) == {"id", "language", "cwd"} for c in found)
        box.run("mine = 1", context_id=found[0]["id"])
        assert main_of(box.run("mine"))["text"] == "1"  # the same one
        assert box.contexts.ask("GET", "/contexts").must(200).json == found


def test_default_contexts_come_first_in_the_list(daemon):
    with Sandbox(daemon.api) as box:
        made = box.contexts.ask("POST", "/contexts", {"cwd": "/tmp"}).must(200).json
        found = box.contexts.ask("GET", "/contexts").must(200).json
        assert [c["cwd"] for c in found] == ["/home/user", "/home/user", "/tmp"] and found[-1] == made


def test_code_runs_in_the_home_directory_or_where_its_context_is(box):
    assert main_of(box.run("import os; os.getcwd()"))["text"] == "/home/user"
    made = box.contexts.ask("POST", "/contexts", {"cwd": "/tmp", "language": "python"}).must(200).json
    assert (made["cwd"], made["language"]) == ("/tmp", "python")
    assert main_of(box.run("import os; os.getcwd()", context_id=made["id"]))["text"] == "/tmp"
    assert made in box.contexts.ask("GET", "/contexts").must(200).json
    box.run("only_here = 1", context_id=made["id"])
    assert "error" in kinds(box.run("only_here"))
    box.contexts.ask("POST", f"/contexts/{made['id']}/restart").must(200)
    assert "error" in kinds(box.run("only_here", context_id=made["id"]))
    box.contexts.ask("DELETE", f"/contexts/{made['id']}").must(200)
    assert made["id"] not in [c["id"] for c in box.contexts.ask("GET", "/contexts").must(200).json]


def test_a_context_that_is_not_there_is_404_in_words(box):
    for answer in [box.ask_run("1", context_id="nope"), box.contexts.ask("DELETE", "/contexts/nope"),
                   box.contexts.ask("POST", "/contexts/nope/restart")]:
        assert answer.status == 404 and answer.body == b"Context nope not found", answer


@pytest.mark.parametrize("body", [
    {}, {"code": 1}, {"code": "1", "context_id": "a", "language": "python"}, {"code": "1", "env_vars": {"A B": "x"}},
    {"code": "1", "env_vars": {"A": 1}}, {"code": "1", "env_vars": {"A": "x" * 40000}}, {"code": "a\0b"},
])
def test_what_is_no_request_is_refused_in_words(box, body):
    answer = box.code.ask("POST", "/execute", body)
    assert answer.status == 400 and answer.body, answer
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_a_context_that_cannot_begin_there_is_refused(box):
    answer = box.contexts.ask("POST", "/contexts", {"cwd": "/nowhere"})
    assert answer.status == 400 and b"/nowhere" in answer.body


# --- running ----------------------------------------------------------------------------------------


def test_variables_are_of_the_sandbox_and_of_one_run(box):
    show = "import os; (os.environ.get('OF_BOX'), os.environ.get('ONCE'))"
    assert main_of(box.run(show, env_vars={"ONCE": "yes"}))["text"] == "('box', 'yes')"
    assert main_of(box.run(show))["text"] == "('box', None)"
    assert main_of(box.run(show, env_vars=None, language=None, context_id=None))["text"] == "('box', None)"


def test_runs_of_one_context_go_one_at_a_time(box):
    box.run("at_once = most = 0")
    code = ("import time\nat_once += 1\nmost = max(most, at_once)\ntime.sleep(0.05)\nat_once -= 1")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for lines in pool.map(lambda _: box.run(code), range(6)):
            assert kinds(lines)[-1] == "end_of_execution" and "error" not in kinds(lines)
    assert main_of(box.run("most"))["text"] == "1"


def test_a_client_that_leaves_interrupts_what_it_ran(box):
    box.run("x = 7")
    connection, response = box.code.open("POST", "/execute", {"code": "print('go', flush=True)\nimport time\ntime.sleep(3600)"})
    while json.loads(response.readline())["type"] != "stdout":
        pass
    connection.close()
    assert main_of(box.run("x"))["text"] == "7"  # waits for nothing but the interrupt, and the state is kept


def test_an_interpreter_that_died_begins_anew(box):
    lines = box.run("import os; os._exit(3)")
    [error] = [line for line in lines if line["type"] == "error"]
    assert "exited with code 3" in error["value"] and kinds(lines)[-1] == "end_of_execution"
    assert main_of(box.run("1 + 1"))["text"] == "2"


def test_an_interpreter_that_was_killed_comes_back_by_itself(daemon):
    with Sandbox(daemon.api) as box:
        pid = main_of(box.run("import os; os.getpid()"))["text"]
        bash = box.contexts.ask("POST", "/contexts", {"language": "bash"}).must(200).json
        box.run(f"kill -9 {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.05; done", context_id=bash["id"])
        until(lambda: not kinds(box.run("1")).count("error"), what="another interpreter")
        assert main_of(box.run("1 + 1"))["text"] == "2"
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # several at once find it gone
            box.run("import os; os._exit(1)")
            for lines in pool.map(lambda n: box.run(f"{n}"), range(4)):
                assert "error" not in kinds(lines), lines


def test_a_sandbox_that_ends_cuts_what_runs_in_it(daemon):
    with Sandbox(daemon.api) as box:
        connection, response = box.code.open("POST", "/execute", {"code": "print('go', flush=True)\nimport time\ntime.sleep(3600)"})
        while json.loads(response.readline())["type"] != "stdout":
            pass
        box.kill()
        with pytest.raises((http.client.HTTPException, ConnectionError)):  # no end: the client is to know
            response.read()
        connection.close()
        answer = box.ask_run("1")
        assert answer.status == 502 and json.loads(answer.body)["message"] == "The sandbox was not found"


# --- who may ------------------------------------------------------------------------------------------


def test_either_token_of_the_sandbox_opens_it_and_nothing_else(box, daemon):
    with Sandbox(daemon.api) as other:
        for i, headers in enumerate([
                {}, {"X_Access_Token": other.made["envdAccessToken"]}, {"X_Access_Token": "x"},
                {"E2B_Traffic_Access_Token": other.made["trafficAccessToken"]},
                {"E2B_Traffic_Access_Token": box.made["envdAccessToken"]}, {"X_API_KEY": daemon.key}]):
            plane = box.port(49999, **headers)
            plane.api = daemon.api.coming_from(f"127.77.{i}.1")  # who fails too often has to wait
            for method, path in [("GET", "/contexts"), ("POST", "/contexts"), ("POST", "/execute"), ("DELETE", "/contexts/x")]:
                answer = plane.ask(method, path, {"code": "1"} if path == "/execute" else None)
                assert answer.status == 401 and answer.body, (headers, path, answer)
    assert box.contexts.ask("GET", "/health").must(200).json == "OK"


def test_a_paused_sandbox_runs_no_code_and_one_that_wakes_by_itself_does(daemon):
    with Sandbox(daemon.api) as box, Sandbox(daemon.api, autoPause=True, autoResume={"enabled": True}) as waking:
        box.run("x = 1")
        waking.run("x = 2")
        box.pause()
        waking.pause()
        assert box.ask_run("x").status == 502
        assert main_of(waking.run("x"))["text"] == "2"
        until(lambda: waking.control.ask("GET", f"/sandboxes/{waking.id}").json["state"] == "running", what="waking")
