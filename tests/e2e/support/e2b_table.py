"""Which client can do what: found by trying, and as docs/e2b.md shows it."""
import pathlib

from support.e2b import NPM, PYTHON, SCENARIO

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "e2b.md"
BEGIN, END = "<!-- made by `make docs-e2b` from here -->\n", "<!-- to here -->\n"
SIGNS = {"ok": "✓", "absent": "·", "failed": "✗"}


class Matrix:
    """Every client's outcomes, each found once."""

    def __init__(self, daemon, clients):
        self.daemon, self.clients, self.known = daemon, clients, {}

    def found(self, kind, version):
        if (kind, version) not in self.known:
            self.known[kind, version] = self.find(kind, version)
        return self.known[kind, version]

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

    def title(self, kind, version):
        """PyPI's interpreters are installed beside the SDK whose version names them."""
        if kind == "PyPI interpreter":
            version = self.clients.python_interpreter(version)
        return f"{kind.split()[0]} {version}"

    def text(self):
        sdks = [("npm", version) for version in NPM] + [("PyPI", version) for version in PYTHON]
        interpreters = [("npm interpreter", self.clients.npm_interpreter())]
        interpreters += [("PyPI interpreter", version) for version in PYTHON]
        return (f"\nThe SDK, `e2b`:\n\n{self.table(sdks)}\n"
                f"The code interpreter, `@e2b/code-interpreter` and `e2b-code-interpreter`:\n\n{self.table(interpreters)}\n")


def documented():
    text = DOCUMENT.read_text()
    return text[text.index(BEGIN) + len(BEGIN):text.index(END)]


def document(made):
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[:text.index(BEGIN) + len(BEGIN)] + made + text[text.index(END):])
