"""Contexts: interpreters and shells that keep their state, as clients see them."""
import base64
import contextlib
import importlib.util
import shutil
import sqlite3
import threading
import time

import pytest

from support.context import Context
from support.daemon import Daemon, until


@pytest.fixture
def py(python):
    return Context(python)


@pytest.fixture
def node(api):
    made = api.sandbox("node", resources={"memory": "512Mi"})
    yield made
    made.delete().must(204, 404)


@pytest.fixture
def big(api):
    """Room for libraries."""
    made = api.sandbox("python", resources={"memory": "1Gi", "pids": 128, "cpu": 1})
    yield made
    made.delete().must(204, 404)


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None,
                              reason=f"this machine's Python has no {module}")


# --- Python ------------------------------------------------------------------------------------


def test_state_is_kept_from_one_run_to_the_next(py):
    first = py.run("x = 20\nprint('hi')\nx + 1")
    assert first["stdout"] == "hi\n" and first["results"] == [{"isMain": True, "text": "21"}]
    assert first["executionCount"] == 1 and first["error"] is None and not first["stateLost"]
    assert py.value_of("x * 2") == "40"
    assert py.run("None")["results"] == []
    assert py.run("y = 5")["results"] == []
    assert py.value_of("_") == "40"


def test_an_error_has_a_name_a_value_and_a_traceback_and_keeps_the_state(py):
    py.run("x = 1\ndef f():\n    raise ValueError('no')")
    answer = py.run("f()")
    assert answer["status"] == "error"
    assert answer["error"]["name"] == "ValueError" and answer["error"]["value"] == "no"
    trace = answer["error"]["traceback"]
    assert "raise ValueError('no')" in trace and '"<cell 1>", line 3, in f' in trace
    assert "_driver" not in trace
    assert py.run("1 +")["error"]["name"] == "SyntaxError"
    assert py.value_of("x") == "1"


def test_what_threads_and_children_write_is_told_too(py):
    answer = py.run("import os, subprocess, sys, threading\n"
                    "t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()\n"
                    "subprocess.run(['sh', '-c', 'echo child; echo oops >&2'])\n"
                    "os.write(1, b'raw\\n'); sys.stderr.write('err\\n')\n"
                    "if os.fork() == 0:\n    print('forked')\nelse:\n    os.wait()\nNone")
    assert sorted(answer["stdout"].split()) == ["child", "forked", "raw", "thread"], answer
    assert sorted(answer["stderr"].split()) == ["err", "oops"]
    assert py.value_of("1") == "1"  # the child that forgot to end has ended


def test_await_works_at_the_top_level(py):
    assert py.value_of("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 7\n"
                       "await f()") == "7"


def test_objects_show_themselves_in_many_forms(py):
    py.run("class Rich:\n"
           "    def _repr_html_(self): return '<b>x</b>'\n"
           "    def _repr_markdown_(self): return '*x*'\n"
           "    def _repr_svg_(self): return '<svg/>'\n"
           "    def _repr_png_(self): return b'png'\n"
           "    def _repr_jpeg_(self): return b'jpg'\n"
           "    def _repr_latex_(self): return '$x$'\n"
           "    def _repr_json_(self): return {'a': [1, float('nan')]}\n"
           "class Bundle:\n"
           "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
           "        return {'text/plain': 'p', 'text/html': 'h', 'application/x-own': 'o'}\n")
    main = py.run("Rich()")["results"][0]
    assert main["html"] == "<b>x</b>" and main["markdown"] == "*x*" and main["svg"] == "<svg/>"
    assert base64.b64decode(main["png"]) == b"png" and base64.b64decode(main["jpeg"]) == b"jpg"
    assert main["latex"] == "$x$" and main["json"] == {"a": [1, None]}
    assert py.run("Bundle()")["results"][0] == {"isMain": True, "text": "p", "html": "h",
                                                "extra": {"application/x-own": "o"}}
    answer = py.run("display(1, 2)\ndisplay({'text/html': 'h'}, raw=True)\n3")
    assert [(r["isMain"], r.get("text"), r.get("html")) for r in answer["results"]] == [
        (False, "1", None), (False, "2", None), (False, None, "h"), (True, "3", None)]


