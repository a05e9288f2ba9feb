"""What runs in the process of a trial, around the user's function."""

import atexit
import inspect
import numbers
import os
import random
import signal
import sys
import threading

from cadre import _core, _driver, _functions, _learning, _values


_has_function = None  # None in the driver; in a worker, true if it has a function of a trial or a run


def begin():
    """Makes a forked process one of its own. Called first."""
    global _has_function
    _has_function = False
    if atexit._ncallbacks():
        atexit._clear()  # what the server has registered
    _learning.remember()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a broken connection is an exception, as in every Python
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)


def is_for_datasets():
    """Returns true in a worker that calls functions of a dataset, and nothing else."""
    return _has_function is False


def seed_generators():
    """Seeds the generators of random, numpy and torch, so far as they are loaded, with the trial's seed: the same
    experiment draws the same numbers again, and each trial others."""
    seed = _core.trial_seed()
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.default_generator.manual_seed(seed % (1 << 63))
        if torch.version.cuda:
            torch.cuda.manual_seed_all(seed % (1 << 63))  # when CUDA starts, if it does


def run(value, arguments):
    """Runs a function of the driver's, and returns its value. Its kind is an entry of the value."""
    _begin_function()
    arguments = _values.decode(arguments)
    if value.get("kind") in ("loop", "validator"):
        return _functions.load(value)(*arguments)
    return run_trainable(value, *arguments)


def run_trainable(value, config, parameters):
    """Runs a training function of a trial. What it returns is its last report, if it is a dictionary or a number;
    what it yields are its reports."""
    function = _functions.load(value)
    parameters = {name: _driver.get(reference) for name, reference in parameters.items()}
    seed_generators()  # now that what the function needs is imported
    returned = function(config, **parameters)
    if inspect.isgenerator(returned):
        for yielded in returned:
            if yielded is None:
                continue
            _core.report({"_metric": yielded} if _is_number(yielded) else yielded)
    elif isinstance(returned, dict):
        _core.report(returned)
    elif _is_number(returned):
        _core.report({"_metric": returned})


def _is_number(value):
    """Returns true for a number of Python or numpy."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def make_class(value):
    """Returns an object of a trainable class."""
    _begin_function()
    trainable = _functions.load(value)
    seed_generators()
    return trainable._make()


def _begin_function():
    global _has_function
    _has_function = True
    take_environment()


def take_environment():
    """Puts into os.environ, a copy that Python made when it started, what the core has set since: a trial's GPUs and
    numbers of threads."""
    for name, value in _core.changed_environment().items():
        if value is None:
            os.environb.pop(name, None)
        elif os.environb.get(name) != value:
            os.environb[name] = value


def end():
    """Does what an interpreter does at its end: waits for threads, calls what is registered with atexit, and writes
    what is buffered."""
    threading._shutdown()
    atexit._run_exitfuncs()
    _learning.tell()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
