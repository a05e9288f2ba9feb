"""cadre::data and pyarrow read the same rows and aggregate them alike: random tables of all types with nulls, NaN,
empty files and row groups of all sizes.

DATA_PYARROW_ROUNDS=<n> sets the number of random tables, DATA_PYARROW_FIRST=<seed> the first seed.
"""

import datetime
import decimal
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
import pyarrow.dataset
import pyarrow.parquet

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "data_pyarrow_tool"
FIRST = int(os.environ.get("DATA_PYARROW_FIRST", 0))
ROUNDS = int(os.environ.get("DATA_PYARROW_ROUNDS", 10))
SEEDS = range(FIRST, FIRST + ROUNDS)


def tool(*arguments):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{run.returncode}: {run.stderr} {arguments}")
    return run.stdout


def random_double(rng):
    if rng.random() < 0.03:
        return math.nan
    return rng.choice([rng.gauss(0, 1), rng.gauss(1e6, 1e-3), rng.uniform(-1e12, 1e12)])


def random_integer(bits, signed):
    low, high = (-2**(bits - 1), 2**(bits - 1) - 1) if signed else (0, 2**bits - 1)
    low, high = max(low, -2**40), min(high, 2**40)  # sums fit 64 bits
    return lambda rng: rng.choice([low, high, rng.randint(low, high), rng.randint(max(low, -9), 9)])


def random_text(rng):
    return rng.choice(["", "a", "ä", "zz" * rng.randint(0, 9), str(rng.randint(0, 50))])


def random_time(rng):
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(milliseconds=rng.randint(-10**11, 10**11))


# Name: type, and a function that makes a value. Every table has the columns "double" and "int".
COLUMNS = {
    "double": (pyarrow.float64(), random_double),
    "int": (pyarrow.int64(), random_integer(64, True)),
    "float": (pyarrow.float32(), lambda rng: rng.choice([rng.gauss(0, 10), math.nan, 0.0, -0.0, 1e30])),
    "half": (pyarrow.float16(), lambda rng: rng.randint(-100, 100) / 4),
    "no_nan": (pyarrow.float64(), lambda rng: rng.gauss(5, 2)),
    "int8": (pyarrow.int8(), random_integer(8, True)),
    "int16": (pyarrow.int16(), random_integer(16, True)),
    "int32": (pyarrow.int32(), random_integer(32, True)),
    "uint8": (pyarrow.uint8(), random_integer(8, False)),
    "uint16": (pyarrow.uint16(), random_integer(16, False)),
    "uint32": (pyarrow.uint32(), random_integer(32, False)),
    "uint64": (pyarrow.uint64(), random_integer(64, False)),
    "huge": (pyarrow.uint64(), lambda rng: rng.randint(2**64 - 2**20, 2**64 - 1)),
    "bool": (pyarrow.bool_(), lambda rng: rng.random() < 0.3),
    "text": (pyarrow.string(), random_text),
    "large_text": (pyarrow.large_string(), random_text),
    "kind": (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), lambda rng: rng.choice(["a", "b", "c"])),
    "bytes": (pyarrow.binary(), lambda rng: rng.randbytes(rng.randint(0, 5))),
    "fixed_bytes": (pyarrow.binary(3), lambda rng: rng.randbytes(3)),
    "day": (pyarrow.date32(), lambda rng: random_time(rng).date()),
    "time": (pyarrow.time64("us"), lambda rng: random_time(rng).time()),
    "milliseconds": (pyarrow.timestamp("ms"), random_time),
    "microseconds": (pyarrow.timestamp("us"), random_time),
    "nanoseconds": (pyarrow.timestamp("ns"), random_time),
    "zoned": (pyarrow.timestamp("us", "UTC"), lambda rng: random_time(rng).replace(tzinfo=datetime.timezone.utc)),
    "price": (pyarrow.decimal128(12, 2), lambda rng: decimal.Decimal(rng.randint(-10**9, 10**9)).scaleb(-2)),
    "list": (pyarrow.list_(pyarrow.int64()), lambda rng: [rng.choice([None, 1, -5]) for _ in range(rng.randint(0, 4))]),
    "texts": (pyarrow.list_(pyarrow.string()), lambda rng: [random_text(rng) for _ in range(rng.randint(0, 3))]),
    "vector": (pyarrow.list_(pyarrow.float32(), 3), lambda rng: [float(rng.randint(-9, 9)) for _ in range(3)]),
    "point": (pyarrow.struct([("x", pyarrow.int32()), ("name", pyarrow.string())]),
              lambda rng: {"x": rng.choice([None, rng.randint(0, 9)]), "name": random_text(rng)}),
    "points": (pyarrow.list_(pyarrow.struct([("x", pyarrow.list_(pyarrow.int8()))])),
               lambda rng: [{"x": rng.choice([None, [], [1, 2]])} for _ in range(rng.randint(0, 2))]),
    "nothing": (pyarrow.float64(), lambda rng: None),
}
ORDERED = {name for name, (type, _) in COLUMNS.items() if not pyarrow.types.is_nested(type)} - {"bytes", "fixed_bytes"}
NUMBERS = {name for name in ORDERED if pyarrow.types.is_integer(COLUMNS[name][0]) or
           pyarrow.types.is_floating(COLUMNS[name][0]) or name in ("bool", "price")}


