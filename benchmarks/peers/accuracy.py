#!/usr/bin/env python3
"""The accuracy to which examples/resnet_fashion comes, and the same program in Python, by seed.

    accuracy.py <folder of resnet_fashion> <folder of write_jpegs.py> [--seeds N] [--epochs N]
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

PEER = pathlib.Path(__file__).with_name("resnet_fashion.py")


def run(command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True,
                          env=os.environ | {"OMP_NUM_THREADS": "1"})
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("data_dir", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--num-workers", type=int, default=4)
    arguments = parser.parse_args()
    found = {"python": [], "cadre": []}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        flags = ["--data-dir", arguments.data_dir, "--epochs", arguments.epochs, "--num-workers", arguments.num_workers,
                 "--seed", seed]
        began = time.monotonic()
        found["python"].append(json.loads(run([sys.executable, PEER, *flags]).splitlines()[-1])["accuracy"])
        python_s = time.monotonic() - began
        with tempfile.TemporaryDirectory() as storage:
            began = time.monotonic()
            printed = run([arguments.bin_folder / "resnet_fashion", *flags, "--storage-path", storage])
            cadre_s = time.monotonic() - began
        found["cadre"].append(float(re.search(r"^accuracy ([\d.]+)$", printed, re.MULTILINE)[1]))
        print(json.dumps({"seed": seed, "python": found["python"][-1], "cadre": found["cadre"][-1],
                          "python_s": round(python_s, 1), "cadre_s": round(cadre_s, 1)}), flush=True)
    print(json.dumps({"figure": "accuracy", **{name: round(statistics.mean(values), 4) for name, values in found.items()}}))


if __name__ == "__main__":
    main()
