# What a notebook takes beyond Python: "!cmd", "%magic", "%%magic", "name?", cells that are indented
# or have prompts; and IPython.display, where a box has no IPython. context.py has this as a text and
# compiles it when a cell is no Python or wants a part of this; so no three single quotes follow each
# other here. context.py sets `kernel` (what it lends) and `space` (the names of cells).
import builtins, os, re, subprocess, sys, types


class UsageError(Exception):
    """A magic that is not there, or was asked for what it cannot do."""

    __module__ = "builtins"


# ---- from a cell to Python ----


class Scanner:
    """Knows whether the next line begins a statement."""

    def __init__(self):
        self.quote, self.depth, self.is_continued = "", 0, False

    def is_start(self):
        return not (self.quote or self.depth or self.is_continued)

    def feed(self, line):
        i, is_comment = 0, False
        while i < len(line) and not is_comment:
            c = line[i]
            if self.quote and c == "\\":
                i += 1
            elif self.quote and line.startswith(self.quote, i):
                i += len(self.quote) - 1
                self.quote = ""
            elif not self.quote and c in "\"'":
                self.quote = c * 3 if line.startswith(c * 3, i) else c
                i += len(self.quote) - 1
            elif not self.quote:
                is_comment = c == "#"
                self.depth += (c in "([{") - (c in ")]}")
            i += 1
        self.depth = max(self.depth, 0)
        self.is_continued = line.rstrip("\n").endswith("\\") and not is_comment
        if len(self.quote) == 1 and not self.is_continued:
            self.quote = ""


HELP_BEFORE = re.compile(r"^(\s*)(\?\??)\s*([\w.%*]+)\s*$")
HELP_BEHIND = re.compile(r"^(\s*)(%{0,2}[A-Za-z_][\w.*]*(?:\[\w+\]|\.\w+)*)(\?\??)\s*$")
MAGIC = re.compile(r"^(\s*)%\s*([A-Za-z_]\w*)\s*(.*?)\s*$", re.S)
SHELL = re.compile(r"^(\s*)(!!?)(.*?)\s*$", re.S)
ASSIGNED = re.compile(r"^(\s*[\w.,\[\]\"'\s*:]+?=\s*)([!%])([^=].*?)\s*$", re.S)
AUTOMAGIC = re.compile(r"^(\s*)([a-z]\w*)\s+([\w./~-].*?)\s*$", re.S)
BEGINS = re.compile(r"\s*[!%]|[^#\"'(=]*=\s*[!%]")
AUTO = ("pip", "conda", "cd", "ls", "mkdir", "cat", "cp", "mv", "rm", "env", "time", "timeit", "run")


def call(method, *args):
    return "get_ipython().%s(%s)" % (method, ", ".join(repr(a) for a in args))


def magic_call(text):
    name, _, rest = text.strip().partition(" ")
    return call("run_line_magic", name, rest.strip())


def translate_line(line):
    """A statement of its own that is no Python; None: it may be."""
    m = SHELL.match(line)
    if m:
        return m[1] + call("getoutput" if m[2] == "!!" else "system", m[3])
    m = HELP_BEFORE.match(line)
    if m:
        return m[1] + call("run_line_magic", "pinfo" + "2" * (len(m[2]) - 1), m[3])
    m = HELP_BEHIND.match(line)
    if m:
        return m[1] + call("run_line_magic", "pinfo" + "2" * (len(m[3]) - 1), m[2])
    m = MAGIC.match(line)
    if m:
        return m[1] + call("run_line_magic", m[2], m[3])
    m = ASSIGNED.match(line)
    if m:
        return m[1] + (call("getoutput", m[3]) if m[2] == "!" else magic_call(m[3]))
    m = AUTOMAGIC.match(line)
    if m and m[2] in AUTO and m[2] not in space:
        return m[1] + call("run_line_magic", m[2], m[3])
    return None


