#!/usr/bin/env python3
"""Times steps of data-parallel training in Cadre and in Python's DistributedDataParallel, in turns. Prints their times,
and Cadre's as a share of Python's.

    step_time.py <folder of cadre_step_time> [--runs N] [--workers N] [--batch-size N] [--only MODEL]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

DDP = pathlib.Path(__file__).with_name("ddp_step_time.py")
# By model: measured steps of a run.
STEPS = {"convnet": 60, "resnet18": 12}


def run(command):
    """Runs a command and returns the step times that it prints."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])["step_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5, help="of each, in turns")
    parser.add_argument("--workers", type=int, default=2, help="ranks, of one thread each")
    parser.add_argument("--batch-size", type=int, default=128, help="of each rank")
    parser.add_argument("--only", choices=STEPS, help="this model only")
    arguments = parser.parse_args()
    for model in [arguments.only] if arguments.only else STEPS:
        flags = ["--model", model, "--workers", arguments.workers, "--batch-size", arguments.batch_size,
                 "--steps", STEPS[model]]
        ratios = []
        for attempt in range(arguments.runs):
            python = run([sys.executable, DDP, *flags])
            with tempfile.TemporaryDirectory() as storage:
                cadre = run([arguments.bin_folder / "cadre_step_time", *flags, "--storage-path", storage])
            line = {"model": model, "run": attempt, "python_ms": statistics.median(python),
                    "cadre_ms": statistics.median(cadre)}
            ratios.append(line["cadre_ms"] / line["python_ms"])
            print(json.dumps(line | {"ratio": ratios[-1]}), flush=True)
        print(json.dumps({"model": model, "figure": "step time, Cadre / Python", "ratio": statistics.median(ratios),
                          "lowest": min(ratios), "highest": max(ratios)}), flush=True)


if __name__ == "__main__":
    main()
