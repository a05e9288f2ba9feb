"""The fork server: a new interpreter, which imports what trials will need, and then forks them."""

import atexit
import gc
import importlib
import os
import sys
import time
import warnings

from cadre._driver import server_command


def serve(given):
    """Becomes the server. `given`: what init() has put into its command. Does not return."""
    # A fork takes one thread along. Libraries that start threads when they are imported are asked not to; a trial has
    # as many threads as it has CPUs (_worker.begin).
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    if given["imports_ray"]:
        importlib.import_module("cadre.compat.ray").install()
    sys.argv = given["argv"]
    excluded = set(given.get("excluded", ()))
    for name in ["cloudpickle", *given["modules"]]:
        if name.split(".")[0] not in excluded:
            _import(name, given)
    if "numpy" in sys.modules:
        _import("numpy.random", given)  # loaded late, and needed to seed
    from cadre import _core, _learning, _worker, tune  # noqa: F401  what each trial needs
    if given["uses_datasets"] and "pyarrow" not in excluded:
        import cadre.data  # noqa: F401

    _core.set_server_input(_learning.begin())
    settle()
    _core.init([], **given["options"])
    raise SystemExit("cadre: the fork server was started by hand; cadre.init() starts it")


def settle():
    """Makes the server ready to be forked, after its imports: what it does now, its trials need not do, and so do not copy
    the pages that it touches."""
    atexit._clear()  # what modules have registered is the server's
    gc.collect()
    gc.freeze()  # so that a collection in a trial does not write to what all share


def _import(name, given):
    """Imports a module. One that fails costs speed only: a trial that needs it imports it, and sees the error. If it
    starts threads or looks for GPUs, the server begins anew without it."""
    if name in sys.modules:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except BaseException as error:  # also SystemExit, which some modules raise
        print(f"cadre: each trial imports {name} itself, because that failed in the fork server: "
              f"{type(error).__name__}: {error}", file=sys.stderr)
    if has_threads() or uses_gpu():
        top = name.split(".")[0]
        reason = "looks for a GPU" if uses_gpu() else "starts a thread"
        print(f"cadre: each trial imports {top} itself, because importing {name} {reason}", file=sys.stderr)
        _begin_anew({**given, "excluded": [*given.get("excluded", ()), top]})


def has_threads():
    """Returns true if there is a thread that a fork would lose. That of Arrow's jemalloc begins anew by itself; it has its
    name a moment after it starts."""
    for _ in range(200):
        if sum(name != "jemalloc_bg_thd" for name in _names_of_threads()) <= 1:
            return False
        time.sleep(0.005)
    return True


def uses_gpu():
    """Returns true if something has looked for a GPU. CUDA does not survive a fork, and what a module finds in the server,
    which sees all GPUs, is not what a trial has."""
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("/dev/nvidia"):
                return True
        except OSError:  # that of the listing
            pass
    return False


def _names_of_threads():
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                yield file.read().strip()
        except OSError:  # it has ended
            pass


def _begin_anew(given):
    sys.stderr.flush()
    os.execv(sys.executable, server_command(given))
