"""The DCGAN example on real MNIST: a classifier with meaningful scores, checkpoints that Python's torch loads, a
picture that other programs open, and an experiment that can be continued."""

import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

import killed_programs
import numpy
import torch
from PIL import Image
from torch import nn


def command(storage, *flags):
    program = os.path.join(os.environ["CADRE_BIN"], "dcgan_mnist")
    data = [] if "--data-dir" in flags else ["--data-dir", os.path.join(os.environ["CADRE_SOURCE"], "data", "mnist")]
    return [program, "--storage-path", str(storage), *data, *flags]


def run(storage, *flags):
    return subprocess.run(command(storage, *flags), capture_output=True, text=True, timeout=600)


def number(pattern, text):
    return float(re.search(pattern + r" ([\d.]+)", text)[1])


def generator():
    """Returns the generator of Ray Tune's example, with its names."""
    return nn.ModuleDict({"main": nn.Sequential(
        nn.ConvTranspose2d(100, 128, 4, 1, 0, bias=False), nn.BatchNorm2d(128), nn.ReLU(),
        nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, 2, 1, bias=False), nn.Tanh())})


def discriminator():
    return nn.ModuleDict({"main": nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
        nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2),
        nn.Conv2d(128, 1, 4, 1, 0, bias=False), nn.Sigmoid())})


def write_simple_digits(folder):
    """Writes a data set in MNIST's format, of ten patterns in different brightness: a classifier for it is trained in a
    second."""
    folder.mkdir()
    rng = numpy.random.default_rng(0)
    patterns = numpy.kron(rng.integers(0, 2, (10, 7, 7)), numpy.ones((4, 4)))
    for part, count in ("train", 1280), ("t10k", 640):
        labels = rng.integers(0, 10, count).astype(numpy.uint8)
        images = (255 * patterns[labels] * rng.uniform(0.5, 1, (count, 28, 28))).astype(numpy.uint8)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, count, 28, 28) + images.tobytes())
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, count) + labels.tobytes())


class DcganMnistTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.storage = pathlib.Path(directory.name)
        cls.experiment = cls.storage / "dcgan_mnist"
        cls.done = run(cls.storage, "--smoke-test")

    def test_a_smoke_test_is_two_trials_of_five_iterations(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        self.assertEqual(self.done.stderr, "")
        self.assertIn("Trial status: 2 TERMINATED", self.done.stdout)
        results = sorted(self.experiment.glob("*/result.json"))
        self.assertEqual([len(file.read_text().splitlines()) for file in results], [5, 5])

    def test_the_classifier_tells_digits_and_its_score_tells_real_ones_from_noise(self):
        accuracies = re.findall(r"Classifier after epoch \d: accuracy ([\d.]+)", self.done.stdout)
        self.assertLessEqual(len(accuracies), 2)
        self.assertGreaterEqual(float(accuracies[-1]), 0.97)
        self.assertGreaterEqual(number("real digits", self.done.stdout), 8.5)
        self.assertLess(number("an untrained generator", self.done.stdout), 1.1)

    def test_python_loads_both_networks_and_their_optimizers(self):
        checkpoints = sorted(self.experiment.glob("*/checkpoint_*"))
        self.assertEqual(len(checkpoints), 2)
        for checkpoint in checkpoints:
            state = torch.load(checkpoint / "state.pt", weights_only=True)
            for letter, network in [("G", generator()), ("D", discriminator())]:
                network.load_state_dict(state[f"net{letter}"])
                optimizer = torch.optim.Adam(network.parameters(), betas=(0.1, 0.1))
                optimizer.load_state_dict(state[f"optim{letter}"])
                self.assertEqual(optimizer.param_groups[0]["betas"], (0.5, 0.999))
            self.assertEqual(state["step"], 5)

    def test_the_learning_rates_of_the_config_are_used_from_the_first_step(self):
        for trial in self.experiment.glob("*/params.json"):
            config = json.loads(trial.read_text())
            state = torch.load(trial.parent / "checkpoint_000000" / "state.pt", weights_only=True)
            for letter, key in [("G", "netG_lr"), ("D", "netD_lr")]:
                self.assertEqual(state[f"optim{letter}"]["param_groups"][0]["lr"], config[key])
                self.assertIn(config[key], [0.0001, 0.0002, 0.0005])

    def test_the_digits_are_a_picture_of_eight_by_eight_tiles(self):
        with Image.open(self.experiment / "digits.png") as picture:
            picture.load()
            self.assertEqual((picture.mode, picture.size), ("L", (272, 272)))
            for y in range(272):
                for x in range(272):
                    # An untrained generator draws grey; each tile has a black border.
                    is_border = x % 34 in (0, 33) or y % 34 in (0, 33)
                    self.assertEqual(picture.getpixel((x, y)) == 0, is_border, (x, y))

    def test_the_learning_curves_are_of_the_score_and_both_losses(self):
        text = (self.experiment / "learning_curves.svg").read_text()
        xml.etree.ElementTree.fromstring(text)
        for metric in ("is_score", "lossg", "lossd"):
            self.assertIn(metric, text)

    def test_an_existing_experiment_is_refused_at_once(self):
        again = run(self.storage, "--smoke-test")
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists already", again.stderr)
        self.assertEqual(again.stdout, "")

    def test_bad_input_is_named_before_anything_ran(self):
        for flags, culprit in [(["--data-dir", "/nowhere"], "/nowhere"), (["--num-samples", "0"], "num_samples"),
                               (["--name", "../x"], "../x")]:
            with self.subTest(flags=flags), tempfile.TemporaryDirectory() as storage:
                done = run(storage, *flags)
                self.assertEqual(done.returncode, 1)
                self.assertIn(culprit, done.stderr)
                self.assertEqual(os.listdir(storage), [])


class DcganMnistRestoreTest(unittest.TestCase):
    """Has digits that are told apart after a second, so that what is trained here are the generators."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        digits = pathlib.Path(directory.name, "digits")
        write_simple_digits(digits)
        cls.data = ("--data-dir", str(digits))

    def test_an_interrupted_experiment_goes_on_with_both_networks(self):
        with tempfile.TemporaryDirectory() as storage:
            experiment = pathlib.Path(storage) / "dcgan_mnist"
            process = subprocess.Popen(command(storage, *self.data, "--num-samples", "2", "--max-iterations", "12"),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while process.poll() is None and not list(experiment.glob("*/checkpoint_*")):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 130, out + err)
            self.assertIn("--restore", err)

            restored = run(storage, *self.data, "--restore")
            self.assertEqual(restored.returncode, 0, restored.stdout + restored.stderr)
            self.assertIn("restored from", restored.stdout)
            self.assertNotIn("Classifier after epoch", restored.stdout, "it is the one of before")
            for trial in experiment.glob("*/result.json"):
                rows = [json.loads(line) for line in trial.read_text().splitlines()]
                self.assertEqual(rows[-1]["training_iteration"], 12)

    def test_an_experiment_that_is_killed_again_and_again_comes_to_the_same_networks(self):
        print("CADRE_SEED", killed_programs.SEED)
        trials, iterations = 2, 8
        draw = random.Random(killed_programs.SEED)
        with tempfile.TemporaryDirectory() as storage:
            undisturbed, killed = (pathlib.Path(storage, name) for name in ("undisturbed", "killed"))

            def start(experiment, is_there=False):
                return killed_programs.start(
                    *command(storage, *self.data, "--synch", "--num-samples", trials, "--max-iterations",
                             iterations, "--seed", 3, "--name", experiment.name, *["--restore"] * is_there))
            killed_programs.finish(start(undisturbed))
            kills = killed_programs.kill_at(draw.sample(range(1, trials * iterations), 4), lambda is_there: start(killed, is_there),
                                            lambda: killed_programs.lines_of(killed.glob("*/result.json")))
            self.assertGreater(kills, 1)
            self.assertGreater((undisturbed / "pbt_global.txt").read_text().count("\n"), 0)
            states = {experiment: {(trial.parent.name, state["step"]): state
                                   for trial in experiment.glob("*/checkpoint_*")
                                   for state in [torch.load(trial / "state.pt", weights_only=True)]}
                      for experiment in (undisturbed, killed)}
            last = [key for key in states[undisturbed] if key[1] == iterations]
            self.assertEqual(len(last), trials)
            for key in last:
                self.assertEqual(killed_programs.differences(states[killed][key], states[undisturbed][key]), [], key)


if __name__ == "__main__":
    unittest.main()
