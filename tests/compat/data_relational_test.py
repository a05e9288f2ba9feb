"""Datasets are sorted, grouped and joined as pyarrow does it, and zipped, split and written as Ray Data does it.

DATA_RELATIONAL_ROUNDS=<n> sets the number of random tables, DATA_RELATIONAL_FIRST=<seed> the first seed.
"""

import decimal
import json
import math
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import numpy
import pandas
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "data_relational_tool"
FIRST = int(os.environ.get("DATA_RELATIONAL_FIRST", 0))
ROUNDS = int(os.environ.get("DATA_RELATIONAL_ROUNDS", 5))

JOINS = {"inner": "inner", "left_outer": "left outer", "right_outer": "right outer", "full_outer": "full outer",
         "left_semi": "left semi", "right_semi": "right semi", "left_anti": "left anti", "right_anti": "right anti"}

# Types of keys, with a function that makes a value.
KEYS = [(pyarrow.int8(), lambda rng: rng.randint(-3, 3)), (pyarrow.int64(), lambda rng: rng.randint(0, 5) << 40),
        (pyarrow.uint64(), lambda rng: rng.choice([0, 7, 2**64 - 1])), (pyarrow.bool_(), lambda rng: rng.random() < 0.5),
        (pyarrow.float64(), lambda rng: rng.choice([math.nan, 1.5, -2.0, math.inf])),
        (pyarrow.float32(), lambda rng: rng.choice([0.5, 1.5])),
        (pyarrow.string(), lambda rng: rng.choice(["", "a", "ä", "zz", "a longer text than sixteen bytes"])),
        (pyarrow.large_string(), lambda rng: rng.choice(["x", "y"])), (pyarrow.binary(), lambda rng: bytes([rng.randint(0, 4)])),
        (pyarrow.date32(), lambda rng: rng.randint(0, 4)), (pyarrow.timestamp("us"), lambda rng: rng.randint(0, 4)),
        (pyarrow.decimal128(7, 2), lambda rng: decimal.Decimal(rng.randint(-2, 2)) / 4),
        (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), lambda rng: rng.choice(["k", "l", "m"]))]
VALUES = [(pyarrow.int32(), lambda rng: rng.randint(-1000, 1000)), (pyarrow.int64(), lambda rng: rng.randint(-2**50, 2**50)),
          (pyarrow.float64(), lambda rng: rng.choice([rng.gauss(0, 1), 1e15])), (pyarrow.float32(), lambda rng: rng.randint(0, 9) / 4),
          (pyarrow.bool_(), lambda rng: rng.random() < 0.5)]


def column(rng, kind, rows):
    type_, value = kind
    values = [None if rng.random() < 0.15 else value(rng) for _ in range(rows)]
    if pyarrow.types.is_dictionary(type_):
        return pyarrow.array(values, type_.value_type).dictionary_encode()
    return pyarrow.array(values, type_)


def plain(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}") + 0.0  # no -0
    return value


def rows_of(table):
    columns = [[plain(value) for value in table.column(name).to_pylist()] for name in table.column_names]
    return list(zip(*columns)) if columns else []


def in_any_order(rows):
    return sorted(rows, key=repr)


class RelationalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.made = 0

    def new_path(self):
        self.made += 1
        return self.folder / str(self.made)

    def write(self, table, rng):
        """Writes a table as several files with small row groups."""
        folder = self.new_path()
        folder.mkdir()
        cut = rng.randint(0, table.num_rows)
        for name, part in (("a", table.slice(0, cut)), ("b", table.slice(cut))):
            pyarrow.parquet.write_table(part, folder / f"{name}.parquet", row_group_size=rng.choice([3, 50]))
        return folder

    def tool(self, operation, options, folder):
        target = self.new_path()
        run = subprocess.run([TOOL, operation, json.dumps(options), folder, target], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return target if operation != "unique" else json.loads(run.stdout)

    def run_tool(self, operation, options, folder):
        return pyarrow.parquet.read_table(self.tool(operation, options, folder))

    def random_table(self, rng, most=200):
        rows = rng.choice([0, 1, rng.randint(2, most)])
        names = {"k": column(rng, rng.choice(KEYS), rows), "l": column(rng, rng.choice(KEYS), rows),
                 "row": pyarrow.array(range(rows), pyarrow.int64())}
        for name in ("a", "b"):
            names[name] = column(rng, rng.choice(VALUES), rows)
        return pyarrow.table(names)

    def test_sort(self):
        for seed in range(FIRST, FIRST + ROUNDS):
            rng = random.Random(seed)
            table = self.random_table(rng)
            keys = rng.choice([["k"], ["k", "l"], ["l", "a", "k"]])
            descending = [rng.random() < 0.5 for _ in keys]
            with self.subTest(seed=seed):
                ours = self.run_tool("sort", {"keys": keys, "descending": descending}, self.write(table, rng))
                decoded = pyarrow.table({name: plain_column(table.column(name)) for name in table.column_names})
                order = [(key, "descending" if down else "ascending") for key, down in zip(keys, descending)]
                theirs = decoded.take(pyarrow.compute.sort_indices(decoded, sort_keys=order))
                self.assertEqual(rows_of(ours), rows_of(theirs))

    def test_sort_beyond_the_memory_limit(self):
        rng = random.Random(FIRST)
        rows = 200000
        table = pyarrow.table({"k": [rng.randint(0, 1000) for _ in range(rows)], "row": range(rows),
                               "text": [f"text {rng.randint(0, 50)}" for _ in range(rows)]})
        options = {"keys": ["text", "k"], "descending": [True, False], "memory_limit_bytes": 1 << 20}
        folder = self.new_path()
        folder.mkdir()
        pyarrow.parquet.write_table(table, folder / "all.parquet", row_group_size=5000)
        ours = self.run_tool("sort", options, folder)
        theirs = table.take(pyarrow.compute.sort_indices(table, sort_keys=[("text", "descending"), ("k", "ascending")]))
        self.assertTrue(ours.equals(theirs))

    def test_groupby(self):
        kinds = {"sum": "sum", "min": "min", "max": "max", "mean": "mean", "std": "stddev", "count": "count"}
        for seed in range(FIRST, FIRST + ROUNDS):
            rng = random.Random(seed)
            table = self.random_table(rng)
            keys = rng.choice([["k"], ["k", "l"]])
            # pyarrow has no deviation of truth values.
            aggregates = [[kind, name] for name in ("a", "b") for kind in kinds
                          if kind != "std" or table.schema.field(name).type != pyarrow.bool_()] + [["count", ""]]
            with self.subTest(seed=seed):
                ours = self.run_tool("groupby", {"keys": keys, "aggregates": aggregates}, self.write(table, rng))
                decoded = pyarrow.table({name: plain_column(table.column(name)) for name in table.column_names})
                variance = pyarrow.compute.VarianceOptions(ddof=1)
                wanted = [(name, kinds[kind], variance if kind == "std" else None) for kind, name in aggregates[:-1]]
                theirs = decoded.group_by(keys, use_threads=False).aggregate(wanted + [([], "count_all")])
                names = keys + [f"{name}_{kinds[kind]}" for kind, name in aggregates[:-1]] + ["count_all"]
                self.assertEqual(ours.column_names, keys + [f"{kind}({name})" for kind, name in aggregates])
                # Ray's and ours: the deviation of one value is NaN; pyarrow's: null.
                # The order of pyarrow's groups is none in particular.
                self.assertEqual(in_any_order(tuple(None if value == "nan" and i >= len(keys) else value for i, value in enumerate(row))
                                              for row in rows_of(ours)), in_any_order(rows_of(theirs.select(names))))
                firsts = list(dict.fromkeys(rows_of(decoded.select(keys))))
                self.assertEqual(rows_of(ours.select(keys)), firsts)

    def test_quantiles_and_different_values_are_those_of_pandas(self):
        for seed in range(FIRST, FIRST + 20):
            rng = numpy.random.default_rng(seed)
            rows = int(rng.integers(1, 3000))
            values = numpy.where(rng.random(rows) < 0.5, rng.integers(-5, 5, rows), rng.normal(size=rows) * 10)
            frame = pandas.DataFrame({"k": rng.integers(0, 7, rows), "a": values}).convert_dtypes()
            frame.loc[rng.random(rows) < 0.1, "a"] = None
            aggregates = [["median", "a"], ["quantile 0.9", "a"], ["quantile 0.33", "a"], ["count_distinct", "a"]]
            with self.subTest(seed=seed):
                folder = self.write(pyarrow.Table.from_pandas(frame, preserve_index=False), random.Random(seed))
                ours = self.run_tool("groupby", {"keys": ["k"], "aggregates": aggregates}, folder).to_pandas().set_index("k").sort_index()
                groups = frame.groupby("k")["a"]
                for name, theirs in {"median(a)": groups.median(), "quantile(a, 0.9)": groups.quantile(0.9),
                                     "quantile(a, 0.33)": groups.quantile(0.33), "count_distinct(a)": groups.nunique()}.items():
                    numpy.testing.assert_allclose(ours[name].to_numpy(float, na_value=numpy.nan),
                                                  theirs.to_numpy(float, na_value=numpy.nan), rtol=1e-14, atol=1e-14)

    def test_join(self):
        for seed in range(FIRST, FIRST + ROUNDS):
            rng = random.Random(seed)
            left = self.random_table(rng, 60)
            right = self.random_table(rng, 60)
            for key in ("k", "l"):  # of the left table's types
                right = right.set_column(right.column_names.index(key), key,
                                         sample(rng, left.column(key), right.num_rows))
            keys = rng.choice([["k"], ["k", "l"]])
            left_folder, right_folder = self.write(left, rng), self.write(right, rng)
            decoded = [pyarrow.table({name: plain_column(table.column(name)) for name in table.column_names})
                       for table in (left, right)]
            for kind in rng.sample(sorted(JOINS), 3):
                with self.subTest(seed=seed, kind=kind):
                    options = {"other": str(right_folder), "kind": kind, "on": keys, "left_suffix": "_x", "right_suffix": "_y"}
                    ours = self.run_tool("join", options, left_folder)
                    theirs = decoded[0].join(decoded[1], keys, join_type=JOINS[kind], left_suffix="_x", right_suffix="_y")
                    self.assertEqual(set(ours.column_names), set(theirs.column_names))
                    names = sorted(ours.column_names)
                    self.assertEqual(in_any_order(rows_of(ours.select(names))), in_any_order(rows_of(theirs.select(names))))

    def test_unique_and_csv(self):
        for seed in range(FIRST, FIRST + ROUNDS):
            rng = random.Random(seed)
            table = self.random_table(rng).select(["row", "a", "k"])
            with self.subTest(seed=seed):
                folder = self.write(table, rng)
                decoded = pyarrow.table({name: plain_column(table.column(name)) for name in table.column_names})
                self.assertEqual(self.tool("unique", {"column": "a"}, folder),
                                 list(dict.fromkeys(decoded.column("a").to_pylist())))
                if pyarrow.types.is_binary(decoded.schema.field("k").type):
                    continue  # any bytes are no UTF-8
                expected = self.new_path()
                pyarrow.csv.write_csv(decoded, expected)
                ours = self.tool("csv", {}, folder) / "part_000000.csv"
                self.assertEqual(ours.read_bytes(), expected.read_bytes())


class RayTest(RelationalTest):
    """The same inputs through Ray Data itself, once for each operator, as each takes seconds."""

    test_sort = test_sort_beyond_the_memory_limit = test_groupby = test_join = test_unique_and_csv = None

    @classmethod
    def setUpClass(cls):
        import ray
        import ray.data
        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        cls.addClassCleanup(ray.shutdown)

    def test_operators(self):
        import ray.data
        from ray.data.aggregate import Count, Max, Mean, Min, Std, Sum
        rng = random.Random(FIRST)
        rows = 300
        table = pyarrow.table({"k": column(rng, KEYS[0], rows), "f": column(rng, KEYS[4], rows),
                               "row": pyarrow.array(range(rows), pyarrow.int64()), "a": column(rng, VALUES[1], rows),
                               "t": column(rng, KEYS[6], rows)})
        folder = self.write(table, rng)
        theirs = ray.data.from_arrow([table.slice(0, 100), table.slice(100)])

        def rows_of_ray(dataset):
            return [tuple(map(plain, row.values())) for row in dataset.take_all()]

        # Ray's order of equal rows is none in particular.
        sorted_ = self.run_tool("sort", {"keys": ["f", "t", "row"], "descending": [True, False, False]}, folder)
        self.assertEqual(rows_of(sorted_), rows_of_ray(theirs.sort(["f", "t", "row"], descending=[True, False, False])))

        kinds = {"count": Count, "sum": Sum, "mean": Mean, "min": Min, "max": Max, "std": Std}
        grouped = self.run_tool("groupby", {"keys": ["t", "k"], "aggregates": [["count", ""]] + [[kind, "a"] for kind in kinds if kind != "count"]}, folder)
        of_ray = theirs.groupby(["t", "k"]).aggregate(Count(), *(kinds[kind]("a") for kind in kinds if kind != "count"))
        self.assertEqual(grouped.column_names, of_ray.columns())
        none_for_nan = [tuple(None if value == "nan" else value for value in row) for row in rows_of_ray(of_ray)]
        self.assertEqual(in_any_order([tuple(None if value == "nan" else value for value in row) for row in rows_of(grouped)]),
                         in_any_order(none_for_nan))

        zipped = self.run_tool("zip", {"other": str(folder)}, folder)
        of_ray = theirs.zip(theirs)
        self.assertEqual(zipped.column_names, of_ray.columns())
        self.assertEqual(rows_of(zipped), rows_of_ray(of_ray))
        self.assertEqual(self.tool("unique", {"column": "k"}, folder), theirs.unique("k"))
        for part, name in zip(theirs.train_test_split(0.3), ("train", "test")):
            self.assertEqual(rows_of(self.run_tool(name, {"test_size": 0.3}, folder)), rows_of_ray(part))
        written = self.new_path()
        theirs.write_json(str(written))
        lines = [json.loads(line) for file in sorted(written.iterdir()) for line in file.read_text().splitlines()]
        ours = (self.tool("json", {}, folder) / "part_000000.json").read_text().splitlines()
        finite = [{**json.loads(line)} for line in ours]
        self.assertEqual(sorted(finite, key=lambda row: row["row"]), sorted(lines, key=lambda row: row["row"]))


def plain_column(values):
    return values.cast(values.type.value_type) if pyarrow.types.is_dictionary(values.type) else values


def sample(rng, values, rows):
    """Returns some values of a column and some nulls, as a column of its type."""
    places = [None if rng.random() < 0.1 or len(values) == 0 else rng.randrange(len(values)) for _ in range(rows)]
    if len(values) == 0:
        return pyarrow.array([None] * rows, plain_column(values).type).cast(values.type)
    return values.take(pyarrow.array(places, pyarrow.int64()))


if __name__ == "__main__":
    unittest.main()
