"""A finished experiment of six trials, made by experiment_tool, for tests of its files."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest


class ExperimentTest(unittest.TestCase):
    """Has the experiment's directory, `experiment`, and those of its trials, `trials`."""

    @classmethod
    def setUpClass(cls):
        cls.storage = tempfile.TemporaryDirectory()
        tool = os.path.join(os.environ["CADRE_BIN"], "experiment_tool")
        subprocess.run([tool, cls.storage.name], check=True, timeout=120)
        cls.experiment = pathlib.Path(cls.storage.name) / "experiment"
        cls.trials = sorted(path for path in cls.experiment.iterdir() if path.is_dir())
        assert len(cls.trials) == 6

    @classmethod
    def tearDownClass(cls):
        cls.storage.cleanup()

    def rows(self, trial):
        return [json.loads(line) for line in (trial / "result.json").read_text().splitlines()]