def translate_lines(lines):
    out, scanner, at = [], Scanner(), 0
    while at < len(lines):
        line, begin = lines[at], at
        at += 1
        found = None
        if scanner.is_start() and line.strip():
            while BEGINS.match(line) and line.endswith("\\\n") and at < len(lines):
                line = line[:-2] + " " + lines[at].lstrip()
                at += 1
            found = translate_line(line.rstrip("\n"))
        if found is None:
            at = begin + 1
            scanner.feed(lines[begin])
            out.append(lines[begin])
        else:
            out.append(found + "\n" * (at - begin))
    return out


def strip_indent(lines, first):
    indent = re.match(r"[ \t]*", lines[first])[0]
    return [x[len(indent) :] if indent and x.startswith(indent) else x for x in lines]


def strip_prompts(lines, first):
    for begin, prompt in ((r">>> ", r"(>>>|\.\.\.)( |$)"), (r"In \[\d+\]: ", r"(In \[\d+\]: |\s*\.\.\.+: ?)")):
        if re.match(begin, lines[first]):
            return [re.sub("^" + prompt, "", x) for x in lines]
    return lines


def translate(text):
    """The same cell as Python, line by line where it was."""
    lines = text.splitlines(True)
    first = next((i for i, x in enumerate(lines) if x.strip()), None)
    if first is None:
        return text
    lines = strip_prompts(strip_indent(lines, first), first)
    m = re.match(r"%%\s*(\w+)[ \t]*(.*?)\s*$", lines[first])
    if m:
        body = "".join(lines[first + 1 :])
        return "\n" * first + call("run_cell_magic", m[1], m[2], body)
    return "".join(translate_lines(lines))


# ---- the shell below ----


def expand(text):
    """Puts in {expressions} and $names of whoever calls; as it is where one of them is none."""
    frame = sys._getframe(1)
    while frame and frame.f_globals is not space:
        frame = frame.f_back
    names = frame.f_locals if frame else space

    def one(m):
        if m[0] in ("$$", "{{", "}}"):
            return m[0][0]
        if m[1]:
            return str(eval(m[1], space, names)) if m[1].split(".")[0] in {**space, **names} else m[0]
        return str(eval(m[2], space, names))

    try:
        return re.sub(r"\$\$|\$([A-Za-z_][\w.]*\b)|\{\{|\}\}|\{([^{}]+)\}", one, text)
    except Exception:
        return text


def finish(child, data=None):
    """Waits for a program; an interrupt is its, too."""
    import signal

    try:
        return child.communicate(data)
    except BaseException:
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(child.pid, number)
                child.wait(2)
                break
            except (OSError, subprocess.TimeoutExpired):
                continue
        raise


def start(command, **more):
    sys.stdout.flush()
    sys.stderr.flush()
    return subprocess.Popen(command, start_new_session=True, **more)


def is_ours(stream, number):
    try:
        return stream.fileno() == number
    except (AttributeError, OSError, ValueError):
        return False


def shell_argv(text):
    for path in ("/bin/bash", "/bin/sh"):
        if os.access(path, os.X_OK):
            return [path, "-c", text]
    raise UsageError("this template has no shell")


def spawn(command, data=None, out=None, err=None):
    """Runs a program whose output is the cell's, or what `out` and `err` say. Its exit code and both."""
    own = out is None and not is_ours(sys.stdout, 1)  # somebody collects it
    pipe = subprocess.PIPE
    child = start(
        command,
        stdin=subprocess.DEVNULL if data is None else pipe,
        stdout=pipe if out or own else None,
        stderr=pipe if err or own else None,
    )
    texts = finish(child, None if data is None else data.encode())
    told, failed = ((t or b"").decode("utf-8", "replace") for t in texts)
    if own:
        sys.stdout.write(told)
        sys.stderr.write(failed)
    return child.returncode, told, failed


class Lines(list):
    """What a command wrote."""

    n = nlstr = property("\n".join)
    s = spstr = property(" ".join)
    l = list = property(lambda self: self)


class Events:
    def register(self, name, function):
        pass

    unregister = register


