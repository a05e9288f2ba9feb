"""The importances of hyper-parameters are those of Optuna's PED-ANOVA for the same trials."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

BIN = pathlib.Path(os.environ["CADRE_BIN"])
SEEDS = range(1, 6)
KINDS = ["adam", "adagrad", "sgd"]
DISTRIBUTIONS = {
    "x": FloatDistribution(-2, 3),
    "lr": FloatDistribution(1e-5, 1, log=True),
    "step": FloatDistribution(0, 1, step=0.25),
    "layers": IntDistribution(1, 6),
    "width": IntDistribution(0, 199),
    "act": CategoricalDistribution(["relu", "tanh"]),
    "optimizer": CategoricalDistribution(KINDS),
    "optimizer/momentum": FloatDistribution(0, 1),
}


def document(*arguments):
    done = subprocess.run([BIN / "cadre", *map(str, arguments), "--json"], capture_output=True, timeout=120, check=True)
    return json.loads(done.stdout)


def optunas(trials, metric, quantile):
    """Returns Optuna's importances of the trials that `cadre show` has."""
    study = optuna.create_study()
    for trial in trials:
        values = dict(trial["drawn_config"])
        optimizer = values.pop("optimizer")
        values["optimizer"] = optimizer["kind"]
        if "momentum" in optimizer:
            values["optimizer/momentum"] = optimizer["momentum"]
        study.add_trial(optuna.trial.create_trial(
            params=values, distributions={key: DISTRIBUTIONS[key] for key in values}, value=trial["metrics"][metric]))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=quantile)
    return optuna.importance.get_param_importances(study, evaluator=evaluator)


class ImportanceTest(unittest.TestCase):
    def test_importances_are_those_of_optuna(self):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as storage:
                subprocess.run([BIN / "importance_tool", storage, str(seed)], check=True, timeout=120)
                experiment = pathlib.Path(storage) / "experiment"
                trials = document("show", experiment)["trials"]
                for metric, quantile in ("loss", 0.1), ("loss", 0.3), ("latency", 0.1):
                    ours = document("importance", experiment, "--metric", metric, "--mode", "min", "--quantile", quantile)
                    theirs = optunas(trials, metric, quantile)
                    with self.subTest(seed=seed, metric=metric, quantile=quantile):
                        self.assertEqual({one["key"] for one in ours["importances"]}, set(theirs))
                        for one in ours["importances"]:
                            self.assertAlmostEqual(one["importance"], theirs[one["key"]], places=9, msg=one["key"])

    def test_the_table_has_a_bar_for_each_and_fits(self):
        with tempfile.TemporaryDirectory() as storage:
            subprocess.run([BIN / "importance_tool", storage, "1"], check=True, timeout=120)
            for encoding, block in ("C.UTF-8", "\u2588"), ("C", "#"):
                done = subprocess.run([BIN / "cadre", "importance", pathlib.Path(storage) / "experiment"], timeout=120,
                                      check=True, capture_output=True,
                                      env=os.environ | {"COLUMNS": "80", "LC_ALL": encoding})
                lines = done.stdout.decode().splitlines()
                self.assertEqual(lines[0], "Importance for the best 10 % of 120 trials by loss (min, last)")
                self.assertLessEqual(max(map(len, lines)), 80)
                rows = lines[4:-1]
                self.assertEqual(len(rows), len(DISTRIBUTIONS))
                bars = [row.count(block) for row in rows]
                self.assertEqual(bars[0], 20)
                self.assertEqual(bars, sorted(bars, reverse=True))


if __name__ == "__main__":
    unittest.main()
