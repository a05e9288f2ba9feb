"""The demo with --synch, killed at random moments and restored, has the same exploits, configs, results and parameters
as an undisturbed one, bit for bit. CADRE_SEED fixes the numbers of results after which it is killed."""

import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest

import torch

SEED = int(os.environ.get("CADRE_SEED", random.SystemRandom().randrange(1_000_000)))
TRIALS, ITERATIONS, KILLS = 4, 12, 5


def start(storage, *flags):
    program = os.path.join(os.environ["CADRE_BIN"], "pbt_mnist")
    data = os.path.join(os.environ["CADRE_SOURCE"], "data", "mnist")
    return subprocess.Popen(
        [program, "--synch", "--num-samples", str(TRIALS), "--max-iterations", str(ITERATIONS), "--seed", "7",
         "--storage-path", storage, "--data-dir", data, *flags],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


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


def tensors_in(value, path=""):
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors_in(part, f"{path}/{key}")


class KilledPbtMnistTest(unittest.TestCase):
    def finish(self, process):
        output, _ = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, output)

    def kill_after(self, results, process, experiment):
        """Kills the process after so many results; returns False if it ended before."""
        deadline = time.monotonic() + 240
        while process.poll() is None:
            if sum(len(file.read_bytes().splitlines()) for file in experiment.glob("*/result.json")) >= results:
                process.send_signal(signal.SIGKILL)
                process.communicate(timeout=60)
                return True
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.002)
        return False

    def test_an_experiment_that_is_killed_again_and_again_comes_to_the_same(self):
        print("CADRE_SEED", SEED)
        draw = random.Random(SEED)
        with tempfile.TemporaryDirectory() as storage:
            self.finish(start(storage, "--name", "undisturbed"))
            kills = 0
            for results in sorted(draw.sample(range(1, TRIALS * ITERATIONS), KILLS)):
                kills += self.kill_after(results, start(storage, "--name", "killed", *["--restore"] * (kills > 0)),
                                         pathlib.Path(storage) / "killed")
            self.assertGreater(kills, 1)
            self.finish(start(storage, "--name", "killed", "--restore"))

            undisturbed, killed = (pathlib.Path(storage) / name for name in ("undisturbed", "killed"))
            exploits = (undisturbed / "pbt_global.txt").read_text()
            self.assertGreater(exploits.count("\n"), 0)
            self.assertEqual((killed / "pbt_global.txt").read_text(), exploits)
            self.assertEqual(results_of(killed), results_of(undisturbed))
            for trial in results_of(undisturbed):
                expected, got = last_state(undisturbed / trial), last_state(killed / trial)
                self.assertEqual((got["step"], expected["step"]), (ITERATIONS, ITERATIONS))
                expected, got = dict(tensors_in(expected)), dict(tensors_in(got))
                self.assertEqual(got.keys(), expected.keys())
                self.assertGreaterEqual(len(expected), 4)  # parameters, and momenta if there are any
                for path, tensor in expected.items():
                    self.assertTrue(torch.equal(got[path], tensor), f"{trial} {path}")


if __name__ == "__main__":
    unittest.main()
