#!/usr/bin/env python3
"""Times steps of data-parallel training in Cadre and in Python's DistributedDataParallel, in turns. Prints their times,
and Cadre's as a share of Python's; for the transformer the memory of a rank, too.

    step_time.py <folder of cadre_step_time> [--runs N] [--workers N] [--batch-size N] [--only MODEL] [--divided WHAT]
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
STEPS = {"convnet": 60, "resnet18": 12, "transformer": 8}
# By model: what of the training is divided among the ranks.
DIVISIONS = {"transformer": ["nothing", "optimizer", "parameters"]}


def run(command):
    """Runs a command and returns the median of the step times that it prints, and its memory."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True, env=environment)
    printed = json.loads(done.stdout.splitlines()[-1])
    return statistics.median(printed["step_ms"]), printed["memory_mib"]


def compare(model, divided, arguments):
    batch_size = arguments.batch_size if model != "transformer" else max(1, arguments.batch_size // 16)
    flags = ["--model", model, "--divided", divided, "--workers", arguments.workers, "--batch-size", batch_size,
             "--steps", STEPS[model]]
    labels = {"model": model, "divided": divided}
    ratios = []
    for attempt in range(arguments.runs):
        with tempfile.TemporaryDirectory() as storage:
            commands = {"python": [sys.executable, DDP, *flags],
                        "cadre": [arguments.bin_folder / "cadre_step_time", *flags, "--storage-path", storage]}
            measured = {}
            for name in commands if attempt % 2 == 0 else reversed(commands):  # each begins in every other attempt
                measured[name] = run(commands[name])
        (python_ms, python_mib), (cadre_ms, cadre_mib) = measured["python"], measured["cadre"]
        ratios.append(cadre_ms / python_ms)
        print(json.dumps(labels | {"run": attempt, "python_ms": python_ms, "cadre_ms": cadre_ms, "ratio": ratios[-1],
                                   "python_mib": round(python_mib), "cadre_mib": round(cadre_mib)}), flush=True)
    print(json.dumps(labels | {"figure": "step time, Cadre / Python", "ratio": statistics.median(ratios),
                               "lowest": min(ratios), "highest": max(ratios)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5, help="of each, in turns")
    parser.add_argument("--workers", type=int, default=2, help="ranks, of one thread each")
    parser.add_argument("--batch-size", type=int, default=128, help="of each rank")
    parser.add_argument("--only", choices=STEPS, help="this model only")
    parser.add_argument("--divided", help="this division of the transformer only")
    arguments = parser.parse_args()
    for model in [arguments.only] if arguments.only else STEPS:
        for divided in [arguments.divided] if arguments.divided else DIVISIONS.get(model, ["nothing"]):
            compare(model, divided, arguments)


if __name__ == "__main__":
    main()
