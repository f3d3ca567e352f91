"""Cells as notebooks have them: what IPython takes beyond Python, and what is shown by its protocol."""
import importlib.util

import pytest

from support.context import Context


@pytest.fixture(scope="module")
def cells(daemon):
    box = daemon.api.sandbox("python", resources={"memory": "1Gi", "pids": 128, "cpu": 1})
    yield Context(box)
    box.delete().must(204, 404)


def needs(*modules):
    missing = [m for m in modules if not importlib.util.find_spec(m)]
    return pytest.mark.skipif(bool(missing), reason=f"this machine's Python has no {', '.join(missing)}")


def told(cells, code, **fields):
    answer = cells.run(code, **fields)
    assert answer["status"] == "ok", answer
    return answer


def shown(answer):
    return [{k: v for k, v in r.items() if v is not None and k != "isMain"} for r in answer["results"]]


@pytest.mark.parametrize("code, out", [
    ("!echo hi", "hi\n"),
    ("x = 5\n!echo {x + 1} $x $HOME_IS_NOT_THERE.", "6 5 .\n"),
    ("for i in range(2):\n    !echo n={i}", "n=0\nn=1\n"),
    ("def f():\n    inner = 7\n    !echo {inner}\nf()", "7\n"),
    ("!echo one \\\n  two", "one two\n"),
    ("lines = !printf 'a\\nb\\n'\nprint(lines, lines.n == 'a\\nb')", "['a', 'b'] True\n"),
    ("!false\nprint(_exit_code)", "1\n"),
    ("%%bash\nv=1\necho $((v + 1))\n", "2\n"),
    ("%%sh\necho sh\n", "sh\n"),
    ("%%script python3 -\nprint('other')\n", "other\n"),
    ("%%bash --out kept\necho kept\n", ""),
    ("print(kept, end='')", "kept\n"),
    ("%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n%load_ext autoreload\n%autoreload 2\nprint(1)", "1\n"),
    ("%env FROM_MAGIC=1\nimport os\nprint(os.environ['FROM_MAGIC'])", "env: FROM_MAGIC=1\n1\n"),
    ("%cd /tmp\n%cd /workspace", "/tmp\n/workspace\n"),
    ("where = %pwd\nprint(where)", "/workspace\n"),
    ("%%writefile made.txt\nfirst\n", "Writing made.txt\n"),
    ("%%writefile -a made.txt\nsecond\n", "Appending to made.txt\n"),
    ("%cat made.txt", "first\nsecond\n"),
    ("%%capture got\nprint('hidden')\n!echo too\ndisplay(3)\n", ""),
    ("print(repr(got.stdout), len(got.outputs))", "'hidden\\ntoo\\n' 1\n"),
    ("    a = 1\n    if a:\n        print('indented')\n    ", "indented\n"),
    ("\n\n  print('after empty lines')\n", "after empty lines\n"),
    (">>> print('prompt')\n", "prompt\n"),
    ("text = '''\n!no\n%no\nno?\n'''\n!echo {len(text)}", "13\n"),
    ("y = (10\n% 3)\nprint(y)", "1\n"),
])
def test_notebook_syntax_is_taken(cells, code, out):
    assert told(cells, code)["stdout"] == out


@pytest.mark.parametrize("code, part", [
    ("%pip --version", "pip "), ("pip help install", "Install packages"), ("len?", "Return the number of items"),
    ("?len", "Return the number of items"), ("%%time\nsum(range(10))", "Wall time: "), ("%time 1 + 1", "CPU times: "),
    ("%timeit -n 10 -r 2 1 + 1", "per loop"), ("%lsmagic", "%%bash"), ("nothing_there?", "not found"),
])
def test_magics_say_what_they_found(cells, code, part):
    assert part in told(cells, code)["stdout"]


def test_a_magic_has_a_value_and_a_semicolon_hides_one(cells):
    assert cells.value_of("%%time\n6 * 7") == "42"
    assert cells.value_of("%pwd") == "'/workspace'"
    assert shown(told(cells, "6 * 7;")) == [] and shown(told(cells, "6 * 7;  # so")) == []
    assert cells.value_of("'a;'") == "'a;'"


