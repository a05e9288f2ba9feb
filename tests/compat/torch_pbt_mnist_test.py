"""The demo on real MNIST: the population learns, and Python's torch loads every checkpoint that it keeps."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import torch


def run(storage, *flags):
    program = os.path.join(os.environ["CADRE_BIN"], "pbt_mnist")
    data = os.path.join(os.environ["CADRE_SOURCE"], "data", "mnist")
    return subprocess.run([program, "--storage-path", storage, "--data-dir", data, *flags],
                          capture_output=True, text=True, timeout=240)


class PbtMnistTest(unittest.TestCase):
    def setUp(self):
        self.storage = tempfile.TemporaryDirectory()
        self.addCleanup(self.storage.cleanup)

    def test_the_population_learns_and_python_loads_its_checkpoints(self):
        done = run(self.storage.name, "--synch", "--max-iterations", "16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        accuracy = float(re.search(r"Best trial \d+: mean_accuracy ([\d.]+)", done.stdout)[1])
        self.assertGreaterEqual(accuracy, 0.91, done.stdout)

        experiment = pathlib.Path(self.storage.name) / "pbt_mnist"
        exploits = [json.loads(line) for line in (experiment / "pbt_global.txt").read_text().splitlines()]
        self.assertGreater(len(exploits), 0)
        for exploit in exploits:
            self.assertTrue(0.0001 <= exploit[5]["lr"] <= 1, exploit)
            self.assertIn(exploit[5]["momentum"], [0.0, 0.5, 0.8, 0.9])

        checkpoints = sorted(experiment.glob("*/checkpoint_*/checkpoint.pt"))
        self.assertGreaterEqual(len(checkpoints), 8)
        model = torch.nn.ModuleDict({"conv1": torch.nn.Conv2d(1, 3, 3), "fc": torch.nn.Linear(192, 10)})
        optimizer = torch.optim.SGD(model.parameters(), lr=1, momentum=0.5)
        for path in checkpoints:
            state = torch.load(path, weights_only=True)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])

        # The final state of the best trial is saved.
        best = json.loads(subprocess.run([os.path.join(os.environ["CADRE_BIN"], "cadre"), "best", experiment, "--json"],
                                         capture_output=True, text=True, check=True, timeout=120).stdout)
        self.assertEqual(best["value"], accuracy)
        state = torch.load(pathlib.Path(best["trial"]["checkpoint"]) / "checkpoint.pt", weights_only=True)
        self.assertEqual(state["step"], 16)

    def test_a_comparison_says_and_draws_what_population_based_training_was_good_for(self):
        flags = ["--synch", "--compare", "--num-samples", "4", "--max-iterations", "12", "--name", "compared"]
        done = run(self.storage.name, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"the best of 4 networks recognises, after 12 iterations each \(replayed: one "
                         r"network\):\n  [\d.]+ %  Population Based Training\n  [\d.]+ %  random search\n"
                         r"  [\d.]+ %  PBT's schedule replayed")
        storage = pathlib.Path(self.storage.name)
        picture = (storage / "compared" / "comparison.svg").read_text()
        xml.etree.ElementTree.fromstring(picture)
        for text in ("Population Based Training", "random search", "PBT's schedule replayed"):
            self.assertIn(text, picture)
        first = {name: [json.loads(line)["mean_accuracy"] for file in sorted((storage / name).glob("*/result.json"))
                        for line in file.read_text().splitlines()[:3]] for name in ("compared", "compared_random_search")}
        self.assertEqual(first["compared"], first["compared_random_search"])  # until the first exploit

    def test_a_smoke_test_is_two_trials_of_five_iterations_with_a_picture(self):
        done = run(self.storage.name, "--smoke-test", "--name", "smoke")
        self.assertEqual(done.returncode, 0, done.stderr)
        experiment = pathlib.Path(self.storage.name) / "smoke"
        results = sorted(experiment.glob("*/result.json"))
        self.assertEqual(len(results), 2)
        for file in results:  # a trial that was far behind the one from which it goes on has fewer results
            self.assertEqual(json.loads(file.read_text().splitlines()[-1])["training_iteration"], 5)
        picture = (experiment / "mean_accuracy.svg").read_text()
        xml.etree.ElementTree.fromstring(picture)
        for text in ("mean_accuracy", "00000", "00001"):
            self.assertIn(text, picture)

    def test_a_policy_is_replayed_with_a_picture_of_its_own(self):
        self.assertEqual(run(self.storage.name, "--synch", "--num-samples", "4", "--max-iterations", "12").returncode, 0)
        policy = min((pathlib.Path(self.storage.name) / "pbt_mnist").glob("pbt_policy_*.txt"))
        done = run(self.storage.name, "--smoke-test", "--name", "again", "--replay", str(policy))
        self.assertEqual(done.returncode, 0, done.stderr)
        experiment = pathlib.Path(self.storage.name) / "again"
        self.assertEqual(len(list(experiment.glob("*/result.json"))), 1)
        self.assertTrue((experiment / "mean_accuracy.svg").is_file())

    def test_an_existing_experiment_is_refused_and_can_be_continued(self):
        flags = ["--max-iterations", "5", "--num-samples", "2"]
        self.assertEqual(run(self.storage.name, *flags).returncode, 0)
        again = run(self.storage.name, *flags)
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists already", again.stderr)
        restored = run(self.storage.name, "--restore")
        self.assertEqual(restored.returncode, 0, restored.stderr)
        self.assertIn("at iteration 5", restored.stdout)  # the value that it was begun with, not the default 40

    def test_bad_input_is_named_before_anything_ran(self):
        for flags, culprit in [(["--data-dir", "/nowhere"], "/nowhere"), (["--num-samples", "0"], "num_samples"),
                               (["--cpus-per-trial", "9999"], "9999 cpus"), (["--name", "../x"], "../x")]:
            with self.subTest(flags=flags):
                program = os.path.join(os.environ["CADRE_BIN"], "pbt_mnist")
                data = [] if "--data-dir" in flags else ["--data-dir",
                                                         os.path.join(os.environ["CADRE_SOURCE"], "data", "mnist")]
                done = subprocess.run([program, "--storage-path", self.storage.name, *data, *flags],
                                      capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 1)
                self.assertIn(culprit, done.stderr)
                self.assertEqual(os.listdir(self.storage.name), [])


if __name__ == "__main__":
    unittest.main()
