"""Rows of a dataset in groups."""

import inspect
import itertools

import pyarrow
import pyarrow.compute

from cadre import _functions
from cadre.data import _batches, _functions as _calls


class GroupedData:
    """The groups of rows with equal values of some columns. Each request executes the plan, and holds the rows in memory;
    groups come in the order of their values."""

    def __init__(self, dataset, key):
        self._dataset = dataset
        self._keys = [] if key is None else [key] if isinstance(key, str) else list(key)

    def count(self):
        """Returns a dataset with the number of rows in each group: the column "count()"."""
        return self._aggregated([([], "count_all", "count()", None)])

    def sum(self, on=None, ignore_nulls=True):
        """Returns a dataset with the sum of a column, or of several, in each group: the column "sum(<name>)"."""
        return self._of_columns("sum", on, pyarrow.compute.ScalarAggregateOptions(skip_nulls=ignore_nulls, min_count=1))

    def min(self, on=None, ignore_nulls=True):
        """Returns the least values; see sum."""
        return self._of_columns("min", on, pyarrow.compute.ScalarAggregateOptions(skip_nulls=ignore_nulls, min_count=1))

    def max(self, on=None, ignore_nulls=True):
        """Returns the greatest values; see sum."""
        return self._of_columns("max", on, pyarrow.compute.ScalarAggregateOptions(skip_nulls=ignore_nulls, min_count=1))

    def mean(self, on=None, ignore_nulls=True):
        """Returns the means; see sum."""
        return self._of_columns("mean", on, pyarrow.compute.ScalarAggregateOptions(skip_nulls=ignore_nulls, min_count=1))

    def std(self, on=None, ddof=1, ignore_nulls=True):
        """Returns the standard deviations; see sum. ddof: they divide by the number of values minus this."""
        return self._of_columns("std", on, pyarrow.compute.VarianceOptions(ddof=ddof, skip_nulls=ignore_nulls), "stddev")

    def map_groups(self, fn, *, batch_format="default", fn_args=None, fn_kwargs=None, fn_constructor_args=None,
                   fn_constructor_kwargs=None, **others):
        """Calls a function, or an object of a class in each worker, with each group, a batch; see Dataset.map_batches."""
        _batches.check_format(batch_format, "map_groups")
        table = self._dataset._table()
        self._dataset._require("map_groups", self._keys, table.schema)
        name = _functions.name_of(fn)
        call = _calls.Call(fn, "batches", f"map_groups({name})", batch_format=batch_format, args=fn_args, kwargs=fn_kwargs,
                           constructor_args=fn_constructor_args, constructor_kwargs=fn_constructor_kwargs)
        groups = self._dataset._of_table(pyarrow.table({"group": pyarrow.array(
            [_to_bytes(group) for group in self._parts(table)], pyarrow.large_binary())}))
        mapped = _MapGroups(call, name)
        return groups.map_batches(_made_in_worker(mapped) if inspect.isclass(fn) else mapped, batch_format="pyarrow",
                                  batch_size=1, **others)

    def _parts(self, table):
        """Returns the rows of each group as a table."""
        if not self._keys:
            return [table] if len(table) else []
        table = table.sort_by([(key, "ascending") for key in self._keys])
        counts = table.group_by(self._keys, use_threads=False).aggregate([([], "count_all")])["count_all"].to_pylist()
        return [table.slice(end - count, count) for count, end in zip(counts, itertools.accumulate(counts))]

    def _of_columns(self, kind, on, options, function=None):
        if on is None:
            columns = [name for name in self._dataset.columns() or [] if name not in self._keys]
        else:
            columns = [on] if isinstance(on, str) else list(on)
        return self._aggregated([(name, function or kind, f"{kind}({name})", options) for name in columns])

    def _aggregated(self, wanted):
        table = self._dataset._table()
        self._dataset._require("groupby", [*self._keys, *(name for name, *_ in wanted if name)], table.schema)
        grouped = table.group_by(self._keys, use_threads=False).aggregate(
            [(name, function) if options is None else (name, function, options) for name, function, _, options in wanted])
        made = [column for column in grouped.column_names if column not in self._keys]
        names = {column: name for column, (_, _, name, _) in zip(made, wanted)}
        grouped = grouped.select([*self._keys, *made])
        grouped = grouped.rename_columns([names.get(column, column) for column in grouped.column_names])
        if self._keys:
            grouped = grouped.sort_by([(key, "ascending") for key in self._keys])
        return self._dataset._of_table(grouped)


class _MapGroups:
    """A function of tables whose rows are groups, each as bytes."""

    def __init__(self, call, name):
        self.__name__ = name
        self.call = call

    def __call__(self, table):
        function = self.call.make()
        for group in table["group"]:
            yield pyarrow.Table.from_batches([function(_of_bytes(group))])


def _made_in_worker(mapped):
    """Returns a class whose objects make that of the user's class once."""

    class MapsGroups:
        def __init__(self):
            self.function = mapped.call.make()

        def __call__(self, table):
            for group in table["group"]:
                yield pyarrow.Table.from_batches([self.function(_of_bytes(group))])

    MapsGroups.__name__ = mapped.__name__
    return MapsGroups


def _to_bytes(table):
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _of_bytes(group):
    return _batches.to_record_batch(pyarrow.ipc.open_stream(group.as_buffer()).read_all(), "map_groups")
