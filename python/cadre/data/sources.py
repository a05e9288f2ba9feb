"""Where the rows of datasets come from: files, and objects in memory."""

from __future__ import annotations

import os
from typing import Any, Iterable, List, Union

import numpy
import pyarrow

from cadre import _core, _data
from cadre.data import _batches, _functions
from cadre.data._arguments import no_meaning, refuse, refuse_options
from cadre.data.context import DataContext
from cadre.data.dataset import Dataset
from cadre.data.datasource import Partitioning, PartitionStyle
from cadre.data.expressions import Expr

_LIKE_RAY = ("parallelism", "num_cpus", "num_gpus", "memory", "concurrency", "override_num_blocks", "label_selector",
             "fallback_strategy", "max_calls", "resources", "accelerator_type", "runtime_env", "ray_remote_args")
_WOULD_CHANGE = ("filesystem", "catalog", "tensor_column_schema", "partition_filter", "shuffle", "include_paths",
                 "include_row_hash", "ignore_missing_paths", "skip_paths", "arrow_open_stream_args", "arrow_open_file_args",
                 "schema")
_MODES = {None: "stored", "L": "grey", "RGB": "rgb", "RGBA": "rgba"}


Paths = Union[str, "os.PathLike[str]", List[Any]]  # a path, or a list of them


def read_parquet(paths: Paths, *, columns=None, filter=None, partitioning="hive", **others) -> Dataset:
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


def read_csv(paths: Paths, *, partitioning="hive", delimiter=",", column_names=(), columns=None, types=None,
             **others) -> Dataset:
    """Reads CSV files, also compressed ones; see read_parquet for paths. Types are those of the first megabyte.

    delimiter: one character. column_names: for files without a header. columns: only these. types: by column, as Arrow
    writes them or as pyarrow has them. parse_options, convert_options and read_options of pyarrow.csv, as Ray takes them,
    may have these, too; others that would change the rows are an InvalidArgument.
    """
    parse, convert, read = (others.pop(name, None) for name in ("parse_options", "convert_options", "read_options"))
    if parse is not None:
        refuse_options("read_csv", parse, ("delimiter", "newlines_in_values"))
        delimiter = parse.delimiter
    if convert is not None:
        # A missing text is null here, and "" is a text.
        refuse_options("read_csv", convert, ("column_types", "include_columns", "check_utf8", "strings_can_be_null",
                                             "quoted_strings_can_be_null"))
        types = types or dict(convert.column_types)
        columns = columns or list(convert.include_columns)
    if read is not None:
        refuse_options("read_csv", read, ("column_names", "use_threads", "block_size"))
        column_names = read.column_names or column_names
    _check("read_csv", others)
    return _made(_data.read_csv(_paths(paths), delimiter, list(column_names), _names(columns), _types(types),
                                  _is_hive("read_csv", partitioning)))


def read_json(paths: Paths, *, lines=True, partitioning="hive", columns=None, types=None, **others) -> Dataset:
    """Reads files of JSON objects, one a line; see read_csv."""
    del lines  # a file of one object is one line, too
    _check("read_json", others)
    return _made(_data.read_json(_paths(paths), _names(columns), _types(types), _is_hive("read_json", partitioning)))


def read_images(paths: Paths, *, size=None, mode=None, include_paths=False, ignore_missing_paths=False,
                partitioning=None, file_extensions=None, equal_shapes=None, on_error="fail", **others) -> Dataset:
    """Reads JPEG and PNG files, each of which is a row: the column "image" of arrays of uint8, (height, width, channels).

    size: height and width; other images are resized. mode: "L", "RGB" or "RGBA", the names of Pillow; default: as in the
    file. equal_shapes: whether all images have one shape; default: True with a size and a mode, otherwise as the first
    ones are. on_error: "skip" leaves out images that cannot be decoded, and stats() counts them. partitioning: see
    read_text. See read_parquet for paths.
    """
    height, width = (0, 0) if size is None else size
    options = _files("read_images", paths, others, include_paths, ignore_missing_paths, file_extensions, partitioning)
    if equal_shapes is not None:
        options["equal_shapes"] = equal_shapes
    return _made(_data.read_images(_paths(paths), {**options, "size": {"height": height, "width": width},
                                                   "mode": _mode("read_images", mode), "on_error": on_error}))


