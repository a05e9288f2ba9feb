"""Datasets of images, texts, arrays and records; relational operations; files that are damaged."""

import io
import os
import pathlib
import struct
import tarfile

import google_crc32c
import numpy as np
import pandas as pd
import PIL.Image
import pyarrow as pa
import pytest

import cadre
from cadre import data
from cadre.data import transforms
from cadre.data.aggregate import Count, Max, Mean, Quantile, Std, Sum
from cadre.data.datasource import Partitioning


def picture(seed, height=12, width=10):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def images(tmp_path):
    """Twelve images of one size in folders of two labels."""
    for number in range(12):
        folder = tmp_path / "images" / ("cat" if number < 7 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        PIL.Image.fromarray(picture(number)).save(folder / f"{number:02}.png")
    return tmp_path / "images"


def record(content):
    def masked(part):
        crc = google_crc32c.value(part)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def example(name, *numbers):
    """The message tf.train.Example of a feature of integers below 128."""
    def field(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    values = field(1, bytes(numbers))
    return field(1, field(1, field(1, name.encode()) + field(2, field(3, values))))


# ---- Readers


def test_images_are_those_of_pillow(images):
    rows = data.read_images(images, include_paths=True, partitioning=Partitioning("dir", field_names=["label"]))
    assert rows.columns() == ["image", "label", "path"] and rows.count() == 12
    for number, row in enumerate(rows.iter_rows()):
        assert (row["image"] == picture(number)).all() and pathlib.Path(row["path"]).name == f"{number:02}.png"
        assert row["label"] == ("cat" if number < 7 else "dog")
    small = data.read_images(images, size=(5, 4), mode="L").take_batch(12)["image"]
    assert small.shape == (12, 5, 4)
    expected = PIL.Image.fromarray(picture(3)).resize((4, 5), PIL.Image.BILINEAR).convert("L")
    assert (small[3] == np.asarray(expected)).all()


def test_images_of_any_shape_are_arrays_of_their_own(tmp_path):
    for number in range(3):
        PIL.Image.fromarray(picture(number, height=4 + number)).save(tmp_path / f"{number}.png")
    rows = data.read_images(tmp_path)
    batch = rows.take_batch(3)["image"]
    assert [image.shape for image in batch] == [(4, 10, 3), (5, 10, 3), (6, 10, 3)]
    assert all((image == picture(number, height=4 + number)).all() for number, image in enumerate(batch))
    assert [image.shape for image in rows.to_pandas()["image"]] == [image.shape for image in batch]
    assert rows.map(lambda row: {"height": row["image"].shape[0]}).take_all() == [{"height": n} for n in (4, 5, 6)]


def test_bytes_texts_and_arrays(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    assert data.read_binary_files(tmp_path / "a.bin", include_paths=True).take_all() == [
        {"bytes": b"\0\1", "path": str(tmp_path / "a.bin")}]
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    assert data.read_text([tmp_path / "a.txt", tmp_path / "none.txt"], ignore_missing_paths=True).take_all() == [
        {"text": "one"}, {"text": "two"}]
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.arange(6.0).reshape(3, 2))
    both = data.read_numpy(tmp_path, file_extensions=["npz"]).take_batch(3)
    assert both["x"].tolist() == [0, 1, 2] and both["y"].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_records_have_columns_of_their_features(tmp_path):
    (tmp_path / "a.tfrecords").write_bytes(record(example("n", 5)) + record(example("n", 7)))
    assert data.read_tfrecords(tmp_path).take_all() == [{"n": 5}, {"n": 7}]
    listed = data.read_tfrecords(tmp_path, types={"n": pa.list_(pa.int64())}, include_paths=True).take(1)
    assert listed == [{"n": [5], "path": str(tmp_path / "a.tfrecords")}]


def test_samples_of_an_archive_are_rows(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(3):
            image = io.BytesIO()
            PIL.Image.fromarray(picture(number)).save(image, "PNG")
            for suffix, content in ("png", image.getvalue()), ("cls", b"%d" % number):
                info = tarfile.TarInfo(f"{number}.{suffix}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    rows = data.read_webdataset(tmp_path / "a.tar", size=(12, 10), mode="RGB").take_batch(3)
    assert rows["cls"].tolist() == [0, 1, 2] and (rows["png"][2] == picture(2)).all()
    assert data.read_webdataset(tmp_path / "a.tar", decoder=None, suffixes=["cls"]).take(1)[0]["cls"] == b"0"


@pytest.mark.parametrize("read, message", [
    (lambda path: data.read_images(path, mode="HSV"), "mode is 'HSV'"),
    (lambda path: data.read_images(path, size=(0, 4)), "height"),
    (lambda path: data.read_images(path, on_error="ignore"), "on_error.*skip"),
    (lambda path: data.read_text(path, encoding="latin-1"), "encoding is 'latin-1'"),
    (lambda path: data.read_numpy(path, allow_pickle=True), "allow_pickle cannot be used"),
    (lambda path: data.read_webdataset(path, expand_json=True), "expand_json cannot be used"),
    (lambda path: data.read_images(path, partitioning=Partitioning("dir", field_names=["a"], base_dir="/else")),
     "base_dir is '/else'"),
])
def test_options_that_cannot_be_are_said(images, read, message):
    with pytest.raises(ValueError, match=message):
        read(images)


# ---- Damaged files


def test_a_damaged_image_is_named_or_left_out_and_counted(images):
    (images / "cat" / "03.png").write_bytes((images / "cat" / "03.png").read_bytes()[:200])
    with pytest.raises(cadre.CadreError, match=r"03\.png.*row 3"):
        data.read_images(images).take_all()
    rest = data.read_images(images, on_error="skip", include_paths=True)
    assert len(rest.take_all()) == 11
    assert "03.png" not in str([row["path"] for row in rest.take_all()])
    assert "1 files or rows that cannot be read were left out" in rest.stats()


def damaged_array(path):
    np.save(path / "b.npy", np.arange(3))
    (path / "a.npy").write_bytes((path / "b.npy").read_bytes()[:-4])


def damaged_record(path):
    content = bytearray(record(example("n", 5)) + record(example("n", 7)))
    content[-6] ^= 1  # of the second message
    (path / "a.tfrecords").write_bytes(content)


def damaged_archive(path):
    with tarfile.open(path / "a.tar", "w") as tar:
        for number in range(3):
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = 2000
            tar.addfile(info, io.BytesIO(b"x" * 2000))
    (path / "a.tar").write_bytes((path / "a.tar").read_bytes()[:6000])


@pytest.mark.parametrize("read, damage, message, rest", [
    (data.read_numpy, damaged_array, r"a\.npy", 3),
    (data.read_tfrecords, damaged_record, r"a\.tfrecords.*row 1", 1),
    (data.read_webdataset, damaged_archive, r"a\.tar.*ends early", 2),
])
def test_a_damaged_file_is_named_or_left_out(tmp_path, read, damage, message, rest):
    damage(tmp_path)
    with pytest.raises(cadre.CadreError, match=message):
        read(tmp_path).take_all()
    assert len(read(tmp_path, on_error="skip").take_all()) == rest


# ---- Changes of images


STEPS = [transforms.RandomResizedCrop(8), transforms.RandomHorizontalFlip(),
         transforms.Normalize([0.5, 0.5, 0.5], [0.25, 0.5, 1.0])]


def test_images_are_changed_in_the_workers_the_same_in_each_execution(images):
    rows = data.with_row_numbers(data.read_binary_files(images))
    changed = rows.map_batches(data.ImageTransforms(STEPS, column="bytes", seed=3), batch_format="pyarrow", batch_size=5)
    batch = changed.take_batch(12)["image"]
    assert batch.shape == (12, 3, 8, 8) and batch.dtype == np.float32
    again = rows.map_batches(data.ImageTransforms(STEPS, column="bytes", seed=3), batch_format="pyarrow", concurrency=2)
    assert (again.take_batch(12)["image"] == batch).all(), "whatever the batches and workers are"
    other = rows.map_batches(data.ImageTransforms(STEPS, column="bytes", seed=4), batch_format="pyarrow")
    assert (other.take_batch(12)["image"] != batch).any(axis=(1, 2, 3)).all()


def test_a_function_knows_its_epoch(images):
    rows = data.with_row_numbers(data.read_binary_files(images))
    changed = rows.map_batches(data.ImageTransforms(STEPS, column="bytes"), batch_format="pyarrow")
    passes = changed.iterator()
    first, second = (np.concatenate([batch["image"] for batch in passes.iter_batches()]) for _ in range(2))
    assert (first != second).any(axis=(1, 2, 3)).all() and passes.epoch == 1
    (share,) = changed.streaming_split(1)
    assert all((np.concatenate([batch["image"] for batch in share.iter_batches()]) == expected).all()
               for expected in (first, second)), "a share has the same epochs"

    class Notes:
        def __init__(self):
            self.epoch = data.get_epoch()

        def __call__(self, batch):
            return {"made": [self.epoch], "called": [data.get_epoch()]}

    (share,) = data.range(2).map_batches(Notes).streaming_split(1)
    assert [list(share.iter_rows()) for _ in range(3)] == [[{"made": epoch, "called": epoch}] for epoch in range(3)]
    assert data.get_epoch() == 0


def test_each_step_does_what_its_name_says(images):
    rows = data.read_images(images)

    def first(*steps):
        numbered = data.with_row_numbers(rows)
        return numbered.map_batches(data.ImageTransforms(steps), batch_format="pyarrow").take_batch(1)["image"][0]

    image = picture(0)
    assert (first(transforms.CenterCrop((4, 6))) == image[4:8, 2:8]).all()
    assert (first(transforms.RandomHorizontalFlip(p=1)) == image[:, ::-1]).all()
    assert (first(transforms.RandomVerticalFlip(p=1)) == image[::-1]).all()
    assert (first(transforms.RandomRotation((180, 180))) == image[::-1, ::-1]).all()
    resized = PIL.Image.fromarray(image).resize((5, 6), PIL.Image.BILINEAR)
    assert (first(transforms.Resize((6, 5))) == np.asarray(resized)).all()
    assert first(transforms.RandomCrop(20, padding=8, fill=9)).shape == (20, 20, 3)
    assert (first(transforms.ColorJitter(brightness=0.5)) != image).any()
    with pytest.raises(ValueError, match="step 1, RandomHorizontalFlip: p"):
        data.ImageTransforms([transforms.RandomHorizontalFlip(p=2)])


def test_rows_are_mixed_in_pairs_with_their_labels(images):
    rows = data.with_row_numbers(data.read_binary_files(images)).map_batches(
        data.ImageTransforms(STEPS, column="bytes"), batch_format="pyarrow")
    table = next(iter(rows.iter_batches(batch_size=4, batch_format="pyarrow")))
    table = table.append_column("label", pa.array([0, 1, 2, 0]))
    mixed = data.mix_up(table, "image", "label", num_classes=3, alpha=1.0, seed=1)
    labels = np.stack(mixed["label"].combine_chunks().to_numpy_ndarray())
    assert np.allclose(labels.sum(axis=1), 1) and labels.shape == (4, 3)
    part = labels[1, 1]
    before = table["image"].combine_chunks().to_numpy_ndarray()
    after = mixed["image"].combine_chunks().to_numpy_ndarray()
    assert np.allclose(after[1], part * before[1] + (1 - part) * before[0], atol=1e-5)


# ---- Relational operations


def sales(rows=500):
    random = np.random.default_rng(1)
    return pa.table({"city": pa.array([f"city {number}" for number in random.integers(0, 9, rows)]),
                     "fare": pa.array(random.normal(size=rows)), "rides": pa.array(random.integers(0, 50, rows))})


def test_aggregates_are_those_of_pandas():
    frame, rows = sales().to_pandas(), data.from_arrow(sales())
    wanted = {"mean(fare)": frame["fare"].mean(), "max(rides)": frame["rides"].max(), "count()": 500,
              "std(fare)": frame["fare"].std(), "quantile(rides)": frame["rides"].median()}
    found = rows.aggregate(Mean("fare"), Max("rides"), Count(), Std("fare"), Quantile("rides"))
    assert list(found) == list(wanted) and all(found[name] == pytest.approx(value) for name, value in wanted.items())
    groups = rows.groupby("city").aggregate(Quantile("fare", q=0.9, alias_name="most"), Sum("rides")).to_pandas()
    expected = frame.groupby("city")
    assert groups["city"].tolist() == sorted(set(frame["city"]))
    assert np.allclose(groups["most"], expected["fare"].quantile(0.9))
    assert groups["sum(rides)"].tolist() == expected["rides"].sum().tolist()


@pytest.mark.parametrize("wanted, message", [
    ([Sum("fare"), Sum("fare")], "two results are called"),
    ([Sum("fare"), Mean("rides", ignore_nulls=False)], "ignore_nulls differs"),
    ([Quantile("fare", q=2)], "q is 2"),
    ([Sum("city")], "sum\\(city\\)"),
    ([Sum("none")], '"none"'),
])
def test_aggregates_that_cannot_be_are_said(wanted, message):
    with pytest.raises(ValueError, match=message):
        data.from_arrow(sales()).groupby("city").aggregate(*wanted).take(1)
    with pytest.raises(ValueError, match=message):
        data.from_arrow(sales()).aggregate(*wanted)


@pytest.mark.parametrize("how", ["inner", "left_outer", "right_outer", "full_outer"])
def test_joins_are_those_of_pandas(how):
    left = pd.DataFrame({"id": [3, 1, 2, 2], "x": list("abcd")})
    right = pd.DataFrame({"key": [2, 3, 5], "x": list("uvw")})
    joined = data.from_pandas(left).join(data.from_pandas(right), how, on="id", right_on="key", right_suffix="_r",
                                         left_suffix="_l").to_pandas()
    expected = left.merge(right, how={"full_outer": "outer"}.get(how, how.removesuffix("_outer")), left_on="id",
                          right_on="key", suffixes=("_l", "_r"))
    pairs = sorted(map(str, zip(joined["x_l"].where(joined["x_l"].notna(), None),
                                joined["x_r"].where(joined["x_r"].notna(), None))))
    assert pairs == sorted(map(str, zip(expected["x_l"].where(expected["x_l"].notna(), None),
                                        expected["x_r"].where(expected["x_r"].notna(), None))))
    assert ("id" in joined) == (how != "right_outer"), "a right outer join has the keys of the right dataset"


def test_rows_with_and_without_a_partner_are_chosen():
    left, right = data.range(6), data.range(9).filter(expr="id > 3")
    assert [row["id"] for row in left.join(right, "left_semi").take_all()] == [4, 5]
    assert [row["id"] for row in left.join(right, "left_anti").take_all()] == [0, 1, 2, 3]
    assert [row["id"] for row in left.join(right, "right_anti").take_all()] == [6, 7, 8]
    with pytest.raises(ValueError, match="outer"):
        left.join(right, "outer")


def test_parts_keep_the_proportions_of_a_column():
    rows = data.from_items([{"id": row, "label": "rare" if row % 10 == 0 else "often"} for row in range(200)])
    for options in {}, {"shuffle": True, "seed": 3}:
        learn, test = rows.train_test_split(0.25, stratify="label", **options)
        assert (learn.count(), test.count()) == (150, 50)
        assert [row["label"] for row in test.take_all()].count("rare") == 5
        assert sorted(row["id"] for row in learn.take_all() + test.take_all()) == list(range(200))
    with pytest.raises(ValueError, match="number of rows"):
        rows.train_test_split(1.5)
    with pytest.raises(TypeError, match="test_size"):
        rows.train_test_split("a")


def test_relational_operations_are_parts_of_the_plan(tmp_path):
    calls = tmp_path / "calls"

    def noted(batch):
        with open(calls, "a") as file:
            file.write("x")
        return batch

    rows = data.range(10).map_batches(noted)
    plan = rows.sort("id").zip(rows).join(rows, "inner").random_sample(1.0)
    plan = plan.groupby("id").sum("id_1").union(plan.groupby("id").map_groups(lambda group: group))
    assert not calls.exists(), "nothing is executed before rows are asked for"
    assert plan.limit(1).take_all()[0]["id"] == 0 and calls.exists()


def test_each_group_is_one_batch_whatever_its_size():
    rows = data.range(300_000).map_batches(lambda batch: {"key": batch["id"] % 3, "id": batch["id"]})
    sizes = rows.groupby("key").map_groups(lambda group: {"key": group["key"][:1], "size": [len(group["id"])]})
    assert sizes.take_all() == [{"key": key, "size": 100_000} for key in range(3)]
    assert rows.groupby(None).map_groups(lambda group: {"size": [len(group["id"])]}).take_all() == [{"size": 300_000}]


def test_a_sample_depends_on_the_seed_and_the_row_only():
    rows = data.range(1000)
    chosen = [row["id"] for row in rows.random_sample(0.5, seed=1).take_all()]
    assert chosen == [row["id"] for row in rows.map_batches(lambda batch: batch).random_sample(0.5, seed=1).take_all()]
    assert 400 < len(chosen) < 600


def test_texts_are_written_in_several_files(tmp_path):
    import pyarrow.csv

    rows = data.from_items([{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": ""}])
    rows.write_csv(tmp_path / "csv", num_rows_per_file=2, write_options=pyarrow.csv.WriteOptions(delimiter=";"))
    assert (tmp_path / "csv" / "part_000000.csv").read_text() == '"a";"b"\n1;"x"\n2;\n'
    assert sorted(os.listdir(tmp_path / "csv")) == ["part_000000.csv", "part_000001.csv"]
    rows.write_json(tmp_path / "json", num_rows_per_file=2)
    assert len(os.listdir(tmp_path / "json")) == 2
    with pytest.raises(ValueError, match="csv"):
        rows.write_csv(tmp_path / "csv")
    with pytest.raises(ValueError, match="pandas_json_args_fn cannot be used"):
        rows.write_json(tmp_path / "else", pandas_json_args_fn=dict)
