"""Datasets with the names of Ray Data: files of tables, images, texts, arrays and records, and rows in memory, read as a
stream.

    from cadre import data

    rows = data.read_parquet("trips").filter(expr=data.expressions.col("fare") > 10)
    for batch in rows.iter_torch_batches(batch_size=256):
        ...

It needs pyarrow of one version, that which it was built with.
"""

from cadre import _arrow

_arrow.load("cadre.data", "data", "arrow", "arrow_compute", "parquet", "arrow_acero", "arrow_dataset")

import pyarrow  # noqa: E402, F401  also in the fork server, for its workers

from cadre.data import aggregate, expressions, transforms  # noqa: E402  the libraries come first
from cadre.data._functions import get_epoch  # noqa: E402
from cadre.data.context import DataContext, ExecutionOptions, ExecutionResources  # noqa: E402
from cadre.data.dataset import ActorPoolStrategy, Dataset, DatasetError, Schema, TaskPoolStrategy  # noqa: E402
from cadre.data.images import ImageTransforms, mix_up  # noqa: E402
from cadre.data.iterator import DataIterator  # noqa: E402
from cadre.data.sources import (from_arrow, from_huggingface, from_items, from_numpy, from_pandas, range,  # noqa: E402
                                range_tensor, read_binary_files, read_csv, read_images, read_json, read_numpy, read_parquet,
                                read_text, read_tfrecords, read_webdataset, with_row_numbers)

MaterializedDataset = Dataset

__all__ = ["ActorPoolStrategy", "DataContext", "DataIterator", "Dataset", "DatasetError", "ExecutionOptions",
           "ExecutionResources", "ImageTransforms", "MaterializedDataset", "Schema", "TaskPoolStrategy", "aggregate",
           "expressions", "from_arrow", "from_huggingface", "from_items", "from_numpy", "from_pandas", "get_epoch", "mix_up", "range",
           "range_tensor", "read_binary_files", "read_csv", "read_images", "read_json", "read_numpy", "read_parquet",
           "read_text", "read_tfrecords", "read_webdataset", "transforms", "with_row_numbers"]