class Shell:
    """What get_ipython() is here."""

    config = {}
    events = Events()

    def __init__(self, names):
        self.user_ns = self.user_global_ns = names
        self.line_magics, self.cell_magics = dict(LINE), dict(CELL)

    def system(self, command):
        self.user_ns["_exit_code"] = spawn(shell_argv(expand(command)))[0]

    def getoutput(self, command, split=True):
        code, told, _ = spawn(shell_argv("exec 2>&1; " + expand(command)), out=True)
        self.user_ns["_exit_code"] = code
        return Lines(told.splitlines()) if split else told

    def run_line_magic(self, name, line="", *ignored):
        function = self.line_magics.get(name)
        if not function:
            more = " But there is a cell magic %%%s." % name if name in self.cell_magics else ""
            raise UsageError("Line magic function `%%%s` not found.%s" % (name, more))
        return function(line if name in RAW else expand(line))

    def run_cell_magic(self, name, line="", cell=""):
        function = self.cell_magics.get(name)
        if not function:
            raise UsageError("Cell magic `%%%%%s` not found." % name)
        return function(line if name in RAW else expand(line), cell)

    def magic(self, text):
        name, _, rest = text.lstrip("%").partition(" ")
        return self.run_line_magic(name, rest)

    def run_cell(self, code, *ignored, **more):
        return kernel.evaluate(code)

    def ev(self, text):
        return eval(text, self.user_ns)

    def ex(self, text):
        exec(text, self.user_ns)

    def enable_gui(self, gui=None):
        pass

    def register_magic_function(self, function, magic_kind="line", magic_name=None):
        name = magic_name or function.__name__
        if "line" in magic_kind:
            self.line_magics[name] = function
        if "cell" in magic_kind:
            self.cell_magics[name] = function


# ---- magics ----

LINE, CELL = {}, {}
RAW = ("time", "timeit", "capture", "pinfo", "pinfo2")  # which take their line as it is


def line_magic(*names):
    return lambda f: LINE.update((n, f) for n in names) or f


def cell_magic(*names):
    return lambda f: CELL.update((n, f) for n in names) or f


@line_magic("matplotlib", "config", "autoreload", "xmode", "colors", "pdb", "gui", "automagic", "precision", "pprint", "logstop")
def do_nothing(line):
    """Of a screen that there is not, or always so: figures are shown when a cell ends."""


def run_pip(line):
    import importlib

    spawn(shell_argv("exec %s -m pip %s" % (sys.executable or "python3", line)))
    importlib.invalidate_caches()


LINE["pip"] = run_pip
for word in "ls ll cat cp mv rm mkdir rmdir echo head tail touch ln man less more conda uv mamba".split():
    LINE[word] = lambda line, word=word: spawn(
        shell_argv(("ls -l" if word == "ll" else "cat" if word in ("less", "more") else word) + " " + line)
    ) and None
LINE["system"] = LINE["sx"] = lambda line: kernel.shell.getoutput(line)


@line_magic("cd")
def change_directory(line):
    os.chdir(os.path.expanduser(line.strip().strip("\"'") or "~"))
    print(os.getcwd())


LINE["pwd"] = lambda line: os.getcwd()


@line_magic("env", "set_env")
def environment(line):
    if not line.strip():
        return dict(os.environ)
    name, sign, value = (x.strip() for x in (line.partition("=") if "=" in line else line.partition(" ")))
    if not sign.strip() and not value:
        return os.environ[name]
    os.environ[name] = value
    print("env: %s=%s" % (name, value))


def names_of_user():
    return sorted(n for n in space if not n.startswith("_") and not isinstance(space[n], types.ModuleType))


@line_magic("who")
def who(line):
    print("\t".join(names_of_user()) or "Interactive namespace is empty.")


LINE["who_ls"] = lambda line: names_of_user()


@line_magic("whos")
def whos(line):
    print("%-16s %-16s %s" % ("Variable", "Type", "Data/Info"))
    for name in names_of_user():
        print("%-16s %-16s %s" % (name, type(space[name]).__name__, repr(space[name])[:60]))


@line_magic("reset")
def reset(line):
    for name in [n for n in space if not n.startswith("__")]:
        del space[name]


