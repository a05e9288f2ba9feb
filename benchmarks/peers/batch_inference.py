#!/usr/bin/env python3
"""Runs a network over 10,000 images in Parquet files with map_batches, hand-written loops and Ray Data, in turns.

    batch_inference.py <folder of cadre_batch_inference> [--runs N] [--workers N] [--images N] [--without-ray]

All run on the same CPUs, one for each worker. Prints a line for each run, and one for each figure: the rows per second
of map_batches as a share of the faster loop's (one process with a thread for each worker, or one process for each), and
of Ray Data's, whose own start-up does not count.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

from json_lines import print_figure, run

RAY = pathlib.Path(__file__).with_name("ray_data_inference.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5, help="of each, in turns")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="CPUs, and processes on them")
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--without-ray", action="store_true")
    arguments = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:arguments.workers]
    program = arguments.bin_folder / "cadre_batch_inference"
    ratios = {"loop": [], "ray": [], "ray from its first batch on": []}
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--folder", folder, "--images", arguments.images, "--batch-size", arguments.batch_size,
                 "--workers", arguments.workers]

        def rate(way):
            command = [sys.executable, RAY] if way == "ray" else [program, "--way", way]
            line = run([*command, *flags], cpus)[-1]
            print(json.dumps(line), flush=True)
            return line

        run([program, *flags, "--way", "write"], cpus)
        ways = ["loop", "loops", "map_batches", *([] if arguments.without_ray else ["ray"])]
        for number in range(arguments.runs):
            # Each side begins in every other run.
            lines = {way: rate(way) for way in (reversed(ways) if number % 2 else ways)}
            dataset = lines["map_batches"]["rows_per_s"]
            ratios["loop"].append(dataset / max(lines[way]["rows_per_s"] for way in ("loop", "loops")))
            if "ray" in lines:
                ratios["ray"].append(dataset / lines["ray"]["rows_per_s"])
                ratios["ray from its first batch on"].append(dataset / lines["ray"]["rows_per_s_from_first_batch"])
            right = [line["right"] for line in lines.values()]
            if max(right) - min(right) > arguments.images // 1000:
                sys.exit(f"batch_inference: not all have predicted the same images: {lines}")
    print_figure("rows per second, map_batches / the faster loop by hand", ratios["loop"])
    if not arguments.without_ray:
        print_figure("rows per second, map_batches / Ray Data", ratios["ray"])
        print_figure("rows per second, map_batches / Ray Data from its first batch on",
                     ratios["ray from its first batch on"])


if __name__ == "__main__":
    main()
