"""Runs programs that print lines of JSON, for the comparisons of this folder."""

import json
import os
import statistics
import subprocess
import sys


def run(command, cpus):
    """Executes a command on these CPUs and returns the lines that it prints."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def print_figure(name, ratios):
    print(json.dumps({"figure": name, "ratio": statistics.median(ratios), "lowest": min(ratios),
                      "highest": max(ratios)}), flush=True)
