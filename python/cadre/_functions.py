"""Functions as values: the pickles by which workers and later programs find them."""

import pickle
import sys
import weakref

from cadre import _core, _pickle, _values

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

# Functions of this process's Tuners, by the ids of their objects, as long as something has their values.
_own: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
# Functions that this process has loaded, likewise.
_loaded: dict = {}
# What functions have returned, because it may hold objects that are needed until the trial that they are for begins.
_returned: list = []


class _Own:
    """A function of this process."""

    function = None


class _HostFunction(dict):
    """The value of a HostFunction, which holds the function."""

    own = None

    def __reduce__(self):
        return dict, (dict(self),)


def name_of(function):
    """Returns a name for people."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def to_host_function(function, is_called_here=True, **others):
    """Returns the value of a HostFunction, which holds the function's pickle in the object store, with other entries. As
    long as the value lives, load() returns this very function, unless is_called_here is false: then the value does not
    hold it. Raises TypeError, naming what cannot be pickled."""
    try:
        pickled = _pickle.dumps(function)
    except Exception as error:
        raise TypeError(f"{name_of(function)} cannot be pickled{_culprit(function)}: {error}") from error
    reference = _core.put_bytes(pickled)
    value = _HostFunction(pickle=reference, python=_PYTHON, **others)
    if is_called_here:
        value.own = _own.setdefault(reference.id, _Own())  # equal pickles have one id
        value.own.function = function
    return value


def to_inline_function(function, **others):
    """Returns the same in a worker, which cannot put objects: the value has the pickle itself, as text. Raises
    ValueError if it is larger than a value may be."""
    text = _pickle.to_text(function)
    if len(text) > 1_000_000:
        raise ValueError(f"{name_of(function)} has {len(text)} bytes as a pickle; at most 1,000,000 go along with a report")
    return {"inline": text, "python": _PYTHON, **others}


def load(value):
    """Returns the function of a HostFunction's value."""
    if "inline" in value:
        return _pickle.from_text(value["inline"])
    reference = value["pickle"]
    own = _own.get(reference.id)
    if own is not None:
        return own.function
    if reference.id not in _loaded:
        if value["python"] != _PYTHON:
            raise _core.InvalidArgument(
                f"this function was pickled by Python {value['python']}, and this is Python {_PYTHON}, which cannot read "
                "it: continue the experiment with that one")
        _loaded[reference.id] = pickle.loads(_core.get_bytes(reference))
    return _loaded[reference.id]


def call(value, arguments):
    """Calls a function in the driver."""
    returned = _values.encode(load(value)(*_values.decode(arguments)))
    if isinstance(returned, (dict, list)):
        _returned.append(returned)
    return returned


def forget_after_fit():
    """Releases the objects in what functions have returned, which trials have as files after fit(), and loaded functions."""
    _returned.clear()
    _loaded.clear()


def _culprit(function):
    """Returns which variable of the function cannot be pickled: ", because of its variable x (a lock)", or nothing."""
    closure = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    variables = {}
    for name, cell in zip(names, closure):
        try:
            variables[name] = cell.cell_contents
        except ValueError:
            pass
    code = getattr(function, "__code__", None)
    for name in getattr(code, "co_names", ()):
        if name in getattr(function, "__globals__", {}):
            variables[name] = function.__globals__[name]
    for name, value in variables.items():
        try:
            _pickle.dumps(value)
        except Exception:
            return f", because of its variable {name} ({type(value).__name__})"
    return ""
