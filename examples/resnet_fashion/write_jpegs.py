#!/usr/bin/env python3
"""Writes the images of MNIST or Fashion-MNIST as JPEG files, each into the folder of its class:

    python3 write_jpegs.py /usr/share/datasets/fashion-mnist data/fashion_mnist_jpegs

makes data/fashion_mnist_jpegs/train/0/00001.jpg and so on, and the same in .../test. Needs numpy and Pillow.
"""

import argparse
import gzip
import pathlib

import numpy
from PIL import Image


def read_idx(path, header_bytes):
    opened = gzip.open(f"{path}.gz") if path.with_name(f"{path.name}.gz").exists() else open(path, "rb")
    with opened as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header_bytes)


def write_part(source, prefix, folder, max_images):
    images = read_idx(source / f"{prefix}-images-idx3-ubyte", 16).reshape(-1, 28, 28)
    labels = read_idx(source / f"{prefix}-labels-idx1-ubyte", 8)
    for label in range(10):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
    for number, (image, label) in enumerate(zip(images[:max_images], labels)):
        Image.fromarray(image).save(folder / str(label) / f"{number:05}.jpg", quality=95)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, help="folder with the four IDX files, plain or .gz")
    parser.add_argument("folder", type=pathlib.Path, help="gets the folders train and test")
    parser.add_argument("--max-train", type=int, help="write the first images only; default: all")
    parser.add_argument("--max-test", type=int, help="likewise")
    arguments = parser.parse_args()
    write_part(arguments.source, "train", arguments.folder / "train", arguments.max_train)
    write_part(arguments.source, "t10k", arguments.folder / "test", arguments.max_test)


if __name__ == "__main__":
    main()
