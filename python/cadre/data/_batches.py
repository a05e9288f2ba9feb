"""Batches in the forms of numpy, pandas, pyarrow and torch. Numbers are not copied on their way out of Arrow."""

import numpy
import pyarrow
import pyarrow.types

_VARIABLE_SHAPES = "ray.data.arrow_variable_shaped_tensor"
FORMATS = ("default", "numpy", "pandas", "pyarrow", None)


def check_format(batch_format, where):
    """Raises ValueError for a batch_format that there is not."""
    if batch_format not in FORMATS:
        raise ValueError(f'{where}: batch_format is {batch_format!r}; it is "numpy", "pandas", "pyarrow" or None')


# ---- From Arrow


def to_format(batch, batch_format, copies=False):
    """Returns a record batch in a format: "default" and "numpy" are dictionaries of arrays, None is a pyarrow.Table.
    copies: what may be written to."""
    if batch_format in ("default", "numpy"):
        arrays = {field.name: to_numpy(column, field) for field, column in zip(batch.schema, batch.columns)}
        return {name: array.copy() for name, array in arrays.items()} if copies else arrays
    if batch_format == "pandas":
        frame = to_pandas(pyarrow.Table.from_batches([batch]))
        return frame.copy() if copies else frame
    return pyarrow.Table.from_batches([batch])


def to_numpy(column, field=None):
    """Returns a column as an array with a row in its first dimension. Numbers without nulls, and tensors of them, share
    the column's memory and are read-only. Integers with nulls become floats with NaN, texts and others objects, and so do
    tensors of different shapes. field: of the column; without it, these are dictionaries."""
    if field is not None and _has_variable_shapes(field):
        return _variable_tensors(column)
    values, row_shape = _flattened(column)
    if values is not None:
        array = values.to_numpy(zero_copy_only=_is_number(values.type)).reshape(len(column), *row_shape)
        return array.transpose(_order_of_dimensions(column.type, row_shape))
    if _is_number(column.type) and column.null_count == 0:
        return column.to_numpy(zero_copy_only=True)
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    return column.to_numpy(zero_copy_only=False)


def to_pandas(table):
    """Returns a table as a DataFrame; a column of tensors has an array in each row."""
    import pandas

    tensors = [field.name for field in table.schema if _is_tensor(field)]
    frame = table.drop_columns(tensors).to_pandas() if tensors else table.to_pandas()
    for name in tensors:
        rows = [row for chunk in table.column(name).chunks for row in to_numpy(chunk, table.schema.field(name))]
        frame.insert(table.schema.get_field_index(name), name, pandas.Series(rows, dtype=object))
    return frame


def to_rows(batch):
    """Returns the rows of a record batch as dictionaries. Numbers are Python's; a tensor is an array of numpy."""
    columns = {}
    for field, column in zip(batch.schema, batch.columns):
        columns[field.name] = list(to_numpy(column, field)) if _is_tensor(field) else column.to_pylist()
    return [dict(zip(columns, values)) for values in zip(*columns.values())] if columns else [{}] * batch.num_rows


def to_tensor(column, name):
    """Returns a column as a tensor of torch on the CPU. It shares the column's memory, but for truth values. Raises
    TypeError, naming the column, for what is no tensor, and ValueError for nulls."""
    import torch

    values, row_shape = _flattened(column, lists=True)
    if values is None:
        values, row_shape = column, ()
    if column.null_count or values.null_count:
        raise ValueError(f'column "{name}" has nulls, which no tensor has: filter() or replace them')
    if pyarrow.types.is_boolean(values.type):
        return torch.from_numpy(values.to_numpy(zero_copy_only=False)).reshape(len(column), *row_shape)
    if not _is_number(values.type):
        raise TypeError(f'column "{name}" is of {column.type}, which is no tensor: select_columns() of the others, or '
                        "convert it in a function or in collate_fn")
    tensor = torch.from_dlpack(values)
    if not row_shape:
        return tensor
    return tensor.reshape(len(column), *row_shape).permute(_order_of_dimensions(column.type, row_shape))


def _order_of_dimensions(kind, row_shape):
    """Returns the order of the rows' and of a row's dimensions: tensors of Arrow may lie in memory in another one."""
    permutation = getattr(kind, "permutation", None) or range(len(row_shape))
    return [0, *(1 + dimension for dimension in permutation)]


def _is_number(kind):
    return pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)


def _has_variable_shapes(field):
    """Returns true for tensors of different shapes: Ray's, which Arrow knows only where Ray is imported."""
    if isinstance(field.type, pyarrow.BaseExtensionType):
        return field.type.extension_name == _VARIABLE_SHAPES
    return (field.metadata or {}).get(b"ARROW:extension:name") == _VARIABLE_SHAPES.encode()


def _is_tensor(field):
    return isinstance(field.type, pyarrow.BaseExtensionType) or _has_variable_shapes(field)


def _variable_tensors(column):
    """Returns an array of objects: an array for each row, a view of the column's memory, or None."""
    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    rows = numpy.empty(len(column), dtype=object)
    values, shapes = column.field("data"), column.field("shape")
    for row in range(len(column)):
        if column.is_valid()[row].as_py():
            rows[row] = values[row].values.to_numpy(zero_copy_only=False).reshape(shapes[row].as_py())
    return rows


