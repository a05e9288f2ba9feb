"""Any objects in configs: what the core cannot store goes along as a pickle, shown by its repr. Tuples, and dictionaries
with other keys than texts, go along as they are shown, with a mark."""

import enum
import pickle

from cadre import _core, _pickle

_KEY = "$python"
_TUPLE = "$tuple"  # "value" has its items
_DICT = "$dict"  # the keys; "value" has the entries, by the texts of the keys
_PLAIN = (type(None), bool, int, float, str, _core.ObjectRef)
_LONGEST_REPR = 200
_LONGEST_INLINE = 1_000_000


class PickledObject:
    """An object in a config, where nothing is unpickled: in results. `repr` is the object's."""

    def __init__(self, entry):
        self._reference = entry[_KEY]
        self.repr = entry["repr"]
        self._plain = entry.get("value")

    def load(self):
        """Returns the object. Runs what its pickle says, so only of an experiment that one trusts; in a trial, or in the
        program that has made it."""
        if isinstance(self._reference, str):  # the pickle itself
            return _pickle.from_text(self._reference)
        return pickle.loads(_core.get_bytes(self._reference))

    def __repr__(self):
        return self.repr

    def __eq__(self, other):
        return isinstance(other, PickledObject) and other._reference == self._reference

    def __hash__(self):
        return hash(self._reference)


def encode(value, put=_core.put_bytes):
    """Returns a value that the core can store: itself, with every other object in it replaced by its pickle, which `put`
    stores. A text or number that is a member of an Enum has its plain value beside the pickle, and a tuple with a class of its
    own its items. Raises TypeError for an object that cannot be pickled, and ValueError for keys with the same text."""
    if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, dict):
        return _encode_dict(value, put)
    if isinstance(value, list):
        return [encode(item, put) for item in value]
    if type(value) is tuple:
        return {_TUPLE: True, "repr": _short_repr(value), "value": [encode(item, put) for item in value]}
    if isinstance(value, PickledObject):
        return {_KEY: value._reference, "repr": value.repr}
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a number of numpy or torch
        plain = value.item()
        is_time = getattr(getattr(value, "dtype", None), "kind", None) in ("m", "M")  # in nanoseconds an int
        if isinstance(plain, _PLAIN) and not is_time:
            return plain
    try:
        reference = put(_pickle.dumps(value))
    except Exception as error:
        raise TypeError(f"{value!r} in a config cannot be pickled: {error}") from error
    entry = {_KEY: reference, "repr": _short_repr(value)}
    if isinstance(value, tuple):
        return {**entry, "value": [encode(item, put) for item in value]}
    return {**entry, "value": value} if isinstance(value, _PLAIN) else entry


def _encode_dict(entries, put):
    if all(type(key) is str for key in entries):
        return {key: encode(item, put) for key, item in entries.items()}
    encoded = {}
    for key, item in entries.items():
        if str(key) in encoded:
            raise ValueError(f"two keys of {_short_repr(entries)} in a config are the text {str(key)!r} where they are stored: "
                             "rename one of them")
        encoded[str(key)] = encode(item, put)
    return {_DICT: [encode(key, put) for key in entries], "repr": _short_repr(entries), "value": encoded}


def _short_repr(value):
    return repr(value)[:_LONGEST_REPR]


def encode_inline(value):
    """Returns the same in a worker, whose objects nobody else can read: the value has the pickles themselves, as text.
    Raises TypeError for one that is larger than a value may be."""
    return encode(value, _as_text)


def _as_text(pickled):
    text = _pickle.as_text(pickled)
    if len(text) > _LONGEST_INLINE:
        raise ValueError(f"it has {len(text)} bytes as a pickle; at most {_LONGEST_INLINE:,} go along with a report")
    return text


def decode(value):
    """Returns the value with its objects, in a trial or in the functions of an experiment."""
    return _replaced(value, PickledObject.load)


def show(value):
    """Returns the value with a PickledObject for each object, but with the plain value of one that has it. Unpickles
    nothing."""
    return _replaced(value, lambda one: one if one._plain is None else show(one._plain))


def _replaced(value, make):
    if isinstance(value, dict):
        marks = set(value) - {"value"}
        if marks == {_KEY, "repr"} and isinstance(value[_KEY], (_core.ObjectRef, str)):
            return make(PickledObject(value))
        if marks == {_TUPLE, "repr"}:
            return tuple(_replaced(item, make) for item in value["value"])
        if marks == {_DICT, "repr"}:
            return dict(zip(_replaced(value[_DICT], make), (_replaced(item, make) for item in value["value"].values())))
        return {key: _replaced(item, make) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, make) for item in value]
    return value
