"""cadre::data reads files as Ray Data does: it unifies schemas that differ by Ray's rules, and reads the tensors of
Ray and of pyarrow as tensors.

DATA_PYARROW_ROUNDS=<n> sets the number of random cases, DATA_PYARROW_FIRST=<seed> the first seed.
"""

import json
import logging
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet
import ray
import ray.data
from ray.data._internal.arrow_ops.transform_pyarrow import concat, unify_schemas
from ray.data._internal.tensor_extensions.arrow import (ArrowTensorType, ArrowTensorTypeV2,
                                                        ArrowVariableShapedTensorArray)

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "data_pyarrow_tool"
FIRST = int(os.environ.get("DATA_PYARROW_FIRST", 0))
ROUNDS = int(os.environ.get("DATA_PYARROW_ROUNDS", 12))
SEEDS = range(FIRST, FIRST + ROUNDS)


def small(rng):
    return rng.choice([None, 0, 1, rng.randint(0, 100)])


def text(rng):
    return rng.choice([None, "", "a", "ä", "zz"])


# Types of columns, and functions that make a value.
TYPES = [(pyarrow.null(), lambda rng: None)]
TYPES += [(type, small) for type in (pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64(),
                                     pyarrow.uint8(), pyarrow.uint16(), pyarrow.uint32(),
                                     pyarrow.float32(), pyarrow.float64())]
TYPES += [(type, text) for type in (pyarrow.string(), pyarrow.large_string())]
TYPES += [(type, small) for type in (pyarrow.date32(), pyarrow.timestamp("ms"), pyarrow.timestamp("us"))]
TYPES += [(pyarrow.bool_(), lambda rng: rng.choice([None, True, False]))]
TYPES += [(pyarrow.list_(type), lambda rng: rng.choice([None, [], [1, None], [2, 3, 4]]))
          for type in (pyarrow.int32(), pyarrow.float64())]
TYPES += [(pyarrow.struct([("x", pyarrow.int32()), ("y", pyarrow.string())]),
           lambda rng: rng.choice([None, {"x": small(rng), "y": text(rng)}])),
          (pyarrow.struct([("z", pyarrow.float64()), ("x", pyarrow.int64())]),
           lambda rng: rng.choice([None, {"x": small(rng), "z": 0.5}]))]


class RayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, *arguments):
        run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout, run.stderr

    def copy(self, source, options):
        copy = self.folder / f"copy_{len(list(self.folder.iterdir()))}"
        code, _, error = self.tool("copy", source, json.dumps(options), copy)
        return pyarrow.parquet.read_table(copy, partitioning=None) if code == 0 else error

    def write(self, rng, like):
        """Writes files whose columns differ; with `like` the types of a column can mostly be unified."""
        source = self.folder / f"source_{rng.getrandbits(32)}"
        source.mkdir()
        kinds = {name: rng.choice(TYPES) for name in "abcde"}
        tables = []
        for number in range(rng.randint(2, 4)):
            rows = rng.choice([0, 1, 7, 30])
            columns = {}
            for name in rng.sample("abcde", rng.randint(1, 5)):
                type, make = kinds[name]
                related = [one for one in TYPES if one[1] is make or one[0] == pyarrow.null()]
                type, make = rng.choice(related if like else TYPES)
                columns[name] = pyarrow.array([make(rng) for _ in range(rows)], type)
            table = pyarrow.table(columns)
            pyarrow.parquet.write_table(table, source / f"{number}.parquet", row_group_size=rng.choice([1, 5, 50]))
            tables.append(table)
        return source, tables

    def assert_same(self, actual, expected):
        self.assertEqual(actual.schema.remove_metadata(), expected.schema.remove_metadata())
        for name in expected.column_names:
            self.assertEqual(list(map(repr, actual[name].to_pylist())), list(map(repr, expected[name].to_pylist())),
                             name)

    def unified(self, tables):
        """Returns the table that Ray makes of them; None: it refuses them."""
        for name in "abcde":  # Ray ignores other types beside a struct, and then cannot read their rows
            types = [table.schema.field(name).type for table in tables if name in table.column_names]
            structs = [pyarrow.types.is_struct(type) for type in types if type != pyarrow.null()]
            if any(structs) and not all(structs):
                return None
        try:
            schema = unify_schemas([table.schema for table in tables], promote_types=True)
            whole = [table for table in tables if table.num_rows] or tables[:1]
            expected = concat(whole, promote_types=True)
        except (pyarrow.lib.ArrowTypeError, pyarrow.lib.ArrowInvalid):
            return None
        columns = [expected[name].cast(schema.field(name).type) if name in expected.column_names
                   else pyarrow.nulls(expected.num_rows, schema.field(name).type) for name in schema.names]
        return pyarrow.table(columns, schema=schema)

    def test_schemas_are_unified_as_ray_unifies_them(self):
        unified = 0
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                source, tables = self.write(rng, like=rng.random() < 0.8)
                expected = self.unified(tables)
                actual = self.copy(source, {"num_threads": 2})
                if expected is None:
                    self.assertIn("do not go together", actual)
                    continue
                self.assertNotIsInstance(actual, str, actual)
                self.assert_same(actual, expected)
                unified += 1
        self.assertGreater(unified, ROUNDS // 4)

    def test_conditions_and_columns_of_unified_files_agree(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(10**6 + seed)
                source, tables = self.write(rng, like=True)
                expected = self.unified(tables)
                if expected is None:
                    continue
                name = rng.choice(expected.column_names)
                type = expected[name].type
                ours, theirs = {"is_null": [{"column": name}]}, pyarrow.compute.field(name).is_null()
                if (pyarrow.types.is_integer(type) or pyarrow.types.is_floating(type)) and rng.random() < 0.8:
                    value = rng.choice([0, 1, 50, -1])
                    ours, theirs = {"less": [{"value": value}, {"column": name}]}, pyarrow.compute.field(name) > value
                if rng.random() < 0.3:
                    ours, theirs = {"invert": [ours]}, ~theirs
                columns = rng.sample(expected.column_names, rng.randint(1, len(expected.column_names)))
                actual = self.copy(source, {"filter": ours, "columns": columns})
                self.assertNotIsInstance(actual, str, actual)
                self.assert_same(actual, expected.filter(theirs).select(columns))

    def check_tensors(self, source, expected):
        code, out, error = self.tool("tensors", source, "{}")
        self.assertEqual(code, 0, error)
        actual = json.loads(out)
        for name, (array, type) in expected.items():
            self.assertEqual(actual[name]["shape"], list(array.shape[1:]), name)
            self.assertEqual(actual[name]["type"], type, name)
            self.assertEqual(actual[name]["numbers"], array.flatten().tolist(), name)

    def test_tensors_of_every_kind_are_tensors(self):
        rows = numpy.arange(24, dtype=numpy.float32).reshape(4, 2, 3)
        lists = pyarrow.array(rows.reshape(4, 6).tolist(), pyarrow.list_(pyarrow.float32()))
        turned = numpy.arange(24, dtype=numpy.float32).reshape(4, 3, 2).transpose(0, 2, 1)
        images = numpy.arange(24, dtype=numpy.uint8).reshape(4, 2, 3)
        of_any_shape = ArrowVariableShapedTensorArray.from_numpy([row.astype(numpy.float64) for row in rows])
        table = pyarrow.table({
            "native": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(rows),
            "images": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(images),
            "turned": pyarrow.FixedShapeTensorArray.from_numpy_ndarray(turned),
            "v1": pyarrow.ExtensionArray.from_storage(ArrowTensorType((2, 3), pyarrow.float32()), lists),
            "v2": pyarrow.ExtensionArray.from_storage(ArrowTensorTypeV2((2, 3), pyarrow.float32()),
                                                      lists.cast(pyarrow.large_list(pyarrow.float32()))),
            "any_shape": of_any_shape,
            "fixed": pyarrow.array(rows.tolist(), pyarrow.list_(pyarrow.list_(pyarrow.float32(), 3), 2)),
            "lists": pyarrow.array(rows.tolist(), pyarrow.list_(pyarrow.list_(pyarrow.float32()))),
        })
        source = self.folder / "tensors"
        source.mkdir()
        pyarrow.parquet.write_table(table.slice(0, 1), source / "1.parquet")
        pyarrow.parquet.write_table(table.slice(1), source / "2.parquet", row_group_size=2)
        expected = {name: (rows, "float") for name in ("native", "v1", "v2", "fixed", "lists")}
        expected |= {"images": (images, "uint8"), "turned": (turned, "float"),
                     "any_shape": (rows.astype(numpy.float64), "double")}
        self.check_tensors(source, expected)
        # Cadre writes Arrow's type, which pyarrow and Ray can read.
        copy = self.copy(source, {})
        for name in ("native", "v1", "v2", "turned"):
            array = copy[name].combine_chunks()
            self.assertIsInstance(array.type, pyarrow.FixedShapeTensorType, name)
            numpy.testing.assert_array_equal(array.to_numpy_ndarray(), turned if name == "turned" else rows)

    def test_files_of_ray_data_are_read_and_read_back(self):
        ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, logging_level="ERROR")
        self.addCleanup(ray.shutdown)
        images = numpy.arange(48, dtype=numpy.uint8).reshape(8, 2, 3)
        source = self.folder / "of_ray"
        ray.data.from_numpy(images).write_parquet(str(source))
        self.check_tensors(source, {"data": (images, "uint8")})
        copy = self.folder / "of_cadre"
        self.assertEqual(self.tool("copy", source, "{}", copy)[0], 0)
        batch = ray.data.read_parquet(str(copy)).take_batch(8)
        numpy.testing.assert_array_equal(batch["data"], images)


if __name__ == "__main__":
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # it reports what it cannot unify, which is expected
    unittest.main()
