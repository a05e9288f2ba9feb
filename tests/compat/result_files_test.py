"""Other programs read an experiment's files: pandas, Python's json and sqlite3."""

import json
import math
import sqlite3
import unittest

import pandas
from experiment import ExperimentTest


class ResultFilesTest(ExperimentTest):
    def test_csv_and_json_have_the_same_rows(self):
        for trial in self.trials:
            rows = self.rows(trial)
            table = pandas.read_csv(trial / "progress.csv", float_precision="round_trip")
            self.assertEqual(len(table), len(rows))
            self.assertNotIn("config", table.columns)
            for (_, shown), row in zip(table.iterrows(), rows):
                self.assertEqual(shown["training_iteration"], row["training_iteration"])
                self.assertEqual(shown["score"], row["score"])
                self.assertEqual(shown["eval/loss"], row["eval"]["loss"])
                self.assertEqual(shown["eval/words"], 'a "b", c')
                late = row.get("late", math.nan)
                self.assertTrue(shown["late"] == late or (math.isnan(shown["late"]) and math.isnan(late)))

    def test_integers_of_64_bits_are_exact(self):
        table = pandas.read_csv(self.trials[0] / "progress.csv")
        self.assertTrue((table["big"] == 1 << 62).all())

    def test_lines_look_as_json_dumps_writes_them(self):
        for trial in self.trials:
            for line in (trial / "result.json").read_text().splitlines():
                self.assertEqual(json.dumps(json.loads(line)), line)
            params = (trial / "params.json").read_text()
            self.assertEqual(json.dumps(json.loads(params), indent=2, sort_keys=True), params)

    def test_only_the_last_row_is_done(self):
        for trial in self.trials:
            done = [row["done"] for row in self.rows(trial)]
            self.assertEqual(done, [False] * (len(done) - 1) + [True])

    def test_checkpoints_are_named_in_their_rows(self):
        for trial in self.trials:
            named = {row["checkpoint_dir_name"] for row in self.rows(trial)}
            for path in trial.glob("checkpoint_*"):
                self.assertIn(path.name, named)
                metadata = json.loads((path / ".metadata.json").read_text())
                self.assertEqual(metadata["trial_id"], trial.name[:5])

    def test_every_exploit_has_six_elements_and_values_inside_the_domain(self):
        lines = (self.experiment / "pbt_global.txt").read_text().splitlines()
        self.assertGreater(len(lines), 0)
        for line in lines:
            exploit = json.loads(line)
            self.assertEqual(json.dumps(exploit), line)
            target_tag, donor_tag, target_iteration, donor_iteration, old, new = exploit
            self.assertRegex(target_tag, r"^\d_lr=0\.\d{4}$")
            self.assertRegex(donor_tag, r"^\d_lr=0\.\d{4}$")
            self.assertIsInstance(target_iteration, int)
            self.assertEqual(donor_iteration % 2, 0)
            self.assertEqual(set(old), set(new))
            self.assertTrue(0.01 <= new["lr"] <= 1)
            self.assertIn(new["act"], ["relu", "tanh"])

    def test_a_policy_ends_with_its_trials_last_exploit(self):
        exploits = [json.loads(line) for line in (self.experiment / "pbt_global.txt").read_text().splitlines()]
        for trial in self.trials:
            own = [line for line in exploits if line[0].split("_")[0] == str(int(trial.name[:5]))]
            policy = self.experiment / f"pbt_policy_{trial.name[:5]}.txt"
            self.assertEqual(policy.exists(), bool(own))
            if own:
                self.assertEqual(json.loads(policy.read_text().splitlines()[-1]), own[-1])
                # A replay reads from the last line upwards: each target is the donor of the line below.
                lines = [json.loads(line) for line in policy.read_text().splitlines()]
                for above, below in zip(lines, lines[1:]):
                    self.assertEqual(above[0], below[1])

    def test_the_store_is_open_to_any_sqlite_client(self):
        store = sqlite3.connect(self.experiment / "experiment.db")
        self.assertEqual(store.execute("SELECT value FROM meta WHERE key = 'format'").fetchone(), ("6",))
        self.assertEqual(store.execute("SELECT DISTINCT status FROM trials").fetchall(), [("TERMINATED",)])
        for trial in self.trials:
            stored = store.execute("SELECT metrics FROM results WHERE trial = ? ORDER BY sequence", (int(trial.name[:5]),))
            scores = [json.loads(metrics)["score"] for (metrics,) in stored]
            self.assertEqual(scores, [row["score"] for row in self.rows(trial)])
        listed = {directory for (directory,) in store.execute("SELECT directory FROM checkpoints")}
        on_disk = {str(path.relative_to(self.experiment)) for path in self.experiment.glob("*/checkpoint_*")}
        self.assertEqual(listed, on_disk)


if __name__ == "__main__":
    unittest.main()
