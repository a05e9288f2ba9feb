"""Functions and classes that datasets call with batches, in the process that calls them."""

import contextlib
import inspect
import random
import sys
import threading

import pyarrow

from cadre import _functions, _pickle, _worker
from cadre.data import _batches


class Call:
    """A function or class with its arguments, and the form of what it gets. `kind`: "batches", "row", "rows" (flat_map) or
    "predicate"."""

    def __init__(self, function, kind, where, batch_format="default", copies=False, args=(), kwargs=None,
                 constructor_args=(), constructor_kwargs=None):
        self.function = function
        self.kind = kind
        self.where = where
        self.batch_format = batch_format
        self.copies = copies
        self.args = tuple(args or ())
        self.kwargs = dict(kwargs or {})
        self.constructor_args = tuple(constructor_args or ())
        self.constructor_kwargs = dict(constructor_kwargs or {})

    def make(self):
        """Returns the function of a record batch; makes the object of a class."""
        function = self.function
        if inspect.isclass(function):
            function = function(*self.constructor_args, **self.constructor_kwargs)
        call = {"batches": self._map_batches, "row": self._map_rows, "rows": self._flat_map,
                "predicate": self._filter}[self.kind]
        return lambda batch: call(function, batch)

    def _map_batches(self, function, batch):
        returned = function(_batches.to_format(batch, self.batch_format, self.copies), *self.args, **self.kwargs)
        if not inspect.isgenerator(returned):
            return _batches.to_record_batch(returned, self.where)
        tables = [pyarrow.Table.from_batches([_batches.to_record_batch(one, self.where)]) for one in returned]
        if not tables:
            return batch.slice(0, 0).select([])
        return _batches.to_record_batch(pyarrow.concat_tables(tables), self.where)

    def _map_rows(self, function, batch):
        rows = [function(row, *self.args, **self.kwargs) for row in _batches.to_rows(batch)]
        return rows_to_batch(rows, self.where)

    def _flat_map(self, function, batch):
        rows = [one for row in _batches.to_rows(batch) for one in _rows_in(function(row, *self.args, **self.kwargs))]
        return rows_to_batch(rows, self.where)

    def _filter(self, function, batch):
        keep = [bool(function(row, *self.args, **self.kwargs)) for row in _batches.to_rows(batch)]
        return batch.filter(pyarrow.array(keep, pyarrow.bool_()))


def _rows_in(returned):
    """Returns the rows that a function of flat_map has made: one, or several, or lists of them."""
    if isinstance(returned, dict):
        return [returned]
    return [row for one in returned for row in (one if isinstance(one, (list, tuple)) else [one])]


def rows_to_batch(rows, where):
    """Returns dictionaries as a record batch: a column for each name, null where a row does not have it."""
    names = {}
    for row in rows:
        if not isinstance(row, dict):
            raise TypeError(f"{where}: a row is a dictionary, not {type(row).__name__}")
        names.update(dict.fromkeys(row))
    columns = [_batches.to_column([row.get(name) for row in rows], name, where) for name in names]
    return pyarrow.RecordBatch.from_arrays(columns, names=[str(name) for name in names])


def to_host_function(call):
    """Returns the value from which make_call() makes the function."""
    try:
        return _functions.to_host_function(call, is_called_here=False)  # its workers load it, and what it holds may be large
    except TypeError:
        try:
            _pickle.dumps(call.function)
        except Exception:
            return _functions.to_host_function(call.function)  # raises, and names the variable
        raise


def make_call(value, epoch):
    """Returns a function of what has __arrow_c_array__, which returns such a one. Called in the worker. epoch: of the loop
    that it is called for."""
    if _worker.is_for_datasets():
        _worker.take_environment()
    call = _functions.load(value)
    _seed()
    with _in_epoch(epoch):
        function = call.make()

    def call_in_epoch(batch):
        with _in_epoch(epoch):
            return function(pyarrow.record_batch(batch))

    return call_in_epoch


_local = threading.local()  # workers may be threads of one process, each in another epoch


@contextlib.contextmanager
def _in_epoch(epoch):
    before = getattr(_local, "epoch", 0)
    _local.epoch = epoch
    try:
        yield
    finally:
        _local.epoch = before


def get_epoch():
    """Returns the epoch of the loop that a function of a dataset is called for, in that function or in the constructor of
    its class: the number of the pass over a share of a run or of streaming_split, or over the rows of Dataset.iterator(),
    from 0. 0 elsewhere."""
    return getattr(_local, "epoch", 0)


def _seed():
    """Gives each worker process random numbers of its own, and not those of the server that it was forked from."""
    if not _worker.is_for_datasets():
        return
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
