"""`cadre tune` with MLflow's store as a logger, which the real MLflow reads: also of experiments that are killed."""

import os
import signal
import time
import unittest

from mlflow.tracking import MlflowClient

from tuning import TuneTest

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
SECONDS = 120  # a deadline against hangs


class MlflowTest(TuneTest):
    def runs(self):
        client = MlflowClient(tracking_uri=(self.experiment / "mlruns").as_uri())
        [experiment] = client.search_experiments()
        self.assertEqual(experiment.name, "test")
        return client, {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}

    def check(self, trials, schedule=()):
        client, runs = self.runs()
        self.assertEqual(set(runs), {f"{trial:05}" for trial in range(trials)})
        for trial in range(trials):
            run = runs[f"{trial:05}"]
            rows = self.rows(trial)
            self.assertEqual(run.info.status, "FINISHED")
            self.assertEqual(run.data.params["lr"], repr(rows[-1]["config"]["lr"]))
            self.assertEqual(run.data.tags["cadre.path"], str(self.directory(trial).resolve()))
            for name in "loss", "x", "time_total_s":
                points = client.get_metric_history(run.info.run_id, name)
                self.assertEqual([(point.step, point.value) for point in points],
                                 [(row["training_iteration"], row[name]) for row in rows if name in row], name)
            for path in schedule:
                points = client.get_metric_history(run.info.run_id, "config/" + path)
                self.assertEqual([point.value for point in points], [row["config"][path] for row in rows])

    def test_a_population_that_is_interrupted_and_killed_has_each_result_once(self):
        self.write("tune.toml", """
            metric = "loss"
            mode = "min"
            name = "test"
            storage_path = "."
            num_samples = 4
            verbose = 0
            command = ["./program.sh", "{lr}"]
            loggers = { mlflow = true }
            [stop]
            training_iteration = 30
            [space]
            lr = "loguniform(1e-3, 1)"
            [scheduler]
            type = "PopulationBasedTraining"
            time_attr = "training_iteration"
            perturbation_interval = 5
            [scheduler.hyperparam_mutations]
            lr = "loguniform(1e-3, 1)"
        """)
        self.shell("""
            step=0
            [ -z "${CADRE_CHECKPOINT_IN:-}" ] || read -r step < "$CADRE_CHECKPOINT_IN/state"
            while true; do
              step=$((step + 1))
              answer=$(cadre-report --offer loss="0.$step" x="$step") || exit 0
              [ "$answer" != checkpoint ] || { echo "$step" > "$CADRE_CHECKPOINT_OUT/state"; cadre-report --saved > /dev/null || exit 0; }
            done
        """)
        for kill in range(1, 5):
            process = self.start(*(["tune.toml"] if kill == 1 else ["--restore", self.experiment]))
            deadline = time.monotonic() + SECONDS
            while self.count_results() < 22 * kill:
                self.assertIsNone(process.poll(), "it ended before it was killed")
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.002)
            # An interrupt leaves a snapshot, from which the files go on; what a kill has left behind it is cut off then.
            process.send_signal(signal.SIGINT if kill % 2 else signal.SIGKILL)
            process.communicate(timeout=SECONDS)
            self.runs()  # can be read in the state in which it was left
        self.tune("--restore", self.experiment)
        self.check(4, schedule=["lr"])

    def count_results(self):
        return sum(len(file.read_bytes().splitlines()) for file in self.experiment.glob("*/result.json"))

    def test_failures_and_what_is_reported_late(self):
        self.write("tune.toml", """
            metric = "loss"
            mode = "min"
            name = "test"
            storage_path = "."
            verbose = 0
            command = ["./program.sh", "{lr}"]
            loggers = { mlflow = true, csv = false, json = false }
            [space]
            lr = "grid_search([1, 2])"
        """)
        self.shell("""
            cadre-report loss=1
            [ "$1" = 1 ] && cadre-report loss=2 late=3 words=text
            [ "$1" = 1 ]
        """)
        self.tune("tune.toml", code=1)
        client, runs = self.runs()
        self.assertEqual([runs[name].info.status for name in ("00000", "00001")], ["FINISHED", "FAILED"])
        self.assertIn("exit", runs["00001"].data.tags["cadre.error"])
        run_id = runs["00000"].info.run_id
        self.assertEqual([(one.step, one.value) for one in client.get_metric_history(run_id, "late")], [(2, 3)])
        self.assertNotIn("words", runs["00000"].data.metrics)


if __name__ == "__main__":
    unittest.main()