def read_binary_files(paths: Paths, *, include_paths=False, ignore_missing_paths=False, partitioning=None,
                      file_extensions=None, **others) -> Dataset:
    """Reads whole files, each of which is a row: the column "bytes". See read_text for the arguments."""
    options = _files("read_binary_files", paths, others, include_paths, ignore_missing_paths, file_extensions, partitioning)
    return _made(_data.read_binary_files(_paths(paths), options))


def read_text(paths: Paths, *, encoding="utf-8", drop_empty_lines=True, include_paths=False, ignore_missing_paths=False,
              partitioning=None, file_extensions=None, **others) -> Dataset:
    """Reads the lines of text files in UTF-8, also compressed ones: the column "text".

    include_paths: adds a column "path". ignore_missing_paths: leaves out paths that lead to no file. file_extensions: of
    the files in folders. partitioning: columns from the names of folders, "hive" for those like year=2024, or a
    cadre.data.datasource.Partitioning("dir", field_names=[...]). See read_parquet for paths.
    """
    if encoding.lower().replace("-", "").replace("_", "") != "utf8":
        raise _core.InvalidArgument(f"read_text: encoding is {encoding!r}; texts are in UTF-8. read_binary_files() and a "
                                    "function read others")
    options = _files("read_text", paths, others, include_paths, ignore_missing_paths, file_extensions, partitioning)
    return _made(_data.read_text(_paths(paths), {**options, "drop_empty_lines": drop_empty_lines}))


def read_numpy(paths: Paths, *, include_paths=False, ignore_missing_paths=False, partitioning=None,
               file_extensions=None, allow_pickle=False, on_error="fail", **others) -> Dataset:
    """Reads arrays of numpy from .npy files, a row for each index of the first dimension: the column "data"; or from
    archives, file_extensions=["npz"], whose arrays are columns. See read_text for the arguments, read_images for
    on_error."""
    refuse("read_numpy", allow_pickle=allow_pickle)
    options = _files("read_numpy", paths, others, include_paths, ignore_missing_paths, file_extensions, partitioning)
    return _made(_data.read_numpy(_paths(paths), {**options, "on_error": on_error}))


def read_tfrecords(paths: Paths, *, include_paths=False, ignore_missing_paths=False, file_extensions=None, types=None,
                   tf_schema=None, on_error="fail", **others) -> Dataset:
    """Reads TensorFlow's files of records, each of which is a row with a column for each feature. Checksums are verified.

    types: by feature, "int64", "float", "binary" or "string", or lists of these, "list<item: int64>"; default: those that
    the first records have. See read_text for the other arguments, read_images for on_error.
    """
    refuse("read_tfrecords", tf_schema=tf_schema)
    options = _files("read_tfrecords", paths, others, include_paths, ignore_missing_paths, file_extensions)
    return _made(_data.read_tfrecords(_paths(paths), {**options, "types": dict(_types(types)), "on_error": on_error}))


def read_webdataset(paths: Paths, *, decoder=True, fileselect=None, filerename=None, suffixes=None, verbose_open=False,
                    include_paths=False, expand_json=False, ignore_missing_paths=False, file_extensions=None, size=None,
                    mode=None, on_error="fail", **others) -> Dataset:
    """Reads WebDatasets: tar archives in which consecutive files with the same name up to the first dot are a row, each in
    the column of its suffix, beside "__key__" and "__url__".

    decoder: True decodes texts, numbers, images, arrays and JSON by their suffixes; False leaves all as bytes. suffixes:
    only these. size, mode: of images, see read_images, as on_error. See read_text for the other arguments.
    """
    refuse("read_webdataset", fileselect=fileselect, filerename=filerename, expand_json=expand_json,
           decoder=decoder if callable(decoder) or isinstance(decoder, (str, list)) else None)
    del verbose_open
    height, width = (0, 0) if size is None else size
    options = _files("read_webdataset", paths, others, include_paths, ignore_missing_paths, file_extensions)
    return _made(_data.read_webdataset(_paths(paths), {
        **options, "decode": bool(decoder), "suffixes": _names(suffixes), "size": {"height": height, "width": width},
        "mode": _mode("read_webdataset", mode), "on_error": on_error}))


