#!/usr/bin/env python3
"""Reads JPEG files and changes them at random, with a dataset and with PyTorch's DataLoader, in turns.

    augment_images.py <folder of cadre_augment_images> [--runs N] [--threads N] [--images N] [--side N]

Decodes, cuts out a random part of 224 x 224 pixels, flips and normalises. All run on the same CPUs, one for each worker.
Prints a line for each epoch, and a figure: the images per second of the dataset, whose workers are processes or threads,
as a share of the DataLoader's, whose start does not count.
"""

import argparse
import os
import pathlib
import sys
import tempfile

from json_lines import print_figure
from read_images import run_all_ways, write_images

TORCH = pathlib.Path(__file__).with_name("torch_images.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5, help="of each, in turns")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="workers, and CPUs for them")
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--side", type=int, default=256, help="height and width of the files")
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:arguments.threads]
    program = arguments.bin_folder / "cadre_augment_images"
    ratios = {"processes": [], "threads": []}
    with tempfile.TemporaryDirectory() as folder:
        write_images(pathlib.Path(folder), arguments.images, arguments.side)
        flags = ["--folder", folder, "--threads", arguments.threads]
        commands = [[program, *flags], [program, *flags, "--in-threads"], [sys.executable, TORCH, *flags]]
        for number in range(arguments.runs):
            lines = {}
            for command in reversed(commands) if number % 2 else commands:  # each side begins in every other run
                lines |= run_all_ways(command, cpus)
            means = [line["mean"] for line in lines.values()]
            if max(means) - min(means) > 0.02:
                sys.exit(f"augment_images: the images differ: {lines}")
            for way, all_ratios in ratios.items():
                all_ratios.append(lines[way]["images_per_s"] / lines["torch"]["images_per_s"])
    for way, all_ratios in ratios.items():
        print_figure(f"images per second, dataset with {way} / DataLoader", all_ratios)


if __name__ == "__main__":
    main()