def test_input_is_refused_clearly(py):
    error = py.run("input('name? ')")["error"]
    assert error["name"] == "RuntimeError" and "no standard input" in error["value"]


def test_a_large_value_arrives_whole_and_one_too_large_is_cut(py):
    assert len(py.value_of("'x' * 300000")) == 300002
    answer = py.run("class P:\n    def _repr_png_(self): return b'x' * (20 << 20)\nP()")
    assert answer["results"][0]["isMain"] and "png" not in answer["results"][0]


@needs("pandas")
def test_a_frame_is_a_table_and_its_data(big):
    py = Context(big)
    answer = py.run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None]})", timeout=120)
    main = answer["results"][0]
    assert "<table" in main["html"] and main["data"] == {"a": [1, 2], "b": ["x", None]}, answer


@needs("matplotlib")
def test_figures_are_pictures_and_chart_data_without_being_asked_for(big):
    py = Context(big)
    answer = py.run("import matplotlib.pyplot as plt\n"
                    "plt.plot([1, 2, 3], [4, 5, 6], label='up'); plt.title('T')\n"
                    "plt.xlabel('time (s)'); plt.ylabel('y'); None", timeout=300)
    assert answer["status"] == "ok", answer
    [shown] = answer["results"]
    assert not shown["isMain"] and base64.b64decode(shown["png"])[:4] == b"\x89PNG"
    chart = shown["chart"]
    assert chart["type"] == "line" and chart["title"] == "T"
    assert chart["x_label"] == "time (s)" and chart["x_unit"] == "s" and chart["y_label"] == "y"
    assert chart["elements"] == [{"label": "up", "points": [[1, 4], [2, 5], [3, 6]]}]
    answer = py.run("plt.bar(['a', 'b'], [1, 2]); plt.show(); plt.scatter([1], [2]); plt.show()\n"
                    "plt.pie([1, 3], labels=['p', 'q']); plt.show()\n"
                    "plt.boxplot([[1, 2, 3, 4, 100]]); plt.show()\n"
                    "f, axes = plt.subplots(1, 2); None", timeout=300)
    charts = [r["chart"] for r in answer["results"]]
    assert [c["type"] for c in charts] == ["bar", "scatter", "pie", "box_and_whisker", "superchart"]
    assert charts[0]["elements"] == [{"label": "a", "group": "", "value": 1},
                                     {"label": "b", "group": "", "value": 2}]
    assert charts[1]["elements"][0]["points"] == [[1, 2]]
    assert [(e["label"], round(e["angle"])) for e in charts[2]["elements"]] == [("p", 90), ("q", 270)]
    box = charts[3]["elements"][0]
    assert box["median"] == 3 and box["outliers"] == [100] and box["min"] == 1
    assert len(charts[4]["elements"]) == 2


@needs("matplotlib")
def test_axes_of_charts_say_what_they_measure(big):
    py = Context(big)
    answer = py.run("import datetime, numpy as np, matplotlib.pyplot as plt\n"
                    "days = [datetime.date(2023, 9, 1) + datetime.timedelta(days=i) for i in range(3)]\n"
                    "plt.plot(days, [1, 2, 3]); plt.show()\n"
                    "plt.plot(np.array(days, dtype='datetime64[ns]'), [1, 2, 3]); plt.show()\n"
                    "plt.plot([1, 2], ['A', 'B']); plt.show()\n"
                    "plt.plot([1, 2], [1, 10]); plt.yscale('log'); plt.show()", timeout=300)
    dates, stamps, names, log = [r["chart"] for r in answer["results"]]
    for chart in dates, stamps:
        assert (chart["x_scale"], chart["y_scale"]) == ("datetime", "linear")
        assert all(t.startswith("2023-") or t.startswith("2022-") for t in chart["x_ticks"]), chart
        assert [p[0][:10] for p in chart["elements"][0]["points"]] == ["2023-09-01", "2023-09-02", "2023-09-03"]
        assert all(isinstance(t, float) for t in chart["y_ticks"])
    assert (names["x_scale"], names["y_scale"]) == ("linear", "categorical")
    assert names["elements"][0]["points"] == [[1, "A"], [2, "B"]]
    assert log["y_scale"] == "log"


