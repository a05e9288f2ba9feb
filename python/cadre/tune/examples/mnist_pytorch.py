"""A small network for MNIST, and how it is trained and tested: the example of Ray Tune's guides.

The images are not downloaded. They are files in the IDX format, as MNIST has them, packed with gzip or not, in the first of
these folders that has them: CADRE_MNIST of the environment, ./data/mnist, ~/data/mnist, and those of Debian's package
dataset-fashion-mnist.
"""

import gzip
import os
import pathlib
import struct

import numpy
import torch
import torch.nn.functional as functional
from torch import nn

EPOCH_SIZE = 512  # images that train_func trains with
TEST_SIZE = 256  # images that test_func tests with

_FOLDERS = ("data/mnist", "~/data/mnist", "/usr/share/datasets/fashion-mnist")


class ConvNet(nn.Module):
    """One convolution and one linear layer. Images of 1 x 28 x 28 to the logarithms of ten probabilities."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, kernel_size=3)
        self.fc = nn.Linear(192, 10)

    def forward(self, x):
        x = functional.relu(functional.max_pool2d(self.conv1(x), 3))
        return functional.log_softmax(self.fc(x.view(-1, 192)), dim=1)


def train_func(model, optimizer, train_loader, device=None):
    """Trains with the first EPOCH_SIZE images."""
    device = device or torch.device("cpu")
    model.train()
    for batch, (data, target) in enumerate(train_loader):
        if batch * len(data) > EPOCH_SIZE:
            return
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        functional.nll_loss(model(data), target).backward()
        optimizer.step()


def test_func(model, data_loader, device=None):
    """Returns the share of the first TEST_SIZE images that the model recognises."""
    device = device or torch.device("cpu")
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for batch, (data, target) in enumerate(data_loader):
            if batch * len(data) > TEST_SIZE:
                break
            predicted = model(data.to(device)).argmax(dim=1)
            total += target.size(0)
            correct += (predicted == target.to(device)).sum().item()
    return correct / total


setattr(test_func, "__test__", False)  # pytest collects it otherwise in modules that import it


def get_data_loaders(batch_size=64):
    """Returns loaders of the training images, shuffled, and of the test images, shuffled."""
    def loader(part):
        return torch.utils.data.DataLoader(_dataset(part), batch_size=batch_size, shuffle=True)

    return loader("train"), loader("t10k")


def read_images(part):
    """Returns the images, count x 28 x 28 bytes, and their labels, of "train" or "t10k"."""
    return _read_idx(f"{part}-images-idx3-ubyte"), _read_idx(f"{part}-labels-idx1-ubyte").astype(numpy.int64)


def _dataset(part):
    images, labels = read_images(part)
    normalized = (torch.from_numpy(images.astype(numpy.float32) / 255).unsqueeze(1) - 0.1307) / 0.3081
    return torch.utils.data.TensorDataset(normalized, torch.from_numpy(labels))


def _read_idx(name):
    """Returns the array of an IDX file."""
    for folder in filter(None, (os.environ.get("CADRE_MNIST"), *_FOLDERS)):
        for file in (pathlib.Path(folder).expanduser() / name, pathlib.Path(folder).expanduser() / f"{name}.gz"):
            if file.exists():
                with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as opened:
                    data = opened.read()
                num_dimensions = data[3]
                shape = struct.unpack(f">{num_dimensions}I", data[4:4 + 4 * num_dimensions])
                return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * num_dimensions).reshape(shape).copy()
    raise FileNotFoundError(f"{name} is in none of CADRE_MNIST, {', '.join(_FOLDERS)}; set CADRE_MNIST to a folder of MNIST's "
                            "files")
