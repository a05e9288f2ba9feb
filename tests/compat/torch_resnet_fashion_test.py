"""The example with all that a real training has around its loop, on a few images: killed again and again it comes to the
same parameters and validations, and Python reads its averages. CADRE_KILLS=50 kills that often."""

import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import killed_programs
import numpy
import torch
from PIL import Image
from torch.optim.swa_utils import AveragedModel
from torch_fashion_mnist_train_test import DATA, ResNet18

KILLS = int(os.environ.get("CADRE_KILLS", 3))
EPOCHS = max(2, KILLS // 2 + 1)
STEPS = 2  # of an epoch: 160 images in 4 ranks, of which the second step has 8 in each
WRITE_JPEGS = pathlib.Path(os.environ["CADRE_SOURCE"], "examples/resnet_fashion/write_jpegs.py")


def newest(run):
    return torch.load(sorted(run.glob("checkpoint_*"))[-1] / "state.pt", weights_only=True)


def validations(run):
    lines = [json.loads(line)["metrics"] for line in (run / "validations.json").read_text().splitlines()]
    return {(line["epoch"], line["accuracy"]) for line in lines}


@unittest.skipUnless(pathlib.Path(os.environ["CADRE_BIN"], "resnet_fashion").exists(), "built without Arrow")
class ResNetFashionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.storage = pathlib.Path(directory.name)
        cls.images = cls.storage / "images"
        subprocess.run([sys.executable, WRITE_JPEGS, DATA, cls.images, "--max-train", "160", "--max-test", "100"],
                       check=True)
        cls.undisturbed = cls.storage / "undisturbed"
        killed_programs.finish(cls.start(cls.undisturbed))

    @classmethod
    def start(cls, run):
        return killed_programs.start("resnet_fashion", "--data-dir", cls.images, "--epochs", EPOCHS, "--save-every", 1,
                                     "--storage-path", cls.storage, "--name", run.name)

    def test_a_run_that_is_killed_again_and_again_comes_to_the_same_parameters(self):
        print("CADRE_SEED", killed_programs.SEED)
        draw = random.Random(killed_programs.SEED)
        killed = self.storage / "killed"

        def begun_checkpoints():
            numbers = [re.search(r"checkpoint_(\d+)", path.name) for path in killed.glob("*checkpoint_*")]
            return max((int(number[1]) + 1 for number in numbers if number), default=0)
        kills = killed_programs.kill_at(draw.sample(range(1, STEPS * EPOCHS), KILLS), lambda _: self.start(killed),
                                        begun_checkpoints)
        self.assertGreater(kills, KILLS // 2)

        expected, got = newest(self.undisturbed), newest(killed)
        self.assertEqual(killed_programs.differences(got, expected), [])
        for name in ("scheduler", "scaler", "epoch", "position"):
            self.assertEqual(got[name], expected[name], name)
        self.assertEqual(len(validations(self.undisturbed)), EPOCHS)
        self.assertEqual(validations(killed), validations(self.undisturbed))
        with sqlite3.connect(killed / "experiment.db") as store:
            rows = [json.loads(row[0]) for row in
                    store.execute("SELECT metrics FROM results WHERE repeated = 0 ORDER BY sequence")]
        self.assertEqual([row["step"] for row in rows], list(range(1, STEPS * EPOCHS + 1)))

    def test_python_measures_the_same_accuracy_of_the_averages(self):
        state = newest(self.undisturbed)
        averages = AveragedModel(ResNet18())
        averages.load_state_dict(state["averages"])
        self.assertEqual(averages.n_averaged, STEPS * EPOCHS)
        files = sorted((self.images / "test").glob("*/*.jpg"))
        pixels = numpy.stack([numpy.array(Image.open(file)) for file in files])[:, None]
        labels = torch.tensor([int(file.parent.name) for file in files])
        with torch.no_grad():
            found = averages.eval()((torch.tensor(pixels).float() / 255 - 0.286) / 0.353).argmax(1)
        accuracy = (found == labels).double().mean().item()
        self.assertAlmostEqual(accuracy, dict(validations(self.undisturbed))[EPOCHS], delta=0.011)


if __name__ == "__main__":
    unittest.main()
