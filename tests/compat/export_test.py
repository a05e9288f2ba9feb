"""Other programs read what `cadre export` writes: MLflow, pandas and pyarrow, Optuna; and it equals the store."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import optuna
import pandas
import pyarrow.parquet
from mlflow.tracking import MlflowClient

from experiment import ExperimentTest

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

BIN = pathlib.Path(os.environ["CADRE_BIN"])
NESTED = """
command = ["sh", "-c", "for i in 1 2 3; do cadre-report loss=0.$i size=$i || exit 0; done; test {n} != 3"]
name = "nested"
storage_path = "."
metric = "loss"
mode = "min"
num_samples = 24
verbose = 0
[space]
lr = "loguniform(1e-3, 1)"
q = "quniform(0.1, 1, 0.1)"
ql = "qloguniform(0.1, 10, 0.1)"
n = "randint(1, 10)"
qn = "qrandint(0, 100, 10)"
ln = "lograndint(1, 1000)"
g = "randn(0, 1)"
o = "ordinal([8, 16, 32])"
act = "choice(['relu', 'tanh', true])"
lists = "choice([[1, 2], [3]])"
const = 3
[space.model]
width = "choice([8, 16, 32])"
[space.optimizer]
choice = [
  { name = "sgd", momentum = "uniform(0.5, 1)" },
  { name = "adam" },
]
"""


def run(*command, code=0, cwd=None, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, cwd=cwd,
                          env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"} | environment)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done


def export(experiment, *options, code=0, **environment):
    return run(BIN / "cadre", "export", experiment, *options, code=code, **environment)


def shown(experiment):
    return json.loads(run(BIN / "cadre", "show", experiment, "--json").stdout)


def flat(entries, prefix=""):
    found = {}
    for key, value in entries.items():
        found |= flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def is_number(value):
    return isinstance(value, (int, float))


# Neither MLflow's steps and times, nor text.
NO_METRICS = {"pid", "timestamp", "training_iteration", "iterations_since_restore", "time_since_restore", "done",
              "should_checkpoint"}


def metrics_in(row):
    return {key: value for key, value in flat({k: v for k, v in row.items() if k != "config"}).items()
            if is_number(value) and key not in NO_METRICS}


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def optuna_study(file, name):
    backend = optuna.storages.journal.JournalFileBackend(str(file))
    return optuna.load_study(study_name=name, storage=optuna.storages.JournalStorage(backend))


class ExportTest(ExperimentTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.storage.name)
        (cls.folder / "nested.toml").write_text(NESTED)
        run(BIN / "cadre", "tune", "nested.toml", cwd=cls.folder, code=1)  # some trials fail
        cls.nested = cls.folder / "nested"
        run(BIN / "training_run_tool", cls.folder)
        cls.run_directory = cls.folder / "run"

    # ---- MLflow

    def check_run(self, client, run_of_trial, rows, schedule=()):
        """Compares an MLflow run with the rows of result.json."""
        run_id = run_of_trial.info.run_id
        expected = {}
        for row in rows:
            columns = metrics_in(row) | {f"config/{path}": flat(row["config"])[path] for path in schedule}
            for name, value in columns.items():
                expected.setdefault(name, []).append((row["training_iteration"], row["timestamp"], float(value)))
        self.assertEqual(set(run_of_trial.data.metrics), set(expected))
        for name, points in expected.items():
            history = client.get_metric_history(run_id, name)
            self.assertEqual([point.step for point in history], [step for step, _, _ in points], name)
            for point, (_, timestamp, value) in zip(history, points):
                self.assertTrue(same(point.value, value), name)
                self.assertAlmostEqual(point.timestamp / 1000, timestamp, delta=2)

    def test_mlflow_finds_each_trial_with_all_results(self):
        store = self.folder / "mlruns"
        self.assertEqual(export(self.experiment, "--mlflow", store).stdout, f"{store}\n")
        for _ in range(2):  # again: the same runs
            client = MlflowClient(tracking_uri=store.as_uri())
            (found,) = client.search_experiments()
            self.assertEqual(found.name, "experiment")
            self.assertEqual(found.tags["cadre.path"], str(self.experiment))
            runs = {one.info.run_name: one for one in client.search_runs([found.experiment_id])}
            self.assertEqual(len(runs), 6)
            for trial in self.trials:
                rows = self.rows(trial)
                one = runs[trial.name[:5]]
                self.assertEqual(one.info.status, "FINISHED")
                self.assertLessEqual(one.info.start_time / 1000, rows[0]["timestamp"] + 1)
                self.assertEqual(one.info.end_time / 1000, rows[-1]["timestamp"])
                self.assertEqual(one.data.params, {"lr": repr(rows[-1]["config"]["lr"]), "name": "café",
                                                   "act": rows[-1]["config"]["act"]})
                self.assertEqual(one.data.tags["cadre.path"], str(trial))
                self.check_run(client, one, rows, schedule=["lr"])
            best = client.search_runs([found.experiment_id], "metrics.score > 0", order_by=["metrics.score DESC"])[0]
            self.assertEqual(best.info.run_name,
                             max(self.trials, key=lambda trial: self.rows(trial)[-1]["score"]).name[:5])
            export(self.experiment, "--mlflow", store)

    def test_mlflow_logs_further_into_a_store_and_another_experiment_joins_it(self):
        store = self.folder / "shared"
        export(self.experiment, "--mlflow", store)
        export(self.nested, "--mlflow", store)
        export(self.run_directory, "--mlflow", store)
        client = MlflowClient(tracking_uri=store.as_uri())
        found = {one.name: one for one in client.search_experiments()}
        self.assertEqual(set(found), {"experiment", "nested", "run"})
        (one,) = client.search_runs([found["run"].experiment_id])
        self.check_run(client, one, [json.loads(line) for line in
                                     (self.run_directory / "result.json").read_text().splitlines()])
        failed = client.search_runs([found["nested"].experiment_id], "attributes.status = 'FAILED'")
        self.assertEqual(len(failed), sum(trial["status"] == "ERROR" for trial in shown(self.nested)["trials"]))
        self.assertGreater(len(failed), 0)
        self.assertIn("exit", failed[0].data.tags["cadre.error"])
        client.log_metric(one.info.run_id, "later", 1.5)
        client.set_tag(one.info.run_id, "note", "good")
        self.assertEqual(client.get_run(one.info.run_id).data.metrics["later"], 1.5)

    def test_mlflow_has_the_states_of_an_experiment_that_was_killed(self):
        (self.folder / "killed.toml").write_text(
            'command = ["sh", "-c", "cadre-report loss=1; test {n} = 1 || sleep 100"]\nname = "killed"\nstorage_path = "."\n'
            'metric = "loss"\nmode = "min"\nverbose = 0\nnum_samples = 1\nmax_concurrent_trials = 2\n'
            '[space]\nn = "grid_search([1, 2, 3, 4])"\n')
        process = subprocess.Popen([BIN / "cadre", "tune", "killed.toml"], cwd=self.folder,
                                   env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"})
        self.addCleanup(process.kill)
        experiment = self.folder / "killed"
        deadline = time.monotonic() + 120
        while len(list(experiment.glob("*/result.json"))) < 3:  # one has ended, two wait
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

        def states(store):
            export(experiment, "--mlflow", store)
            client = MlflowClient(tracking_uri=store.as_uri())
            (found,) = client.search_experiments()
            runs = {one.info.run_name: one.info for one in client.search_runs([found.experiment_id])}
            return [(runs[name].status, runs[name].end_time is None) for name in sorted(runs)]

        self.assertEqual(states(self.folder / "live"), [("FINISHED", False), ("RUNNING", True), ("RUNNING", True)])
        process.kill()
        process.wait()
        self.assertEqual(states(self.folder / "dead"), [("FINISHED", False), ("KILLED", False), ("KILLED", False)])
        file = self.folder / "killed.journal"
        export(experiment, "--optuna", file)
        self.assertEqual([trial.state.name for trial in optuna_study(file, "killed").trials],
                         ["COMPLETE", "RUNNING", "RUNNING"])

    def test_two_experiments_of_one_name_are_not_mixed_up(self):
        other = self.folder / "other" / "experiment"
        shutil.copytree(self.experiment, other)
        store = self.folder / "two"
        export(self.experiment, "--mlflow", store)
        errors = export(other, "--mlflow", store, code=1).stderr
        self.assertIn(f"{store} has another experiment experiment, that of {self.experiment}", errors)

    def test_names_that_mlflow_refuses_are_changed_and_said(self):
        names = ["a", "a/b", "../up", "größe", "x?y", "x!y", "n" * 300, "sp ace:1", "trailing/"]
        pairs = " ".join(f"'{name}={i}'" for i, name in enumerate(names))
        (self.folder / "names.toml").write_text(
            f'command = ["sh", "-c", "cadre-report {pairs}"]\nname = "names"\nstorage_path = "."\nmetric = "a"\n'
            'mode = "min"\nverbose = 0\n[space]\nlr = 0.1\n"p?q" = 3\n')
        run(BIN / "cadre", "tune", "names.toml", cwd=self.folder)
        store = self.folder / "renamed"
        done = export(self.folder / "names", "--mlflow", store)
        client = MlflowClient(tracking_uri=store.as_uri())
        (found,) = client.search_experiments()
        (one,) = client.search_runs([found.experiment_id])
        originals = json.loads(one.data.tags["cadre.renamed"]) | {"a": "a", "sp ace:1": "sp ace:1"}
        self.assertEqual(sorted(originals[name] for name in one.data.metrics if name in originals), sorted(names))
        for name, value in one.data.metrics.items():
            if name in originals:
                self.assertEqual(value, names.index(originals[name]))
        self.assertIn('cadre: "x?y" is "x_y-', done.stderr)
        self.assertEqual({originals.get(name, name) for name in one.data.params}, {"lr", "p?q"})
        self.assertNotIn('"a" is', done.stderr)

    # ---- Parquet

    def test_a_parquet_file_has_a_row_for_each_result_with_types(self):
        file = self.folder / "results.parquet"
        self.assertEqual(export(self.experiment, "--parquet", file).stdout, f"{file}\n")
        frame = pandas.read_parquet(file)
        expected = [row for trial in self.trials for row in self.rows(trial)]
        self.assertEqual(len(frame), len(expected))
        types = {field.name: str(field.type) for field in pyarrow.parquet.read_schema(file)}
        for name, type_name in {"trial_id": "string", "score": "double", "training_iteration": "int64", "big": "int64",
                                "eval/words": "string", "config/lr": "double", "config/act": "string",
                                "weights": "string", "late": "double", "time_total_s": "double"}.items():
            self.assertEqual(types[name], type_name, name)
        for i, row in enumerate(expected):
            columns = flat({key: value for key, value in row.items() if key not in ("done", "checkpoint_dir_name")})
            for name, value in columns.items():
                cell = frame[name][i]
                if isinstance(value, list):
                    self.assertEqual(json.loads(cell), value)
                elif isinstance(value, float) and math.isnan(value):
                    self.assertTrue(math.isnan(cell))
                else:
                    self.assertEqual(cell, value, name)
        best = self.folder / "best.parquet"
        export(self.experiment, "--parquet", best, "--best")
        self.assertEqual(list(pandas.read_parquet(best)["score"]),
                         [max(row["score"] for row in self.rows(trial)) for trial in self.trials])

    def test_a_column_of_several_types_has_text_and_integers_among_doubles_are_doubles(self):
        (self.folder / "mixed.toml").write_text(
            'command = ["sh", "-c", "cadre-report m=1 d=2 b=true t=x; cadre-report m=word d=2.5 b=false; cadre-report '
            'm=0.5 only=7"]\nname = "mixed"\nstorage_path = "."\nmetric = "d"\nmode = "min"\nverbose = 0\n'
            '[space]\nlr = 0.1\n')
        run(BIN / "cadre", "tune", "mixed.toml", cwd=self.folder)
        file = self.folder / "mixed.parquet"
        export(self.folder / "mixed", "--parquet", file)
        table = pyarrow.parquet.read_table(file)
        self.assertEqual({name: str(table.schema.field(name).type) for name in ("m", "d", "b", "t", "only")},
                         {"m": "string", "d": "double", "b": "bool", "t": "string", "only": "int64"})
        self.assertEqual(table["m"].to_pylist(), ["1", "word", "0.5"])
        self.assertEqual(table["d"].to_pylist(), [2.0, 2.5, None])
        self.assertEqual(table["b"].to_pylist(), [True, False, None])
        self.assertEqual(table["only"].to_pylist(), [None, None, 7])

    def test_a_training_run_as_parquet(self):
        file = self.folder / "run.parquet"
        export(self.run_directory, "--parquet", file)
        rows = [json.loads(line) for line in (self.run_directory / "result.json").read_text().splitlines()]
        frame = pandas.read_parquet(file)
        self.assertEqual(list(frame["loss"]), [row["loss"] for row in rows])
        self.assertEqual(list(frame["eval/accuracy"]), [row["eval"]["accuracy"] for row in rows])
        self.assertEqual(list(frame["config/steps"]), [12] * 12)

    def test_without_the_library_for_parquet_the_message_says_what_to_install(self):
        empty = self.folder / "empty"
        empty.write_bytes(b"")
        script = f"mount --bind {empty} {library()} && exec {BIN}/cadre export {self.experiment} --parquet {self.folder}/no"
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=120)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest("no namespace of mounts: " + done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertIn("a Parquet file needs Cadre's library for it, libcadre_table_file.so, and Arrow", done.stderr)
        self.assertIn("libcadre-storage-dev", done.stderr)
        self.assertFalse((self.folder / "no").exists())

    # ---- Optuna

    def check_study(self, study, experiment):
        document = shown(experiment)
        trials = document["trials"]
        self.assertEqual(len(study.trials), len(trials))
        metric = document["experiment"]["metric"]
        states = {"TERMINATED": optuna.trial.TrialState.COMPLETE, "STOPPED": optuna.trial.TrialState.PRUNED,
                  "ERROR": optuna.trial.TrialState.FAIL}
        for frozen, trial in zip(study.trials, trials):
            self.assertEqual(frozen.state, states[trial["status"]])
            self.assertEqual(frozen.user_attrs["cadre:trial_id"], trial["trial_id"])
            config = flat(trial["config"])
            for path in trial["sampled"]:
                if path in config:
                    expected = config[path]
                    self.assertEqual(frozen.params[path], json.dumps(expected) if isinstance(expected, list) else expected)
                    self.assertTrue(frozen.distributions[path]._contains(
                        frozen.distributions[path].to_internal_repr(frozen.params[path])))
            if frozen.state == optuna.trial.TrialState.COMPLETE:
                self.assertEqual(frozen.values, [trial["metrics"][metric]])
            (directory,) = experiment.glob(trial["trial_id"] + "*")
            rows = [json.loads(line) for line in (directory / "result.json").read_text().splitlines()]
            self.assertEqual(frozen.intermediate_values, {row["training_iteration"]: row[metric] for row in rows})
            self.assertLessEqual(frozen.datetime_start, frozen.datetime_complete)

    def test_optuna_loads_a_study_with_nested_and_conditional_parameters(self):
        file = self.folder / "nested.journal"
        self.assertEqual(export(self.nested, "--optuna", file).stdout, f"{file}\n")
        study = optuna_study(file, "nested")
        self.check_study(study, self.nested)
        self.assertEqual(study.direction, optuna.study.StudyDirection.MINIMIZE)
        self.assertEqual(study.metric_names, ["loss"])
        self.assertEqual(study.best_value, 0.3)
        d = optuna.distributions
        found = {}
        for trial in study.trials:
            self.assertEqual("optimizer/momentum" in trial.params, trial.params["optimizer/name"] == "sgd")
            found |= trial.distributions
        self.assertEqual(found["lr"], d.FloatDistribution(0.001, 1, log=True))
        self.assertEqual(found["q"], d.FloatDistribution(0.1, 1.0, step=0.1))
        self.assertEqual(found["ql"], d.FloatDistribution(0.1, 10, log=True))
        self.assertEqual(found["n"], d.IntDistribution(1, 9))
        self.assertEqual(found["qn"], d.IntDistribution(0, 100, step=10))
        self.assertEqual(found["ln"], d.IntDistribution(1, 999, log=True))
        self.assertEqual(found["o"], d.CategoricalDistribution([8, 16, 32]))
        self.assertEqual(found["model/width"], d.CategoricalDistribution([8, 16, 32]))
        self.assertEqual(found["act"], d.CategoricalDistribution(["relu", "tanh", True]))
        self.assertEqual(found["lists"], d.CategoricalDistribution(["[1, 2]", "[3]"]))
        self.assertEqual(found["optimizer/name"], d.CategoricalDistribution(["sgd", "adam"]))
        self.assertEqual(found["optimizer/momentum"], d.FloatDistribution(0.5, 1))
        drawn = [trial.params["g"] for trial in study.trials]
        self.assertEqual(found["g"], d.FloatDistribution(min(drawn), max(drawn)))
        self.assertNotIn("const", found)

    def test_optuna_has_what_exploits_have_changed(self):
        file = self.folder / "population.journal"
        export(self.experiment, "--optuna", file)
        study = optuna_study(file, "experiment")
        self.check_study(study, self.experiment)
        self.assertEqual(study.direction, optuna.study.StudyDirection.MAXIMIZE)
        for frozen, trial in zip(study.trials, self.trials):
            self.assertEqual(frozen.params, {key: self.rows(trial)[-1]["config"][key] for key in ("act", "lr")})

    def test_optuna_gets_a_trial_with_many_results(self):
        study = self.folder / "many"
        run(BIN / "cadre", "suggest", study, "--param", "x=uniform(0, 1)", "--minimize", "loss")
        losses = {str(step): 1 / step for step in range(1, 300_001)}  # a time that grows with the square is minutes
        with open(study / "study.jsonl", "a", encoding="utf-8") as lines:
            for step, loss in losses.items():
                metrics = {"loss": loss, "training_iteration": int(step)}
                lines.write(json.dumps({"result": 0, "metrics": metrics}) + "\n")
        file = self.folder / "many.journal"
        export(study, "--optuna", file)
        *_, trial = map(json.loads, file.read_text().splitlines())
        self.assertEqual(trial["intermediate_values"], losses)

    def test_optuna_continues_a_study_with_two_objectives(self):
        file = self.folder / "two.journal"
        export(self.nested, "--optuna", file, "--objectives", "loss,size:max")
        study = optuna_study(file, "nested")
        self.assertEqual([one.name for one in study.directions], ["MINIMIZE", "MAXIMIZE"])
        for trial in study.trials:
            if trial.state == optuna.trial.TrialState.COMPLETE:
                self.assertEqual(trial.values, [0.3, 3])
        asked = study.ask({"lr": optuna.distributions.FloatDistribution(0.001, 1, log=True)})
        study.tell(asked, [0.1, 9])
        self.assertEqual(len(optuna_study(file, "nested").trials), 25)
        errors = export(self.nested, "--optuna", file, code=1).stderr
        self.assertIn("has something that no earlier export has written", errors)

    def test_a_study_is_written_anew_and_needs_a_direction(self):
        file = self.folder / "again.journal"
        export(self.nested, "--optuna", file)
        before = file.read_bytes()
        export(self.nested, "--optuna", file)
        self.assertEqual(file.read_bytes(), before)
        self.assertIn("write size:min or size:max", export(self.nested, "--optuna", file, "--objectives", "size",
                                                           code=1).stderr)
        self.assertIn("name what counts", export(self.run_directory, "--optuna", self.folder / "run.journal",
                                                 code=1).stderr)


def library():
    """The library for Parquet files, where the program finds it."""
    return next(BIN.parent.rglob("libcadre_table_file.so"))


if __name__ == "__main__":
    unittest.main()
