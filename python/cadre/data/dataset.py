"""Datasets: rows of named columns that are read, transformed and aggregated as a stream."""

from __future__ import annotations

import inspect
import itertools
import numbers
import os
import random
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence

import pyarrow

from cadre import _core, _data, _driver, _functions
from cadre.data import _batches, _functions as _calls, aggregate as aggregates
from cadre.data._arguments import no_meaning, refuse, refuse_options
from cadre.data.expressions import Expr, parse
from cadre.data.iterator import DataIterator

if TYPE_CHECKING:
    import pandas

    from cadre.data.grouped import GroupedData

DatasetError = _data.DatasetError
DatasetError.__module__ = "cadre.data"

_LIKE_RAY = ("memory", "label_selector", "fallback_strategy", "max_calls", "resources", "accelerator_type", "runtime_env",
             "ray_remote_args_fn", "num_blocks", "scheduling_strategy", "max_task_retries")


_ROWS_FOR_A_GPU = 256


class TaskPoolStrategy:
    """The number of workers of a function."""

    def __init__(self, size=None):
        self.size = size


class ActorPoolStrategy:
    """The number of workers of a class. It is fixed here: the largest that fits."""

    def __init__(self, *, size=None, min_size=None, max_size=None, initial_size=None, **others):
        no_meaning("ActorPoolStrategy", initial_size=initial_size, **others)
        self.size = size if size is not None else (min_size or 1, max_size or min_size or 1)


class Schema:
    """The columns of a dataset, in order."""

    def __init__(self, base_schema):
        self.base_schema = base_schema

    @property
    def names(self) -> list[str]:
        return list(self.base_schema.names)

    @property
    def types(self) -> list[Any]:
        return list(self.base_schema.types)

    def __eq__(self, other):
        return isinstance(other, Schema) and self.base_schema.equals(other.base_schema)

    def __repr__(self):
        width = max([6, *map(len, self.names)])
        lines = [f"{'Column':<{width}}  Type", f"{'-' * 6:<{width}}  ----"]
        return "\n".join(lines + [f"{name:<{width}}  {kind}" for name, kind in zip(self.names, self.types)])


