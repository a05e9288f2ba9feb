"""Any objects in configs: what the core cannot store goes along as a pickle, shown by its repr."""

import pickle

from cadre import _core, _pickle

_KEY = "$python"
_DATASET = "$dataset"
_PLAIN = (type(None), bool, int, float, str, _core.ObjectRef)
_LONGEST_REPR = 200


class PickledObject:
    """An object in a config, where nothing is unpickled: in results. `repr` is the object's."""

    def __init__(self, entry):
        self._reference = entry[_KEY]
        self.repr = entry["repr"]

    def load(self):
        """Returns the object. Runs what its pickle says, so only of an experiment that one trusts; in a trial, or in the
        program that has made it."""
        return pickle.loads(_core.get_bytes(self._reference))

    def __repr__(self):
        return self.repr

    def __eq__(self, other):
        return isinstance(other, PickledObject) and other._reference == self._reference

    def __hash__(self):
        return hash(self._reference)


def is_dataset(value):
    """Returns true for a cadre.data.Dataset, without an import of what may not be there."""
    kind = type(value)
    return (kind.__module__, kind.__name__) == ("cadre.data.dataset", "Dataset")


class StoredDataset:
    """A dataset in a config, as results show it."""

    def __init__(self, stored):
        self._stored = stored

    def load(self):
        """Returns the dataset."""
        from cadre.data import dataset

        return dataset._of_stored(self._stored)

    def __repr__(self):
        return f"Dataset(name={self._stored['name']!r})" if self._stored.get("name") else "Dataset()"


def encode(value):
    """Returns a value that the core can store: itself, with every other object in it replaced by its pickle. Raises
    TypeError for one that cannot be pickled."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, PickledObject):
        return {_KEY: value._reference, "repr": value.repr}
    if is_dataset(value):
        return {_DATASET: value._stored()}
    if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a number of numpy or torch
        return value.item()
    try:
        reference = _core.put_bytes(_pickle.dumps(value))
    except Exception as error:
        raise TypeError(f"{value!r} in a config cannot be pickled: {error}") from error
    return {_KEY: reference, "repr": repr(value)[:_LONGEST_REPR]}


def decode(value):
    """Returns the value with its objects, in a trial or in the functions of an experiment."""
    return _replaced(value, lambda one: one.load())


def show(value):
    """Returns the value with a PickledObject for each object, and unpickles nothing."""
    return _replaced(value, lambda one: one)


def _replaced(value, make):
    if isinstance(value, dict):
        if _KEY in value and isinstance(value[_KEY], _core.ObjectRef):
            return make(PickledObject(value))
        if _DATASET in value and len(value) == 1:
            return make(StoredDataset(value[_DATASET]))
        return {key: _replaced(item, make) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, make) for item in value]
    return value