@pytest.mark.parametrize("code, name, value", [
    ("%nothing", "UsageError", "`%nothing` not found"), ("%%nothing\nx", "UsageError", "`%%nothing` not found"),
    ("%%bash\nexit 3\n", "CalledProcessError", "exit status 3"), ("1 +", "SyntaxError", "invalid syntax"),
    ("%pwd\nif", "SyntaxError", "invalid syntax"), ("  x = 1\n   y = 2", "IndentationError", "unexpected indent"),
])
def test_what_is_neither_python_nor_a_notebook_says_so(cells, code, name, value):
    answer = cells.run(code)
    assert answer["status"] == "error" and answer["error"]["name"] == name, answer
    assert value in answer["error"]["value"] and "notebook" not in answer["error"]["traceback"]


def test_the_line_of_an_error_is_the_cells_own(cells):
    answer = cells.run("!true\n!echo a \\\n  b\n1 / 0")
    assert 'line 4' in answer["error"]["traceback"] and "1 / 0" in answer["error"]["traceback"]


def test_an_interrupt_ends_the_command_too(cells):
    answer = cells.run("!sleep 3600", timeout=1)
    assert answer["status"] == "timeout" and not answer["stateLost"], answer
    assert told(cells, "!pgrep -x sleep || echo none")["stdout"] == "none\n"


def test_display_of_ipython_is_there_without_ipython(cells):
    answer = told(cells, "from IPython.display import display, HTML, Markdown, Latex, Image, JSON, SVG, clear_output\n"
                         "from IPython import get_ipython as g\n"
                         "display({'text/latex': 'c'}, raw=True)\n"
                         "display(HTML('<b>x</b>'), Markdown('*m*'), Latex('$l$'), JSON({'a': 1}), SVG('<svg/>'))\n"
                         "display(Image(b'\\x89PNG'))\n"
                         "clear_output()\nassert g() is get_ipython()\nHTML('main')")
    first, html, markdown, latex, value, svg, image, main = shown(answer)
    assert first == {"latex": "c"}
    assert html == {"text": "<IPython.core.display.HTML object>", "html": "<b>x</b>"}
    assert (markdown["markdown"], latex["latex"], value["json"], svg["svg"]) == ("*m*", "$l$", {"a": 1}, "<svg/>")
    assert image["png"] == "iVBORw==" and main["html"] == "main"


def test_objects_that_show_themselves_do(cells):
    answer = told(cells, "class Own:\n    def _ipython_display_(self):\n        display({'text/html': 'own'}, raw=True)\n"
                         "class Bundle:\n    def _repr_mimebundle_(self, include, exclude):\n        return {'text/html': 'b'}\n"
                         "class Bad:\n    def _repr_html_(self): raise ValueError('no')\n    def _repr_svg_(self): return '<svg/>'\n"
                         "display(Own(), Bundle(), Bad())")
    own, bundle, bad = shown(answer)
    assert own == {"html": "own"} and bundle["html"] == "b" and bad["svg"] == "<svg/>" and answer["stderr"] == ""


@needs("PIL")
def test_pictures_are_shown_when_they_are_shown_or_saved(cells):
    make = "from PIL import Image\ni = Image.new('RGBA', (2, 2))\n"
    for act in ("i.show()", "i.save('x.png')", "i"):
        [picture] = shown(told(cells, make + act))
        assert picture["png"].startswith("iVBOR"), act
    assert shown(told(cells, make + "import io\ni.save(io.BytesIO(), 'PNG')")) == []


@needs("matplotlib")
def test_a_figure_that_is_saved_is_shown_once(cells):
    make = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('x.png')\n"
    for end in ("", "plt.close()", "plt.show()"):
        assert ["png" in r for r in shown(told(cells, make + end))] == [True], end


@needs("matplotlib")
def test_reading_a_figure_warns_nobody(cells):
    """Newer versions say so when somebody else reads what they are about to remove."""
    answer = told(cells, "import sys, warnings, matplotlib.axis, matplotlib.pyplot as plt\n"
                         "class Old:\n"
                         "    def __get__(self, axis, kind):\n"
                         "        if not sys._getframe(1).f_globals['__name__'].startswith('matplotlib'):\n"
                         "            warnings.warn('converter is old')\n"
                         "        return axis.__dict__.get('c')\n"
                         "    def __set__(self, axis, value): axis.__dict__['c'] = value\n"
                         "matplotlib.axis.Axis.converter = Old()\n"
                         "lines = plt.plot(['a', 'b'], [1, 2])")
    [figure] = shown(answer)
    assert figure["chart"]["type"] == "line" and "converter" not in answer["stderr"], answer["stderr"]
