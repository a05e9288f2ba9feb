"""The example of distributed training on real Fashion-MNIST: two workers learn, the death of one loses nothing that was
saved, and its networks and Python's read each other's parameters."""

import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import tempfile
import unittest

import killed_programs
import torch
from torch import nn

DATA = "/usr/share/datasets/fashion-mnist"


def command(storage, *flags):
    program = os.path.join(os.environ["CADRE_BIN"], "fashion_mnist_train")
    return [program, "--storage-path", str(storage), *flags]


def run(storage, *flags):
    return subprocess.run(command(storage, *flags), capture_output=True, text=True, timeout=600)


def load(checkpoint):
    return torch.load(checkpoint / "model.pt", weights_only=True)


class BasicBlock(nn.Module):
    def __init__(self, in_channels, out_channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.downsample = None
        if stride != 1 or in_channels != out_channels:
            self.downsample = nn.Sequential(nn.Conv2d(in_channels, out_channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(out_channels))

    def forward(self, x):
        inner = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(inner + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    """ResNet-18 of torchvision, with one channel."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        sizes = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        for number, (before, after, stride) in enumerate(sizes, start=1):
            setattr(self, f"layer{number}", nn.Sequential(BasicBlock(before, after, stride), BasicBlock(after, after, 1)))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        return self.fc(self.avgpool(self.layer4(self.layer3(self.layer2(self.layer1(x))))).flatten(1))


class FashionMnistTrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.storage = pathlib.Path(directory.name)
        cls.path = cls.storage / "fashion_mnist_train"
        cls.done = run(cls.storage, "--smoke-test")

    def test_a_smoke_test_is_two_epochs_and_a_checkpoint_of_each(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        self.assertEqual(self.done.stderr, "")
        self.assertEqual(sorted(path.name for path in self.path.glob("checkpoint_*")),
                         ["checkpoint_000000", "checkpoint_000001"])
        self.assertEqual(sorted(path.name for path in self.path.glob("rank_*")), ["rank_0", "rank_1"])
        self.assertEqual(load(self.path / "checkpoint_000001")["epoch"], 2)

    def test_each_rank_has_random_states_of_its_own(self):
        states = [torch.load(self.path / f"checkpoint_000001/random_{rank}.pt", weights_only=True)["random"]["cpu"]
                  for rank in (0, 1)]
        self.assertFalse(torch.equal(*states))

    def test_it_learns(self):
        losses = [float(loss) for loss in re.findall(r"loss=([\d.]+)", self.done.stdout)]
        self.assertEqual(len(losses), 2)
        self.assertLess(losses[1], losses[0])
        accuracy = float(re.search(r"accuracy on the test images ([\d.]+)", self.done.stdout)[1])
        self.assertGreater(accuracy, 0.4, "of guessing it is 0.1")

    def test_a_run_that_exists_is_refused_and_bad_input_named(self):
        self.assertIn("exists already", run(self.storage, "--smoke-test").stderr)
        for flags, culprit in [(["--data-dir", "/nowhere"], "/nowhere"), (["--num-workers", "0"], "num_workers"),
                               (["--num-workers", "1000"], "1000 workers need more than this machine has"),
                               (["--name", "a/b"], "a/b"), (["--model", "alexnet"], "alexnet")]:
            with self.subTest(flags=flags), tempfile.TemporaryDirectory() as storage:
                done = run(storage, "--smoke-test" if "--model" not in flags else "--epochs=1", *flags)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(culprit, done.stderr)
                self.assertEqual(os.listdir(storage), [])


    def test_the_command_line_shows_runs_among_experiments(self):
        def cadre(*arguments):
            program = os.path.join(os.environ["CADRE_BIN"], "cadre")
            return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
        listed = cadre("ls", str(self.storage)).stdout
        self.assertRegex(listed, r"fashion_mnist_train +finished +run, 2 reports")
        shown = cadre("show", str(self.path)).stdout
        self.assertIn("Training run fashion_mnist_train", shown)
        self.assertIn("checkpoint_000001", shown)
        document = json.loads(cadre("show", str(self.path), "--json").stdout)
        self.assertEqual((document["state"], document["reports"], document["config"]["model"]),
                         ("finished", 2, "convnet"))
        self.assertEqual([checkpoint["metrics"]["epoch"] for checkpoint in document["checkpoints"]], [1, 2])
        self.assertIn("has no metric of its own", cadre("best", str(self.path)).stderr)


class ResNetTest(unittest.TestCase):
    def test_python_takes_the_parameters_of_resnet18_and_computes_the_same(self):
        with tempfile.TemporaryDirectory() as storage:
            done = run(storage, "--epochs", "1", "--max-images", "128", "--name", "resnet")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            state = load(pathlib.Path(storage) / "resnet/checkpoint_000000")
            model = ResNet18()
            model.load_state_dict(state["model"])  # all names and shapes
            optimizer = torch.optim.Adam(model.parameters())
            optimizer.load_state_dict(state["optimizer"])
            self.assertEqual(len(optimizer.state), 62)
            self.assertAlmostEqual(self.accuracy(model.eval()),
                                   float(re.search(r"accuracy on the test images ([\d.]+)", done.stdout)[1]), places=3)

    @staticmethod
    def accuracy(model):
        import gzip
        import numpy
        with gzip.open(f"{DATA}/t10k-images-idx3-ubyte.gz") as file:
            pixels = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
        with gzip.open(f"{DATA}/t10k-labels-idx1-ubyte.gz") as file:
            labels = torch.tensor(numpy.frombuffer(file.read(), numpy.uint8, offset=8).astype("int64"))
        images = (torch.tensor(pixels).float() / 255 - 0.5) / 0.5
        images, labels = images[:128], labels[:128]  # as with --max-images
        with torch.no_grad():
            right = sum(int((model(part).argmax(1) == answers).sum())
                        for part, answers in zip(images.split(500), labels.split(500)))
        return right / len(labels)


class InterruptionTest(unittest.TestCase):
    """Dropout, random changes of the images, a schedule and the order of the data go on where they were."""

    EPOCHS = 6
    FLAGS = ("--model", "convnet", "--epochs", EPOCHS, "--max-images", "384")

    def test_a_run_that_is_killed_again_and_again_comes_to_the_same_parameters(self):
        print("CADRE_SEED", killed_programs.SEED)
        draw = random.Random(killed_programs.SEED)
        with tempfile.TemporaryDirectory() as storage:
            undisturbed, killed = (pathlib.Path(storage, name) for name in ("undisturbed", "killed"))

            def start(run, is_there=False):
                return killed_programs.start("fashion_mnist_train", "--storage-path", storage, *self.FLAGS, "--name", run.name,
                                             *["--restore"] * is_there)

            def begun_checkpoints():  # also those that only some ranks have written
                return len(list(killed.glob("checkpoint_*"))) + len(list(killed.glob(".*checkpoint*")))
            killed_programs.finish(start(undisturbed))
            kills = killed_programs.kill_at(draw.sample(range(1, self.EPOCHS), 4), lambda is_there: start(killed, is_there),
                                            begun_checkpoints)
            self.assertGreater(kills, 1)

            for name in ("model.pt", "random_0.pt", "random_1.pt"):
                expected, got = (torch.load(sorted(run.glob("checkpoint_*"))[-1] / name, weights_only=True)
                                 for run in (undisturbed, killed))
                self.assertEqual(killed_programs.differences(got, expected), [], name)
                if name == "model.pt":
                    self.assertEqual(got["epoch"], self.EPOCHS)
                    self.assertEqual((got["loader"], got["scheduler"]), (expected["loader"], expected["scheduler"]))
            with sqlite3.connect(killed / "experiment.db") as store:
                rows = [json.loads(row[0]) for row in
                        store.execute("SELECT metrics FROM results WHERE repeated = 0 ORDER BY sequence")]
            self.assertEqual([row["epoch"] for row in rows], list(range(1, self.EPOCHS + 1)))


if __name__ == "__main__":
    unittest.main()
