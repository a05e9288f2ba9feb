"""The demo with --synch, killed at random moments and restored, has the same exploits, configs, results and parameters
as an undisturbed one, bit for bit. CADRE_SEED fixes the numbers of results after which it is killed."""

import json
import os
import pathlib
import random
import tempfile
import unittest

import killed_programs
import torch

TRIALS, ITERATIONS, KILLS = 4, 12, 5


def start(storage, *flags):
    data = os.path.join(os.environ["CADRE_SOURCE"], "data", "mnist")
    return killed_programs.start("pbt_mnist", "--synch", "--num-samples", TRIALS, "--max-iterations", ITERATIONS, "--seed", 7,
                                 "--storage-path", storage, "--data-dir", data, *flags)


def results_of(experiment):
    """Returns by trial: (training_iteration, mean_accuracy, lr, momentum), in the order of the reports."""
    rows = {}
    for file in sorted(experiment.glob("*/result.json")):
        rows[file.parent.name] = [
            tuple(row[key] for key in ("training_iteration", "mean_accuracy", "lr", "momentum"))
            for row in map(json.loads, file.read_text().splitlines())]
    return rows


def last_state(trial):
    states = [torch.load(file, weights_only=True) for file in trial.glob("checkpoint_*/checkpoint.pt")]
    return max(states, key=lambda state: state["step"])


class KilledPbtMnistTest(unittest.TestCase):
    def test_an_experiment_that_is_killed_again_and_again_comes_to_the_same(self):
        print("CADRE_SEED", killed_programs.SEED)
        draw = random.Random(killed_programs.SEED)
        with tempfile.TemporaryDirectory() as storage:
            killed_programs.finish(start(storage, "--name", "undisturbed"))
            kills = killed_programs.kill_at(
                draw.sample(range(1, TRIALS * ITERATIONS), KILLS),
                lambda is_there: start(storage, "--name", "killed", *["--restore"] * is_there),
                lambda: killed_programs.lines_of(pathlib.Path(storage, "killed").glob("*/result.json")))
            self.assertGreater(kills, 1)

            undisturbed, killed = (pathlib.Path(storage) / name for name in ("undisturbed", "killed"))
            exploits = (undisturbed / "pbt_global.txt").read_text()
            self.assertGreater(exploits.count("\n"), 0)
            self.assertEqual((killed / "pbt_global.txt").read_text(), exploits)
            self.assertEqual(results_of(killed), results_of(undisturbed))
            for trial in results_of(undisturbed):
                expected, got = last_state(undisturbed / trial), last_state(killed / trial)
                self.assertEqual((got["step"], expected["step"]), (ITERATIONS, ITERATIONS))
                self.assertEqual(killed_programs.differences(got, expected), [], trial)


if __name__ == "__main__":
    unittest.main()
