"""Datasets: reading, transformations, batches without copies, functions in processes, training runs."""

import gc
import os
import pickle
import signal
import time
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cadre
from cadre import data, train, tune
from cadre.data.expressions import col
from cadre.train import DataConfig, RunConfig, ScalingConfig
from cadre.train.torch import TorchTrainer

ROWS = 2000


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(5)
    image = random.integers(0, 256, (ROWS, 3, 4), dtype=np.uint8)
    return pa.table({
        "id": pa.array(np.arange(ROWS)), "x": pa.array(random.random(ROWS, dtype=np.float32)),
        "image": pa.FixedShapeTensorArray.from_numpy_ndarray(image),
        "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2.0 * ROWS)), 2),
        "city": pa.array([f"city {row % 7}" for row in range(ROWS)]),
        "gap": pa.array([None if row % 3 == 0 else row for row in range(ROWS)], pa.int32())})


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """Two files with row groups of 100 rows."""
    path = tmp_path_factory.mktemp("rows")
    pq.write_table(table.slice(0, 1200), path / "a.parquet", row_group_size=100)
    pq.write_table(table.slice(1200), path / "b.parquet", row_group_size=100)
    return str(path)


@pytest.fixture
def rows(folder):
    return data.read_parquet(folder)


def ids(dataset):
    return [row["id"] for row in dataset.select_columns("id").iter_rows()]


# ---- Reading


def test_what_is_read_is_what_pyarrow_reads(rows, table):
    assert rows.count() == len(rows) == ROWS
    assert rows.columns() == table.column_names
    assert [str(kind) for kind in rows.schema().types][:2] == ["int64", "float"]
    read = pa.concat_tables(list(rows.iter_batches(batch_size=None, batch_format="pyarrow"))).combine_chunks()
    for name in ("id", "x", "pair", "city", "gap"):
        assert read.column(name).to_pylist() == table.column(name).to_pylist(), name
    images = np.concatenate([batch["image"] for batch in rows.iter_batches(batch_size=300)])
    assert (images == table.column("image").combine_chunks().to_numpy_ndarray()).all()


def test_columns_conditions_and_folders_are_read_in_part(tmp_path, table):
    for year in (2023, 2024):
        os.makedirs(tmp_path / f"year={year}")
        pq.write_table(table.select(["id", "x"]).slice(0, year - 2020), tmp_path / f"year={year}" / "part.parquet")
    both = data.read_parquet(str(tmp_path))
    assert both.columns() == ["id", "x", "year"]
    assert both.filter(expr="year == 2024").count() == 4
    assert data.read_parquet(str(tmp_path), columns=["x"], partitioning=None).columns() == ["x"]
    assert ids(data.read_parquet(tmp_path, filter=(col("id") >= 1) & ~(col("year") == 2023))) == [1, 2, 3]


def test_csv_and_json(tmp_path):
    (tmp_path / "a.csv").write_text("id,name\n1,x\n2,\n")
    (tmp_path / "b.json").write_text('{"id": 1, "deep": {"a": [1, 2]}}\n{"id": 2}\n')
    assert data.read_csv(tmp_path / "a.csv").take_all() == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
    assert data.read_csv(tmp_path / "a.csv", types={"id": pa.float64()}).take(1) == [{"id": 1.0, "name": "x"}]
    assert data.read_json(tmp_path / "b.json").take_all() == [{"id": 1, "deep": {"a": [1, 2]}}, {"id": 2, "deep": None}]


def test_options_of_pyarrow_are_used_or_refused(tmp_path):
    import pyarrow.csv as csv

    (tmp_path / "a.csv").write_text("1;x\n2;\n")
    read = data.read_csv(tmp_path / "a.csv", parse_options=csv.ParseOptions(delimiter=";"),
                         read_options=csv.ReadOptions(column_names=["id", "name"], use_threads=False),
                         convert_options=csv.ConvertOptions(column_types={"id": pa.float64()},
                                                            strings_can_be_null=True))
    assert read.take_all() == [{"id": 1.0, "name": "x"}, {"id": 2.0, "name": None}]
    for argument, options, name in (("parse_options", csv.ParseOptions(quote_char="'"), "quote_char"),
                                    ("parse_options", csv.ParseOptions(invalid_row_handler=print), "invalid_row_handler"),
                                    ("read_options", csv.ReadOptions(skip_rows=1), "skip_rows"),
                                    ("convert_options", csv.ConvertOptions(null_values=["-"]), "null_values")):
        with pytest.raises(ValueError, match=f"read_csv: {type(options).__name__}.{name} cannot be used here"):
            data.read_csv(tmp_path / "a.csv", **{argument: options})
    with pytest.raises(ValueError, match="write_csv: WriteOptions.quoting_style cannot be used here"):
        read.write_csv(tmp_path / "csv", write_options=csv.WriteOptions(quoting_style="none"))


