"""What a batch of a dataset costs in Python, beside plain pyarrow in the same run.

    PYTHONPATH=build/release/python python benchmarks/python/data.py [--rows 400000] [--batch-size 256]
"""

import argparse
import tempfile
import time

import numpy
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import torch

import cadre
from cadre import data

WIDTH = 64


def write_files(folder, rows):
    random = numpy.random.default_rng(1)
    for number in range(4):
        image = random.integers(0, 256, (rows // 4, WIDTH), dtype=numpy.uint8)
        table = pyarrow.table({"id": numpy.arange(rows // 4), "x": random.random(rows // 4, dtype=numpy.float32),
                               "image": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(image)})
        pyarrow.parquet.write_table(table, f"{folder}/part_{number}.parquet", row_group_size=20_000)


def rows_a_second(make):
    """Returns how many rows a second a loop over batches takes, the best of three, and how many batches there are."""
    best = 0.0
    for _ in range(3):
        begin = time.perf_counter()
        lengths = [length for length in make()]
        best = max(best, sum(lengths) / (time.perf_counter() - begin))
    return best, len(lengths)


def plain_arrays(folder, batch_size):
    """Plain pyarrow: the batches of its dataset, which have any size up to this one, as arrays."""
    for batch in pyarrow.dataset.dataset(folder).to_batches(batch_size=batch_size):
        image = batch.column("image")
        arrays = {"id": batch.column("id").to_numpy(), "x": batch.column("x").to_numpy(),
                  "image": image.to_numpy_ndarray() if hasattr(image, "to_numpy_ndarray") else image}
        yield len(arrays["id"])


def plain_tensors(folder, batch_size):
    for batch in pyarrow.dataset.dataset(folder).to_batches(batch_size=batch_size):
        tensors = {"id": torch.from_dlpack(batch.column("id")), "x": torch.from_dlpack(batch.column("x")),
                   "image": torch.from_dlpack(batch.column("image").storage.flatten()).reshape(-1, WIDTH)}
        yield len(tensors["id"])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=400_000)
    options.add_argument("--batch-size", type=int, default=256)
    given = options.parse_args()
    cadre.init(num_cpus=2)
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder, given.rows)
        rows = data.read_parquet(folder)
        size = given.batch_size

        def show(name, make, plain=None):
            speed, batches = rows_a_second(make)
            beside = ""
            if plain is not None:
                plain_speed, _ = rows_a_second(plain)
                beside = f", {speed / plain_speed:.2f} of plain pyarrow's {plain_speed:,.0f}"
            print(f"{name}: {speed:,.0f} rows a second, {speed / given.rows * batches:,.0f} batches{beside}", flush=True)

        show("arrays", lambda: (len(batch["id"]) for batch in rows.iter_batches(batch_size=size)),
             lambda: plain_arrays(folder, size))
        show("tensors", lambda: (len(batch["id"]) for batch in rows.iter_torch_batches(batch_size=size)),
             lambda: plain_tensors(folder, size))
        mapped = rows.map_batches(lambda batch: {**batch, "x": batch["x"] * 2}, batch_size=size)
        show("a function in processes", lambda: (len(batch["id"]) for batch in mapped.iter_batches(batch_size=size)),
             lambda: (len(batch["id"]) for batch in map(lambda batch: {**batch, "x": batch["x"] * 2}, (
                 {"id": batch.column("id").to_numpy(), "x": batch.column("x").to_numpy(), "image": batch.column("image")}
                 for batch in pyarrow.dataset.dataset(folder).to_batches(batch_size=size)))))
        memory = data.from_numpy(numpy.zeros((given.rows, WIDTH), numpy.uint8))
        show("tensors of rows in memory",
             lambda: (len(batch["data"]) for batch in memory.iter_torch_batches(batch_size=size)))


if __name__ == "__main__":
    main()
