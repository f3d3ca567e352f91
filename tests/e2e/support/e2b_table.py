"""Which client can do what: found by trying, and as docs/e2b.md shows it."""
import concurrent.futures
import pathlib

from support.e2b import NPM, PACKAGES, PYTHON, SCENARIO, python_interpreter

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "e2b.md"
BEGIN, END = "<!-- made by `make docs-e2b` from here -->\n", "<!-- to here -->\n"
COLUMNS = [*[("npm", version) for version in NPM], *[("PyPI", version) for version in PYTHON],
           ("npm interpreter", PACKAGES["@e2b/code-interpreter"]),
           *[("PyPI interpreter", version) for version in PYTHON]]
AT_ONCE = 4  # clients
SIGNS = {"ok": "✓", "absent": "·", "failed": "✗"}


class Matrix:
    """Every client's outcomes, each found once; those of `wanted` are tried side by side."""

    def __init__(self, daemon, clients, wanted=COLUMNS):
        self.daemon, self.clients = daemon, clients
        self.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self.known = {column: self.pool.submit(self.find, *column) for column in dict.fromkeys(wanted)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown(cancel_futures=True)

    def found(self, *column):
        if column not in self.known:
            self.known[column] = self.pool.submit(self.find, *column)
        return self.known[column].result()

    def find(self, kind, version):
        if kind == "npm":
            return self.clients.node(self.daemon, SCENARIO / "run.mjs", version)
        if kind == "npm interpreter":
            return self.clients.node(self.daemon, SCENARIO / "interpreter.mjs")
        program = "interpreter.py" if kind == "PyPI interpreter" else "run.py"
        return self.clients.python(self.daemon, version, SCENARIO / program)

    def table(self, columns):
        outcomes = {column: {line["feature"]: line["result"] for line in self.found(*column)} for column in columns}
        features = list(dict.fromkeys(name for found in outcomes.values() for name in found))
        rows = ["| |" + "".join(f" {self.title(*column)} |" for column in columns), "|---|" + ":-:|" * len(columns)]
        for name in features:
            rows.append(f"| {name} |" + "".join(f" {SIGNS[found.get(name, 'absent')]} |" for found in outcomes.values()))
        return "\n".join(rows) + "\n"

    @staticmethod
    def title(kind, version):
        """PyPI's interpreters are installed beside the SDK whose version names them."""
        if kind == "PyPI interpreter":
            version = python_interpreter(version)
        return f"{kind.split()[0]} {version}"

    def text(self):
        sdks = [column for column in COLUMNS if "interpreter" not in column[0]]
        interpreters = [column for column in COLUMNS if "interpreter" in column[0]]
        return (f"\nThe SDK, `e2b`:\n\n{self.table(sdks)}\n"
                f"The code interpreter, `@e2b/code-interpreter` and `e2b-code-interpreter`:\n\n{self.table(interpreters)}\n")


def documented():
    text = DOCUMENT.read_text()
    return text[text.index(BEGIN) + len(BEGIN):text.index(END)]


def document(made):
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[:text.index(BEGIN) + len(BEGIN)] + made + text[text.index(END):])