class Dataset:
    """Rows of named columns. A plan: nothing is read until rows are asked for, and then piece by piece, so the rows may be
    more than fit into memory. Each request executes the plan anew, but for a dataset that was materialized. Rows come in
    the order of the plan.

    What executes the plan raises InvalidArgument, a ValueError, for an unknown column and the like; NotFound, a
    FileNotFoundError, for a file that is gone; CadreError, with the file, if it cannot be read; and DatasetError, with the
    traceback, if a function has raised or its worker has died.
    """

    def __init__(self, rows, held=()):
        self._rows = rows  # a _data.Dataset
        self._held = tuple(held)  # what has references to objects of the plan, and so keeps them

    # ---- Transformations

    def map_batches(self, fn: Callable[..., Any], *, batch_size: int | str | None = None, compute=None,
                    batch_format: str | None = "default", zero_copy_batch: bool = True, fn_args=None, fn_kwargs=None,
                    fn_constructor_args=None, fn_constructor_kwargs=None, num_cpus: float | None = None,
                    num_gpus: float | None = None, concurrency: int | tuple[int, int] | None = None,
                    udf_modifying_row_count=True, **others) -> Dataset:
        """Calls a function, or an object of a class in each worker, with each batch.

        fn: gets a batch in the batch_format, "numpy" (a dictionary of arrays), "pandas" or "pyarrow", and returns one in
        any of these, or yields several. It may return other rows and columns; all batches that it returns have the same
        columns. Workers are processes.
        batch_size: rows in a batch; default: batches as they are read. zero_copy_batch: False if it writes to the
        batch, which is read-only memory otherwise. concurrency: the number of workers; default: for a function as
        many as there are CPUs, for a class 1; of a pair, the largest that fits. num_cpus, num_gpus: of each.
        """
        del udf_modifying_row_count
        _batches.check_format(batch_format, "map_batches")
        return self._call(fn, "batches", "map_batches", batch_format=batch_format, copies=not zero_copy_batch,
                          args=fn_args, kwargs=fn_kwargs,
                          constructor_args=fn_constructor_args, constructor_kwargs=fn_constructor_kwargs,
                          batch_size=None if batch_size in ("auto", "default") else batch_size, compute=compute,
                          num_cpus=num_cpus, num_gpus=num_gpus, concurrency=concurrency, others=others)

    def map(self, fn: Callable[..., Any], *, compute=None, fn_args=None, fn_kwargs=None, fn_constructor_args=None,
            fn_constructor_kwargs=None, num_cpus: float | None = None, num_gpus: float | None = None,
            concurrency: int | tuple[int, int] | None = None, **others) -> Dataset:
        """Calls a function with each row, a dictionary; it returns one. map_batches is much faster."""
        return self._call(fn, "row", "map", args=fn_args, kwargs=fn_kwargs, constructor_args=fn_constructor_args,
                          constructor_kwargs=fn_constructor_kwargs, compute=compute, num_cpus=num_cpus, num_gpus=num_gpus,
                          concurrency=concurrency, others=others)

    def flat_map(self, fn: Callable[..., Any], *, compute=None, fn_args=None, fn_kwargs=None, fn_constructor_args=None,
                 fn_constructor_kwargs=None, num_cpus: float | None = None, num_gpus: float | None = None,
                 concurrency: int | tuple[int, int] | None = None, **others) -> Dataset:
        """Calls a function with each row; it returns a list of rows."""
        return self._call(fn, "rows", "flat_map", args=fn_args, kwargs=fn_kwargs, constructor_args=fn_constructor_args,
                          constructor_kwargs=fn_constructor_kwargs, compute=compute, num_cpus=num_cpus, num_gpus=num_gpus,
                          concurrency=concurrency, others=others)

    def filter(self, fn: Callable[..., Any] | Expr | None = None, expr: str | Expr | None = None, *, compute=None,
               fn_args=None, fn_kwargs=None, fn_constructor_args=None, fn_constructor_kwargs=None,
               num_cpus: float | None = None, num_gpus: float | None = None,
               concurrency: int | tuple[int, int] | None = None, **others) -> Dataset:
        """Keeps the rows for which a function of a row returns true, or which meet a condition: expr, a text such as
        "fare > 10", or one of cadre.data.expressions. Conditions are much faster, and a part of the read."""
        if (fn is None) == (expr is None):
            raise ValueError("filter: either fn or expr is needed")
        if isinstance(fn, Expr):
            fn, expr = None, fn
        if expr is not None:
            condition = parse(expr) if isinstance(expr, str) else expr
            if not isinstance(condition, Expr):
                raise TypeError(f"filter: expr is a text or an expression, not {type(expr).__name__}")
            return self._with(self._rows.filter(condition._stored))
        return self._call(fn, "predicate", "filter", args=fn_args, kwargs=fn_kwargs, constructor_args=fn_constructor_args,
                          constructor_kwargs=fn_constructor_kwargs, compute=compute, num_cpus=num_cpus, num_gpus=num_gpus,
                          concurrency=concurrency, others=others)

    def add_column(self, col, fn, *, batch_format="pandas", **others) -> Dataset:
        """Adds a column, whose values a function of a batch returns."""
        _batches.check_format(batch_format, "add_column")
        return self.map_batches(_AddColumn(col, fn, batch_format), batch_format="pyarrow", **others)

    def select_columns(self, cols, **others) -> Dataset:
        """Keeps these columns, in this order. Directly after a read, only they are read."""
        _ignore("select_columns", others)
        return self._with(self._rows.select_columns([cols] if isinstance(cols, str) else list(cols)))

    def drop_columns(self, cols, **others) -> Dataset:
        """Keeps the other columns. Raises InvalidArgument for one that is not there."""
        _ignore("drop_columns", others)
        dropped = [cols] if isinstance(cols, str) else list(cols)
        columns = self.columns() or []
        unknown = [name for name in dropped if name not in columns]
        if unknown:
            raise _core.InvalidArgument(f"drop_columns: there is no column {', '.join(map(repr, unknown))}; the columns "
                                        f"are: {', '.join(columns)}")
        return self._with(self._rows.select_columns([name for name in columns if name not in dropped]))

    def rename_columns(self, names, **others) -> Dataset:
        """Gives columns other names: a dictionary of old and new ones, or a list of names for all columns."""
        _ignore("rename_columns", others)
        if not isinstance(names, dict):
            columns = self.columns() or []
            if len(names) != len(columns):
                raise _core.InvalidArgument(f"rename_columns: there are {len(columns)} columns, and {len(names)} names")
            names = dict(zip(columns, names))
        return self._with(self._rows.rename_columns(list(names.items())))

    def limit(self, limit: int) -> Dataset:
        """Keeps the first rows; later ones are not read."""
        return self._with(self._rows.limit(limit))

    def union(self, *other: Dataset) -> Dataset:
        """Returns the rows of this dataset, and then those of others, which have the same columns."""
        return Dataset(self._rows.concat([one._rows for one in other]), _held_by(self, *other))

    def random_shuffle(self, *, seed: int | None = None, num_blocks=None, **others) -> Dataset:
        """Puts all rows in a random order, always the same one; without a seed, one of its own. They are held in memory, or
        on disk if they are many."""
        _ignore("random_shuffle", {"num_blocks": num_blocks, **others})
        return self._with(self._rows.random_shuffle(_seed_of(seed)))

    def randomize_block_order(self, *, seed=None, **others) -> Dataset:
        """Does the same as random_shuffle."""
        return self.random_shuffle(seed=seed, **others)

    def repartition(self, num_blocks=None, target_num_rows_per_block=None, *, shuffle=False, **others) -> Dataset:
        """Returns this dataset: it has no blocks. shuffle: puts the rows in random order."""
        del num_blocks, target_num_rows_per_block
        refuse("repartition", **others)
        return self.random_shuffle() if shuffle else self

    def sort(self, key: str | Sequence[str], descending: bool | Sequence[bool] = False, boundaries=None) -> Dataset:
        """Returns the rows in the order of a column, or of several. descending: for all, or a list with one for each.
        Nulls come last, NaN before them, and equal rows keep their order. The rows are held in memory, or on disk if they
        are many."""
        del boundaries
        keys = [key] if isinstance(key, str) else list(key)
        orders = list(descending) if isinstance(descending, (list, tuple)) else [descending] * len(keys)
        if len(orders) != len(keys):
            raise ValueError(f"sort: {len(keys)} columns and {len(orders)} of descending")
        return self._with(self._rows.sort([(name, bool(down)) for name, down in zip(keys, orders)]))

    def groupby(self, key: str | Sequence[str] | None, num_partitions=None) -> GroupedData:
        """Returns the groups of rows with equal values of a column, or of several; None: all rows are one."""
        del num_partitions
        from cadre.data.grouped import GroupedData

        return GroupedData(self, key)

    def zip(self, *other: Dataset) -> Dataset:
        """Returns the columns of this dataset beside those of others with equally many rows; a name that is there already
        gets "_1" and so on."""
        return Dataset(self._rows.zip([one._rows for one in other]), _held_by(self, *other))

    def join(self, ds: Dataset, join_type: str, num_partitions=None, on=("id",), right_on=None, left_suffix=None,
             right_suffix=None, *, partition_size_hint=None, aggregator_ray_remote_args=None,
             validate_schemas=False) -> Dataset:
        """Returns the rows of this dataset combined with those of another one that have equal keys.

        join_type: "inner", "left_outer", "right_outer", "full_outer", "left_semi", "right_semi", "left_anti" or
        "right_anti". on, right_on: key columns of this and of the other dataset; default: those of `on`. The suffixes are
        for columns that both have. Rows are in the order of this dataset.
        """
        del num_partitions, validate_schemas
        no_meaning("join", partition_size_hint=partition_size_hint, aggregator_ray_remote_args=aggregator_ray_remote_args)
        names = {"on": _names(on), "right_on": _names(right_on), "left_suffix": left_suffix or "",
                 "right_suffix": right_suffix or ""}
        return Dataset(self._rows.join(ds._rows, str(join_type), names), _held_by(self, ds))

    def random_sample(self, fraction: float, *, seed: int | None = None) -> Dataset:
        """Keeps each row with a probability. The choice depends only on the seed and the row's place; without a seed, on
        one of its own."""
        return self._with(self._rows.random_sample(fraction, _seed_of(seed)))

    # ---- Parts

    def split(self, n: int, *, equal: bool = False, locality_hints=None) -> list[Dataset]:
        """Returns n datasets of consecutive rows. equal: all have equally many rows, and up to n - 1 at the end are left
        out. Counts the rows."""
        no_meaning("split", locality_hints=locality_hints)
        if n < 1:
            raise _core.InvalidArgument(f"split: n is {n}; it must be above 0")
        size, rest = divmod(self.count(), n)
        sizes = [size + (not equal and part < rest) for part in range(n)]
        return self._parts([sum(sizes[:part]) for part in range(n + 1)])

    def split_at_indices(self, indices: Sequence[int]) -> list[Dataset]:
        """Returns the parts before, between and after these numbers of rows."""
        if not indices or list(indices) != sorted(indices) or indices[0] < 0:
            raise ValueError(f"split_at_indices: {indices} are no numbers of rows in order, from 0 on")
        return self._parts([0, *indices, None])

    def split_proportionately(self, proportions: Sequence[float]) -> list[Dataset]:
        """Returns parts with these shares of the rows, and one with the rest. Each has a row at least; ValueError if there are
        too few rows for that."""
        if not proportions or sum(proportions) >= 1 or min(proportions) <= 0:
            raise ValueError(f"split_proportionately: {proportions} are no shares above 0 whose sum is below 1")
        count = self.count()
        ends = [int(count * share) for share in itertools.accumulate(proportions)]
        taken = 0  # rows that later parts have got of earlier ones
        for part in reversed(range(len(ends) - 1)):
            taken += ends[part] - taken == ends[part + 1]
            ends[part] -= taken
        if ends[0] < 1:
            raise ValueError(f"split_proportionately: {count} rows are too few for parts of {proportions}")
        return self.split_at_indices(ends)

    def train_test_split(self, test_size: int | float, *, shuffle: bool = False, seed: int | None = None,
                         stratify: str | None = None) -> tuple[Dataset, Dataset]:
        """Returns two datasets: the rows for training, and a number or a share of rows at the end for tests. stratify: a
        column whose values have the same proportions in both; the test gets the last rows of each. Counts the rows."""
        if not isinstance(test_size, numbers.Real):
            raise TypeError(f"train_test_split: test_size is a number of rows or a share of them, not {test_size!r}")
        self._prepare()
        learn, test = self._rows.train_test_split(test_size, shuffle, _seed_of(seed), stratify or "")
        return self._with(learn), self._with(test)

    def streaming_split(self, n: int, *, equal: bool = False, locality_hints=None) -> list[DataIterator]:
        """Returns n iterators, each over a share of the rows, for loops that go on at the same time."""
        no_meaning("streaming_split", locality_hints=locality_hints)
        rows = self._divisible()
        return [DataIterator(rows, rows._rows.shard(rank, n, equal)) for rank in range(n)]

    def iterator(self) -> DataIterator:
        """Returns an iterator over all rows."""
        return DataIterator(self)

    # ---- Content

    def materialize(self) -> Dataset:
        """Returns a dataset with all rows in memory, so that nothing is executed again."""
        self._prepare()
        return Dataset(self._rows.materialize())

    def schema(self, fetch_if_missing: bool = True) -> Schema | None:
        """Returns the columns; None if there are none. Reads as little as possible: the metadata of files, or as much as
        the first batch of a function needs."""
        del fetch_if_missing
        self._prepare()
        capsule = self._rows.schema()
        return None if capsule is None else Schema(pyarrow.schema(_OfCapsule(capsule)))

    def columns(self, fetch_if_missing: bool = True) -> list[str] | None:
        """Returns the names of the columns; None if there are none."""
        schema = self.schema(fetch_if_missing)
        return None if schema is None else schema.names

    def count(self) -> int:
        """Returns the number of rows: for Parquet files from their metadata, after functions by executing the plan."""
        self._prepare()
        return self._rows.count()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self):
        return True

    def size_bytes(self) -> int:
        """Returns the size of all rows in memory. Executes the plan."""
        self._prepare()
        return self._rows.size_bytes()

    def num_blocks(self) -> int:
        """Returns 1: a dataset has no blocks."""
        return 1

    def take(self, limit: int = 20) -> list[dict[str, Any]]:
        """Returns the first rows as dictionaries."""
        return list(self.limit(limit).iter_rows())

    def take_all(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Returns all rows as dictionaries. Raises ValueError if there are more than `limit`."""
        rows = self.take(limit + 1) if limit is not None else list(self.iter_rows())
        if limit is not None and len(rows) > limit:
            raise ValueError(f"take_all: the dataset has more than {limit} rows; take({limit}) returns the first ones")
        return rows

    def take_batch(self, batch_size: int = 20, *, batch_format: str | None = "default") -> Any:
        """Returns the first rows as a batch. Raises ValueError if there are none."""
        for batch in self.limit(batch_size).iter_batches(batch_size=max(batch_size, 1), batch_format=batch_format):
            return batch
        raise ValueError("take_batch: the dataset has no rows")

    def show(self, limit: int = 20) -> None:
        """Prints the first rows."""
        for row in self.take(limit):
            print(row)

    def iter_batches(self, **options: Any) -> Iterable[Any]:
        """Returns the batches; see DataIterator.iter_batches."""
        return DataIterator(self).iter_batches(**options)

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Returns the rows, one after the other, as dictionaries."""
        return DataIterator(self).iter_rows()

    def iter_torch_batches(self, **options: Any) -> Iterable[Any]:
        """Returns the batches as tensors; see DataIterator.iter_torch_batches."""
        return DataIterator(self).iter_torch_batches(**options)

    def to_pandas(self, limit: int | None = None) -> pandas.DataFrame:
        """Returns all rows as a DataFrame. Raises ValueError if there are more than `limit`."""
        if limit is not None and self.limit(limit + 1).count() > limit:
            raise ValueError(f"to_pandas: the dataset has more than {limit} rows; limit({limit}).to_pandas() has the first")
        return _batches.to_pandas(self._table())

    def to_arrow_refs(self) -> list[Any]:
        """Returns references (cadre.get) to tables with all rows."""
        return [_driver.put(self._table())]

    # ---- Aggregates

    def aggregate(self, *aggs: aggregates.Aggregate) -> dict[str, Any]:
        """Returns a dictionary of the results of several aggregates (cadre.data.aggregate), computed in one execution."""
        wanted = aggregates.of_columns(aggs, "aggregate")
        self._prepare()
        found = self._rows.aggregate([one.stored for one in wanted], aggregates.options_of(wanted, "aggregate"))
        return {one.name: found[one.stored_name] for one in wanted}

    def sum(self, on: str | Sequence[str] | None = None, ignore_nulls: bool = True) -> Any:
        """Returns the sum of a column, or a dictionary of the sums of several; None for a column without values."""
        return self._aggregate(aggregates.Sum, on, ignore_nulls=ignore_nulls)

    def min(self, on: str | Sequence[str] | None = None, ignore_nulls: bool = True) -> Any:
        """Returns the least value; see sum."""
        return self._aggregate(aggregates.Min, on, ignore_nulls=ignore_nulls)

    def max(self, on: str | Sequence[str] | None = None, ignore_nulls: bool = True) -> Any:
        """Returns the greatest value; see sum."""
        return self._aggregate(aggregates.Max, on, ignore_nulls=ignore_nulls)

    def mean(self, on: str | Sequence[str] | None = None, ignore_nulls: bool = True) -> Any:
        """Returns the mean; see sum."""
        return self._aggregate(aggregates.Mean, on, ignore_nulls=ignore_nulls)

    def std(self, on: str | Sequence[str] | None = None, ddof: int = 1, ignore_nulls: bool = True) -> Any:
        """Returns the standard deviation; see sum. ddof: it divides by the number of values minus this."""
        return self._aggregate(aggregates.Std, on, ddof=ddof, ignore_nulls=ignore_nulls)

    def unique(self, column: str, ignore_nulls: bool = False) -> list[Any]:
        """Returns the different values of a column, in the order of their first rows. Executes the plan."""
        different = self._with(self._rows.select_columns([column]).group([column], [], {}))
        values = [value for batch in different.iter_batches(batch_size=None, batch_format="pyarrow")
                  for value in batch.column(0).to_pylist()]
        return [value for value in values if value is not None or not ignore_nulls]

    # ---- Files

    def write_parquet(self, path: str | os.PathLike[str], *, partition_cols=None, filesystem=None, try_create_dir=True,
                      min_rows_per_file=None, max_rows_per_file=None, num_rows_per_file=None, compression=None,
                      row_group_size=None, mode=None, **others) -> None:
        """Writes Parquet files into a folder without any, or below the URI of a storage. All files of a folder appear
        together, at the end."""
        refuse("write_parquet", partition_cols=partition_cols, filesystem=filesystem,
               arrow_parquet_args_fn=others.pop("arrow_parquet_args_fn", None),
               filename_provider=others.pop("filename_provider", None), catalog=others.pop("catalog", None))
        no_meaning("write_parquet", min_rows_per_file=min_rows_per_file, mode=mode, **others)
        del try_create_dir
        self._prepare()
        self._rows.write_parquet(os.fspath(path), _given(max_rows_per_file=max_rows_per_file or num_rows_per_file,
                                                         rows_per_row_group=row_group_size, compression=compression))

    def write_csv(self, path: str | os.PathLike[str], *, filesystem=None, try_create_dir=True,
                  arrow_open_stream_args=None, filename_provider=None, arrow_csv_args_fn=None, min_rows_per_file=None,
                  max_rows_per_file=None, num_rows_per_file=None, concurrency=None, mode=None, ray_remote_args=None,
                  write_options=None) -> None:
        """Writes CSV files into a folder without any, or below the URI of a storage; see write_parquet. Null is an empty
        value. write_options: pyarrow.csv.WriteOptions with a delimiter, or without a header; others are an
        InvalidArgument."""
        refuse("write_csv", filesystem=filesystem, arrow_open_stream_args=arrow_open_stream_args,
               filename_provider=filename_provider)
        no_meaning("write_csv", min_rows_per_file=min_rows_per_file, concurrency=concurrency, mode=mode,
                   ray_remote_args=ray_remote_args)
        del try_create_dir
        if arrow_csv_args_fn is not None:
            arguments = dict(arrow_csv_args_fn())
            write_options = arguments.pop("write_options", write_options)
            refuse("write_csv", **arguments)
        options = {}
        if write_options is not None:
            refuse_options("write_csv", write_options, ("delimiter", "include_header", "batch_size"))
            options = {"delimiter": write_options.delimiter, "include_header": write_options.include_header}
        self._prepare()
        self._rows.write_csv(os.fspath(path), {**options, **_given(max_rows_per_file=max_rows_per_file
                                                                   or num_rows_per_file)})

    def write_json(self, path: str | os.PathLike[str], *, filesystem=None, try_create_dir=True,
                   arrow_open_stream_args=None, filename_provider=None, pandas_json_args_fn=None,
                   min_rows_per_file=None, max_rows_per_file=None, num_rows_per_file=None, concurrency=None, mode=None,
                   ray_remote_args=None) -> None:
        """Writes files of JSON objects, one a line, into a folder without any; see write_parquet. NaN is null."""
        refuse("write_json", filesystem=filesystem, arrow_open_stream_args=arrow_open_stream_args,
               filename_provider=filename_provider, pandas_json_args_fn=pandas_json_args_fn)
        no_meaning("write_json", min_rows_per_file=min_rows_per_file, concurrency=concurrency, mode=mode,
                   ray_remote_args=ray_remote_args)
        del try_create_dir
        self._prepare()
        self._rows.write_json(os.fspath(path), _given(max_rows_per_file=max_rows_per_file or num_rows_per_file))

    # ---- Others

    def set_name(self, name: str | None) -> None:
        """Sets a name for messages and progress, which datasets that are derived later have, too."""
        self._rows = self._rows.with_name(name or "")

    @property
    def name(self) -> str | None:
        return self._rows.name or None

    def stats(self) -> str:
        """Returns a table about the latest complete execution; an empty text if there was none."""
        return self._rows.stats() or ""

    def copy(self, dataset=None) -> Dataset:
        """Returns a copy."""
        return (dataset or self)._with((dataset or self)._rows)

    def __iter__(self):
        raise TypeError("a dataset has iter_rows(), iter_batches() and iter_torch_batches()")

    def __repr__(self):
        name = f"name={self.name!r}" if self.name else ""
        return f"Dataset({name})"

    def __reduce__(self):
        stored = self._stored()
        return _of_pickle, (stored, [_core.get_bytes(found) for found in _objects_in(stored)])

    # ---- For this package

    def _stored(self):
        """Returns the plan as a value. Rows in memory become objects, which stay as long as this dataset."""
        return self._rows.to_stored()

    def _prepare(self):
        """Starts the fork server if functions will be called."""
        if self._rows.has_functions():
            _driver.init_if_needed()

    def _divisible(self):
        """Returns a dataset whose rows ranks can divide: this one, or one with its rows in memory."""
        self._prepare()
        return self if self._rows.can_be_shared() else self.materialize()

    def _with(self, rows):
        return Dataset(rows, self._held)

    def _of_table(self, table):
        rows = Dataset(_data.from_arrow(table))
        rows.set_name(self.name)
        return rows

    def _table(self):
        batches = list(self.iter_batches(batch_size=None, batch_format="pyarrow"))
        if batches:
            return pyarrow.concat_tables(batches)
        schema = self.schema()
        return pyarrow.table({}) if schema is None else schema.base_schema.empty_table()

    def _parts(self, bounds):
        parts = []
        for begin, end in zip(bounds, bounds[1:]):
            rows = self._rows.skip(begin) if begin else self._rows
            parts.append(self._with(rows if end is None else rows.limit(end - begin)))
        return parts

    def _aggregate(self, kind, on, **options):
        columns = self.columns() or [] if on is None else _names(on)
        if not columns:
            return None
        found = self.aggregate(*(kind(column, **options) for column in columns))
        return next(iter(found.values())) if len(found) == 1 else found

    def _call(self, fn, kind, where, *, compute, num_cpus, num_gpus, concurrency, others, batch_size=None, keys=(),
              **arguments):
        """Returns the dataset with a call of a function. `kind`: one of _calls.Call. keys: it gets groups of rows with equal
        values of these columns."""
        if not callable(fn):
            raise TypeError(f"{where}: {fn!r} is no function")
        is_class = inspect.isclass(fn)
        if not is_class and (arguments.get("constructor_args") or arguments.get("constructor_kwargs")):
            raise ValueError(f"{where}: fn_constructor_args and fn_constructor_kwargs are for a class, and "
                             f"{_functions.name_of(fn)} is a function")
        _ignore(where, others)
        if compute is not None and concurrency is None:
            concurrency = getattr(compute, "size", None)
        name = fn.__name__ if is_class else _functions.name_of(fn)
        call = _calls.Call(fn, kind, f"{where}({name})", **arguments)
        value = _calls.to_host_function(call)
        cpus = 1.0 if num_cpus is None else float(num_cpus)
        workers = _number_of(concurrency, cpus)
        if keys:
            rows = self._rows.map_groups(keys, is_class, name, value, workers, cpus, float(num_gpus or 0))
            return Dataset(rows, (*self._held, value))
        in_core = "class" if is_class else {"row": "row function", "predicate": "row predicate"}.get(kind, "function")
        if num_gpus and kind != "batches":  # the core has GPUs for functions of batches
            in_core, batch_size = "class", _ROWS_FOR_A_GPU
        rows = self._rows.append_call(in_core, name, value, batch_size, workers, cpus, float(num_gpus or 0))
        return Dataset(rows, (*self._held, value))


class _AddColumn:
    """A function of tables that adds a column."""

    def __init__(self, name, function, batch_format):
        self.__name__ = _functions.name_of(function)
        self.name = name
        self.function = function
        self.batch_format = batch_format

    def __call__(self, table):
        batch = _batches.to_format(_batches._only_batch(table), self.batch_format)
        values = _batches.to_column(self.function(batch), self.name, f"add_column({self.__name__})")
        if self.name in table.schema.names:
            return table.set_column(table.schema.get_field_index(self.name), self.name, values)
        return table.append_column(self.name, values)


class _OfCapsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __arrow_c_schema__(self):
        return self.capsule


def _ignore(where, others):
    """Warns of arguments of Ray's that have no meaning here; raises TypeError for unknown ones."""
    known = {name: others.pop(name) for name in (*_LIKE_RAY, "compute", "concurrency", "num_cpus", "num_gpus")
             if name in others}
    if others:
        raise TypeError(f"{where}: there is no argument {', '.join(others)}")
    no_meaning(where, **known)


def _number_of(concurrency, cpus):
    """Returns a fixed number of workers: of a pair (least, most), the largest that fits."""
    if not isinstance(concurrency, (tuple, list)):
        return concurrency
    least, most = concurrency[0], concurrency[1]
    fits = int(len(os.sched_getaffinity(0)) / cpus) if cpus else most
    return max(least, min(most, fits))


def _names(columns):
    return [] if columns is None else [columns] if isinstance(columns, str) else list(columns)


def _given(**options):
    """Returns the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _held_by(*datasets):
    return [one for dataset in datasets for one in dataset._held]


def _seed_of(seed):
    return random.SystemRandom().getrandbits(63) if seed is None else int(getattr(seed, "seed", seed)) % (1 << 63)


def _of_pickle(value, objects):
    held = [_core.put_bytes(one) for one in objects]  # before the plan is read, which uses them
    return Dataset(_data.Dataset.from_stored(value), held)


def _objects_in(value):
    """Returns the references to objects in a stored plan: rows in memory, and the pickles of functions."""
    if isinstance(value, _core.ObjectRef):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in items for found in _objects_in(item)]