@needs("PIL")
@needs("matplotlib")
def test_pictures_of_libraries_come_in_their_own_forms(big):
    py = Context(big)
    main = py.run("from PIL import Image\nImage.new('RGB', (3, 2), 'red')", timeout=120)["results"][0]
    assert base64.b64decode(main["png"])[:4] == b"\x89PNG"
    shown = py.run("import io\nb = io.BytesIO()\nImage.new('RGB', (3, 2)).save(b, 'jpeg')\n"
                   "display({'image/jpeg': b.getvalue()}, raw=True)", timeout=120)["results"][0]
    assert base64.b64decode(shown["jpeg"])[:2] == b"\xff\xd8"
    shown = py.run("import matplotlib\nmatplotlib.use('agg')\nfrom matplotlib.figure import Figure\n"
                   "f = Figure(figsize=(1, 1)); b = io.BytesIO(); f.savefig(b, format='svg')\n"
                   "display({'image/svg+xml': b.getvalue().decode()}, raw=True)", timeout=300)["results"][0]
    assert "<svg" in shown["svg"]


@needs("sympy")
def test_a_formula_is_latex(big):
    main = Context(big).run("import sympy\nsympy.Symbol('x') ** 2 / 3", timeout=300)["results"][0]
    assert main["text"] == "x**2/3" and "x^{2}" in main["latex"]


# --- JavaScript, TypeScript ---------------------------------------------------------------------


def test_javascript_keeps_its_state_and_may_declare_again(node):
    js = Context(node, "javascript")
    answer = js.run("const x = 20; console.log('hi'); console.error('oops'); ({ a: [x] })")
    assert answer["stdout"] == "hi\n" and answer["stderr"] == "oops\n"
    assert answer["results"] == [{"isMain": True, "text": "{ a: [ 20 ] }", "json": {"a": [20]}}]
    assert js.value_of("const x = 21\nx") == "21"
    assert js.value_of("class A { f() { return x } }\nnew A().f()") == "21"
    assert js.value_of("await new Promise((done) => setTimeout(() => done(7), 10))") == "7"
    assert js.value_of("import { join } from 'path'\nimport fs from 'fs'\njoin('a', typeof fs)") == "a/object"
    assert js.value_of("require('os').EOL.length") == "1"
    assert js.value_of("`const y = 1\nlet z`") == "const y = 1\nlet z"
    error = js.run("null.foo")["error"]
    assert error["name"] == "TypeError" and "at cell-" in error["traceback"]
    assert js.run("{")["error"]["name"] == "SyntaxError"
    assert js.run("undefined")["results"] == []
    assert js.value_of("x") == "21"


def test_a_javascript_loop_is_interrupted_and_the_state_kept(node):
    js = Context(node, "javascript")
    js.run("const x = 5")
    for code in ("for (;;) {}", "await new Promise(() => {})"):
        answer = js.run(code, timeout=1)
        assert answer["status"] == "timeout" and not answer["stateLost"], answer
    assert js.value_of("x") == "5"


def test_typescript_runs_or_says_what_is_missing(node):
    ts = Context(node, "ts")
    assert ts.value["language"] == "typescript"
    answer = ts.run("interface P { a: string }\nconst p: P = { a: 'q' }\nenum E { A, B }\n[p.a, E.B]",
                    timeout=60)
    if answer["status"] == "error":
        assert "TypeScript is not available" in answer["error"]["value"], answer
        pytest.skip("no TypeScript on this machine")
    assert answer["results"][0]["json"] == ["q", 1]


