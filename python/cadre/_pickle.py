"""Pickles of any object: functions and classes of the program go along by value (cloudpickle)."""

import base64
import io
import pickle
import types

import cloudpickle

_reduce_code = cloudpickle.Pickler.dispatch_table.get(types.CodeType)


def _reduce_code_with_file(code):
    """Keeps the name of the file, so that a traceback shows lines; cloudpickle 3.1.3 replaces it."""
    make, arguments, *state = _reduce_code(code)
    return (make, tuple(code.co_filename if isinstance(argument, str) and argument == "<dynamic-code>" else argument
                        for argument in arguments), *state)


class _Pickler(cloudpickle.Pickler):
    if _reduce_code is not None:
        dispatch_table = {**cloudpickle.Pickler.dispatch_table, types.CodeType: _reduce_code_with_file}


def dumps(value):
    """Returns the pickle of an object, which pickle.loads reads where cloudpickle is installed."""
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def to_text(value):
    """Returns the pickle as text, for values that hold it themselves."""
    return as_text(dumps(value))


def as_text(pickled):
    return base64.b85encode(pickled).decode()


def from_text(text):
    """Returns the object of a pickle as text."""
    return pickle.loads(base64.b85decode(text))