def test_objects_in_memory():
    assert data.range(3).take_all() == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert data.from_items([1, "a"[:0] or 2]).take_all() == [{"item": 1}, {"item": 2}]
    assert data.from_items([{"a": 1}, {"b": "x"}]).take_all() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[7, 8])
    assert data.from_pandas([frame, frame]).to_pandas().equals(pd.concat([frame, frame], ignore_index=True))
    vectors = pd.DataFrame({"vector": [None, np.array([1.0, 2.0]), np.array([3.0])]})
    assert data.from_pandas(vectors).take_all() == [{"vector": None}, {"vector": [1, 2]}, {"vector": [3]}]
    array = np.arange(24.0).reshape(4, 3, 2)
    assert (data.from_numpy(array).take_batch(4)["data"] == array).all()
    assert data.range_tensor(3, shape=(2, 2)).take_batch()["data"].tolist() == [[[row] * 2] * 2 for row in range(3)]
    assert data.from_numpy([np.arange(2), np.arange(3)]).count() == 5
    assert data.from_arrow([pa.table({"a": [1]}), pa.table({"a": [2]})]).sum("a") == 3


# ---- Transformations


def test_columns_are_selected_dropped_renamed_and_added(rows):
    assert rows.select_columns(["x", "id"]).columns() == ["x", "id"]
    assert rows.drop_columns(["image", "pair"]).columns() == ["id", "x", "city", "gap"]
    renamed = rows.select_columns(["id", "city"]).rename_columns({"id": "key"})
    assert renamed.columns() == ["key", "city"]
    assert renamed.filter(expr="key < 2").take_all() == [{"key": 0, "city": "city 0"}, {"key": 1, "city": "city 1"}]
    assert renamed.rename_columns(["a", "b"]).columns() == ["a", "b"] and renamed.count() == ROWS
    assert data.range(3).add_column("twice", lambda frame: frame["id"] * 2).take(2)[1] == {"id": 1, "twice": 2}


def test_conditions_are_those_of_pyarrow(rows, table):
    import pyarrow.compute as pc

    assert ids(rows.filter(expr="id > 1990 and city in ['city 3', 'city 4']")) == [
        row for row in range(1991, ROWS) if row % 7 in (3, 4)]
    assert rows.filter(expr=col("gap").is_null() | (col("gap") >= 1000)).count() == len(
        table.filter(pc.or_kleene(pc.is_null(table["gap"]), pc.greater_equal(table["gap"], 1000))))
    assert rows.filter(expr="not is_null(gap) and -1 < id < 5").count() == 3
    assert ids(rows.filter(lambda row: row["id"] % 500 == 1)) == [1, 501, 1001, 1501]


def test_order_and_parts(rows, table):
    shuffled = ids(rows.random_shuffle(seed=3))
    assert shuffled == ids(rows.random_shuffle(seed=3)) != ids(rows.random_shuffle(seed=4))
    assert sorted(shuffled) == list(range(ROWS))
    assert [part.count() for part in rows.split(3)] == [667, 667, 666]
    assert [part.count() for part in rows.split(3, equal=True)] == [666] * 3
    assert [ids(part) for part in data.range(5).split_at_indices([1, 3])] == [[0], [1, 2], [3, 4]]
    assert [part.count() for part in data.range(10).split_proportionately([0.2, 0.5])] == [2, 5, 3]
    assert [part.count() for part in data.range(10).split_proportionately([0.2, 0.7, 0.01])] == [1, 7, 1, 1]
    with pytest.raises(ValueError, match="2 rows are too few"):
        data.range(2).split_proportionately([0.1, 0.1])
    learn, test = data.range(10).train_test_split(0.2)
    assert (ids(learn), ids(test)) == (list(range(8)), [8, 9])
    assert ids(data.range(2).union(data.range(3), data.range(1))) == [0, 1, 0, 1, 2, 0]
    by_city = rows.select_columns(["city", "id"]).sort(["city", "id"], descending=[False, True])
    expected = table.select(["city", "id"]).sort_by([("city", "ascending"), ("id", "descending")])
    assert by_city.to_pandas().equals(expected.to_pandas())
    assert 300 < data.range(1000).random_sample(0.5, seed=1).count() < 700
    assert ids(rows.limit(3)) == [0, 1, 2]


