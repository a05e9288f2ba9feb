#!/usr/bin/env python3
"""Compares two builds: runs each workload of run_all.py with both of them, in turns, and prints a table of their figures.

    compare_builds.py <folder of cadre_bench before> <the one after> [--runs N] [--only REGEX] [--results FOLDER] [--torch]

A machine is not equally fast all the time, so each run after is compared with the one beside it: "after/before" is the
median of these ratios, with the quartiles. A figure is worse where the quartiles are both on the wrong side of 1 by more
than --allowed. A figure that one of the builds lacks has a row that says so. Exits with 1 if a figure is worse, or if a
workload has failed.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import run_all


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="folder of cadre_bench")
    parser.add_argument("after", type=pathlib.Path, help="folder of the other cadre_bench")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("results"),
                        help="where a new folder is made for this run")
    parser.add_argument("--runs", type=int, default=5, help="pairs of each workload")
    parser.add_argument("--only", default="", help="regular expression for the arguments of the workloads to run")
    parser.add_argument("--torch", action="store_true", help="the workloads with libtorch, too")
    parser.add_argument("--allowed", type=float, default=0.02, help="by how much a figure may be worse (0.02: 2 %%)")
    return parser.parse_args()


WRONG_USAGE = 2  # a build ends with it that does not know the workload


def figures(bin_folder, arguments, storage, failed):
    """Returns the figures of a run by name; None if there are none. Appends a run that has failed to `failed`."""
    command = [bin_folder / "cadre_bench", *arguments.split(), "--storage-path", storage]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"{' '.join(map(str, command))}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        if done.returncode != WRONG_USAGE:
            failed.append(f"{' '.join(map(str, command))} ended with {done.returncode}")
        return None
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    failed += [f"{' '.join(map(str, command))}: {fault}" for fault in run_all.faults(lines)]
    return {figure["figure"]: figure for line in lines for figure in line["figures"]}


def pairs(arguments, workload, folder, failed):
    """Returns, by the name of a figure, its values before and after in each pair of runs; None where a build has none."""
    found = {}
    for number in range(arguments.runs):
        order = [("before", arguments.before), ("after", arguments.after)]
        both = {}
        for name, build in order if number % 2 == 0 else reversed(order):
            both[name] = figures(build, workload, folder / f"{number}_{name}", failed)
            if both[name] is None:
                return {}
        for figure in both["before"].keys() | both["after"].keys():
            found.setdefault(figure, []).append((both["before"].get(figure), both["after"].get(figure)))
    return found


def median(figures_of_runs):
    """Returns the median as text, with its unit; empty if there is no figure."""
    if not figures_of_runs:
        return ""
    value = statistics.median(figure["value"] for figure in figures_of_runs)
    return f"{run_all.number(value)} {figures_of_runs[0]['unit']}".strip()


def row(name, measured, allowed):
    """Returns a row of the table, and whether the figure is worse."""
    before, after = ([pair[which] for pair in measured if pair[which] is not None] for which in (0, 1))
    shown = [name, median(before), median(after)]
    if not before or not after:
        return [*shown, "", "", "only before" if before else "only after"], False
    pairs_of_values = [(old["value"], new["value"]) for old, new in measured if old is not None and new is not None]
    ratios = [new / old for old, new in pairs_of_values if old > 0]
    if not ratios:
        return [*shown, "", "", ""], False
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    limit = after[0].get("limit")  # which says what is good
    is_worse = (limit == "at most" and low > 1 + allowed) or (limit == "at least" and high < 1 - allowed)
    return [*shown, f"{middle:.3f}", f"{low:.3f} to {high:.3f}", "WORSE" if is_worse else ""], is_worse


def main():
    arguments = parse_arguments()
    workloads = run_all.chosen(arguments.only)
    folder = arguments.results / time.strftime("compared_%Y-%m-%d_%H-%M-%S")
    folder.mkdir(parents=True)
    rows = [["figure", "before", "after", "after/before", "quartiles", ""]]
    any_worse = False
    failed = []
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as file:
        for number, (workload, with_torch, _) in enumerate(workloads):
            for suffix in ["", " --torch"] if with_torch and arguments.torch else [""]:
                print(workload + suffix, file=sys.stderr, flush=True)
                storage = folder / f"{number:02}{suffix.strip(' -')}"
                for name, measured in sorted(pairs(arguments, workload + suffix, storage, failed).items()):
                    shown, is_worse = row(name + (", with torch" if suffix else ""), measured, arguments.allowed)
                    rows.append(shown)
                    any_worse |= is_worse
                    file.write(json.dumps({"figure": shown[0], "pairs": measured}) + "\n")
                    file.flush()
    widths = [max(map(len, column)) for column in zip(*rows)]
    for shown in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(shown, widths)).rstrip())
    for fault in failed:
        print(f"compare_builds: failed: {fault}", file=sys.stderr)
    sys.exit(1 if any_worse or failed else 0)


if __name__ == "__main__":
    main()
