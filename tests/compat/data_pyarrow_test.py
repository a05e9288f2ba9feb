"""cadre::data and pyarrow read the same rows, and aggregate them alike: random tables with nulls, NaN and empty files."""

import json
import math
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import pyarrow
import pyarrow.compute
import pyarrow.parquet

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "data_pyarrow_tool"
ROUNDS = 25


def tool(*arguments):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout


def random_number(rng):
    kind = rng.random()
    if kind < 0.1:
        return None
    if kind < 0.13:
        return math.nan
    return rng.choice([rng.gauss(0, 1), rng.gauss(1e6, 1e-3), rng.uniform(-1e12, 1e12)])


def some(rng, make, nulls=0.1):
    return None if rng.random() < nulls else make()


def random_table(rng, rows):
    return pyarrow.table({
        "double": pyarrow.array([random_number(rng) for _ in range(rows)], pyarrow.float64()),
        "float": pyarrow.array([some(rng, lambda: rng.gauss(0, 10)) for _ in range(rows)], pyarrow.float32()),
        "no_nan": pyarrow.array([some(rng, lambda: rng.gauss(5, 2)) for _ in range(rows)], pyarrow.float64()),
        "int": pyarrow.array([some(rng, lambda: rng.randint(-2**40, 2**40)) for _ in range(rows)], pyarrow.int64()),
        "small": pyarrow.array([some(rng, lambda: rng.randint(-128, 127)) for _ in range(rows)], pyarrow.int8()),
        "unsigned": pyarrow.array([some(rng, lambda: rng.randint(0, 2**32 - 1)) for _ in range(rows)], pyarrow.uint32()),
        "bool": pyarrow.array([some(rng, lambda: rng.random() < 0.3) for _ in range(rows)], pyarrow.bool_()),
        "text": pyarrow.array([some(rng, lambda: rng.choice(["", "a", "ä", "zz" * rng.randint(0, 9)]))
                               for _ in range(rows)], pyarrow.string()),
        "nothing": pyarrow.array([None] * rows, pyarrow.float64()),
    })


class PyarrowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, rng):
        """Some files, of which any may be empty, with row groups of all sizes; what is in them."""
        source = self.folder / f"source_{rng.getrandbits(32)}"
        source.mkdir()
        tables = []
        for number in range(rng.randint(1, 5)):
            table = random_table(rng, rng.choice([0, 1, rng.randint(2, 50), rng.randint(50, 2000)]))
            pyarrow.parquet.write_table(table, source / f"{number}.parquet", row_group_size=rng.choice([1, 7, 64, 5000]),
                                        compression=rng.choice(["snappy", "zstd", "none"]),
                                        use_dictionary=rng.random() < 0.5)
            tables.append(table)
        return source, pyarrow.concat_tables(tables)

    def assert_like(self, expected, actual, name):
        if expected is None or isinstance(expected, (str, bool)):
            self.assertEqual(expected, actual, name)
        elif isinstance(expected, int):
            self.assertEqual(expected, actual, name)
        elif math.isnan(expected):
            self.assertTrue(math.isnan(actual), f"{name}: {actual}")
        else:
            self.assertTrue(math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9), f"{name}: {expected} {actual}")

    def check_aggregates(self, table, actual):
        self.assertEqual(actual["rows"], table.num_rows)
        for name in table.column_names:
            column = table[name]
            values = [value for value in column.to_pylist() if value is not None]
            self.assertEqual(actual[f"count({name})"], len(values), name)
            extremes = pyarrow.compute.min_max(column).as_py()
            if values and not all(isinstance(value, float) and math.isnan(value) for value in values):
                self.assert_like(extremes["min"], actual[f"min({name})"], f"min {name}")
                self.assert_like(extremes["max"], actual[f"max({name})"], f"max {name}")
            if name == "text":
                continue
            self.assert_like(pyarrow.compute.sum(column).as_py(), actual[f"sum({name})"], f"sum {name}")
            self.assert_like(pyarrow.compute.mean(column).as_py(), actual[f"mean({name})"], f"mean {name}")
            if name != "bool":
                std = pyarrow.compute.stddev(column, ddof=1).as_py()
                if len(values) == 1:
                    std = math.nan  # of one value there is none: pyarrow says null
                self.assert_like(std, actual[f"std({name})"], f"std {name}")

    def test_aggregates_agree(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                source, table = self.write(random.Random(seed))
                limit = {"memory_limit_bytes": 1 << 20} if seed % 2 else {}
                self.check_aggregates(table, json.loads(tool("aggregate", source, json.dumps(limit))))

    def test_nan_is_left_out_on_request_and_nothing_else(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                source, table = self.write(random.Random(1000 + seed))
                actual = json.loads(tool("aggregate", source, '{"ignore_nan": true, "columns": ["double"]}'))
                values = [value for value in table["double"].to_pylist() if value is not None and not math.isnan(value)]
                self.assertEqual(actual["count(double)"], len(values))
                expected = math.fsum(values) if values else None
                self.assert_like(expected, actual["sum(double)"], "sum")
                self.assert_like(expected / len(values) if values else None, actual["mean(double)"], "mean")

    def test_rows_come_back_in_order(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                source, table = self.write(random.Random(2000 + seed))
                copy = self.folder / f"copy_{seed}"
                tool("copy", source, "{}", copy)
                self.assertTrue(pyarrow.parquet.read_table(copy).equals(table, check_metadata=False)
                                or self.same(pyarrow.parquet.read_table(copy), table))

    def same(self, one, other):
        """NaN equals NaN."""
        as_text = lambda table: [[repr(value) for value in column.to_pylist()] for column in table.columns]
        return one.schema.equals(other.schema) and as_text(one) == as_text(other)

    def test_filters_and_columns_agree(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                rng = random.Random(3000 + seed)
                source, table = self.write(rng)
                least = rng.choice([-1e13, -1.0, 0.0, 1e6, 1e13])
                columns = rng.sample(table.column_names, rng.randint(1, 4))
                copy = self.folder / f"filtered_{seed}"
                options = {"columns": columns, "filter": {"column": "double", "greater": least}}
                tool("copy", source, json.dumps(options), copy)
                kept = table.filter(pyarrow.compute.greater(table["double"], least)).select(columns)
                self.assertTrue(self.same(pyarrow.parquet.read_table(copy), kept))

    def test_a_shuffle_has_the_same_rows(self):
        source, table = self.write(random.Random(5))
        copies = []
        for limit in (1 << 20, 1 << 28):
            copy = self.folder / f"shuffled_{limit}"
            tool("copy", source, json.dumps({"shuffle": 3, "memory_limit_bytes": limit}), copy)
            copies.append(pyarrow.parquet.read_table(copy))
        self.assertTrue(self.same(*copies))
        rows = lambda of: sorted(map(repr, of.to_pylist()))
        self.assertEqual(rows(copies[0]), rows(table))


if __name__ == "__main__":
    unittest.main()