def test_aggregates_are_those_of_pandas(rows, table):
    frame = table.select(["x", "gap"]).to_pandas()
    assert rows.mean("gap") == pytest.approx(frame["gap"].mean())
    assert rows.std("x") == pytest.approx(frame["x"].astype(float).std())
    assert rows.std("gap", ddof=0) == pytest.approx(frame["gap"].std(ddof=0))
    assert rows.sum(["id", "gap"]) == {"sum(id)": ROWS * (ROWS - 1) // 2, "sum(gap)": int(frame["gap"].sum())}
    assert (rows.min("city"), rows.max("city")) == ("city 0", "city 6")
    assert rows.mean(["id"]) == (ROWS - 1) / 2, "a list of one column, as with Ray"
    assert rows.sum("gap", ignore_nulls=False) is None
    assert sorted(rows.unique("city")) == [f"city {number}" for number in range(7)]
    assert data.from_arrow(pa.table({"a": pa.array([], pa.int64())})).mean("a") is None


def test_groups_are_those_of_pandas(rows, table):
    frame = table.select(["city", "id", "gap"]).to_pandas()
    groups = rows.groupby("city")
    assert groups.count().take(2) == [{"city": "city 0", "count()": 286}, {"city": "city 1", "count()": 286}]
    for kind in ("sum", "min", "max", "mean", "std"):
        found = getattr(groups, kind)(["id", "gap"]).to_pandas()
        expected = getattr(frame.groupby("city"), kind)()
        assert found["city"].tolist() == expected.index.tolist()
        assert np.allclose(found[f"{kind}(id)"], expected["id"]) and np.allclose(found[f"{kind}(gap)"], expected["gap"])
    largest = rows.select_columns(["city", "id"]).groupby("city").map_groups(
        lambda group: {"city": group["city"][:1], "largest": [group["id"].max()]})
    assert largest.to_pandas()["largest"].tolist() == frame.groupby("city")["id"].max().tolist()

    class Sizes:
        def __init__(self, plus):
            self.plus = plus

        def __call__(self, frame):
            return frame[:1][["image"]].assign(size=len(frame) + self.plus)

    sizes = rows.groupby("city").map_groups(Sizes, batch_format="pandas", fn_constructor_args=(1,)).to_pandas()
    assert sizes["size"].tolist() == [287] * 5 + [286] * 2 and sizes["image"][1].shape == (3, 4)
    assert data.range(4).groupby(None).sum("id").take_all() == [{"sum(id)": 6}]
    with pytest.raises(ValueError, match='column "y"'):
        rows.groupby("y").count().take(1)


def test_columns_stand_beside_each_other():
    both = data.range(2).zip(data.from_items([{"id": 5, "b": "x"}, {"id": 6, "b": "y"}]))
    assert both.take_all() == [{"id": 0, "id_1": 5, "b": "x"}, {"id": 1, "id_1": 6, "b": "y"}]
    with pytest.raises(ValueError, match="equally many rows.* has 2, .* has 3"):
        data.range(2).zip(data.range(3)).take(1)


# ---- Batches


def addresses(table, name):
    return {chunk.buffers()[-1].address + chunk.offset * 8 for chunk in table.column(name).chunks}


def test_numbers_and_tensors_of_batches_are_not_copied():
    torch = pytest.importorskip("torch")
    numbers = pa.array(np.arange(1000.0))
    wide = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4000.0)), 4)
    image = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6000.0).reshape(1000, 2, 3))
    rows = data.from_arrow(pa.table({"number": numbers, "wide": wide, "image": image}))
    begins = {"number": numbers.buffers()[1].address, "wide": wide.values.buffers()[1].address,
              "image": image.storage.values.buffers()[1].address}
    widths = {"number": 8, "wide": 32, "image": 48}
    at = 0
    for arrays, tensors in zip(rows.iter_batches(batch_size=250), rows.iter_torch_batches(batch_size=250)):
        for name, begin in begins.items():
            assert arrays[name].__array_interface__["data"][0] == begin + at * widths[name], name
            assert tensors[name].data_ptr() == begin + at * widths[name], name
        assert arrays["wide"].shape == (250, 4) and tensors["image"].shape == torch.Size([250, 2, 3])
        at += 250
    assert at == 1000


def test_tensors_that_lie_in_memory_in_another_order_have_their_own():
    images = np.arange(2 * 3 * 4).reshape(2, 3, 4).transpose(0, 2, 1)
    rows = data.from_arrow(pa.table({"image": pa.FixedShapeTensorArray.from_numpy_ndarray(images)}))
    assert np.array_equal(rows.take_batch()["image"], images)
    assert np.array_equal(next(iter(rows.iter_torch_batches()))["image"].numpy(), images)
    assert np.array_equal(rows.take_all()[1]["image"], images[1])
    assert np.array_equal(rows.map_batches(lambda batch: batch).take_batch()["image"], images)


def test_times_in_nanoseconds_stay_times():
    moment = np.datetime64("2026-01-02T03:04:05.000000006", "ns")
    rows = data.from_items([{"at": moment, "for": np.timedelta64(7, "ns"), "day": np.datetime64("2026-01-02", "D")},
                            {"at": None, "for": None, "day": None}])
    assert [str(kind) for kind in rows.schema().types] == ["timestamp[ns]", "duration[ns]", "date32[day]"]
    assert rows.take_batch(1)["at"][0] == moment


def test_a_tensor_outlives_its_batch_and_the_dataset():
    pytest.importorskip("torch")
    rows = data.from_numpy(np.arange(100_000))
    tensors = [batch["data"] for batch in rows.iter_torch_batches(batch_size=1000)]
    del rows
    assert sum(int(tensor.sum()) for tensor in tensors) == 99_999 * 100_000 // 2


def test_batches_have_their_size_and_format(rows):
    assert [len(batch["id"]) for batch in rows.iter_batches(batch_size=600)] == [600, 600, 600, 200]
    assert [len(batch["id"]) for batch in rows.iter_batches(batch_size=600, drop_last=True)] == [600] * 3
    frame = next(iter(rows.iter_batches(batch_size=10, batch_format="pandas")))
    assert list(frame.columns) == rows.columns() and frame["image"][3].shape == (3, 4)
    assert isinstance(next(iter(rows.iter_batches(batch_format="pyarrow"))), pa.Table)
    assert rows.take_batch(3, batch_format="pandas")["city"].tolist() == ["city 0", "city 1", "city 2"]
    gaps = next(iter(rows.select_columns("gap").iter_batches(batch_size=3)))["gap"]
    assert np.isnan(gaps[0]) and gaps[1:].tolist() == [1, 2]