def random_table(rng, names, rows):
    def values(name):
        make = COLUMNS[name][1]
        nulls = rng.choice([0, 0.1, 0.1, 0.9])
        return [None if rng.random() < nulls else make(rng) for _ in range(rows)]
    schema = pyarrow.schema([(name, COLUMNS[name][0]) for name in names])
    return pyarrow.table({name: pyarrow.array(values(name), COLUMNS[name][0]) for name in names}, schema)


COMPARISONS = {"equal": "__eq__", "not_equal": "__ne__", "less": "__lt__", "less_equal": "__le__", "greater": "__gt__",
               "greater_equal": "__ge__"}


def random_constant(rng, name):
    """Returns a constant for Cadre, and the same for pyarrow."""
    type, make = COLUMNS[name]
    value = make(rng)
    if isinstance(value, float) and math.isnan(value):
        value = 0.5
    if pyarrow.types.is_temporal(type):
        text = pyarrow.scalar(value, type).cast(pyarrow.string()).as_py()
        return text, pyarrow.scalar(value, type)
    if pyarrow.types.is_decimal(type):
        return str(value), pyarrow.scalar(value, type)
    if name == "huge":
        return 5, pyarrow.scalar(5, pyarrow.uint64())
    if name == "uint64":
        return value, pyarrow.scalar(value, pyarrow.uint64())
    return value, value


def random_condition(rng, names, depth=0):
    """Returns a condition as Cadre stores it, and the same as pyarrow's expression."""
    kind = rng.random()
    if depth < 3 and kind < 0.4:
        one, other = (random_condition(rng, names, depth + 1) for _ in range(2))
        if rng.random() < 0.5:
            return {"and_kleene": [one[0], other[0]]}, one[1] & other[1]
        return {"or_kleene": [one[0], other[0]]}, one[1] | other[1]
    if depth < 3 and kind < 0.5:
        one = random_condition(rng, names, depth + 1)
        return {"invert": [one[0]]}, ~one[1]
    if kind < 0.6:
        name = rng.choice(names)
        return {"is_null": [{"column": name}]}, pyarrow.compute.field(name).is_null()
    if kind < 0.65:
        return {"is_nan": [{"column": "double"}]}, pyarrow.compute.is_nan(pyarrow.compute.field("double"))
    name = rng.choice([name for name in names if name in ORDERED and name not in ("nothing", "half")])
    comparison = rng.choice(list(COMPARISONS))
    ours, theirs = random_constant(rng, name)
    return ({comparison: [{"column": name}, {"value": ours}]},
            getattr(pyarrow.compute.field(name), COMPARISONS[comparison])(theirs))


class PyarrowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, rng):
        """Writes files, any of which may be empty, with row groups of all sizes; returns the folder and all rows."""
        source = self.folder / f"source_{rng.getrandbits(32)}"
        source.mkdir()
        names = ["double", "int", *rng.sample(sorted(set(COLUMNS) - {"double", "int"}), rng.randint(1, 12))]
        tables = []
        all_are_empty = rng.random() < 0.1
        for number in range(rng.randint(1, 5)):
            rows = 0 if all_are_empty else rng.choice([0, 1, rng.randint(2, 50), rng.randint(50, 1000)])
            table = random_table(rng, names, rows)
            pyarrow.parquet.write_table(table, source / f"{number}.parquet",
                                        row_group_size=rng.choice([1, 7, 64, 5000]),
                                        compression=rng.choice(["snappy", "zstd", "none", "gzip"]),
                                        use_dictionary=rng.random() < 0.5, write_statistics=rng.random() < 0.8,
                                        data_page_version=rng.choice(["1.0", "2.0"]))
            tables.append(table)
        return source, pyarrow.concat_tables(tables)

    def limits(self, rng):
        return {"memory_limit_bytes": rng.choice([1 << 20, 1 << 30]), "num_threads": rng.randint(1, 4)}

    def assert_like(self, expected, actual, name):
        if isinstance(expected, (decimal.Decimal, int)) and isinstance(actual, float):
            expected = float(expected)
        if isinstance(expected, float) and math.isnan(expected):
            self.assertTrue(isinstance(actual, float) and math.isnan(actual), f"{name}: {actual}")
        elif isinstance(expected, float):
            self.assertTrue(math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9), f"{name}: {expected} {actual}")
        else:
            self.assertEqual(expected, actual, name)

    def extreme(self, column, which):
        """Returns pyarrow's minimum or maximum in the form in which Cadre writes it."""
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(pyarrow.string())
        if pyarrow.types.is_float16(column.type):
            column = column.cast(pyarrow.float32())
        scalar = pyarrow.compute.min_max(column)[which]
        is_text = pyarrow.types.is_temporal(column.type) or pyarrow.types.is_decimal(column.type)
        return scalar.cast(pyarrow.string()).as_py() if is_text else scalar.as_py()

    def check_aggregates(self, table, actual):
        self.assertEqual(actual["rows"], table.num_rows)
        for name in table.column_names:
            column = table[name]
            values = [value for value in column.to_pylist() if value is not None]
            self.assertEqual(actual[f"count({name})"], len(values), name)
            if name in ORDERED and values and not all(isinstance(value, float) and math.isnan(value) for value in values):
                self.assert_like(self.extreme(column, "min"), actual[f"min({name})"], f"min {name}")
                self.assert_like(self.extreme(column, "max"), actual[f"max({name})"], f"max {name}")
            if name not in NUMBERS or name == "huge":
                continue
            if name == "half":
                column = column.cast(pyarrow.float32())
            self.assert_like(pyarrow.compute.sum(column).as_py(), actual[f"sum({name})"], f"sum {name}")
            if name in ("bool", "price"):
                column = column.cast(pyarrow.float64() if name == "price" else pyarrow.int8())
            self.assert_like(pyarrow.compute.mean(column).as_py(), actual[f"mean({name})"], f"mean {name}")
            std = pyarrow.compute.stddev(column, ddof=1).as_py()
            if len(values) == 1:
                std = math.nan  # undefined for one value: pyarrow returns null
            self.assert_like(std, actual[f"std({name})"], f"std {name}")

    def test_aggregates_agree(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                source, table = self.write(rng)
                self.check_aggregates(table, json.loads(tool("aggregate", source, json.dumps(self.limits(rng)))))

    def test_aggregates_of_what_a_filter_leaves_agree(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(10**6 + seed)
                source, table = self.write(rng)
                ours, theirs = random_condition(rng, table.column_names)
                options = {"filter": ours, **self.limits(rng)}
                self.check_aggregates(table.filter(theirs), json.loads(tool("aggregate", source, json.dumps(options))))

    def test_nulls_make_the_result_null_on_request(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                source, table = self.write(random.Random(2 * 10**6 + seed))
                actual = json.loads(tool("aggregate", source, '{"ignore_nulls": false}'))
                for name in NUMBERS - {"huge"}:
                    if name in table.column_names and table[name].null_count:
                        for what in ("sum", "mean", "std", "min", "max"):
                            self.assertIsNone(actual[f"{what}({name})"], name)

    def test_nan_is_left_out_on_request_and_nothing_else(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                source, table = self.write(random.Random(3 * 10**6 + seed))
                actual = json.loads(tool("aggregate", source, '{"ignore_nan": true, "columns": ["double"]}'))
                values = [value for value in table["double"].to_pylist() if value is not None and not math.isnan(value)]
                self.assertEqual(actual["count(double)"], len(values))
                expected = math.fsum(values) if values else None
                self.assert_like(expected, actual["sum(double)"], "sum")
                self.assert_like(expected / len(values) if values else None, actual["mean(double)"], "mean")

    def assert_same(self, actual, expected):
        """Compares tables; NaN equals NaN."""
        self.assertEqual(actual.schema.remove_metadata(), expected.schema.remove_metadata())
        for name in expected.column_names:
            self.assertEqual(list(map(repr, actual[name].to_pylist())), list(map(repr, expected[name].to_pylist())), name)

    def copy(self, source, options):
        copy = self.folder / f"copy_{len(list(self.folder.iterdir()))}"
        tool("copy", source, json.dumps(options), copy)
        return pyarrow.parquet.read_table(copy, partitioning=None)

    def test_rows_come_back_in_order(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(4 * 10**6 + seed)
                source, table = self.write(rng)
                skip, limit = rng.choice([(0, 10**9), (rng.randint(0, 500), rng.randint(0, 1500))])
                options = {"skip": skip, "limit": limit, "row_group": rng.choice([1, 101]), **self.limits(rng)}
                self.assert_same(self.copy(source, options), table.slice(skip, limit))

    def test_filters_and_columns_agree(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(5 * 10**6 + seed)
                source, table = self.write(rng)
                columns = rng.sample(table.column_names, rng.randint(1, 3))
                ours, theirs = random_condition(rng, table.column_names)
                options = {"columns": columns, "filter": ours, **self.limits(rng)}
                self.assert_same(self.copy(source, options), table.filter(theirs).select(columns))

    def test_filters_behind_functions_agree(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(6 * 10**6 + seed)
                source, table = self.write(rng)
                ours, theirs = random_condition(rng, table.column_names)
                if not table.num_rows:
                    continue  # the function is never called, so its columns are unknown
                if (kept := table.filter(theirs)).num_rows:
                    self.assert_same(self.copy(source, {"filter_behind": ours, **self.limits(rng)}), kept)

    def test_rows_come_without_columns(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(8 * 10**6 + seed)
                source, table = self.write(rng)
                if rng.random() < 0.5:
                    pyarrow.parquet.write_table(pyarrow.table({}), source / "without_columns.parquet")
                options = self.limits(rng)
                if rng.random() < 0.5:
                    options["filter"], theirs = random_condition(rng, table.column_names)
                    table = table.filter(theirs)
                rows = json.loads(tool("rows", source, json.dumps(options)))
                self.assertEqual(rows, {name: table.num_rows for name in rows})

    def test_folders_are_columns(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                rng = random.Random(7 * 10**6 + seed)
                _, table = self.write(rng)
                if not table.num_rows:
                    continue
                names = rng.choice([["year"], ["kind of", "year"], ["year", "kind of"]])
                years = rng.choice([[2023, 2024], [1, None], [-5, 2**40]])
                made = {"year": pyarrow.array(rng.choices(years, k=table.num_rows), pyarrow.int64()),
                        "kind of": rng.choices(["a/b", "ü=1", "c d", "7"], k=table.num_rows)}
                for name in names:
                    table = table.append_column(name, [made[name]])
                source = self.folder / f"hive_{seed}"
                pyarrow.parquet.write_to_dataset(table, source, partition_cols=names)
                if not (table["year"].null_count < table.num_rows or "year" not in names):
                    continue  # pyarrow then finds no type
                theirs = pyarrow.dataset.dataset(source, partitioning="hive")
                self.assert_same(self.copy(source, self.limits(rng)), theirs.to_table())
                value = rng.choice(theirs.to_table()[names[0]].to_pylist())
                ours, kept = {"is_null": [{"column": names[0]}]}, pyarrow.compute.field(names[0]).is_null()
                if value is not None:
                    ours = {"equal": [{"column": names[0]}, {"value": value}]}
                    kept = pyarrow.compute.field(names[0]) == value
                self.assert_same(self.copy(source, {"filter": ours}), theirs.to_table(filter=kept))

    def test_a_shuffle_has_the_same_rows(self):
        source, table = self.write(random.Random(5))
        copies = [self.copy(source, {"shuffle": 3, "memory_limit_bytes": limit}) for limit in (1 << 20, 1 << 28)]
        self.assert_same(*copies)
        rows = lambda of: sorted(map(repr, of.to_pylist()))
        self.assertEqual(rows(copies[0]), rows(table))


if __name__ == "__main__":
    unittest.main()
