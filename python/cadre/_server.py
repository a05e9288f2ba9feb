"""The fork server: a new interpreter, which imports what trials will need, and then forks them."""

import gc
import importlib
import json
import os
import sys
import time
import warnings


def serve(given):
    """Becomes the server. `given`: what init() has put into its command. Does not return."""
    # A fork takes one thread along. Libraries that start threads when they are imported are asked not to; a trial has
    # as many threads as it has CPUs (_worker.begin).
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    # Otherwise torch.cuda.is_available() starts CUDA, which does not survive a fork.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    if given["imports_ray"]:
        importlib.import_module("cadre.compat.ray").install()
    sys.argv = given["argv"]
    excluded = set(given.get("excluded", ()))
    for name in ["cloudpickle", *given["modules"]]:
        if name.split(".")[0] not in excluded:
            _import(name, given)
    if "numpy" in sys.modules:
        _import("numpy.random", given)  # loaded late, and needed to seed
    from cadre import _core, _worker, tune  # noqa: F401  what each trial needs
    if given["uses_datasets"] and "pyarrow" not in excluded:
        import cadre.data  # noqa: F401

    gc.collect()
    gc.freeze()  # so that a collection in a trial does not write to what all share
    _core.init([], **given["options"])
    raise SystemExit("cadre: the fork server was started by hand; cadre.init() starts it")


def _import(name, given):
    """Imports a module. One that fails costs speed only: a trial that needs it imports it, and sees the error. If it
    starts threads, the server begins anew without it."""
    if name in sys.modules:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except BaseException as error:  # also SystemExit, which some modules raise
        print(f"cadre: each trial imports {name} itself, because that failed in the fork server: "
              f"{type(error).__name__}: {error}", file=sys.stderr)
    if _num_threads() > 1:
        top = name.split(".")[0]
        print(f"cadre: each trial imports {top} itself, because importing {name} starts a thread", file=sys.stderr)
        _begin_anew({**given, "excluded": [*given.get("excluded", ()), top]})


def _num_threads():
    """Returns the number of threads that a fork loses. The one of Arrow's allocator is none of them: it survives forks."""
    names = [_name_of_thread(thread) for thread in os.listdir("/proc/self/task")]
    return len([name for name in names if name not in (None, "jemalloc_bg_thd")])


def _name_of_thread(thread):
    """Returns the name of a thread; None if it has ended. A new one has its creator's until it has set its own: waits for
    that, a second."""
    for _ in range(1000):
        try:
            with open(f"/proc/self/task/{thread}/comm") as file:
                name = file.read().strip()
        except OSError:
            return None
        if thread == str(os.getpid()) or name != _own_name() or "pyarrow" not in sys.modules:
            return name
        time.sleep(0.001)
    return name


def _own_name():
    with open("/proc/self/comm") as file:
        return file.read().strip()


def _begin_anew(given):
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1], json.dumps(given)])
