"""cadre::data reads images, bytes, lines, arrays, TFRecords and WebDatasets as Ray Data does; pixels are those of Pillow.

DATA_READ_ROUNDS=<n> sets the number of random cases, DATA_READ_FIRST=<seed> the first seed.
"""

import io
import json
import logging
import os
import pathlib
import random
import struct
import subprocess
import tarfile
import tempfile
import unittest

import google_crc32c
import numpy
import PIL.Image
import pyarrow
import pyarrow.parquet
import ray
import ray.data
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from ray.data._internal.datasource.tfrecords_datasource import _convert_example_to_dict

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "data_read_tool"
ROUNDS = int(os.environ.get("DATA_READ_ROUNDS", "40"))
FIRST = int(os.environ.get("DATA_READ_FIRST", "0"))
MODES = ["1", "L", "LA", "P", "RGB", "RGBA"]  # of PNG files


def smooth(rng, height, width, channels):
    """Pixels like those of a photograph, and some noise."""
    steps = rng.normal(size=(height, width, channels)).cumsum(0).cumsum(1)
    return numpy.clip(steps * rng.uniform(1, 6) + rng.uniform(0, 255), 0, 255).astype(numpy.uint8)


def make_image(rng, height, width, mode):
    if mode == "P":
        image = PIL.Image.fromarray(smooth(rng, height, width, 3)).quantize(int(rng.integers(2, 200)))
        if rng.random() < 0.5:
            image.info["transparency"] = bytes(rng.integers(0, 256, 3).tolist())
        return image
    if mode == "1":
        return PIL.Image.fromarray(smooth(rng, height, width, 1)[:, :, 0]).convert("1")
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    pixels = smooth(rng, height, width, channels)
    image = PIL.Image.frombytes(mode, (width, height), pixels.tobytes())
    if mode in ("L", "RGB") and rng.random() < 0.3:
        image.info["transparency"] = pixels[0, 0, 0].item() if mode == "L" else tuple(pixels[0, 0].tolist())
    return image


def random_file(rng):
    """The bytes of a file, and the mode that it is stored in."""
    height, width = (int(rng.choice([1, 2, 3, 17, 64, 100])) for _ in range(2))
    out = io.BytesIO()
    if rng.random() < 0.5:
        mode = str(rng.choice(["L", "RGB", "RGB", "CMYK"]))
        make_image(rng, height, width, mode).save(
            out, "JPEG", quality=int(rng.integers(20, 98)), progressive=bool(rng.random() < 0.3),
            subsampling=int(rng.integers(0, 3)), restart_marker_rows=int(rng.integers(0, 2)))
    else:
        mode = str(rng.choice(MODES))
        make_image(rng, height, width, mode).save(out, "PNG")
    return out.getvalue(), mode


def as_ray_reads(content, size, mode):
    """The array that ray.data.read_images makes of a file."""
    image = PIL.Image.open(io.BytesIO(content))
    if size is not None and image.size != (size[1], size[0]):
        image = image.resize((size[1], size[0]), resample=PIL.Image.BILINEAR)
    if mode is not None and image.mode != mode:
        image = image.convert(mode)
    array = numpy.asarray(image)
    return array * numpy.uint8(255) if array.dtype == bool else array  # Cadre has no column of bits


def images_of(table):
    """The arrays of a column "image", of one shape or of any."""
    column = table["image"].combine_chunks()
    if isinstance(column.type, pyarrow.FixedShapeTensorType):
        return list(column.to_numpy_ndarray())
    storage = column.storage if isinstance(column, pyarrow.ExtensionArray) else column
    return [numpy.array(row["data"], numpy.uint8).reshape(row["shape"]) for row in storage.to_pylist()]