# --- R, Java ------------------------------------------------------------------------------------

needs_r = pytest.mark.skipif(not shutil.which("Rscript"), reason="this machine has no R")
needs_java = pytest.mark.skipif(not shutil.which("jshell"), reason="this machine has no JDK")


@needs_r
def test_r_keeps_its_state_and_shows_values_tables_and_plots(python):
    r = Context(python, "R")
    assert r.value["language"] == "r"
    answer = r.run("x <- 20\ncat('hi\\n')\nmessage('oops')\nx + 1")
    assert answer["stdout"] == "hi\n" and answer["stderr"] == "oops\n"
    assert answer["results"] == [{"isMain": True, "text": "[1] 21"}]
    assert r.value_of("x * 2; invisible(3); nchar('é😀')") == "[1] 2"
    table = r.run("data.frame(a = 1:2, b = c('p', '<q>'))")["results"][0]
    assert "a" in table["text"] and "<td>&lt;q&gt;</td>" in table["html"]
    plot = r.run("plot(1:3)\nhist(c(1, 2, 2))")["results"]
    assert [base64.b64decode(p["png"])[:4] for p in plot if "png" in p] == [b"\x89PNG"] * 2
    error = r.run("f <- function(n) stop('no ', n)\nf(5)")["error"]
    assert error["name"] == "simpleError" and error["value"] == "no 5" and "f(5)" in error["traceback"]
    assert "unexpected end of input" in r.run("x <- ")["error"]["value"]
    assert "careful" in r.run("warning('careful')")["stderr"]
    assert r.run("readLines('stdin')")["results"] == [{"isMain": True, "text": "character(0)"}]
    assert r.value_of("x") == "[1] 20"


@needs_r
def test_an_r_loop_is_interrupted_and_the_state_kept(python):
    r = Context(python, "r")
    r.run("x <- 5")
    for code in ("while (TRUE) {}", "Sys.sleep(60)"):
        answer = r.run(code, timeout=1)
        assert answer["status"] == "timeout" and not answer["stateLost"], answer
    assert r.value_of("x") == "[1] 5"


@needs_java
def test_java_keeps_its_state_in_the_smallest_box(python):
    java = Context(python, "java")
    answer = java.run('int x = 20; System.out.println("hi é"); System.err.println("oops"); x + 1', timeout=60)
    assert answer["stdout"] == "hi é\n" and answer["stderr"] == "oops\n"
    assert answer["results"] == [{"isMain": True, "text": "21"}]
    assert java.value_of("int twice(int n) { return n * 2; }\ntwice(x)", timeout=60) == "40"
    assert java.value_of("record P(String a) {}\nnew P(\"q\").a()", timeout=60) == '"q"'
    assert java.value_of("List.of(1, 2).stream().map(n -> n + 1).toList()", timeout=60) == "[2, 3]"
    error = java.run('throw new IllegalStateException("no");', timeout=60)["error"]
    assert error["name"] == "java.lang.IllegalStateException" and error["value"] == "no"
    assert java.run("String s = 5;", timeout=60)["error"]["name"] == "CompilationError"
    assert "not complete" in java.run("int q =", timeout=60)["error"]["value"]
    assert java.value_of("System.in.read()", timeout=60) == "-1"
    assert java.run("for (;;) {}", timeout=2)["status"] == "timeout"
    assert java.value_of("x", timeout=60) == "20"


@pytest.mark.parametrize("language, program", [("r", "Rscript"), ("java", "java")])
def test_a_language_that_the_template_lacks_is_named(python, language, program):
    error = python.api.post(f"{python.path}/contexts", {"language": language, "env": {"PATH": "/nowhere"}})
    assert error.must(400).json["error"]["message"] == \
        f"{language} is not available in this template: it has no {program}"
    assert python.api.get(f"{python.path}/contexts").must(200).json["items"] == []