@line_magic("run")
def run_file(line):
    import runpy, shlex

    words = shlex.split(line)
    words = words[1:] if words[:1] == ["-i"] else words
    if not words:
        raise UsageError("%run: want a file")
    before = sys.argv
    sys.argv = words
    try:
        space.update((k, v) for k, v in runpy.run_path(words[0], None, "__main__").items() if k[:2] != "__")
    finally:
        sys.argv = before


@line_magic("load_ext", "reload_ext")
def load_extension(line):
    import importlib

    if line.strip() != "autoreload":
        importlib.import_module(line.strip()).load_ipython_extension(kernel.shell)


@line_magic("lsmagic")
def list_magics(line):
    print("Line magics: %s" % " ".join("%" + n for n in sorted(kernel.shell.line_magics)))
    print("Cell magics: %s" % " ".join("%%" + n for n in sorted(kernel.shell.cell_magics)))


@line_magic("pinfo", "pinfo2", "pdoc", "psource")
def explain(name):
    import inspect

    if name.startswith("%"):
        function = kernel.shell.line_magics.get(name.lstrip("%")) or kernel.shell.cell_magics.get(name.lstrip("%"))
        return print(function.__doc__ or "" if function else "Object `%s` not found." % name)
    try:
        value = eval(name, space)
    except Exception:
        return print("Object `%s` not found." % name)
    try:
        print("Signature: %s%s" % (name, inspect.signature(value)))
    except (TypeError, ValueError):
        print("String form: %s" % str(value)[:1000])
    print("Docstring: %s" % (inspect.getdoc(value) or "<no docstring>"))
    print("Type: %s" % type(value).__name__)