def make_example_class():
    """The message tf.train.Example, without TensorFlow."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tf", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, type in ("BytesList", kinds.TYPE_BYTES), ("FloatList", kinds.TYPE_FLOAT), ("Int64List", kinds.TYPE_INT64):
        file.message_type.add(name=name).field.add(name="value", number=1, type=type, label=kinds.LABEL_REPEATED)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(["bytes_list", "float_list", "int64_list"], start=1):
        feature.field.add(name=name, number=number, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_OPTIONAL, oneof_index=0,
                          type_name=f".tf.{name.split('_')[0].capitalize()}List")
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_OPTIONAL, type_name=".tf.Feature")
    features.field.add(name="feature", number=1, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_REPEATED,
                       type_name=".tf.Features.FeatureEntry")
    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, type=kinds.TYPE_MESSAGE, label=kinds.LABEL_OPTIONAL,
                      type_name=".tf.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tf.Example"))


def tf_record(content):
    def masked(data):
        crc = google_crc32c.value(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def tar_of(members, format):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


class ReadTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, logging_level="ERROR")
        cls.addClassCleanup(ray.shutdown)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def read(self, reader, path, **options):
        """The table that Cadre reads, or its error."""
        copy = self.folder / f"copy_{len(list(self.folder.iterdir()))}"
        run = subprocess.run([TOOL, reader, json.dumps([str(path)]), json.dumps(options), copy], capture_output=True,
                             text=True, check=False)
        return pyarrow.parquet.read_table(copy, partitioning=None) if run.returncode == 0 else run.stderr

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def test_pixels_are_those_of_pillow(self):
        cases = {}
        for seed in range(FIRST, FIRST + ROUNDS):
            rng = numpy.random.default_rng(seed)
            content, stored = random_file(rng)
            mode = [None, "L", "RGB", "RGBA"][rng.integers(0, 4)]
            size = None if rng.random() < 0.4 else tuple(int(rng.integers(1, 90)) for _ in range(2))
            if stored == "CMYK" and mode == "RGBA":
                mode = "RGB"
            if stored in ("P", "CMYK") and mode is None:
                mode = "RGB"
            cases.setdefault((size is not None and (size[0] % 3 + 7, size[1] % 3 + 5), mode), []).append((seed, content))
        for number, ((size, mode), files) in enumerate(cases.items()):
            size = size or None
            options = ({"size": size} if size else {}) | ({"mode": mode} if mode else {})
            for seed, content in files:
                # One folder for each: files of different modes have different shapes.
                path = self.write(f"case_{number}_{seed}/{seed}.png", content)
                if size is None or mode is None:
                    self.check(path.parent, [(seed, content)], size, mode, options)
            if size and mode:
                for seed, content in files:
                    self.write(f"all_{number}/{seed:06}.png", content)
                self.check(self.folder / f"all_{number}", sorted(files), size, mode, options)

    def assert_close(self, actual, expected, stored, size):
        difference = numpy.abs(actual.astype(int) - expected.astype(int))
        if size is None:
            self.assertEqual(difference.max(), 0)
        elif stored.mode in ("LA", "RGBA", "CMYK"):  # a division by alpha, and ink, enlarge what differs by rounding
            self.assertLessEqual(difference.mean(), 1)
        else:
            self.assertLessEqual(difference.max(), 1)

    def check(self, folder, files, size, mode, options):
        table = self.read("images", folder, **options)
        self.assertNotIsInstance(table, str, table)
        actual = images_of(table)
        self.assertEqual(len(actual), len(files))
        for (seed, content), image in zip(files, actual):
            with self.subTest(seed=seed, size=size, mode=mode):
                expected = as_ray_reads(content, size, mode)
                self.assertEqual(image.shape, expected.shape)
                self.assert_close(image, expected, PIL.Image.open(io.BytesIO(content)), size)

    def test_images_are_those_of_ray(self):
        rng = numpy.random.default_rng(1)
        for number in range(12):
            out = io.BytesIO()
            PIL.Image.fromarray(smooth(rng, 20 + number, 30, 3)).save(out, "JPEG" if number % 2 else "PNG")
            self.write(f"images/{number:02}.{'jpg' if number % 2 else 'png'}", out.getvalue())
        for options in {"size": (16, 24), "mode": "RGB", "include_paths": True}, {}:
            expected = ray.data.read_images(str(self.folder / "images"), **options).take_all()
            actual = self.read("images", self.folder / "images", **options)
            self.assertEqual(actual.column_names, list(expected[0]))
            for row, image in zip(expected, images_of(actual), strict=True):
                numpy.testing.assert_allclose(image.astype(int), row["image"].astype(int), atol=1)
            if options:
                self.assertEqual(actual["path"].to_pylist(), [row["path"] for row in expected])

    def test_ray_reads_images_of_any_shape_back(self):
        rng = numpy.random.default_rng(2)
        arrays = [smooth(rng, 5 + number, 9, 3) for number in range(4)]
        for number, array in enumerate(arrays):
            PIL.Image.fromarray(array).save(self.write(f"images/{number}.png", b""))
        copy = self.folder / "of_cadre"
        subprocess.run([TOOL, "images", json.dumps([str(self.folder / "images")]), "{}", copy], check=True)
        rows = ray.data.read_parquet(str(copy)).take_all()
        for row, array in zip(rows, arrays, strict=True):
            numpy.testing.assert_array_equal(row["image"], array)

    def test_files_that_pillow_refuses_are_refused_or_skipped(self):
        rng = numpy.random.default_rng(3)
        good = 0
        for number in range(40):
            content, _ = random_file(rng)
            if rng.random() < 0.5:
                content = content[:int(rng.integers(0, len(content)))]
            try:
                PIL.Image.open(io.BytesIO(content)).load()
                # Pillow reads a PNG file without its end, Cadre does not.
                good += not content.startswith(b"\x89PNG") or content.endswith(b"IEND\xaeB`\x82")
            except OSError:
                pass
            self.write(f"images/{number:02}.jpg", content)
        error = self.read("images", self.folder / "images", size=(4, 4), mode="RGB")
        self.assertRegex(error, r"images/\d\d.jpg, row \d+: it ")
        table = self.read("images", self.folder / "images", size=(4, 4), mode="RGB", skip=True)
        self.assertEqual(table.num_rows, good)

    def test_bytes_in_parquet_files_are_decoded(self):
        rng = numpy.random.default_rng(4)
        files = [random_file(rng)[0] for _ in range(20)]
        source = self.folder / "source.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"bytes": files}), source)
        table = self.read("decode", source, size=(9, 7), mode="RGB")
        for content, image in zip(files, images_of(table), strict=True):
            expected = as_ray_reads(content, (9, 7), "RGB")
            self.assert_close(image, expected, PIL.Image.open(io.BytesIO(content)), (9, 7))

    def test_binary_files_are_those_of_ray(self):
        rng = random.Random(5)
        for number in range(7):
            self.write(f"files/{number}.bin", rng.randbytes(rng.choice([0, 1, 1000, 100_000])))
        expected = ray.data.read_binary_files(str(self.folder / "files"), include_paths=True).take_all()
        self.assertEqual(self.read("binary_files", self.folder / "files", include_paths=True).to_pylist(), expected)

    def test_lines_are_those_of_ray(self):
        rng = random.Random(6)
        parts = ["a", "ü", "\n", "\r\n", "\r", " ", "\t", "字", "", "long " * 50]
        for number in range(9):
            text = "".join(rng.choice(parts) for _ in range(rng.choice([0, 1, 50, 20_000])))
            self.write(f"texts/{number}.txt", text.encode())
        for drop in True, False:
            expected = ray.data.read_text(str(self.folder / "texts"), drop_empty_lines=drop).take_all()
            actual = self.read("text", self.folder / "texts", drop_empty_lines=drop).to_pylist()
            self.assertEqual(len(actual), len(expected))
            self.assertEqual(actual, expected)

    def test_arrays_are_those_of_numpy(self):
        types = ["?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8", "<f2", ">f2", "<f4",
                 ">f4", "<f8", ">f8", "S3", "<U4", ">U4", "<M8[ns]", ">M8[ms]", "<m8[us]", "<M8[s]"]
        for seed in range(FIRST, FIRST + ROUNDS):
            rng = numpy.random.default_rng(seed)
            type = numpy.dtype(str(rng.choice(types)))
            shape = [int(rng.integers(0, 6))] + [int(width) for width in rng.integers(1, 5, int(rng.integers(0, 4)))]
            if type.kind in "SU":
                shape = shape[:1]
                array = numpy.array([str(number)[:3] for number in rng.integers(0, 999, shape)], type)
            elif type.kind in "Mm":
                shape = shape[:1]
                array = rng.integers(-10**9, 10**9, shape).astype(type.newbyteorder("=").str.replace("=", "<")).astype(type)
            else:
                array = (rng.normal(size=shape) * 100).astype(type)
            if rng.random() < 0.4:
                array = numpy.asfortranarray(array)
            folder = self.folder / f"case_{seed}"
            folder.mkdir()
            with self.subTest(seed=seed, type=type, shape=shape):
                numpy.save(folder / "1.npy", array)
                table = self.read("numpy", folder)
                self.assertNotIsInstance(table, str, table)
                self.assertEqual(table.num_rows, len(array))
                column = table["data"].combine_chunks()
                if isinstance(column.type, pyarrow.FixedShapeTensorType):
                    if column.type.value_type == pyarrow.bool_():
                        actual = numpy.array(column.storage.flatten()).reshape(shape)
                    else:
                        actual = column.to_numpy_ndarray()
                    numpy.testing.assert_array_equal(actual, array)
                elif type.kind in "Mm":
                    numpy.testing.assert_array_equal(column.to_numpy().astype(type), array)
                else:
                    self.assertEqual(column.to_pylist(), array.tolist())

    def test_archives_of_arrays_are_those_of_numpy(self):
        for seed in range(FIRST, FIRST + 20):
            rng = numpy.random.default_rng(seed)
            rows = int(rng.integers(0, 2000))
            arrays = {"x": rng.integers(0, 9, (rows, 3)), "y": rng.normal(size=rows), "z": numpy.asfortranarray(rng.normal(size=(rows, 2)))}
            save = numpy.savez_compressed if rng.random() < 0.5 else numpy.savez
            folder = self.folder / f"archive_{seed}"
            folder.mkdir()
            save(folder / "1.npz", **arrays)
            with self.subTest(seed=seed, rows=rows, save=save.__name__):
                table = self.read("numpy", folder, file_extensions=["npz"])
                self.assertNotIsInstance(table, str, table)
                numpy.testing.assert_array_equal(table["y"].to_numpy(), arrays["y"])
                for name in "xz":
                    column = table[name].combine_chunks()
                    numpy.testing.assert_array_equal(column.to_numpy_ndarray(), arrays[name])

    def test_deep_grey_becomes_its_upper_bits(self):
        folder = self.folder / "deep"
        folder.mkdir()
        pixels = numpy.random.default_rng(5).integers(0, 65536, (6, 5)).astype(numpy.uint16)
        PIL.Image.fromarray(pixels).save(folder / "1.png")
        self.assertIn("grey of 16 bits", self.read("images", folder))
        table = self.read("images", folder, mode="L")
        numpy.testing.assert_array_equal(images_of(table)[0], pixels >> 8)

    def test_tf_records_are_those_of_protocol_buffers_and_ray(self):
        example_class = make_example_class()
        for seed in range(FIRST, FIRST + 20):
            rng = random.Random(seed)
            kinds = {name: rng.choice(["bytes_list", "float_list", "int64_list"]) for name in "abcdef"}
            counts = {name: rng.choice([[1], [0, 1], [0, 1, 2, 5]]) for name in "abcdef"}
            values = {"bytes_list": lambda: rng.randbytes(rng.randint(0, 300)), "float_list": lambda: rng.randint(-99, 99) / 8,
                      "int64_list": lambda: rng.choice([0, 1, -1, 2**63 - 1, -2**63, rng.getrandbits(40)])}
            expected = []
            folder = self.folder / f"records_{seed}"
            folder.mkdir()
            for file in range(2):
                records = b""
                for _ in range(rng.randint(1, 30)):
                    example = example_class()
                    for name in rng.sample("abcdef", rng.randint(0, 6)):
                        count = rng.choice(counts[name])
                        getattr(example.features.feature[name], kinds[name]).value.extend(
                            values[kinds[name]]() for _ in range(count))
                    records += tf_record(example.SerializeToString())
                    row = {name: array.to_pylist()[0] for name, array in _convert_example_to_dict(example, None).items()}
                    expected.append(row)
                (folder / f"{file}.tfrecords").write_bytes(records)
            are_lists = {name for name in "abcdef" if any(isinstance(row.get(name), list) and row[name] for row in expected)}
            for row in expected:  # Ray's types differ from row to row
                for name, value in row.items():
                    if name in are_lists:
                        row[name] = value if isinstance(value, list) else [value]
                    elif value == []:
                        row[name] = None
            actual = self.read("tfrecords", folder)
            self.assertNotIsInstance(actual, str, actual)
            rows = [{name: value for name, value in row.items() if value is not None} for row in actual.to_pylist()]
            wanted = [{name: value for name, value in row.items() if value is not None} for row in expected]
            self.assertEqual(rows, wanted, seed)

    def test_web_datasets_are_those_of_ray(self):
        for seed, format in enumerate([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT] * 2):
            rng = numpy.random.default_rng(seed)
            pixels = []
            for file in range(2):
                members = []
                for number in range(int(rng.integers(1, 20))):
                    key = f"{'folder/' * (40 if format != tarfile.USTAR_FORMAT else 2)}ü{file}_{number:04}"
                    pixels.append(smooth(rng, int(rng.integers(3, 30)), 20, 3))
                    image, array = io.BytesIO(), io.BytesIO()
                    PIL.Image.fromarray(pixels[-1]).save(image, "PNG")
                    numpy.save(array, rng.normal(size=(2, int(rng.integers(1, 5)))))
                    members += [(f"{key}.png", image.getvalue()), (f"{key}.cls", str(rng.integers(-5, 1000)).encode()),
                                (f"{key}.json", json.dumps({"a": int(rng.integers(9)), "b": ["x", "y"]}).encode()),
                                (f"{key}.seg.txt", "text ü".encode()), (f"{key}.npy", array.getvalue()),
                                (f"{key}.bin", rng.bytes(int(rng.integers(0, 2000))))]
                self.write(f"tars_{seed}/{file}.tar", tar_of(members, format))
            folder = self.folder / f"tars_{seed}"
            expected = ray.data.read_webdataset(str(folder)).take_all()
            table = self.read("webdataset", folder)
            self.assertNotIsInstance(table, str, table)
            self.assertEqual(set(table.column_names), set(expected[0]))
            actual = table.to_pylist()
            self.assertEqual(len(actual), len(expected))
            for row, wanted, image in zip(actual, expected, pixels):
                for name in "__key__", "cls", "json", "seg.txt", "bin", "__url__":
                    self.assertEqual(row[name], wanted[name], name)
                numpy.testing.assert_array_equal(row["png"], image)  # Ray has registered its type of tensors
                numpy.testing.assert_array_equal(row["npy"], wanted["npy"])


if __name__ == "__main__":
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    unittest.main()