# --- shells --------------------------------------------------------------------------------------


def test_a_session_keeps_directory_variables_and_functions(box):
    sh = Context(box, kind="sessions")
    first = sh.run("cd /tmp; X=3; export Y=4; f() { echo f$1; }; declare Z=5")
    assert first["exitCode"] == 0 and first["cwd"] == "/tmp"
    assert sh.run("f $X$Y; echo $Z; pwd")["stdout"] == "f34\n5\n/tmp\n"
    failed = sh.run("echo out; echo err >&2; false")
    assert (failed["exitCode"], failed["stdout"], failed["stderr"]) == (1, "out\n", "err\n")
    assert sh.run("echo $?")["stdout"] == "1\n"
    assert sh.run("mkdir 'a \"b'; cd a*")["cwd"] == '/tmp/a "b'
    assert sh.run("read -r line; echo $?")["stdout"] == "1\n"  # no standard input


def test_a_command_of_a_session_is_interrupted_and_the_rest_of_it_too(box):
    sh = Context(box, kind="sessions")
    sh.run("X=1")
    answer = sh.run("sleep 100; echo after", timeout=1)
    assert answer["status"] == "timeout" and answer["exitCode"] == 130 and answer["stdout"] == ""
    assert sh.run("echo $X")["stdout"] == "1\n"
    with box.api.events("POST", f"{sh.path}/run", {"command": "echo on; sleep 100; echo no"}) as events:
        events.next("start")
        events.next("stdout")
        box.api.post(f"{sh.path}/interrupt").must(204)
        assert events.next("end").data["exitCode"] == 130
    assert sh.run("while :; do :; done", timeout=1)["exitCode"] == 130
    assert sh.run("echo $X")["stdout"] == "1\n"


def test_a_shell_that_exits_says_so_and_begins_anew_when_asked(box):
    sh = Context(box, kind="sessions")
    assert sh.run("exit 3")["exitCode"] == 3
    until(lambda: sh.state()["state"] == "failed")
    assert sh.state()["reason"] == "the interpreter exited with code 3"
    assert "exited with code 3" in sh.ask("true").error(409)
    box.api.post(f"{box.path}/contexts/{sh.id}/restart").must(200)
    assert sh.run("echo again")["stdout"] == "again\n"


# --- running ---------------------------------------------------------------------------------------


def test_events_come_while_it_runs(py):
    with py.api.events("POST", f"{py.path}/run",
                       {"code": "import time\nprint(1)\ntime.sleep(0.3)\nprint(2)\n"
                                "display('d')\n'last'"}) as events:
        assert events.next("start").data["contextId"] == py.id
        assert events.next("stdout").data == {"text": "1\n"}
        began = time.monotonic()
        assert events.next("stdout").data == {"text": "2\n"}
        assert time.monotonic() - began > 0.1
        assert events.next("display").data["text"] == "'d'"
        assert events.next("result").data == {"isMain": True, "text": "'last'"}
        assert events.next("end").data["status"] == "ok"
        assert list(events) == []


def test_execute_takes_a_context(py, python):
    answer = python.execute("print('a')\n6 * 7", kind="code", language="python",
                            contextId=py.id).must(200).json
    assert answer["stdout"] == "a\n" and answer["exitCode"] == 0 and answer["kind"] == "context"
    assert answer["results"] == [{"isMain": True, "text": "42"}]
    assert python.execute("1/0", kind="code", language="python",
                          contextId=py.id).must(200).json["exitCode"] == 1
    python.execute("1", kind="code", language="python", contextId="none").error(404)
    python.execute("1", kind="code", language="python", contextId=py.id,
                   background=True).error(400, field="contextId")


