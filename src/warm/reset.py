# Turns a forked interpreter into what a fresh one would be. Compiled once in the template, in a
# namespace of its own; nothing here can be seen from __main__ or sys.modules. It imports nothing that
# a bare interpreter has not imported already, so that sys.modules tells no lies.
import sys, os, io, posix, time, site

_streams = [
    (fd, name, mode, s.encoding, s.errors)
    for fd, name, mode, s in (
        (0, "<stdin>", "r", sys.stdin),
        (1, "<stdout>", "w", sys.stdout),
        (2, "<stderr>", "w", sys.stderr),
    )
]
_home = os.environ.get("HOME")
_zone = os.environ.get("TZ")
_program = sys.orig_argv[0] if hasattr(sys, "orig_argv") else "python3"


# From 3.13 on the source of a command is kept for tracebacks, under its name or its code.
_linecache = None
if sys.version_info >= (3, 13):
    import linecache as _linecache


def keep_source(code, text):
    by_code = hasattr(_linecache, "_code_key")
    _linecache._register_code(code if by_code else "<string>", text, "<string>")


def _open_stream(fd, name, mode, encoding, errors, unbuffered):
    # The same steps as the interpreter's own create_stdio().
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


def open_streams(unbuffered):
    streams = [_open_stream(*row, unbuffered) for row in _streams]
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams


def _set_environment(pairs):
    # In place: modules may hold either mapping.
    data = {}
    for pair in pairs:
        key, found, value = pair.partition(b"=")
        if found and key:
            data.setdefault(key, value)
    for target in (posix.environ, os.environ._data):
        target.clear()
        target.update(data)


def _set_times():
    zone = os.environ.get("TZ")
    if zone != _zone:
        time.tzset()
    logging = sys.modules.get("logging")
    if logging:
        logging._startTime = time.time_ns() if sys.version_info >= (3, 13) else time.time()


# The user's own packages: a bare interpreter would have looked for them at its start.
def _needs_fresh_start():
    if os.environ.get("HOME", _home) != _home:
        return True
    return bool(site.ENABLE_USER_SITE and site.USER_SITE and os.path.isdir(site.USER_SITE))


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


# False: this interpreter cannot serve, a fresh one must be started in its place.
def begin(code, arguments, environment, unbuffered):
    _set_environment(environment)
    if _needs_fresh_start():
        return False
    argv = [os.fsdecode(a) for a in arguments]
    sys.argv = ["-c"] + argv
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [_program, "-c", code] + argv
    _set_times()
    open_streams(unbuffered)
    return True