def test_a_loop_can_be_left_and_repeated(rows):
    batches = rows.iter_batches(batch_size=10)
    for batch in batches:
        break
    assert [batch["id"][0] for batch in batches][:3] == [0, 10, 20]


def test_rows_of_a_window_are_shuffled_anew_in_each_pass(rows):
    def order(**options):
        return np.concatenate([batch["id"] for batch in rows.iter_batches(batch_size=50, **options)]).tolist()

    one, two = (order(local_shuffle_buffer_size=100) for _ in range(2))
    assert one != two and sorted(one) == list(range(ROWS)) and max(one[:100]) == 99
    assert order(local_shuffle_buffer_size=100, local_shuffle_seed=1) == order(local_shuffle_buffer_size=100,
                                                                               local_shuffle_seed=1)


def test_tensors_have_types_and_what_a_function_collates(rows):
    torch = pytest.importorskip("torch")
    numbers = rows.select_columns(["id", "x"])
    batch = next(iter(numbers.iter_torch_batches(batch_size=4, dtypes={"id": torch.float64})))
    assert (batch["id"].dtype, batch["x"].dtype) == (torch.float64, torch.float32)
    assert next(iter(numbers.iter_torch_batches(dtypes=torch.int32)))["x"].dtype == torch.int32
    collated = next(iter(rows.iter_torch_batches(
        batch_size=2, collate_fn=lambda batch: (torch.as_tensor(batch["id"].copy()), list(batch["city"])))))
    assert collated[0].tolist() == [0, 1] and collated[1] == ["city 0", "city 1"]
    flags = data.from_items([{"a": True, "b": [1, 2]}, {"a": False, "b": [3, 4]}]).union(
        data.from_items([{"a": True, "b": [5, 6]}]))
    assert {name: tensor.tolist() for name, tensor in next(iter(flags.iter_torch_batches())).items()} == {
        "a": [True, False, True], "b": [[1, 2], [3, 4], [5, 6]]}
    masks = data.from_numpy(np.array([[True, False], [False, False]]))
    assert next(iter(masks.iter_torch_batches()))["data"].tolist() == [[True, False], [False, False]]
    assert next(iter(masks.iter_batches()))["data"].tolist() == [[True, False], [False, False]]


# ---- Functions


def test_functions_of_batches_run_in_other_processes(rows):
    factor = 3  # goes along by value

    def scale(batch, plus, times=1):
        return {"id": batch["id"] * factor * times + plus, "process": np.full(len(batch["id"]), os.getpid())}

    scaled = rows.map_batches(scale, batch_size=100, fn_args=(1,), fn_kwargs={"times": 2}).to_pandas()
    assert scaled["id"].tolist() == [row * 6 + 1 for row in range(ROWS)], "in order, whatever the number of workers"
    assert os.getpid() not in set(scaled["process"])


@pytest.mark.parametrize("batch_format", ["numpy", "pandas", "pyarrow"])
def test_a_function_may_get_and_return_any_format(rows, batch_format):
    def take(batch):
        kind = type(batch).__name__
        if kind == "dict":
            return {"image": batch["image"], "city": batch["city"], "kind": [kind] * len(batch["id"])}
        if kind == "DataFrame":
            return batch[["image", "city"]].assign(kind=kind)
        return batch.select(["image", "city"]).append_column("kind", pa.array([kind] * len(batch)))

    taken = rows.limit(30).map_batches(take, batch_format=batch_format)
    batch = taken.take_batch(30)
    assert set(batch["kind"]) == {{"numpy": "dict", "pandas": "DataFrame", "pyarrow": "Table"}[batch_format]}
    assert (batch["image"] == rows.take_batch(30)["image"]).all() and batch["city"][8] == "city 1"


def test_a_function_is_released_with_its_program():
    class Large:
        pass

    def make(large):
        return lambda batch: {"id": batch["id"], "kind": [type(large).__name__] * len(batch["id"])}

    large = Large()
    released = weakref.ref(large)
    rows = data.range(3).map_batches(make(large))
    del large
    gc.collect()
    assert released() is None
    assert [row["kind"] for row in rows.take_all()] == ["Large"] * 3


def test_a_function_may_write_to_a_batch_that_it_asks_for():
    def add(batch):
        batch["id"] += 1
        return batch

    assert ids(data.range(2).map_batches(add, zero_copy_batch=False)) == [1, 2]
    with pytest.raises(data.DatasetError, match="read-only"):
        data.range(2).map_batches(add).take()


def test_a_function_may_return_other_rows_and_yield_batches(rows):
    def repeat(batch):
        for _ in range(2):
            yield {"id": batch["id"]}

    assert ids(data.range(4).map_batches(repeat, batch_size=2)) == [0, 1, 0, 1, 2, 3, 2, 3]
    assert rows.map_batches(lambda batch: {"n": [len(batch["id"])]}, batch_size=1000).take_all() == [{"n": 1000}] * 2
    assert data.range(3).flat_map(lambda row: [row] * row["id"]).take_all() == [{"id": 1}, {"id": 2}, {"id": 2}]
    pairs = data.range(3).map(lambda row: {"v": np.full(2, row["id"])})
    assert pairs.take_batch()["v"].tolist() == [[0, 0], [1, 1], [2, 2]]


