"""Datasets: what programs for Ray Data can observe."""

import pathlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from ray import train
from ray.data import Dataset
from ray.data.expressions import col
from ray.train import DataConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

# Ray's rows may come in any order.
ray.data.DataContext.get_current().execution_options.preserve_order = True
ray.data.DataContext.get_current().enable_progress_bars = False


def files(folder, rows=100):
    """Writes two files, and returns the dataset of them."""
    table = pa.table({"id": np.arange(rows), "x": np.arange(rows) / 4, "city": [f"city {row % 3}" for row in range(rows)],
                      "gap": pa.array([None if row % 2 else row for row in range(rows)], pa.int64())})
    path = pathlib.Path(folder, "rows")
    path.mkdir()
    pq.write_table(table.slice(0, 60), path / "a.parquet")
    pq.write_table(table.slice(60), path / "b.parquet")
    return ray.data.read_parquet(str(path))


def ids(dataset):
    return [row["id"] for row in dataset.take_all()]


def case_rows_of_files(folder):
    rows = files(folder)
    return [isinstance(rows, Dataset), rows.count(), rows.columns(), [str(kind) for kind in rows.schema().types],
            rows.schema().names, rows.take(2), len(rows.take()), rows.take_all()[-1]]


def case_objects_in_memory(folder):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    return [ray.data.range(3).take_all(), ray.data.from_items([1, 2]).take_all(),
            ray.data.from_items([{"a": 1}]).take_all(), ray.data.from_pandas(frame).take_all(),
            ray.data.from_arrow(pa.table({"a": [1]})).take_all(),
            ray.data.from_numpy(np.arange(6).reshape(2, 3)).take_batch(2)["data"].tolist()]


def case_columns(folder):
    rows = files(folder)
    added = ray.data.range(2).add_column("twice", lambda batch: batch["id"] * 2)
    return [rows.select_columns(["x", "id"]).columns(), rows.drop_columns(["x"]).columns(),
            rows.rename_columns({"id": "key"}).columns(),
            rows.select_columns(["id", "x"]).rename_columns(["a", "b"]).take(1), added.take_all()]


def case_conditions(folder):
    rows = files(folder)
    return [rows.filter(expr=(col("id") > 96) & (col("x") < 24.7)).take_all(), rows.filter(expr="id < 2").count(),
            rows.filter(expr=col("gap").is_null()).count(), ids(rows.filter(lambda row: row["id"] % 40 == 1))]


def case_a_missing_file(folder):
    ray.data.read_parquet(folder + "/missing").count()


def case_no_batch_of_no_rows(folder):
    ray.data.range(0).take_batch(1)


def case_more_rows_than_wanted(folder):
    ray.data.range(5).take_all(limit=3)


def case_aggregates(folder):
    rows = files(folder)
    return [rows.mean("x"), rows.sum("id"), rows.min("id"), rows.max(["id", "x"]), rows.mean(["x"]), rows.sum("gap"),
            rows.sum("gap", ignore_nulls=False), round(rows.std("x"), 6), round(rows.std("x", ddof=0), 6),
            sorted(rows.unique("city"))]


def case_batches(folder):
    rows = files(folder)
    batches = list(rows.iter_batches(batch_size=40))
    frame = next(iter(rows.iter_batches(batch_size=3, batch_format="pandas")))
    table = next(iter(rows.iter_batches(batch_size=3, batch_format="pyarrow")))
    return [[len(batch["id"]) for batch in batches], sorted(batches[0]), str(batches[0]["id"].dtype),
            len(list(rows.iter_batches(batch_size=40, drop_last=True))), type(frame).__name__, frame["city"].tolist(),
            type(table).__name__, table.column("x").to_pylist(), [str(one) for one in batches[0]["gap"][:4]]]


def case_tensors(folder):
    import torch

    rows = files(folder).select_columns(["id", "x"])
    batch = next(iter(rows.iter_torch_batches(batch_size=3)))
    wide = next(iter(ray.data.from_numpy(np.arange(12.0).reshape(2, 3, 2)).iter_torch_batches(batch_size=2)))["data"]
    typed = next(iter(rows.iter_torch_batches(batch_size=2, dtypes={"id": torch.float32, "x": torch.float64})))
    collated = next(iter(rows.iter_torch_batches(batch_size=2, collate_fn=lambda batch: torch.as_tensor(batch["id"] * 10))))
    return [batch["id"].tolist(), str(batch["x"].dtype), list(wide.shape), [str(one.dtype) for one in typed.values()],
            collated.tolist()]


def case_texts_are_no_tensors(folder):
    next(iter(files(folder).iter_torch_batches()))


