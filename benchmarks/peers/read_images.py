#!/usr/bin/env python3
"""Reads 4,000 JPEG files with a dataset, a plain loop and Ray Data, in turns.

    read_images.py <folder of cadre_read_images> [--runs N] [--threads N] [--images N] [--side N] [--size N] [--without-ray]

All run on the same CPUs, one for each thread, and have the same sum of values. Prints a line for each run, and one for
each figure: the images per second of the dataset as a share of the loop's, and of Ray Data's, whose own start-up does
not count.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy
import PIL.Image

from json_lines import print_figure, run

RAY = pathlib.Path(__file__).with_name("ray_data_images.py")


def write_images(folder, count, side):
    """Smooth content, like that of photographs, in files of a usual quality."""
    rng = numpy.random.default_rng(0)
    for number in range(count):
        coarse = PIL.Image.fromarray(rng.integers(0, 256, (side // 16, side // 16, 3)).astype(numpy.uint8))
        coarse.resize((side, side), PIL.Image.BICUBIC).save(folder / f"{number:06}.jpg", quality=90)


def run_all_ways(command, cpus):
    """Executes a command on these CPUs; prints the lines that it prints, and returns them by their way."""
    lines = run(command, cpus)
    for line in lines:
        print(json.dumps(line), flush=True)
    return {line["way"]: line for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5, help="of each, in turns")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="and CPUs for them")
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--side", type=int, default=256, help="height and width of the files")
    parser.add_argument("--size", type=int, default=0, help="height and width of the results; 0: those of the files")
    parser.add_argument("--without-ray", action="store_true")
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:arguments.threads]
    ratios = {"loop": [], "ray": []}
    with tempfile.TemporaryDirectory() as folder:
        write_images(pathlib.Path(folder), arguments.images, arguments.side)
        flags = ["--folder", folder, "--threads", arguments.threads, "--size", arguments.size]
        for number in range(arguments.runs):
            commands = [[arguments.bin_folder / "cadre_read_images", *flags, *(["--dataset-first"] if number % 2 else [])]]
            if not arguments.without_ray:
                commands.append([sys.executable, RAY, *flags])
            lines = {}
            for command in reversed(commands) if number % 2 else commands:  # each side begins in every other run
                lines |= run_all_ways(command, cpus)
            sums = [line["sum"] for line in lines.values()]
            if max(sums) - min(sums) > max(sums) // 10000:
                sys.exit(f"read_images: the images differ: {lines}")
            for way in lines.keys() & ratios.keys():
                ratios[way].append(lines["dataset"]["images_per_s"] / lines[way]["images_per_s"])
    print_figure("images per second, dataset / plain loop", ratios["loop"])
    if not arguments.without_ray:
        print_figure("images per second, dataset / Ray Data", ratios["ray"])


if __name__ == "__main__":
    main()
