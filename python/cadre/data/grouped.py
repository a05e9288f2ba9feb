"""Rows of a dataset in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from cadre.data import _batches, aggregate as aggregates

if TYPE_CHECKING:
    from cadre.data.dataset import Dataset


class GroupedData:
    """The groups of rows with equal values of some columns. A plan, as a dataset is; groups come in the order of their
    values."""

    def __init__(self, dataset, key):
        self._dataset = dataset
        self._keys = [] if key is None else [key] if isinstance(key, str) else list(key)

    def aggregate(self, *aggs) -> Dataset:
        """Returns a dataset with a row for each group: its values of the key columns, and the results of aggregates
        (cadre.data.aggregate)."""
        from cadre.data.sources import from_items

        wanted = aggregates.of_columns(aggs, "aggregate")
        if not self._keys:
            return from_items([self._dataset.aggregate(*aggs)])
        rows = self._dataset._rows.group(self._keys, [one.stored for one in wanted],
                                         aggregates.options_of(wanted, "aggregate"))
        renamed = [(one.stored_name, one.name) for one in wanted if one.stored_name != one.name]
        return self._dataset._with(rows.rename_columns(renamed) if renamed else rows).sort(self._keys)

    def count(self) -> Dataset:
        """Returns a dataset with the number of rows in each group: the column "count()"."""
        return self.aggregate(aggregates.Count())

    def sum(self, on=None, ignore_nulls=True) -> Dataset:
        """Returns a dataset with the sum of a column, or of several, in each group: the column "sum(<name>)"."""
        return self._of_columns(aggregates.Sum, on, ignore_nulls=ignore_nulls)

    def min(self, on=None, ignore_nulls=True) -> Dataset:
        """Returns the least values; see sum."""
        return self._of_columns(aggregates.Min, on, ignore_nulls=ignore_nulls)

    def max(self, on=None, ignore_nulls=True) -> Dataset:
        """Returns the greatest values; see sum."""
        return self._of_columns(aggregates.Max, on, ignore_nulls=ignore_nulls)

    def mean(self, on=None, ignore_nulls=True) -> Dataset:
        """Returns the means; see sum."""
        return self._of_columns(aggregates.Mean, on, ignore_nulls=ignore_nulls)

    def std(self, on=None, ddof=1, ignore_nulls=True) -> Dataset:
        """Returns the standard deviations; see sum. ddof: they divide by the number of values minus this."""
        return self._of_columns(aggregates.Std, on, ddof=ddof, ignore_nulls=ignore_nulls)

    def map_groups(self, fn: Callable[..., Any], *, batch_format="default", zero_copy_batch=True, compute=None,
                   fn_args=None, fn_kwargs=None, fn_constructor_args=None, fn_constructor_kwargs=None, num_cpus=None,
                   num_gpus=None, concurrency=None, **others) -> Dataset:
        """Calls a function, or an object of a class in each worker, with each group, a batch of all its rows; see
        Dataset.map_batches. One group at a time is in memory."""
        _batches.check_format(batch_format, "map_groups")
        return self._dataset._call(
            fn, "batches", "map_groups", batch_format=batch_format, copies=not zero_copy_batch, args=fn_args,
            kwargs=fn_kwargs, constructor_args=fn_constructor_args, constructor_kwargs=fn_constructor_kwargs,
            compute=compute, num_cpus=num_cpus, num_gpus=num_gpus, concurrency=concurrency, others=others,
            keys=self._keys, batch_size=None if self._keys else max(self._dataset.count(), 1))

    def _of_columns(self, kind, on, **options):
        if on is None:
            columns = [name for name in self._dataset.columns() or [] if name not in self._keys]
        else:
            columns = [on] if isinstance(on, str) else list(on)
        return self.aggregate(*(kind(column, **options) for column in columns))
