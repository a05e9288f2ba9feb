"""Datasets of files other than tables, relational operations and aggregates: what programs for Ray Data can observe."""

import io
import pathlib
import tarfile

import numpy as np
import pandas as pd
import PIL.Image
import pyarrow as pa
import ray
from ray.data.aggregate import Count, CountDistinct, Max, Mean, Min, Quantile, Std, Sum
from ray.data.datasource import Partitioning

# Ray's rows may come in any order.
ray.data.DataContext.get_current().execution_options.preserve_order = True
ray.data.DataContext.get_current().enable_progress_bars = False


def images(folder):
    """Writes four images in folders of two labels."""
    for number in range(4):
        path = pathlib.Path(folder, "images", "cat" if number < 2 else "dog")
        path.mkdir(parents=True, exist_ok=True)
        pixels = (np.arange((4 + number) * 6 * 3) * 7 % 256).astype(np.uint8).reshape(4 + number, 6, 3)
        PIL.Image.fromarray(pixels).save(path / f"{number}.png")
    return folder + "/images"


def sales():
    return ray.data.from_arrow(pa.table({
        "city": ["Bern", "Basel", "Bern", "Genf", "Basel", "Bern"], "fare": [4.0, None, 1.5, 8.0, 2.0, 3.0],
        "rides": [1, 2, 3, 4, 5, 6], "driver": ["a", "b", "a", "c", "d", None]}))


def rounded(rows):
    return [{name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()} for row in rows]


def by(rows, *names):
    return sorted(rounded(rows.take_all()), key=lambda row: str([row.get(name) for name in names]))


def case_images(folder):
    rows = ray.data.read_images(images(folder), include_paths=True)
    taken = sorted(rows.take_all(), key=lambda row: row["path"])
    small = ray.data.read_images(images(folder), size=(3, 2), mode="L")
    batch = small.take_batch(4)["image"]
    return [rows.count(), sorted(rows.columns()), [list(row["image"].shape) for row in taken],
            [int(row["image"].sum()) for row in taken], [pathlib.Path(row["path"]).name for row in taken],
            list(batch.shape), str(batch.dtype), small.take_all()[0]["image"].tolist()]


def case_images_in_batches(folder):
    rows = ray.data.read_images(images(folder))
    batch = rows.take_batch(4)["image"]
    frame = rows.take_batch(4, batch_format="pandas")
    heights = rows.map_batches(lambda batch: {"height": np.array([one.shape[0] for one in batch["image"]])}).take_all()
    return [batch.dtype == object, [list(one.shape) for one in batch], [list(one.shape) for one in frame["image"]],
            sorted(row["height"] for row in heights), rows.map(lambda row: {"sum": int(row["image"].sum())}).sum("sum")]


def case_labels_of_folders(folder):
    rows = ray.data.read_images(images(folder), size=(2, 2), mode="RGB",
                                partitioning=Partitioning("dir", field_names=["label"], base_dir=images(folder)))
    hive = pathlib.Path(folder, "texts", "year=2024")
    hive.mkdir(parents=True)
    (hive / "a.txt").write_text("x\n")
    texts = ray.data.read_text(folder + "/texts", partitioning=Partitioning("hive", base_dir=folder + "/texts"))
    return [sorted(row["label"] for row in rows.take_all()), sorted(texts.columns())]


def case_binary_files(folder):
    pathlib.Path(folder, "a.bin").write_bytes(b"\0\1")
    pathlib.Path(folder, "b.bin").write_bytes(b"")
    rows = ray.data.read_binary_files([folder + "/a.bin", folder + "/b.bin"], include_paths=True)
    return [[list(row["bytes"]) for row in rows.take_all()], [pathlib.Path(row["path"]).name for row in rows.take_all()],
            ray.data.read_binary_files([folder + "/a.bin", folder + "/none.bin"], ignore_missing_paths=True).count()]


def case_texts(folder):
    pathlib.Path(folder, "a.txt").write_text("eins\n\nzwei\r\n  \ndrei")
    rows = ray.data.read_text(folder + "/a.txt")
    return [rows.take_all(), ray.data.read_text(folder + "/a.txt", drop_empty_lines=False).count()]


def case_arrays(folder):
    np.save(folder + "/a.npy", np.arange(12.0).reshape(3, 2, 2))
    rows = ray.data.read_numpy(folder + "/a.npy")
    return [rows.count(), rows.columns(), rows.take_all()[1]["data"].tolist()]


