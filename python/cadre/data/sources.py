"""Where the rows of datasets come from: files, and objects in memory."""

import os

import numpy
import pyarrow

from cadre import _core, _data
from cadre.data import _batches, _functions
from cadre.data._arguments import no_meaning, refuse
from cadre.data.context import DataContext
from cadre.data.dataset import Dataset
from cadre.data.expressions import Expr

_LIKE_RAY = ("parallelism", "num_cpus", "num_gpus", "memory", "concurrency", "override_num_blocks", "label_selector",
             "fallback_strategy", "max_calls", "resources", "accelerator_type", "runtime_env", "ray_remote_args")
_WOULD_CHANGE = ("filesystem", "catalog", "tensor_column_schema", "partition_filter", "shuffle", "include_paths",
                 "include_row_hash", "ignore_missing_paths", "skip_paths", "arrow_open_stream_args", "schema")


def read_parquet(paths, *, columns=None, filter=None, partitioning="hive", **others):
    """Reads Parquet files: paths of files, of folders, shell patterns, or URIs of a storage (s3, gs, abfs), one or a list.

    columns: only these. filter: a condition (cadre.data.expressions). partitioning: "hive" makes columns of folders that
    are named like year=2024; None does not. Files whose columns differ are unified. Raises NotFound, a FileNotFoundError,
    for a path without files.
    """
    _check("read_parquet", others)
    condition = None
    if filter is not None:
        if not isinstance(filter, Expr):
            raise TypeError("read_parquet: filter is a condition such as cadre.data.expressions.col(\"fare\") > 10, not "
                            f"{type(filter).__name__}")
        condition = filter._stored
    return _made(_data.read_parquet(_paths(paths), _names(columns), condition, _is_hive("read_parquet", partitioning)))


def read_csv(paths, *, partitioning="hive", delimiter=",", column_names=(), columns=None, types=None, **others):
    """Reads CSV files, also compressed ones; see read_parquet for paths. Types are those of the first megabyte.

    delimiter: one character. column_names: for files without a header. columns: only these. types: by column, as Arrow
    writes them or as pyarrow has them. parse_options, convert_options and read_options of pyarrow.csv, as Ray takes them,
    may have these, too.
    """
    parse, convert, read = (others.pop(name, None) for name in ("parse_options", "convert_options", "read_options"))
    if parse is not None:
        delimiter = parse.delimiter
    if convert is not None:
        types = types or dict(convert.column_types)
        columns = columns or list(convert.include_columns)
    if read is not None and read.column_names:
        column_names = read.column_names
    _check("read_csv", others)
    return _made(_data.read_csv(_paths(paths), delimiter, list(column_names), _names(columns), _types(types),
                                  _is_hive("read_csv", partitioning)))


def read_json(paths, *, lines=True, partitioning="hive", columns=None, types=None, **others):
    """Reads files of JSON objects, one a line; see read_csv."""
    del lines  # a file of one object is one line, too
    _check("read_json", others)
    return _made(_data.read_json(_paths(paths), _names(columns), _types(types), _is_hive("read_json", partitioning)))


def from_arrow(tables, *, override_num_blocks=None):
    """Returns a dataset of a pyarrow.Table, or of a list of them with the same columns. Nothing is copied."""
    no_meaning("from_arrow", override_num_blocks=override_num_blocks)
    tables = list(tables) if isinstance(tables, (list, tuple)) else [tables]
    tables = [pyarrow.ipc.open_stream(table).read_all() if isinstance(table, bytes) else table for table in tables]
    if not tables:
        return _made(_data.from_arrow(pyarrow.table({})))
    for table in tables:
        if not hasattr(table, "__arrow_c_stream__"):
            raise TypeError(f"from_arrow: a pyarrow.Table is needed, not {type(table).__name__}")
    if len(tables) > 1:
        tables = [pyarrow.table(table) for table in tables]
        try:
            tables = [pyarrow.concat_tables(tables)]
        except pyarrow.ArrowInvalid as error:
            raise _core.InvalidArgument(f"from_arrow: the tables have different columns: {error}") from None
    return _made(_data.from_arrow(tables[0]))


def from_pandas(dfs, override_num_blocks=None):
    """Returns a dataset of a DataFrame, or of a list of them; without their index."""
    no_meaning("from_pandas", override_num_blocks=override_num_blocks)
    frames = dfs if isinstance(dfs, (list, tuple)) else [dfs]
    return from_arrow([_batches.from_pandas(frame, "from_pandas") for frame in frames])


def from_numpy(ndarrays):
    """Returns a dataset of an array, whose first dimension are the rows, or of a list of them: the column "data"."""
    arrays = ndarrays if isinstance(ndarrays, (list, tuple)) else [ndarrays]
    return from_arrow([pyarrow.table({"data": _batches.to_column(array, "data", "from_numpy")}) for array in arrays])


def from_items(items, *, parallelism=-1, override_num_blocks=None):
    """Returns a dataset of rows: dictionaries, whose entries are the columns, or other values: the column "item"."""
    no_meaning("from_items", override_num_blocks=override_num_blocks)
    del parallelism
    rows = [item if isinstance(item, dict) else {"item": item} for item in items]
    return from_arrow(pyarrow.Table.from_batches([_functions.rows_to_batch(rows, "from_items")]))


def from_huggingface(dataset):
    """Returns a dataset of one of the library datasets, in memory."""
    return from_arrow(dataset.with_format("arrow")[:])


def range_tensor(n, *, shape=(1,), parallelism=-1, concurrency=None, override_num_blocks=None):
    """Returns the integers from 0 to n - 1, each as a tensor filled with it: the column "data". In memory."""
    no_meaning("range_tensor", concurrency=concurrency, override_num_blocks=override_num_blocks)
    del parallelism
    numbers = numpy.arange(n).reshape(n, *(1 for _ in shape))
    return from_numpy(numpy.broadcast_to(numbers, (n, *shape)))


def range(n, *, parallelism=-1, concurrency=None, override_num_blocks=None):
    """Returns the integers from 0 to n - 1 as the column "id"."""
    no_meaning("range", concurrency=concurrency, override_num_blocks=override_num_blocks)
    del parallelism
    return _made(_data.range(n))


def _made(rows):
    """Returns the dataset with the options that the process has chosen."""
    chosen = DataContext.get_current()._stored()
    return Dataset(rows.with_options({**rows.options(), **chosen}) if chosen else rows)


def _check(where, others):
    """Warns of arguments of Ray's that have no meaning here; raises an error for those that would change the rows."""
    refuse(where, **{name: others.pop(name, None) for name in _WOULD_CHANGE})
    if others.get("parallelism") == -1:
        others.pop("parallelism")
    others.pop("file_extensions", None)
    no_meaning(where, **{name: others.pop(name, None) for name in _LIKE_RAY})
    if others:
        raise TypeError(f"{where}: there is no argument {', '.join(others)}")


def _paths(paths):
    return [os.fspath(path) for path in (paths if isinstance(paths, (list, tuple)) else [paths])]


def _names(columns):
    if columns is None:
        return []
    return [columns] if isinstance(columns, str) else list(columns)


def _types(types):
    return [(name, str(kind)) for name, kind in (types or {}).items()]


def _is_hive(where, partitioning):
    if partitioning is None:
        return False
    if partitioning == "hive" or getattr(getattr(partitioning, "style", None), "value", None) == "hive":
        return True
    raise _core.InvalidArgument(f'{where}: partitioning is {partitioning!r}; it is "hive" or None')
