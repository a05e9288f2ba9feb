"""Optuna is a searcher of Cadre, by examples/external_searcher: it finds better values than random search, also when each
suggestion comes from another process, and suggests what it suggests without Cadre."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import optuna

CADRE = pathlib.Path(os.environ["CADRE_BIN"]) / "cadre"
PROGRAM = pathlib.Path(os.environ["CADRE_SOURCE"]) / "examples" / "external_searcher" / "optuna_searcher.py"


def loss(config):
    return (config["x"] - 0.3) ** 2 + (0 if config["act"] == "relu" else 0.1) + abs(config["n"] - 4) / 20


class ExternalSearcherTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.study = str(pathlib.Path(temporary.name) / "study")

    def cadre(self, *arguments):
        done = subprocess.run([CADRE, *arguments], capture_output=True, text=True, check=True, timeout=120)
        return done.stdout

    def begin(self, count):
        searcher = {"type": "ExternalSearcher", "command": [sys.executable, str(PROGRAM)]}
        return self.cadre("suggest", self.study, "-n", str(count), "--param", "x=uniform(0, 1)", "--param",
                          'act=choice(["relu", "tanh"])', "--param", "n=randint(0, 10)", "--param", "epochs=3",
                          "--minimize", "loss", "--searcher", json.dumps(searcher), "--seed", "5")

    def test_suggests_what_optuna_suggests(self):
        suggested = [json.loads(line)["config"] for line in self.begin(8).splitlines()]
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=5))
        for config in suggested:
            trial = study.ask()
            own = {"x": trial.suggest_float("x", 0, 1), "act": trial.suggest_categorical("act", ["relu", "tanh"]),
                   "n": trial.suggest_int("n", 0, 9), "epochs": 3}
            self.assertEqual(config, own)

    def test_learns_across_processes(self):
        output = self.begin(6)
        losses = []
        for _ in range(5):
            for suggestion in map(json.loads, output.splitlines()):
                losses.append(loss(suggestion["config"]))
                self.cadre("observe", self.study, str(suggestion["trial"]), f"loss={losses[-1]}")
            output = self.cadre("suggest", self.study, "-n", "6")  # another process of Optuna
        self.assertLess(sum(losses[-8:]) / 8, sum(losses[:8]) / 8)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    unittest.main()
