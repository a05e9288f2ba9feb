"""The example of all checkpoint mechanisms: each mechanism leaves a checkpoint that Python's torch reads."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import torch


def run(storage, *flags):
    program = os.path.join(os.environ["CADRE_BIN"], "checkpoint_mechanisms")
    data = os.path.join(os.environ["CADRE_SOURCE"], "data", "mnist")
    return subprocess.run([program, "--storage-path", storage, "--data-dir", data, *flags],
                          capture_output=True, text=True, timeout=240)


class CheckpointMechanismsTest(unittest.TestCase):
    def setUp(self):
        self.storage = tempfile.TemporaryDirectory()
        self.addCleanup(self.storage.cleanup)
        self.experiment = pathlib.Path(self.storage.name) / "checkpoint_mechanisms"

    def iterations(self):
        """Returns training_iteration of all results, by trial."""
        return [[json.loads(line)["training_iteration"] for line in file.read_text().splitlines()]
                for file in sorted(self.experiment.glob("*/result.json"))]

    def test_every_mechanism_leaves_a_checkpoint_and_a_preemption_costs_nothing(self):
        done = run(self.storage.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("The machine was taken away", done.stdout)
        for reason in ("the trainable", "so many batches", "the preemption notice", "the frequency"):
            self.assertRegex(done.stdout, rf"iteration \d+: {reason}\n")
        # The end is the reason only if nothing else requested a checkpoint of the last result.
        last = re.findall(r"iteration 16: (?:the end|the trainable|so many batches|the preemption notice)\n", done.stdout)
        self.assertEqual(len(last), 3, done.stdout)
        listed = re.findall(r"iteration \d+: ", done.stdout)
        checkpoints = sorted(self.experiment.glob("*/checkpoint_*/checkpoint.pt"))
        self.assertGreaterEqual(len(checkpoints), len(listed))
        for path in checkpoints:
            self.assertIn("model", torch.load(path, weights_only=True))
        for iterations in self.iterations():
            self.assertEqual(iterations[-1], 16)

    def test_a_smoke_test_has_two_trials_of_five_iterations(self):
        done = run(self.storage.name, "--smoke-test")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([iterations[-1] for iterations in self.iterations()], [5, 5])


if __name__ == "__main__":
    unittest.main()
