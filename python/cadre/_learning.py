"""What trials import beyond what the fork server has: at its end each trial tells, and the server imports it for those to
come. A throw-away process tries it first, so that a module that crashes, starts threads or looks for a GPU
stays out."""

import importlib
import itertools
import os
import signal
import sys
import warnings

_MOST = 4096  # bytes of a message: a pipe takes them at once
_PATIENCE_S = 120  # for all imports of a throw-away process

_read_end = _write_end = None
_known = 0  # in a trial: number of modules that it has from the server
_tried: set[str] = set()  # in the server


def begin():
    """Makes the pipe, in the server. Returns the end that it reads."""
    global _read_end, _write_end
    _read_end, _write_end = os.pipe()
    os.set_blocking(_read_end, False)
    os.set_blocking(_write_end, False)
    return _read_end


def remember():
    """Notes which modules there are, at the beginning of a trial. Only their number: to touch each name, of thousands, would
    copy the pages that they share with the server."""
    global _known
    _known = len(sys.modules)


def tell():
    """Tells the server which further ones were imported, at the end of a trial."""
    from cadre._driver import installed_modules

    new = list(itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - _known)))
    if new and _write_end is not None:
        _write("want", installed_modules(reversed(new)))


def learn():
    """Handles messages, in the server between two forks. Imports what the throw-away process could import."""
    from cadre import _server

    messages = list(_messages())
    good = [name for kind, names in messages if kind == "good" for name in names]
    wanted = [name for kind, names in messages if kind == "want" for name in names]
    if good:
        _import(good)
        _server.settle()
    new = list(dict.fromkeys(name for name in wanted if name not in sys.modules and name not in _tried))
    if new:
        _tried.update(new)
        _try(new)


def _try(names):
    """Imports modules in throw-away processes, and says which are "good": all of them together or, if one is not, each
    package by itself. Nobody waits for that."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork() != 0:
        return
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        if not _try_together(names):
            packages = {}
            for name in names:
                packages.setdefault(name.split(".")[0], []).append(name)
            for package in packages.values():
                _try_together(package)
    finally:
        os._exit(0)


def _try_together(names):
    """Returns true if the modules are good, and says so."""
    from cadre import _server

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(_PATIENCE_S)
            good = _import(names)
            if good and not _server.has_threads() and not _server.uses_gpu():
                _write("good", good)
                os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _import(names):
    """Imports modules; returns those for which that succeeds."""
    good = []
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(name)
            good.append(name)
        except BaseException:  # a trial that needs it imports it, and sees the error
            pass
    return good


def _write(kind, names):
    """Writes messages, each at once. One for which there is no room is left out: another trial will tell."""
    message = kind
    for name in [*names, None]:
        if name is None or len(message) + len(name) + 2 > _MOST:
            if message != kind:
                try:
                    os.write(_write_end, (message + "\n").encode())
                except OSError:
                    return
            message = kind
        if name is not None:
            message += " " + name


def _messages():
    data = b""
    try:
        while chunk := os.read(_read_end, 1 << 16):
            data += chunk
    except BlockingIOError:
        pass
    for line in data.decode().splitlines():
        kind, *names = line.split(" ")
        yield kind, names
