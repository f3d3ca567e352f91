# What a forked interpreter needs to become what a fresh one would be, as far as it is easier said in
# Python. Compiled once in the template, in a namespace of its own; nothing here can be seen from
# __main__ or sys.modules. It imports nothing that a bare interpreter has not imported already, so
# that sys.modules tells no lies.
import sys, os, io, posix, time, site

sys.path.insert(0, "")  # what the interpreter's own main() does before it runs a command

_streams = [
    (fd, name, mode, s.encoding, s.errors)
    for fd, name, mode, s in (
        (0, "<stdin>", "r", sys.stdin),
        (1, "<stdout>", "w", sys.stdout),
        (2, "<stderr>", "w", sys.stderr),
    )
]

# Looked up from C.
environments = [posix.environ, os.environ._data]  # modules may hold either mapping
user_site = site.USER_SITE if site.ENABLE_USER_SITE and site.USER_SITE else ""
program = sys.orig_argv[0] if hasattr(sys, "orig_argv") else ""

# None, or why not: a module's own code runs here, and may leave by any way that there is.
def load(name):
    try:
        __import__(name)
    except BaseException as e:
        return f"{type(e).__name__}: {e}"


# From 3.13 on the source of a command is kept for tracebacks, under its name or its code.
_linecache = None
if sys.version_info >= (3, 13):
    import linecache as _linecache


def keep_source(code, text):
    by_code = hasattr(_linecache, "_code_key")
    _linecache._register_code(code if by_code else "<string>", text, "<string>")


# The same steps as the interpreter's own create_stdio().
def open_stream(fd, unbuffered):
    fd, name, mode, encoding, errors = _streams[fd]
    try:
        posix.fstat(fd)
    except OSError:
        return None
    bare = unbuffered and mode == "w"
    buffer = io.open(fd, mode + "b", 0 if bare else -1, closefd=False)
    raw = buffer if bare else buffer.raw
    raw.name = name
    lines = not unbuffered and (fd == 2 or raw.isatty())
    stream = io.TextIOWrapper(buffer, encoding, errors, "\n", lines, unbuffered)
    stream.mode = mode
    return stream


def set_zone():
    time.tzset()


# As PYTHONPATH at the start would have.
def set_path():
    sys.path[1:1] = os.environ["PYTHONPATH"].split(":")


# Whether reset_clock() has anything to do, asked after the template's imports.
def has_clock():
    return "logging" in sys.modules


def reset_clock():
    now = time.time_ns() if sys.version_info >= (3, 13) else time.time()
    sys.modules["logging"]._startTime = now


# Before the first run of a child: what two children of one template must not share.
def after_fork():
    random = sys.modules.get("random")
    if random:
        random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random:
        numpy_random.seed()
    uuid = sys.modules.get("uuid")
    if uuid:
        uuid._last_timestamp = uuid._node = None
    tempfile = sys.modules.get("tempfile")
    if tempfile:
        tempfile._name_sequence = None
    threading = sys.modules.get("threading")
    if threading:
        threading.main_thread()._set_native_id()