def duration(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            break
    return "%.3g %s" % (seconds / size, unit)


def run_timed(code):
    import time

    wall, before = time.perf_counter(), os.times()
    try:
        return kernel.evaluate(code)
    finally:
        wall, after = time.perf_counter() - wall, os.times()
        user, own = after[0] - before[0], after[1] - before[1]
        print("CPU times: user %s, sys: %s, total: %s" % tuple(duration(t) for t in (user, own, user + own)))
        print("Wall time: %s" % duration(wall))


LINE["time"] = run_timed
CELL["time"] = lambda line, cell: run_timed((line or "") + "\n" + cell)


def timeit_options(line):
    words, found = line.split(" "), {}
    while words and re.match(r"-[nrqop]", words[0]):
        word = words.pop(0)
        if word[1] in "nr":
            found[word[1]] = int(word[2:] or words.pop(0))
        else:
            found[word[1]] = True
    return found, " ".join(words)


def run_timeit(line, cell=None):
    import statistics, timeit

    options, code = timeit_options(line)
    timer = timeit.Timer(translate(cell), translate(code) or "pass", globals=space) if cell is not None else (
        timeit.Timer(translate(code), globals=space))
    loops = options.get("n") or timer.autorange()[0]
    times = [t / loops for t in timer.repeat(options.get("r", 7), loops)]
    if "q" not in options:
        print("%s ± %s per loop (mean ± std. dev. of %d runs, %d loops each)" % (
            duration(statistics.mean(times)), duration(statistics.pstdev(times)), len(times), loops))
    if "o" in options:
        return types.SimpleNamespace(average=statistics.mean(times), best=min(times), all_runs=times, loops=loops)


LINE["timeit"] = CELL["timeit"] = run_timeit


class Captured:
    """What %%capture has collected."""

    def __init__(self):
        self.stdout, self.stderr, self.outputs = "", "", []

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for result in self.outputs:
            kernel.show(b"d", result)

    __call__ = show


def run_captured(line, cell):
    import contextlib, io

    words = line.split()
    found, out, err = Captured(), io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        if "--no-stdout" not in words:
            stack.enter_context(contextlib.redirect_stdout(out))
        if "--no-stderr" not in words:
            stack.enter_context(contextlib.redirect_stderr(err))
        before = kernel.collect(found.outputs)
        try:
            sys.displayhook(kernel.evaluate("\n" + cell))
            kernel.show_figures()
        finally:
            kernel.collect(before)
    found.stdout, found.stderr = out.getvalue(), err.getvalue()
    for name in words:
        if not name.startswith("-"):
            space[name] = found


CELL["capture"] = run_captured


def run_script(argv, line, cell):
    """Another interpreter has the cell on its standard input."""
    import shlex

    words, kept, may_fail = shlex.split(line), {}, False
    while words and words[0].startswith("--"):
        word = words.pop(0)
        may_fail = may_fail or word == "--no-raise-error"
        if word in ("--out", "--err") and words:
            kept[word[2:]] = words.pop(0)
    argv = argv + words
    if not argv:
        raise UsageError("%%script: want a program")
    code, out, err = spawn(argv, cell, out="out" in kept, err="err" in kept)
    for word, text in (("out", out), ("err", err)):
        if word in kept:
            space[kept[word]] = text
    if code and not may_fail:
        raise subprocess.CalledProcessError(code, argv, out or None, err or None)


for word in "bash sh perl ruby node python python3 python2".split():
    CELL[word] = lambda line, cell, word=word: run_script(
        [sys.executable if word in ("python", "python3") else word], line, cell)
CELL["script"] = lambda line, cell: run_script([], line, cell)
CELL["system"] = CELL["sx"] = CELL["!"] = lambda line, cell: kernel.shell.getoutput(line + "\n" + cell)


@cell_magic("writefile", "file")
def write_file(line, cell):
    is_more, name = line.startswith("-a "), re.sub(r"^(-a|--append)\s+", "", line).strip().strip("\"'")
    if not name:
        raise UsageError("%%writefile: want a file")
    is_there = os.path.exists(name)
    with open(os.path.expanduser(name), "a" if is_more else "w") as f:
        f.write(cell)
    print("%s %s" % ("Appending to" if is_more else "Overwriting" if is_there else "Writing", name))


def show_as(mime):
    return lambda line, cell: kernel.display({mime: cell}, raw=True)


for word, mime in (("html", "text/html"), ("HTML", "text/html"), ("markdown", "text/markdown"),
                   ("latex", "text/latex"), ("svg", "image/svg+xml"), ("SVG", "image/svg+xml"),
                   ("javascript", "application/javascript"), ("js", "application/javascript")):
    CELL[word] = show_as(mime)


# ---- IPython, where there is none ----


class DisplayObject:
    """Something to show, from data or a file."""

    mime, is_binary = "text/plain", False

    def __init__(self, data=None, url=None, filename=None, metadata=None, **more):
        if isinstance(data, os.PathLike) or (filename is None and self.names_file(data)):
            data, filename = None, data
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.__dict__.update(more)
        self.reload()

    def names_file(self, data):
        return False

    def reload(self):
        if self.filename is not None and self.data is None:
            with open(self.filename, "rb" if self.is_binary else "r") as f:
                self.data = f.read()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), self.mime: self.data}

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


def text_class(name, mime, before="", behind=""):
    def bundle(self, include=None, exclude=None):
        return {"text/plain": repr(self), mime: before + str(self.data) + behind}

    return type(name, (DisplayObject,), {"mime": mime, "_repr_mimebundle_": bundle, "__module__": "IPython.core.display"})


class JSON(DisplayObject):
    mime = "application/json"

    def _repr_mimebundle_(self, include=None, exclude=None):
        import json

        value = json.loads(self.data) if isinstance(self.data, str) else self.data
        return {"text/plain": repr(self), self.mime: value}


class Pretty(DisplayObject):
    def __repr__(self):
        return str(self.data)


class Image(DisplayObject):
    is_binary = True

    def names_file(self, data):
        return isinstance(data, str) and not data.startswith(("http:", "https:")) and len(data) < 4096

    def _repr_mimebundle_(self, include=None, exclude=None):
        if isinstance(self.data, str) or self.data is None:
            return {"text/plain": repr(self), "text/html": '<img src="%s"/>' % (self.url or self.data)}
        kind = getattr(self, "format", None) or ""
        if self.data[:2] == b"\xff\xd8" or kind.lower() in ("jpeg", "jpg"):
            return {"text/plain": repr(self), "image/jpeg": self.data}
        return {"text/plain": repr(self), "image/gif" if self.data[:3] == b"GIF" else "image/png": self.data}