def with_row_numbers(dataset: Dataset, column: str = "row") -> Dataset:
    """Returns the rows of a read with a column of their numbers, from 0 on: the same in every share and with any number of
    workers, so that a function can draw random numbers that depend on the row. Not after functions and conditions."""
    return dataset._with(dataset._rows.with_row_numbers(column))


def from_arrow(tables: Any, *, override_num_blocks=None) -> Dataset:
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


def from_pandas(dfs: Any, override_num_blocks=None) -> Dataset:
    """Returns a dataset of a DataFrame, or of a list of them; without their index."""
    no_meaning("from_pandas", override_num_blocks=override_num_blocks)
    frames = dfs if isinstance(dfs, (list, tuple)) else [dfs]
    return from_arrow([_batches.from_pandas(frame, "from_pandas") for frame in frames])


def from_numpy(ndarrays: Any) -> Dataset:
    """Returns a dataset of an array, whose first dimension are the rows, or of a list of them: the column "data"."""
    arrays = ndarrays if isinstance(ndarrays, (list, tuple)) else [ndarrays]
    return from_arrow([pyarrow.table({"data": _batches.to_column(array, "data", "from_numpy")}) for array in arrays])


def from_items(items: Iterable[Any], *, parallelism=-1, override_num_blocks=None) -> Dataset:
    """Returns a dataset of rows: dictionaries, whose entries are the columns, or other values: the column "item"."""
    no_meaning("from_items", override_num_blocks=override_num_blocks)
    del parallelism
    rows = [item if isinstance(item, dict) else {"item": item} for item in items]
    return from_arrow(pyarrow.Table.from_batches([_functions.rows_to_batch(rows, "from_items")]))


def from_huggingface(dataset: Any) -> Dataset:
    """Returns a dataset of one of the library datasets, in memory."""
    return from_arrow(dataset.with_format("arrow")[:])


def range_tensor(n: int, *, shape: tuple[int, ...] = (1,), parallelism=-1, concurrency=None,
                 override_num_blocks=None) -> Dataset:
    """Returns the integers from 0 to n - 1, each as a tensor filled with it: the column "data". In memory."""
    no_meaning("range_tensor", concurrency=concurrency, override_num_blocks=override_num_blocks)
    del parallelism
    numbers = numpy.arange(n).reshape(n, *(1 for _ in shape))
    return from_numpy(numpy.broadcast_to(numbers, (n, *shape)))


def range(n: int, *, parallelism=-1, concurrency=None, override_num_blocks=None) -> Dataset:
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


def _files(where, paths, others, include_paths, ignore_missing_paths, file_extensions, partitioning=None):
    """Returns the options that readers of whole files share, in the core's form."""
    _check(where, others)
    options = {"include_paths": include_paths, "ignore_missing_paths": ignore_missing_paths}
    if file_extensions is not None:
        options["file_extensions"] = [extension.removeprefix(".") for extension in file_extensions]
    if partitioning is not None:
        options["partitioning"] = _partitioning(where, paths, partitioning)
    return options


def _partitioning(where, paths, partitioning):
    base = getattr(partitioning, "base_dir", None)
    if base and any(os.path.abspath(path) != os.path.abspath(base) for path in _paths(paths)):
        raise _core.InvalidArgument(f"{where}: base_dir is {base!r}; columns are of the folders below the path that is read, "
                                    "so it must be that path")
    if isinstance(partitioning, Partitioning) and partitioning.style is PartitionStyle.DIRECTORY:
        return {"style": "dir", "field_names": list(partitioning.field_names or [])}
    return {"style": "hive"} if _is_hive(where, partitioning) else {}


def _mode(where, mode):
    if mode not in _MODES:
        raise _core.InvalidArgument(f'{where}: mode is {mode!r}; it is "L", "RGB" or "RGBA"')
    return _MODES[mode]


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