def _flattened(column, lists=False):
    """Returns the numbers of a column of tensors, one row after the other, and the shape of a row; (None, None) for other
    columns. lists: also of lists that are equally long in all rows."""
    kind = column.type
    shape = ()
    if isinstance(kind, pyarrow.FixedShapeTensorType):
        shape, column = tuple(kind.shape), column.storage
        values = column.flatten()
        if column.null_count == 0 and values.null_count == 0 and _is_number(values.type):
            return values, shape
        return None, None
    while pyarrow.types.is_fixed_size_list(column.type) or (lists and _is_list(column.type)):
        if column.null_count:
            return None, None
        if pyarrow.types.is_fixed_size_list(column.type):
            width = column.type.list_size
        else:
            widths = numpy.unique(numpy.diff(column.offsets.to_numpy()))
            if len(widths) > 1:
                return None, None
            width = int(widths[0]) if len(widths) else 0
        shape, column = (*shape, width), column.flatten()
    is_of_numbers = _is_number(column.type) or pyarrow.types.is_boolean(column.type)
    if shape and is_of_numbers and column.null_count == 0:
        return column, shape
    return None, None


def _is_list(kind):
    return pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)


def of_core(batch):
    """Returns what the extension has made as a record batch."""
    return pyarrow.record_batch(batch)


# ---- To Arrow


def to_record_batch(batch, where):
    """Returns what a function has returned as a record batch: a dictionary of arrays or lists, a DataFrame, a table or a
    record batch. `where` names the function. Raises TypeError for anything else, ValueError for columns of different
    lengths."""
    if isinstance(batch, pyarrow.RecordBatch):
        return batch
    if isinstance(batch, pyarrow.Table):
        return _only_batch(batch)
    if isinstance(batch, dict):
        columns = {str(name): to_column(values, name, where) for name, values in batch.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f'"{name}" has {length}' for name, length in lengths.items())
            raise ValueError(f"{where}: the columns of a batch have equally many rows, but {listed}")
        return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    if type(batch).__module__.split(".")[0] == "pandas":
        return _only_batch(from_pandas(batch, where))
    raise TypeError(f"{where}: a batch is a dictionary of arrays, a pandas.DataFrame or a pyarrow.Table, not "
                    f"{type(batch).__name__}")


def from_pandas(frame, where):
    """Returns a DataFrame as a table, without its index. Raises ValueError for two columns of one name."""
    frame = frame.reset_index(drop=True)
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"{where}: two columns of the DataFrame are called {', '.join(twice)}; rename one of them")
    columns = {}
    for name in frame.columns:
        values = frame[name]
        first = next((value for value in values if value is not None), None)
        if getattr(first, "ndim", 0) > 0:
            columns[str(name)] = to_column(list(values), name, where)
        else:
            columns[str(name)] = pyarrow.Array.from_pandas(values)
            if isinstance(columns[str(name)], pyarrow.ChunkedArray):
                columns[str(name)] = columns[str(name)].combine_chunks()
    return pyarrow.table(columns)


def _only_batch(table):
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pyarrow.RecordBatch.from_pylist([], schema=table.schema)


def to_column(values, name, where):
    """Returns values as a column: an array of numpy, whose first dimension are the rows, a tensor, or a sequence."""
    if isinstance(values, pyarrow.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pyarrow.Array):
        return values
    if hasattr(values, "detach"):  # a tensor of torch
        values = values.detach().cpu().numpy()
    elif type(values).__module__.split(".")[0] == "pandas":
        return pyarrow.Array.from_pandas(values)
    elif not isinstance(values, numpy.ndarray):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise TypeError(f'{where}: column "{name}" is {values!r}, and must have a value for each row')
        values = _stacked(list(values), name, where)
    if isinstance(values, numpy.ndarray) and values.dtype == object and values.ndim == 1:
        values = _stacked(list(values), name, where)
    if isinstance(values, numpy.ndarray):
        if values.ndim == 0:
            raise TypeError(f'{where}: column "{name}" is {values!r}, and must have a value for each row')
        if values.ndim > 1 and values.dtype != object and len(values):
            return _tensors(numpy.ascontiguousarray(values))
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
        raise ValueError(f'{where}: column "{name}": {error}') from None


def _tensors(values):
    if values.dtype == bool:  # Arrow's tensors are of numbers
        flat = pyarrow.array(values.reshape(-1))
        for width in reversed(values.shape[1:]):
            flat = pyarrow.FixedSizeListArray.from_arrays(flat, width)
        return flat
    return pyarrow.FixedShapeTensorArray.from_numpy_ndarray(values)


def _plain(value):
    """Returns a scalar of numpy as one of Python's, but a time that Python does not have, in nanoseconds, as it is."""
    plain = value.item()
    return value if value.dtype.kind in "mM" and isinstance(plain, int) else plain


def _stacked(values, name, where):
    """Returns arrays, one for each row, as one array, and other values as they are."""
    values = [value.detach().cpu().numpy() if hasattr(value, "detach") else value for value in values]
    arrays = [value for value in values if isinstance(value, numpy.ndarray) and value.ndim > 0]
    if not arrays:
        return [_plain(value) if isinstance(value, numpy.generic) else value for value in values]
    shapes = {value.shape for value in arrays}
    if len(arrays) == len(values) and len(shapes) == 1:
        return numpy.stack(values)
    if all(len(shape) == 1 for shape in shapes):
        return [value if value is None else list(value) for value in values]
    if len(shapes) == 1:
        raise ValueError(f'{where}: column "{name}" has arrays of the shape {shapes.pop()}, and a row without one: only '
                         "lists of numbers may be missing; leave out that row, or fill it")
    raise ValueError(f'{where}: column "{name}" has arrays of different shapes: {", ".join(map(str, sorted(shapes)[:3]))}')