def test_an_object_of_a_class_is_made_once_in_each_worker(rows):
    class Counts:
        def __init__(self, start, step=1):
            self.calls = start
            self.step = step

        def __call__(self, batch):
            self.calls += self.step
            return {"calls": [self.calls], "process": [os.getpid()]}

    calls = rows.map_batches(Counts, batch_size=100, concurrency=2, fn_constructor_args=(10,),
                             fn_constructor_kwargs={"step": 2}).to_pandas()
    for _, own in calls.groupby("process"):
        assert own["calls"].tolist() == [10 + 2 * number for number in range(1, len(own) + 1)]
    assert calls["process"].nunique() <= 2 and len(calls) == 20


def test_the_error_of_a_function_has_its_traceback(rows):
    def fails(batch):
        raise KeyError("what went wrong")

    with pytest.raises(data.DatasetError, match=r"map_batches\(fails\)(.|\n)*in fails(.|\n)*KeyError: 'what went wrong'"):
        rows.map_batches(fails).take(1)

    class Unmakable:
        def __init__(self):
            raise OSError("no model")

        def __call__(self, batch):
            return batch

    with pytest.raises(data.DatasetError, match="its constructor has thrown(.|\n)*OSError: no model"):
        rows.map_batches(Unmakable).count()


def test_a_worker_that_dies_is_replaced(rows, tmp_path):
    def dies_once(batch):
        if batch["id"][0] == 500 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    assert ids(rows.map_batches(dies_once, batch_size=100)) == list(range(ROWS))


def test_workers_draw_numbers_of_their_own(rows):
    class Draws:
        def __call__(self, batch):
            return {"drawn": [int(np.random.randint(1 << 60))]}

    drawn = rows.map_batches(Draws, batch_size=100, concurrency=2).to_pandas()["drawn"]
    assert drawn.nunique() == len(drawn)


# ---- Errors


