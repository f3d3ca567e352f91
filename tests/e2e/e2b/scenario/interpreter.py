"""What a program does with E2B's code interpreter for Python; prints what run.py prints.
usage: interpreter.py [FEATURE...]"""
import sys

from e2b_code_interpreter import Sandbox
from report import report

CHARTS = {
    "line": "plt.plot([1, 2, 3], [4, 5, 6])",
    "bar": 'plt.bar(["a", "b"], [1, 2])',
    "pie": 'plt.pie([1, 2], labels=["a", "b"])',
}


def stateful(box):
    box.run_code("x = 20")
    assert box.run_code("x + 22").text == "42"


def streams(box):
    out = []
    done = box.run_code('print("a")', on_stdout=lambda message: out.append(message.line))
    assert "".join(out) == "a\n" and done.logs.stdout == ["a\n"]


def errors(box):
    error = box.run_code("1 / 0").error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")


def charts(box):
    for kind, code in CHARTS.items():
        done = box.run_code(f"import matplotlib.pyplot as plt\n{code}\nplt.show()")
        assert done.error is None, (kind, done.error)
        chart = next(item.chart for item in done.results if item.chart)
        assert chart.type.value == kind and chart.elements, chart


def contexts(box):
    context = box.create_code_context(cwd="/tmp")
    assert box.run_code("import os; os.getcwd()", context=context).text == "/tmp"


def variables(box):
    code = 'import os; os.environ.get("ONCE")'
    assert box.run_code(code, envs={"ONCE": "yes"}).text == "yes"
    assert box.run_code(code).text is None


def timeout(box):
    try:
        box.run_code("import time; time.sleep(600)", timeout=1)
    except Exception:  # which one depends on the version
        assert box.run_code("1 + 1").text == "2"
        return
    raise AssertionError("it did not time out")


def main():
    box = Sandbox.create(timeout=300)
    table = {"state between runs": stateful, "streamed output": streams, "errors": errors, "charts as data": charts,
             "contexts": contexts, "variables of one run": variables, "timeout interrupts": timeout}
    try:
        report([(name, (), lambda function=function: function(box)) for name, function in table.items()], sys.argv[1:])
    finally:
        box.kill()


main()
