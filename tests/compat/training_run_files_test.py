"""Other programs read a training run's files: pandas, Python's json and sqlite3, TensorBoard."""

import io
import json
import math
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

import pandas
from tensorboard.backend.event_processing import event_accumulator

SKIPPED = {"config", "timestamp", "time_total_s", "training_iteration"}


class TrainingRunFilesTest(unittest.TestCase):
    """A finished run of twelve steps and two attempts, made by training_run_tool."""

    @classmethod
    def setUpClass(cls):
        cls.storage = tempfile.TemporaryDirectory()
        tool = os.path.join(os.environ["CADRE_BIN"], "training_run_tool")
        subprocess.run([tool, cls.storage.name], check=True, timeout=120)
        cls.run_directory = pathlib.Path(cls.storage.name) / "run"
        cls.lines = (cls.run_directory / "result.json").read_text().splitlines()
        cls.rows = [json.loads(line) for line in cls.lines]

    @classmethod
    def tearDownClass(cls):
        cls.storage.cleanup()

    def test_every_result_of_the_store_is_there_once_and_in_order(self):
        store = sqlite3.connect(self.run_directory / "experiment.db")
        stored = store.execute("SELECT step, metrics FROM results WHERE repeated = 0 ORDER BY sequence").fetchall()
        (repeated,) = store.execute("SELECT COUNT(*) FROM results WHERE repeated = 1").fetchone()
        self.assertEqual(repeated, 2)
        self.assertEqual([step for step, _ in stored], list(range(1, 13)))
        self.assertEqual([row["training_iteration"] for row in self.rows], list(range(1, 13)))
        for (_, metrics), row in zip(stored, self.rows):
            reported = json.loads(metrics)
            self.assertEqual(json.dumps({key: row[key] for key in reported}), json.dumps(reported))

    def test_ranks_run_and_print_in_directories_of_their_own(self):
        for rank in range(2):
            self.assertEqual((self.run_directory / f"rank_{rank}" / "where").read_text(), "here")
        cadre = os.path.join(os.environ["CADRE_BIN"], "cadre")
        logs = lambda *arguments: subprocess.run([cadre, "logs", self.run_directory, *arguments], check=True, text=True,
                                                 capture_output=True).stdout
        self.assertEqual(logs(), "".join(f"(rank {rank}) rank {rank} begins after {step}\n" for rank in range(2)
                                         for step in (0, 6)))
        self.assertEqual(logs("1", "-n", "1"), "rank 1 begins after 6\n")
        self.assertEqual(logs("rank_0"), "rank 0 begins after 0\nrank 0 begins after 6\n")

    def test_csv_and_json_have_the_same_rows(self):
        table = pandas.read_csv(self.run_directory / "progress.csv", float_precision="round_trip")
        self.assertEqual(len(table), len(self.rows))
        self.assertNotIn("config", table.columns)
        self.assertTrue((table["big"] == 1 << 62).all())
        for (_, shown), row in zip(table.iterrows(), self.rows):
            self.assertEqual(shown["loss"], row["loss"])
            self.assertEqual(shown["eval/accuracy"], row["eval"]["accuracy"])
            self.assertEqual(shown["eval/words"], 'a "b", c')
            self.assertEqual(shown["time_this_iter_s"], row["time_this_iter_s"])
            late = row.get("late", math.nan)
            self.assertTrue(shown["late"] == late or (math.isnan(shown["late"]) and math.isnan(late)))

    def test_lines_look_as_json_dumps_writes_them(self):
        for line in self.lines:
            self.assertEqual(json.dumps(json.loads(line)), line)
        params = (self.run_directory / "params.json").read_text()
        self.assertEqual(json.dumps(json.loads(params), indent=2, sort_keys=True), params)
        self.assertEqual(json.loads(params), self.rows[0]["config"])

    def test_times_add_up_and_begin_anew_with_the_second_group(self):
        total = 0
        for row in self.rows:
            self.assertGreaterEqual(row["time_this_iter_s"], 0)
            total += row["time_this_iter_s"]
            self.assertAlmostEqual(row["time_total_s"], total)
        # Only the second group did step 9 and later ones; it began at the checkpoint of step 6.
        self.assertEqual([row["iterations_since_restore"] for row in self.rows], [*range(1, 9), *range(3, 7)])

    def test_checkpoints_are_named_in_their_rows(self):
        named = [row["checkpoint_dir_name"] for row in self.rows]
        self.assertEqual([name is not None for name in named], [step % 3 == 0 for step in range(1, 13)])
        kept = sorted(path.name for path in self.run_directory.glob("checkpoint_*"))
        self.assertEqual(len(kept), 2)
        self.assertLessEqual(set(kept), set(named))

    def test_the_failure_is_told(self):
        self.assertEqual((self.run_directory / "error.txt").read_text(),
                         "Attempt 1: rank 1: std::runtime_error: out of luck\n")

    def test_tensorboard_shows_the_numbers_of_result_json(self):
        (file,) = self.run_directory.glob("events.out.tfevents.*")
        self.assertRegex(file.name, r"^events\.out\.tfevents\.\d{10}\.[\w.-]+$")
        everything = {event_accumulator.SCALARS: 0, event_accumulator.HISTOGRAMS: 0}
        events = event_accumulator.EventAccumulator(str(self.run_directory), everything)
        events.Reload()
        expected = {}
        for row in self.rows:
            numbers = {**row, "eval/accuracy": row["eval"]["accuracy"]}
            for key, value in numbers.items():
                if key not in SKIPPED and isinstance(value, (int, float)) and not math.isnan(value):
                    expected.setdefault(f"ray/tune/{key}", []).append((row["training_iteration"], value))
        self.assertEqual(set(events.Tags()["scalars"]), set(expected))
        self.assertEqual(events.Tags()["histograms"], ["ray/tune/weights"])
        for tag, points in expected.items():
            shown = events.Scalars(tag)
            self.assertEqual([event.step for event in shown], [step for step, _ in points])
            for event, (_, value) in zip(shown, points):
                self.assertAlmostEqual(event.value, value, delta=abs(value) * 1e-7)