def test_what_cannot_be_is_said_clearly(rows, tmp_path):
    with pytest.raises(ValueError, match='column "y".*id, x, image'):
        rows.select_columns(["y"]).take(1)
    with pytest.raises(ValueError, match="'y'.*the columns are: id"):
        rows.drop_columns("y")
    with pytest.raises(ValueError, match='"y"'):
        rows.rename_columns({"y": "z"}).take(1)
    with pytest.raises(ValueError, match='two columns "x"'):
        rows.rename_columns({"id": "x"}).columns()
    with pytest.raises(ValueError, match='needs the column "y"'):
        rows.filter(expr="y > 1").count()
    with pytest.raises(ValueError, match="is no condition"):
        rows.filter(expr="id +")
    with pytest.raises(ValueError, match="is no condition"):
        rows.filter(expr="open('/etc/passwd')")
    with pytest.raises(FileNotFoundError, match="missing"):
        data.read_parquet(tmp_path / "missing")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no parquet")
    with pytest.raises(cadre.CadreError, match="broken.parquet"):
        data.read_parquet(tmp_path / "broken.parquet").count()
    with pytest.raises(ValueError, match="batch_size is 0"):
        rows.iter_batches(batch_size=0).__next__()
    with pytest.raises(ValueError, match="batch_format is 'torch'"):
        rows.iter_batches(batch_format="torch")
    with pytest.raises(ValueError, match="filesystem cannot be used"):
        data.read_parquet(tmp_path, filesystem=object())
    with pytest.raises(TypeError, match="there is no argument collumns"):
        data.read_parquet(tmp_path, collumns=["a"])
    with pytest.raises(ValueError, match="from_pandas: two columns of the DataFrame are called a; rename one"):
        data.from_pandas(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(ValueError, match=r'from_pandas: column "image" has arrays of the shape \(2, 3\), and a row without'):
        data.from_pandas(pd.DataFrame({"image": [None, np.zeros((2, 3))]}))
    with pytest.raises(ValueError, match="no rows"):
        data.from_items([]).take_batch()
    with pytest.raises(TypeError, match="and, or and not"):
        rows.filter(expr=(col("id") > 1) and (col("id") < 3))


def test_what_is_no_tensor_is_said_with_the_column(rows):
    pytest.importorskip("torch")
    with pytest.raises(TypeError, match='column "city" is of string'):
        rows.iter_torch_batches().__next__()
    with pytest.raises(ValueError, match='column "gap" has nulls'):
        rows.select_columns("gap").iter_torch_batches().__next__()
    with pytest.raises(TypeError, match='column "a" is of list'):
        data.from_items([{"a": [1]}, {"a": [1, 2]}]).iter_torch_batches().__next__()
    with pytest.raises(ValueError, match="dtypes has no column: y"):
        rows.select_columns("id").iter_torch_batches(dtypes={"y": None}).__next__()


@pytest.mark.parametrize("returned, message", [
    ({"a": [1, 2], "b": [1]}, '"a" has 2, "b" has 1'),
    ({"a": 1}, 'column "a" is 1'),
    ([1], "not list"),
    (None, "not NoneType"),
    ({"a": [np.zeros((2, 2)), np.zeros((3, 3))]}, "arrays of different shapes"),
    ({"a": [1, "x"]}, 'column "a"'),
])
def test_what_a_function_must_not_return_is_said(returned, message):
    with pytest.raises(data.DatasetError, match=message):
        data.range(2).map_batches(lambda batch: returned).take(1)


def test_arguments_without_a_meaning_are_named_once():
    with pytest.warns(UserWarning, match="map_batches: memory has no meaning here"):
        data.range(3).map_batches(lambda batch: batch, memory=5)
    with pytest.raises(TypeError, match="there is no argument bach_size"):
        data.range(3).map_batches(lambda batch: batch, bach_size=5)


def test_a_dataset_without_rows(tmp_path):
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    empty = data.read_parquet(tmp_path / "empty.parquet")
    assert empty.count() == 0 and empty.take() == [] and empty.columns() == ["id"]
    assert list(empty.iter_batches()) == [] and len(empty.to_pandas()) == 0
    assert empty.map_batches(lambda batch: batch).take_all() == []
    assert data.from_items([]).schema() is None and data.from_items([]).count() == 0


# ---- Files


def test_what_is_written_is_what_pyarrow_reads(rows, table, tmp_path):
    rows.write_parquet(tmp_path / "out", max_rows_per_file=800, compression="snappy")
    assert sorted(os.listdir(tmp_path / "out")) == [f"part_{number:06}.parquet" for number in range(3)]
    names = ["id", "x", "city", "gap"]
    assert pq.read_table(tmp_path / "out").select(names).equals(table.select(names))
    rows.select_columns(["id", "city"]).limit(3).write_csv(tmp_path / "csv")
    assert data.read_csv(tmp_path / "csv").count() == 3
    data.from_items([{"a": 1, "b": [1, 2]}, {"a": 2, "b": None}]).write_json(tmp_path / "json")
    assert data.read_json(tmp_path / "json").take_all() == [{"a": 1, "b": [1, 2]}, {"a": 2, "b": None}]
    with pytest.raises(ValueError, match="out"):
        rows.write_parquet(tmp_path / "out")


# ---- Training runs and trials


@pytest.fixture
def fit(tmp_path):
    pytest.importorskip("torch")

    def run(function, datasets, name="run", num_workers=2, **others):
        return TorchTrainer(function, scaling_config=ScalingConfig(num_workers=num_workers), datasets=datasets,
                            run_config=RunConfig(name=name, storage_path=str(tmp_path), verbose=0), **others).fit()

    return run


def gathered(seen):
    """Returns what all ranks have seen."""
    import torch

    everything = [None] * train.get_context().get_world_size()
    torch.distributed.all_gather_object(everything, seen)
    return everything


def test_ranks_of_a_run_divide_a_dataset(fit, rows):
    def trains():
        shard = train.get_dataset_shard("train")
        passes = [[int(one) for batch in shard.iter_torch_batches(batch_size=64) for one in batch["id"]] for _ in range(2)]
        valid = train.get_dataset_shard("valid")
        return {"passes": gathered(passes), "valid": gathered([row["id"] for row in valid.iter_rows()])}

    result = fit(trains, {"train": rows.select_columns(["id", "x"]), "valid": data.range(3)},
                 dataset_config=DataConfig(datasets_to_split=["train"]))
    (one, again), (other, _) = result.return_value["passes"]
    assert one == again and len(one) == len(other) == ROWS // 2
    assert sorted(one + other) == list(range(ROWS))
    assert result.return_value["valid"] == [[0, 1, 2]] * 2


def test_conditions_of_a_run_may_have_many_parts(fit):
    def trains():
        return {name: len(list(train.get_dataset_shard(name).iter_rows())) for name in ("listed", "named", "either")}

    numbers = data.range(1000)
    result = fit(trains, {"listed": numbers.filter(expr=col("id").is_in(range(0, 1000, 2))),
                          "named": numbers.filter(expr=f"id in {list(range(300))}"),
                          "either": numbers.filter(expr=" or ".join(f"id == {row}" for row in range(200)))}, num_workers=1)
    assert result.return_value == {"listed": 500, "named": 300, "either": 200}


def test_a_run_has_datasets_in_memory_with_functions_and_in_random_order(fit):
    def trains():
        seen = [batch["id"].tolist() for batch in train.get_dataset_shard("train").iter_batches(batch_size=None)]
        return gathered(sum(seen, []))

    tens = data.range(10).random_shuffle(seed=1).map_batches(lambda batch: {"id": batch["id"] * 10})
    seen = fit(trains, {"train": tens}).return_value
    assert sorted(seen[0] + seen[1]) == [row * 10 for row in range(10)] and len(seen[0]) == 5
    assert seen[0] + seen[1] == ids(tens)


def test_ranks_take_equally_many_batches_whatever_a_condition_leaves_them(fit, rows):
    def trains():
        shard = train.get_dataset_shard("train")
        return gathered([[len(batch["id"]) for batch in shard.iter_batches(batch_size=100)] for _ in range(2)])

    sizes = fit(trains, {"train": rows.filter(expr="id < 1250")}).return_value
    assert sizes == [[[100] * 3] * 2, [[100, 100, 50]] * 2]


def test_a_restored_run_has_its_datasets_and_goes_on_with_the_next_row(fit, tmp_path):
    def trains():
        seen = []
        for number, batch in enumerate(train.get_dataset_shard("train", resume=True).iter_batches(batch_size=4)):
            seen += batch["id"].tolist()
            train.report({"seen": seen}, checkpoint=lambda directory: None)
            if number == 1 and not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                raise RuntimeError("in the middle of a pass")
        return seen

    datasets = {"train": data.from_items([{"id": row} for row in range(20)]).map_batches(lambda batch: batch)}
    with pytest.raises(cadre.CadreError, match="in the middle of a pass"):
        fit(trains, datasets, num_workers=1)
    assert fit(trains, {}, num_workers=1).return_value == list(range(8, 20)), "with its stored options"


def test_without_resume_a_restored_run_begins_a_new_pass(fit, tmp_path):
    def trains():
        seen = []
        for batch in train.get_dataset_shard("train").iter_batches(batch_size=4):
            seen += batch["id"].tolist()
            train.report({"seen": len(seen)}, checkpoint=lambda directory: None)
            if not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                raise RuntimeError("in the middle of a pass")
        return seen

    with pytest.raises(cadre.CadreError):
        fit(trains, {"train": data.range(10)}, num_workers=1)
    assert fit(trains, {"train": data.range(10)}, num_workers=1).return_value == list(range(10))


@pytest.fixture
def leave_one_cpu():
    """A function after which there is room for one rank."""
    def change():
        cadre.shutdown()
        cadre.init(num_cpus=1)

    yield change
    cadre.shutdown()
    cadre.init(num_cpus=2)


@pytest.mark.parametrize("resume", [False, True])
def test_other_ranks_begin_a_new_pass_after_a_complete_one(fit, leave_one_cpu, resume):
    def trains():
        seen = [row for batch in train.get_dataset_shard("train", resume=resume).iter_batches(batch_size=5)
                for row in batch["id"].tolist()]
        train.report({"seen": len(seen)}, checkpoint=lambda directory: None)
        if train.get_context().get_world_size() == 2:
            train.get_all_reported_checkpoints()  # waits for all ranks
            raise RuntimeError("after a pass")
        return seen

    with pytest.raises(cadre.CadreError, match="after a pass"):
        fit(trains, {"train": data.range(10)}, num_workers=(1, 2))
    leave_one_cpu()
    assert fit(trains, {"train": data.range(10)}, num_workers=(1, 2)).return_value == list(range(10))


@pytest.mark.parametrize("resume", [False, True])
def test_other_ranks_share_the_rest_of_a_pass_if_they_resume_it(fit, leave_one_cpu, resume):
    def trains():
        seen = []
        for batch in train.get_dataset_shard("train", resume=resume).iter_batches(batch_size=2):
            seen += batch["id"].tolist()
            if train.get_context().get_world_size() == 2:
                train.report({"seen": len(seen)}, checkpoint=lambda directory: None)
                train.get_all_reported_checkpoints()  # waits for all ranks
                raise RuntimeError("in the middle of a pass")
        return seen

    with pytest.raises(cadre.CadreError, match="in the middle of a pass"):
        fit(trains, {"train": data.range(10)}, num_workers=(1, 2))
    leave_one_cpu()
    assert fit(trains, {"train": data.range(10)}, num_workers=(1, 2)).return_value == (
        [2, 3, 4, 7, 8, 9] if resume else list(range(10)))


def test_a_run_resumes_a_pass_whose_functions_make_more_rows(fit, tmp_path):
    def trains():
        seen = []
        for batch in train.get_dataset_shard("train", resume=True).iter_batches(batch_size=8):
            seen += batch["id"].tolist()
            train.report({"seen": len(seen)}, checkpoint=lambda directory: None)
            if not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                raise RuntimeError("in the middle of a pass")
        return seen

    datasets = {"train": data.range(4).flat_map(lambda row: [row] * 3)}
    with pytest.raises(cadre.CadreError, match="in the middle of a pass"):
        fit(trains, datasets, num_workers=1)
    assert fit(trains, datasets, num_workers=1).return_value == [2, 3, 3, 3]


def test_a_resumed_run_begins_a_new_pass_where_a_condition_left_all_rows_of_the_last(fit, tmp_path):
    def trains():
        seen = [row for batch in train.get_dataset_shard("train", resume=True).iter_batches(batch_size=5)
                for row in batch["id"].tolist()]
        train.report({"seen": len(seen)}, checkpoint=lambda directory: None)
        if not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise RuntimeError("after a pass")
        return seen

    datasets = {"train": data.range(20).filter(expr="id < 10")}
    with pytest.raises(cadre.CadreError, match="after a pass"):
        fit(trains, datasets, num_workers=1)
    assert fit(trains, datasets, num_workers=1).return_value == list(range(10))


def test_a_checkpoint_is_validated_with_a_dataset(fit, rows):
    class Scores:
        def __init__(self, checkpoint):
            with checkpoint.as_directory() as directory:
                self.weight = int(open(os.path.join(directory, "weight")).read())

        def __call__(self, batch):
            return {"score": batch["id"] * self.weight}

    def validate(checkpoint, config):
        scores = config["rows"].map_batches(Scores, batch_size=50, fn_constructor_kwargs={"checkpoint": checkpoint})
        return {"score": scores.mean(["score"]), "count": len(config["rows"])}

    def trains():
        def write(directory):
            with open(os.path.join(directory, "weight"), "w") as file:
                file.write("3")

        train.report({"step": 1}, checkpoint=write, validate_fn=validate, validate_config={"rows": rows.limit(101)})

    (_, metrics), = fit(trains, {}, num_workers=1).best_checkpoints
    assert (metrics["score"], metrics["count"]) == (150, 101)


def test_datasets_of_a_run_that_are_wrong(fit):
    with pytest.raises(ValueError, match="there is no dataset test; the trainer has: train"):
        fit(lambda: None, {"train": data.range(3)}, dataset_config=DataConfig(["test"]))

    def trains():
        train.get_dataset_shard("valid")

    with pytest.raises(cadre.CadreError, match="no dataset 'valid'; it has: 'train'"):
        fit(trains, {"train": data.range(3)}, num_workers=1)


def test_streaming_split_divides_the_rows(rows):
    parts = rows.streaming_split(3, equal=True)
    seen = [[row["id"] for row in part.iter_rows()] for part in parts]
    assert [len(one) for one in seen] == [666] * 3 and len(set(sum(seen, []))) == 1998


def test_a_trial_uses_a_dataset_of_its_program(tmp_path, rows):
    in_memory = data.from_items([{"id": 5}])

    def trains(config, given):
        own = rows.filter(expr=f"id < {config['limit']}").map_batches(lambda batch: {"id": batch["id"] + 1})
        tune.report({"own": own.sum("id"), "given": given.sum("id"), "of_config": config["rows"].count()})

    results = tune.Tuner(tune.with_parameters(trains, given=in_memory), param_space={"limit": 3, "rows": in_memory},
                         run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0)).fit()
    assert results.errors == []
    metrics = results[0].metrics
    assert (metrics["own"], metrics["given"], metrics["of_config"]) == (6, 5, 1)