def case_functions_of_batches(folder):
    def scale(batch, times, plus=0):
        return {"id": batch["id"] * times + plus}

    def as_frame(frame):
        return frame[frame["id"] > 97].assign(city="none")[["id", "city"]]

    def first(table):
        return table.slice(0, 1).select(["id"])

    def yields(batch):
        yield {"size": np.array([len(batch["id"])])}
        yield {"size": np.array([0])}

    rows = files(folder)
    return [ids(rows.limit(3).map_batches(scale, fn_args=(2,), fn_kwargs={"plus": 1})),
            rows.map_batches(as_frame, batch_format="pandas").take_all(),
            rows.map_batches(first, batch_format="pyarrow", batch_size=50).take_all(),
            rows.map_batches(yields, batch_size=100).take_all()]


def case_a_class_of_batches(folder):
    class Plus:
        def __init__(self, amount, scale=1):
            self.amount = amount * scale

        def __call__(self, batch):
            batch["id"] = batch["id"] + self.amount
            return batch

    plus = ray.data.range(4).map_batches(Plus, fn_constructor_args=(5,), fn_constructor_kwargs={"scale": 2}, concurrency=1,
                                         batch_size=2)
    return plus.take_all()


def case_functions_of_rows(folder):
    rows = ray.data.range(4)
    return [rows.map(lambda row: {"v": row["id"] + 0.5}).take_all(),
            rows.flat_map(lambda row: [row] * row["id"]).take_all(),
            [type(row).__name__ for row in rows.limit(1).iter_rows()]]


def case_a_function_that_raises(folder):
    def fails(batch):
        raise ValueError("not this one")

    try:
        ray.data.range(3).map_batches(fails).take_all()
    except Exception as error:
        return ["not this one" in str(error), "in fails" in str(error)]


def case_parts_and_order(folder):
    rows = ray.data.range(10)
    learn, test = rows.train_test_split(0.3)
    return [sum(part.count() for part in rows.split(3)), [part.count() for part in rows.split(3, equal=True)],
            [ids(part) for part in rows.split_at_indices([2, 5])], ids(learn), ids(test), ids(rows.limit(2)),
            sorted(ids(rows.random_shuffle(seed=1))), ids(rows.random_shuffle(seed=1)) == ids(rows.random_shuffle(seed=1)),
            ids(rows.sort("id", descending=True).limit(3)), sorted(ids(ray.data.range(2).union(ray.data.range(1))))]


def case_groups(folder):
    groups = files(folder).groupby("city")

    def largest(group):
        return {"city": group["city"][:1], "largest": np.array([group["id"].max()])}

    return [groups.count().sort("city").take_all(), groups.sum("id").sort("city").take_all(),
            groups.mean(["id", "x"]).sort("city").take(1), groups.map_groups(largest).sort("city").take_all()]


def case_columns_beside_each_other(folder):
    other = ray.data.from_items([{"id": 5, "b": "x"}, {"id": 6, "b": "y"}])
    return ray.data.range(2).zip(other).take_all()


def case_files_that_are_written(folder):
    files(folder).limit(10).write_parquet(folder + "/out")
    again = ray.data.read_parquet(folder + "/out")
    return [again.count(), again.columns(), pq.read_table(folder + "/out").column("id").to_pylist()]


def case_a_data_frame(folder):
    frame = files(folder).limit(4).to_pandas()
    return [frame.columns.tolist(), frame["city"].tolist(), frame["x"].tolist(), int(frame["gap"].isna().sum())]


def case_ranks_of_a_run(folder):
    def trains():
        shard = train.get_dataset_shard("train")
        passes = [sorted(int(one) for batch in shard.iter_torch_batches(batch_size=16) for one in batch["id"])
                  for _ in range(2)]
        valid = sum(len(batch["id"]) for batch in train.get_dataset_shard("valid").iter_batches())
        rank = train.get_context().get_world_rank()
        pathlib.Path(folder, f"rank_{rank}.txt").write_text(f"{len(passes[0])} {passes[0] == passes[1]} {valid}")
        pathlib.Path(folder, f"ids_{rank}.txt").write_text(" ".join(map(str, passes[0])))

    TorchTrainer(trains, datasets={"train": files(folder, 101).select_columns(["id"]), "valid": ray.data.range(5)},
                 dataset_config=DataConfig(datasets_to_split=["train"]),
                 scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),  # Ray's reads need a CPU
                 run_config=RunConfig(name="run", storage_path=folder)).fit()
    seen = sum((pathlib.Path(folder, f"ids_{rank}.txt").read_text().split() for rank in range(2)), [])
    return [pathlib.Path(folder, "rank_0.txt").read_text(), pathlib.Path(folder, "rank_1.txt").read_text(),
            len(set(seen)), len(seen)]


def case_a_name(folder):
    rows = ray.data.range(2)
    before = rows.name
    rows.set_name("numbers")
    return [before, rows.name]