class ValidatedRunTest(unittest.TestCase):
    """A finished run of which every third step was validated: the score is ten times the step, and the loss minus it."""

    @classmethod
    def setUpClass(cls):
        cls.storage = tempfile.TemporaryDirectory()
        tool = os.path.join(os.environ["CADRE_BIN"], "training_run_tool")
        subprocess.run([tool, cls.storage.name, tool], check=True, timeout=120)
        cls.run_directory = pathlib.Path(cls.storage.name) / "run"
        cls.rows = [json.loads(line) for line in (cls.run_directory / "result.json").read_text().splitlines()]

    @classmethod
    def tearDownClass(cls):
        cls.storage.cleanup()

    def cadre(self, *arguments, code=0):
        """Returns what the command prints; with another exit code its error."""
        done = subprocess.run([os.path.join(os.environ["CADRE_BIN"], "cadre"), *map(str, arguments)], text=True,
                              capture_output=True, cwd=self.storage.name)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def test_what_was_found_is_in_the_rows_of_the_reports(self):
        for step, row in enumerate(self.rows, 1):
            self.assertEqual(row["training_iteration"], step)
            self.assertAlmostEqual(row["loss"], 0.9**step)
            self.assertEqual(row.get("validation"), {"score": 10 * step, "loss": -step} if step % 3 == 0 else None)
        table = pandas.read_csv(self.run_directory / "progress.csv")
        self.assertEqual(list(table["validation/score"].dropna().items()), [(2, 30), (5, 60), (8, 90), (11, 120)])
        self.assertEqual(list(table["validation/loss"].dropna()), [-3, -6, -9, -12])
        self.assertTrue((table["eval/words"] == 'a "b", c').all())

    def test_tensorboard_shows_it_at_their_steps(self):
        events = event_accumulator.EventAccumulator(str(self.run_directory), {event_accumulator.SCALARS: 0})
        events.Reload()
        for name, factor in (("score", 10), ("loss", -1)):
            points = sorted((event.step, event.value) for event in events.Scalars(f"ray/tune/validation/{name}"))
            self.assertEqual(points, [(step, factor * step) for step in (3, 6, 9, 12)])

    def test_the_commands_find_it(self):
        best = json.loads(self.cadre("best", "run", "--metric", "score", "--mode", "min", "--json"))
        self.assertEqual([best["name"], best["value"], best["status"]], ["run", 90, "validated"])
        path = self.cadre("best", "run", "--metric", "score", "--mode", "max", "--checkpoint").strip()
        self.assertEqual((pathlib.Path(self.storage.name) / path / "state").read_text().split()[0], "12")
        self.assertIn("score=120 (max)", self.cadre("best", "run", "--metric", "score", "--mode", "max"))
        rows = pandas.read_csv(io.StringIO(self.cadre("export", "run", "--all")), float_precision="round_trip")
        self.assertEqual(list(rows["trial_id"].unique()), ["run"])
        self.assertEqual(list(rows["validation/score"].dropna()), [30, 60, 90, 120])
        self.assertEqual(list(rows["loss"]), [row["loss"] for row in self.rows])
        best = json.loads(self.cadre("export", "run", "--best", "--metric", "score", "--mode", "min", "--format", "jsonl"))
        self.assertEqual([best["training_iteration"], best["validation"]["score"]], [3, 30])
        self.assertEqual(self.cadre("plot", "run", "--metrics", "loss,score", "-o", "curves.svg"), "curves.svg\n")
        picture = (pathlib.Path(self.storage.name) / "curves.svg").read_text()
        self.assertIn("validation/score", picture)
        self.assertIn("attempt 1", self.cadre("plot", "run", "-o", "-"))

    def test_what_a_run_does_not_have_is_said(self):
        self.assertIn("give --mode", self.cadre("best", "run", "--metric", "score", code=1))
        self.assertIn("no kept checkpoint", self.cadre("best", "run", "--metric", "nothing", "--mode", "max", code=1))
        self.assertIn("is a training run and has no trials: leave", self.cadre("show", "run", "3", code=1))
        self.assertIn("is a training run", self.cadre("best", "run", "--pareto", "loss:min,score:max", code=1))
        self.assertIn("is a training run", self.cadre("plot", "run", "--pareto", "loss:min,score:max", code=1))
        self.assertIn("nothing", self.cadre("plot", "run", "--metrics", "nothing", code=1))


if __name__ == "__main__":
    unittest.main()