def test_a_dataset_can_be_pickled(rows):
    one = rows.filter(expr="id < 2").map_batches(lambda batch: {"id": batch["id"]}).union(data.from_items([{"id": 7}]))
    pickled = pickle.dumps(one)
    del one
    assert ids(pickle.loads(pickled)) == [0, 1, 7]


# ---- Processes


def test_functions_run_whatever_was_imported_first(programs):
    program = """
        import {first}
        import {second}
        import torch, pyarrow
        from cadre import data
        def f(batch): return {{"id": batch["id"] + 1}}
        if {early}: __import__("cadre").init(num_cpus=1)
        import numpy
        rows = data.range(10).map_batches(f)
        print(rows.sum("id"), next(iter(rows.iter_torch_batches(batch_size=3)))["id"].tolist())
    """.replace("\n        ", "\n")
    for number, (first, second) in enumerate([("torch", "pyarrow"), ("pyarrow", "torch"), ("cadre.data", "torch")]):
        done = programs.run(program.format(first=first, second=second, early=number == 0))
        assert done.stdout == "55 [1, 2, 3]\n", done.stderr
        assert "imports" not in done.stderr, "the server can load all of it"


def test_a_server_that_began_before_the_import_runs_functions_too(programs):
    done = programs.run("""
import cadre
cadre.init(num_cpus=1)
from cadre import data
print(data.range(3).map_batches(lambda batch: {"id": batch["id"] + 1}).take_all())
""")
    assert done.stdout == "[{'id': 1}, {'id': 2}, {'id': 3}]\n", done.stderr