def case_a_webdataset(folder):
    with tarfile.open(folder + "/a.tar", "w") as tar:
        for number in range(2):
            for suffix, content in ("cls", str(number)), ("txt", f"text {number}"), ("bin", "raw"):
                info = tarfile.TarInfo(f"{number:03}.{suffix}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content.encode()))
    rows = ray.data.read_webdataset(folder + "/a.tar").take_all()
    chosen = ray.data.read_webdataset(folder + "/a.tar", suffixes=["txt"]).take_all()
    return [[(row["__key__"], row["cls"], row["txt"], list(row["bin"])) for row in rows],
            [sorted(name for name in row if not name.startswith("__")) for row in chosen]]


def case_a_missing_folder(folder):
    ray.data.read_images(folder + "/missing").count()


def case_orders(folder):
    rows = ray.data.from_items([{"a": a, "b": b} for a, b in [(2, 1), (1, 5), (2, 0), (1, 7)]])
    return [rows.sort("a").take(1), rows.sort(["a", "b"], descending=[True, False]).take_all(),
            rows.sort(["a", "b"], descending=True).take_all()]


def case_aggregates(folder):
    rows = sales()
    return [rounded([rows.aggregate(Mean("fare"), Max("rides"), Min("city"), Sum("rides"))]),
            rows.aggregate(Count()), rows.aggregate(Count("driver")), rows.aggregate(Count("driver", ignore_nulls=True)),
            rows.aggregate(Quantile("rides")), rows.aggregate(Quantile("rides", q=0.25, alias_name="quarter")),
            rounded([rows.aggregate(Std("rides", ddof=0, alias_name="spread"))]), rows.aggregate(CountDistinct("driver")),
            rows.aggregate(Sum("fare", ignore_nulls=False))]


def case_aggregates_of_groups(folder):
    groups = sales().groupby("city")
    return [by(groups.aggregate(Count(), Mean("fare"), Quantile("rides", alias_name="middle"), CountDistinct("driver")),
               "city"), by(groups.count(), "city"), by(groups.max("rides"), "city"), by(groups.min(["rides", "fare"]), "city"),
            by(groups.std("rides"), "city"), by(sales().groupby(["city", "driver"]).sum("rides"), "city", "driver"),
            sales().groupby(None).count().take_all()]


def case_a_class_of_groups(folder):
    class Largest:
        def __init__(self, name):
            self.name = name

        def __call__(self, frame):
            return pd.DataFrame({"city": frame["city"].iloc[:1], self.name: [frame["rides"].max()]})

    rows = sales().groupby("city").map_groups(Largest, batch_format="pandas", fn_constructor_args=("most",), concurrency=1)
    return by(rows, "city")


def case_stratified_parts(folder):
    rows = ray.data.from_items([{"id": row, "label": "a" if row % 5 else "b"} for row in range(40)])
    learn, test = rows.train_test_split(0.25, stratify="label")
    return [learn.count(), test.count(), sorted(row["label"] for row in test.take_all()).count("b"),
            sorted(row["id"] for row in learn.take_all() + test.take_all()) == list(range(40))]


def case_samples_and_sides(folder):
    rows = ray.data.range(1000)
    sides = ray.data.range(3).zip(ray.data.range(3).map(lambda row: {"id": -row["id"]}), ray.data.range(3))
    return [rows.random_sample(0).count(), rows.random_sample(1.0).count(), 100 < rows.random_sample(0.3, seed=2).count() < 500,
            sides.take_all(), rows.repartition(3).count(), sorted(sales().unique("city")),
            sorted(sales().unique("driver", ignore_nulls=True))]


def case_rows_of_rows(folder):
    rows = ray.data.range(3)

    def yields(row):
        for number in range(row["id"]):
            yield {"n": number}

    return [rows.flat_map(lambda row: [{"n": row["id"]}] * row["id"]).take_all(), rows.flat_map(yields).take_all()]


def case_texts_that_are_written(folder):
    rows = ray.data.from_items([{"a": 1, "b": "x"}, {"a": 2, "b": 'y "z"'}])
    rows.write_csv(folder + "/csv")
    rows.write_json(folder + "/json")
    return [ray.data.read_csv(folder + "/csv").take_all(), ray.data.read_json(folder + "/json").take_all()]
