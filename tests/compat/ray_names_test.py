"""docs/from-ray-tune.md has every public name of Ray Tune."""

import dataclasses
import importlib
import inspect
import os
import pathlib
import re
import unittest

from ray import tune
from ray.tune.schedulers import PopulationBasedTraining

PAGE = pathlib.Path(os.environ["CADRE_SOURCE"], "docs", "from-ray-tune.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"`([^`]+)`", PAGE))
CLASSES = (tune.Tuner, tune.ResultGrid, tune.Result, tune.TuneContext, tune.ExperimentAnalysis, tune.Callback)
CONFIGS = (tune.TuneConfig, tune.RunConfig, tune.CheckpointConfig, tune.FailureConfig)


def missing(names):
    return sorted(name for name in names if name not in NAMES)


class RayNamesTest(unittest.TestCase):
    def test_ray_tune(self):
        self.assertEqual(missing(tune.__all__), [])

    def test_sub_modules(self):
        for module in ("search", "stopper", "logger"):
            names = importlib.import_module(f"ray.tune.{module}").__all__
            self.assertEqual(missing(f"ray.tune.{module}.{name}" for name in names if name not in NAMES), [])
        self.assertEqual(missing(importlib.import_module("ray.tune.schedulers").__all__), [])

    def test_members_of_classes(self):
        for one in CLASSES:
            members = (name for name in dir(one) if not name.startswith("_"))
            self.assertEqual(missing(f"{one.__name__}.{name}" for name in members), [])

    def test_options(self):
        for config in CONFIGS:
            fields = (field.name for field in dataclasses.fields(config) if not field.name.startswith("_"))
            self.assertEqual(missing(f"{config.__name__}.{name}" for name in fields), [])
        parameters = list(inspect.signature(PopulationBasedTraining).parameters)
        self.assertEqual(missing(f"PopulationBasedTraining.{name}" for name in parameters), [])


if __name__ == "__main__":
    unittest.main()