def test_ctrl_c_ends_an_execution(programs):
    process = programs.start("""
import time
from cadre import data
def slow(batch):
    time.sleep(0.05)
    return batch
rows = data.range(1_000_000).map_batches(slow, batch_size=1)
try:
    print(rows.take(1), flush=True)
    rows.materialize()
except KeyboardInterrupt:
    print("ended", data.range(3).map_batches(slow).count())
""")
    assert process.stdout.readline() == "[{'id': 0}]\n"
    time.sleep(0.5)  # so that it is in materialize(), most probably
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=100)[0].endswith("ended 3\n")


def test_another_version_of_pyarrow_is_refused_with_the_right_one(programs):
    program = """
import sys, types
{change}
try:
    import cadre.data
except ImportError as error:
    print(error)
"""
    for change, message in [
            ("import pyarrow; pyarrow.__version__ = '1.2.3'", f"needs pyarrow {pa.__version__}, and this is pyarrow 1.2.3"),
            ("sys.modules['pyarrow'] = None", f"needs pyarrow {pa.__version__}, which is not installed")]:
        done = programs.run(program.format(change=change))
        assert message in done.stdout and 'pip install "cadre-tune[data]"' in done.stdout


def test_programs_for_ray_run_unchanged(programs):
    done = programs.run("""
import sys
sys.argv = ["ray", "program.py"]
from cadre.compat import ray as compat
compat.install()
import ray
from ray.data import Dataset
ds = ray.data.range(4).map_batches(lambda batch: {"id": batch["id"] * 2}, batch_size=2)
assert isinstance(ds, Dataset)
print(ds.take_all(), ray.get(ds.to_arrow_refs())[0].num_rows)
""")
    assert done.stdout == "[{'id': 0}, {'id': 2}, {'id': 4}, {'id': 6}] 4\n", done.stderr