def test_runs_at_once_go_one_after_the_other(py):
    py.run("seen = []")
    threads = [threading.Thread(target=py.run, args=(
        f"seen.append(('in', {i})); import time; time.sleep(0.02); seen.append(('out', {i}))",))
        for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    seen = eval(py.value_of("seen"))
    assert len(seen) == 16
    assert all(a[0] == "in" and b == ("out", a[1]) for a, b in zip(seen[::2], seen[1::2]))


def test_an_interrupt_ends_the_run_and_keeps_the_state(py):
    py.run("x = 5")
    with py.api.events("POST", f"{py.path}/run", {"code": "print('on')\nwhile True: pass"}) as events:
        events.next("start")
        events.next("stdout")
        py.api.post(f"{py.path}/interrupt").must(204)
        assert events.next("error").data["name"] == "KeyboardInterrupt"
        assert events.next("end").data["status"] == "interrupted"
    py.api.post(f"{py.path}/interrupt").must(204)  # nothing runs: nothing happens
    assert py.value_of("x") == "5"


def test_what_does_not_obey_begins_anew_and_the_answer_says_so(py):
    answer = py.run("x = 1\nimport signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                    "while True: pass", timeout=1)
    assert answer["status"] == "timeout" and answer["timedOut"] and answer["stateLost"], answer
    assert py.run("x")["error"]["name"] == "NameError"


def test_a_restart_loses_the_state_and_keeps_the_directory_and_environment(python):
    py = Context(python, cwd="/tmp", env={"A": "1"}, name="calc")
    py.run("x = 5")
    python.api.post(f"{python.path}/contexts/calc/restart").must(200)
    assert py.run("x")["error"]["name"] == "NameError"
    assert py.value_of("import os\nos.getcwd(), os.environ['A']") == "('/tmp', '1')"


def test_a_client_that_leaves_may_take_the_run_along(py):
    with py.api.events("POST", f"{py.path}/run", {
            "code": "print('on')\nwhile True: pass", "cancelOnDisconnect": True}) as events:
        events.next("start")
        events.next("stdout")
    assert py.value_of("1", timeout=10) == "1"


def test_contexts_are_listed_named_and_deleted(python):
    first, second = Context(python, name="one"), Context(python, kind="sessions")
    items = python.api.get(f"{python.path}/contexts").must(200).json["items"]
    assert [i["contextId"] for i in items] == [first.id, second.id]
    assert [i["language"] for i in items] == ["python", "bash"]
    items = python.api.get(f"{python.path}/sessions").must(200).json["items"]
    assert [i["contextId"] for i in items] == [second.id]
    python.api.post(f"{python.path}/contexts", {"name": "one"}).error(409)
    python.api.post(f"{python.path}/contexts", {"language": "cobol"}).error(400, field="language")
    python.api.delete(f"{python.path}/contexts/one").must(204)
    first.ask("1").error(404)
    python.api.get(first.path).error(404)


def test_a_context_that_cannot_start_leaves_nothing(python):
    message = python.api.post(f"{python.path}/contexts", {"cwd": "/none", "name": "x"}).error(400)
    assert "/none" in message
    assert python.api.get(f"{python.path}/contexts").must(200).json["items"] == []


def test_another_owner_finds_no_context(python, key_for):
    py = Context(python)
    other = key_for("user", owner="somebody-else")
    other.get(py.path).error(404)
    other.post(f"{py.path}/run", {"code": "1"}).error(404)
    other.delete(py.path).error(404)


def test_limits_are_reached_and_told(python):
    py = Context(python)
    py.ask("x" * (1 << 20)).error(413)
    py.ask("1", timeout=10 ** 7).error(400, field="timeout")
    made = [Context(python, kind="sessions") for _ in range(15)]
    python.api.post(f"{python.path}/sessions", {}).error(429)
    for one in made:
        python.api.delete(one.path).must(204)
    answer = py.run("import sys\nfor i in range(40000): print('x' * 99)", timeout=60)
    assert answer["truncated"] and 900_000 < len(answer["stdout"]) <= 2 << 20
    assert py.value_of("2") == "2"


def test_standard_input_of_a_context_is_not_for_clients(py, python):
    eid = py.value["executionId"]
    python.api.post(f"{python.path}/executions/{eid}/stdin", body=b"run x").error(409)


def test_a_paused_sandbox_runs_nothing_and_goes_on_where_it_was(python):
    py = Context(python)
    py.run("x = 3")
    python.api.post(f"{python.path}/pause").must(200)
    py.ask("x").error(409)
    python.api.post(f"{python.path}/resume").must(200)
    assert py.value_of("x") == "3"


# --- hostile cells ----------------------------------------------------------------------------------


def test_a_cell_that_closes_its_descriptors_is_still_heard(py):
    assert py.run("import os\nfor fd in (0, 1, 2): os.close(fd)\n7")["results"][0]["text"] == "7"
    answer = py.run("print('back')\nimport sys; sys.stderr.write('err')")
    assert answer["stdout"] == "back\n" and answer["stderr"] == "err"
    py.run("import sys; sys.stdout.close(); sys.stderr.close()")
    assert py.run("print('again')")["stdout"] == "again\n"


def test_a_cell_that_writes_what_looks_like_frames_is_only_heard(py):
    answer = py.run("import sys\nsys.stdout.write('\\x1e' + 'a' * 20 + 'e0000')\n"
                    "sys.stdout.write('\\x1e\\x1e'); 1")
    assert answer["status"] == "ok" and answer["stdout"].startswith("\x1e" + "a" * 20 + "e0000")
    assert answer["results"] == [{"isMain": True, "text": "1"}]


def test_a_cell_that_floods_every_descriptor_breaks_nothing_but_its_context(python):
    py = Context(python)
    py.ask("import os\nwhile True:\n    for fd in range(3, 256):\n"
           "        try: os.write(fd, b'\\x1e' + b'q' * 300)\n        except OSError: pass",
           timeout=2).must(200)
    assert python.run("echo fine")["stdout"] == "fine\n"
    python.api.post(f"{python.path}/contexts/{py.id}/restart").must(200, 409)
    assert py.value_of("1") == "1"


def test_an_interpreter_that_dies_fails_its_context_with_the_reason(py):
    answer = py.run("import os\nprint('bye', flush=True)\nos._exit(3)")
    assert answer["status"] == "lost" and answer["stateLost"]
    assert answer["reason"] == "the interpreter exited with code 3" and answer["stdout"] == "bye\n"
    state = py.state()
    assert state["state"] == "failed" and "code 3" in state["reason"]
    py.ask("1").error(409)


def test_a_fork_bomb_and_endless_output_end_with_their_time(py):
    answer = py.run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout=1)
    assert answer["status"] in ("timeout", "error", "lost"), answer
    py.api.post(f"{py.path}/restart").must(200)
    answer = py.run("while True: print('y' * 1000)", timeout=1)
    assert answer["status"] == "timeout" and answer["truncated"], answer["status"]
    assert py.value_of("1") == "1"


# --- the service's own end ----------------------------------------------------------------------------


def test_a_context_outlives_a_killed_daemon_and_what_ran_in_it():
    with Daemon() as daemon:
        box = daemon.api.sandbox("python")
        py = Context(box, name="calc")
        py.run("x = 41")
        with daemon.api.events("POST", f"{py.path}/run", {
                "code": "import time\nprint('begun')\ntime.sleep(3)\nx += 1\nprint('done')"}) as events:
            events.next("start")
            events.next("stdout")
            daemon.kill("daemon")
        until(lambda: is_up(daemon), 60, "another daemon")
        answer = py.run("x", timeout=30)  # waits for what was under way
        assert answer["results"] == [{"isMain": True, "text": "42"}], answer
        assert answer["stdout"] == ""
        output = box.api.get(f"{box.path}/executions/{py.value['executionId']}/output").must(200).json
        assert "done" in "".join(c["data"] for c in output["chunks"])
        assert py.state()["name"] == "calc" and py.state()["state"] == "idle"
        box.delete().must(204)


def test_an_environment_outlives_the_daemon_as_long_as_its_context():
    with Daemon() as daemon:
        box = daemon.api.sandbox("python")
        py = Context(box, name="calc", env={"TOKEN": "s3cret-of-the-context"})
        daemon.kill("daemon")
        until(lambda: is_up(daemon), 60, "another daemon")
        daemon.api.post(f"{py.path}/restart").must(200)
        assert py.value_of("import os\nos.environ['TOKEN']") == "'s3cret-of-the-context'"
        kept = lambda: b"s3cret-of-the-context" in b"".join(row[0].encode() for row in objects(daemon))
        assert kept()
        daemon.api.delete(py.path).must(204)
        until(lambda: not kept(), what="forgetting the environment")
        execution = box.api.get(f"{box.path}/executions/{py.value['executionId']}").must(200)
        assert b"s3cret" not in execution.body
        box.delete().must(204)


def objects(daemon):
    with contextlib.closing(sqlite3.connect(f"file:{daemon.state_dir}/data/holt.db?mode=ro", uri=True)) as database:
        return database.execute("SELECT text FROM objects WHERE kind = 'context'").fetchall()


def is_up(daemon):
    """The keeper starts launchers, but a daemon we do."""
    if daemon.process.poll() is not None:
        daemon.start()
    try:
        return daemon.api.get("/readyz").status == 200
    except OSError:
        return False




@pytest.mark.parametrize("language, show, change", [
    ("python", "import os\nprint(os.environ.get('ONE_RUN', 'none'), os.environ.get('HELD', 'none'))",
     "import os\nos.environ['ONE_RUN'] = 'mine'"),
    ("bash", 'echo "${ONE_RUN-none} ${HELD-none}"', "ONE_RUN=mine"),
    ("javascript", "console.log(process.env.ONE_RUN ?? 'none', process.env.HELD ?? 'none')",
     "process.env.ONE_RUN = 'mine'"),
    pytest.param("r", "cat(Sys.getenv('ONE_RUN', 'none'), Sys.getenv('HELD', 'none')); cat('\\n')",
                 "Sys.setenv(ONE_RUN = 'mine')", marks=needs_r),
    pytest.param("java", 'System.out.println(System.getenv().getOrDefault("ONE_RUN", "none") + " " + '
                 'System.getenv().getOrDefault("HELD", "none"))', "int unused = 1;", marks=needs_java),
])
def test_variables_of_one_run_are_gone_with_it(request, api, python, language, show, change):
    box = request.getfixturevalue("node") if language == "javascript" else python
    context = Context(box, language, env={"HELD": "for long"})
    assert context.run(show)["stdout"] == "none for long\n"
    hard = "a\\b\\nc\nd'\"$(id) `x` é = \\\\"
    answer = context.run(show, env={"ONE_RUN": hard, "HELD": "now"})
    assert answer["stdout"] == f"{hard} now\n"
    assert context.run(show)["stdout"] == "none for long\n"
    context.run(change, env={"ONE_RUN": "x"})
    assert context.run(show)["stdout"] == "none for long\n"


def test_variables_of_one_run_go_when_it_fails(py):
    show = "import os\nprint(os.environ.get('ONE_RUN', 'none'))"
    assert py.run("1/0", env={"ONE_RUN": "x"})["status"] == "error"
    assert py.run(show)["stdout"] == "none\n"


def test_what_is_no_variable_is_refused(py):
    assert py.ask("1", env={"A=B": "x"}).must(400).json["error"]["message"]
    assert py.ask("1", env={"A": "x" * 40000}).must(400).json["error"]["message"]
    assert py.value_of("1") == "1"


def test_runs_are_counted_also_by_the_next_daemon():
    with Daemon() as daemon:
        context = Context(daemon.api.sandbox("python"))
        assert [context.run("1")["executionCount"] for _ in range(2)] == [1, 2]
        daemon.kill("daemon")
        until(lambda: is_up(daemon), 60, "another daemon")
        assert context.run("1")["executionCount"] == 3