class IFrame(DisplayObject):
    def __init__(self, src, width="100%", height=400, **more):
        super().__init__("", src=src, width=width, height=height)

    def _repr_mimebundle_(self, include=None, exclude=None):
        html = '<iframe width="%s" height="%s" src="%s" frameborder="0" allowfullscreen></iframe>'
        return {"text/plain": repr(self), "text/html": html % (self.width, self.height, self.src)}


class Audio(DisplayObject):
    is_binary, tag = True, "audio"

    def names_file(self, data):
        return isinstance(data, str) and "://" not in data

    def _repr_mimebundle_(self, include=None, exclude=None):
        import base64

        source = self.url or self.data
        if isinstance(source, bytes):
            kind = "audio/wav" if self.tag == "audio" else "video/mp4"
            source = "data:%s;base64,%s" % (kind, base64.b64encode(source).decode())
        return {"text/plain": repr(self), "text/html": '<%s controls src="%s"></%s>' % (self.tag, source, self.tag)}


class Video(Audio):
    tag = "video"


class FileLink(DisplayObject):
    def __init__(self, path, **more):
        super().__init__("", path=path)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self.path), "text/html": "<a href='%s' target='_blank'>%s</a>" % (self.path, self.path)}


class DisplayHandle:
    def __init__(self, display_id=None):
        self.display_id = display_id or os.urandom(16).hex()

    def display(self, value, **more):
        kernel.display(value, **more)

    update = display


def display(*values, display_id=None, **more):
    """As IPython's: a handle for whoever asks for one."""
    kernel.display(*values, **more)
    return DisplayHandle(None if display_id is True else display_id) if display_id else None


def publish_display_data(data, metadata=None, **ignored):
    kernel.display(data, raw=True)


def update_display(value, *, display_id=None, **more):
    kernel.display(value, **more)


def clear_output(wait=False):
    """What was told cannot be taken back."""


def shown_names():
    names = {c.__name__: c for c in (DisplayObject, JSON, Pretty, Image, IFrame, Audio, Video, FileLink, DisplayHandle)}
    names["TextDisplayObject"] = DisplayObject
    for name, mime, *around in (("HTML", "text/html"), ("Markdown", "text/markdown"), ("Latex", "text/latex"),
                                ("Math", "text/latex", "$\\displaystyle ", "$"), ("SVG", "image/svg+xml"),
                                ("Javascript", "application/javascript"), ("Code", "text/plain")):
        names[name] = text_class(name, mime, *around)
    for function in (display, publish_display_data, update_display, clear_output):
        names[function.__name__] = function
    names["set_matplotlib_formats"] = lambda *formats, **more: None
    return names


SHOWN = {}


def register(kind):
    return lambda function: kernel.shell.register_magic_function(function, kind) or function


def shim_names(name):
    """What a module of IPython has here."""
    if name in ("IPython.display", "IPython.core.display", "IPython.core.display_functions"):
        SHOWN.update(SHOWN or shown_names())
        return SHOWN
    if name == "IPython":
        return {"get_ipython": builtins.get_ipython, "version_info": (8, 24, 0, ""), "__version__": "8.24.0", "display": display}
    if name == "IPython.core.getipython":
        return {"get_ipython": builtins.get_ipython}
    if name == "IPython.core.magic":
        return {"register_" + k + "_magic": register(k.replace("_", "")) for k in ("line", "cell", "line_cell")}
    return {"backend2gui": {}} if name == "IPython.core.pylabtools" else {}


SHIMS = ("IPython", "IPython.core", "IPython.display", "IPython.core.display", "IPython.core.display_functions",
         "IPython.core.getipython", "IPython.core.magic", "IPython.core.pylabtools")
