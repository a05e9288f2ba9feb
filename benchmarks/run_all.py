#!/usr/bin/env python3
"""Runs all workloads of cadre_bench with the settings of the budget, and prints a table of their figures.

    run_all.py <folder of cadre_bench> [--results FOLDER] [--runs N] [--only REGEX]

The experiments and all lines (lines.jsonl) stay in the results folder. Workloads with --torch run if there is a
cadre_bench_torch. Figures are medians over the runs. Exits with 1 if a figure does not meet its budget, or if trials
have failed: what they did not do took no time.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

# For each workload: its arguments, true if it also runs with libtorch, true if it runs several times.
WORKLOADS = [
    ("empty-trial --trials 2000 --slots 2", True, True),
    ("reports --trials 1 --reports 20000", False, True),
    ("reports --trials 16 --reports 2000", False, True),
    ("checkpoints --bytes 10000000 --steps 100 --keep 2 --step-ms 10", False, True),
    ("checkpoints --bytes 1000 --steps 1000 --keep 2", False, True),
    ("pbt --population 8 --slots 8 --steps 60 --step-ms 5 --interval 5 --bytes 1000000 --keep 4", False, True),
    ("slot-share --trials 4 --slots 2 --steps 200 --step-ms 16", True, True),
    ("programs --trials 1000 --slots 2", False, True),
    ("restart --trials 4 --steps 60 --kills 5 --finished 0", True, True),
    ("restart --trials 4 --steps 60 --kills 1 --finished 20000,100000", False, False),
    ("memory --trials 16", True, True),
    ("train-start --workers 2", True, True),
    ("train-reports --workers 2 --reports 5000", False, True),
    ("train-checkpoints --workers 2 --bytes 10000000 --steps 100", False, True),
    ("train-checkpoints --workers 2 --bytes 10000000 --steps 100 --mode async", False, True),
    ("validation", False, True),
    ("cluster", False, False),
    ("trials --trials 1000,20000,1000000", False, False),
]


def run(bin_folder, arguments, storage):
    """Runs a workload and returns its output lines as dictionaries."""
    command = [bin_folder / "cadre_bench", *arguments.split(), "--storage-path", storage]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"run_all: failed: {' '.join(map(str, command))}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def number(value):
    """Returns a number as readable text with at most four significant digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def rows(lines):
    """Yields (figure, value, budget, met, ratio) for each figure, in order: medians over all lines that have it."""
    found = {}
    for line in lines:
        for figure in line["figures"]:
            found.setdefault((figure["figure"], line["torch"]), []).append(figure)
    for (name, torch), figures in found.items():
        first = figures[0]
        value = statistics.median(figure["value"] for figure in figures)
        ratios = [figure["ratio"] for figure in figures if "ratio" in figure]
        budget, met = "", ""
        if "budget" in first:
            is_met = value <= first["budget"] if first["limit"] == "at most" else value >= first["budget"]
            met = "yes" if is_met else "NO"
            budget = f"{first['limit']} {number(first['budget'])}"
        yield (name + (", with torch" if torch else ""), f"{number(value)} {first['unit']}".strip(), budget, met,
               f"{number(statistics.median(ratios))}x" if ratios else "")


def faults(lines):
    """Yields what has gone wrong in the experiments, whatever the figures are."""
    for line in lines:
        for key, what in ("errors", "trials in error"), ("repeated_results", "results that were repeated"):
            if line.get(key):
                yield f"{line['workload']}{', with torch' if line['torch'] else ''}: {line[key]} {what}"


def chosen(only):
    """Returns the workloads whose arguments a regular expression is found in; ends the program if there are none."""
    found = [workload for workload in WORKLOADS if re.search(only, workload[0])]
    if not found:
        names = "; ".join(arguments for arguments, _, _ in WORKLOADS)
        print(f"--only {only}: no workload has that; there are: {names}", file=sys.stderr)
        sys.exit(2)
    return found


def table(lines):
    """Returns the figures of all lines as a text table."""
    cells = [("figure", "value", "budget", "met", "beside plain"), *rows(lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_folder", type=pathlib.Path, help="folder of cadre_bench")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"),
                        help="where a new folder is made for this run")
    parser.add_argument("--runs", type=int, default=3, help="of each workload that does not take minutes")
    parser.add_argument("--only", default="", help="regular expression for the arguments of the workloads to run")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    workloads = chosen(arguments.only)
    folder = arguments.results / time.strftime("bench_%Y-%m-%d_%H-%M-%S")
    folder.mkdir(parents=True)
    has_torch = (arguments.bin_folder / "cadre_bench_torch").exists()
    lines = []
    with (folder / "lines.jsonl").open("w", encoding="utf-8") as file:
        for workload, with_torch, several in workloads:
            for torch in ["", " --torch"] if with_torch and has_torch else [""]:
                for attempt in range(arguments.runs if several else 1):
                    print(f"{workload}{torch}", file=sys.stderr, flush=True)
                    new = run(arguments.bin_folder, workload + torch, folder / f"{len(lines):03}_{attempt}")
                    lines += new
                    file.writelines(json.dumps(line) + "\n" for line in new)
                    file.flush()
    print(table(lines))
    print(f"\nLines and experiments: {folder}")
    wrong = list(faults(lines))
    for fault in wrong:
        print(f"run_all: {fault}", file=sys.stderr)
    sys.exit(1 if wrong or any(row[3] == "NO" for row in rows(lines)) else 0)


if __name__ == "__main__":
    main()
