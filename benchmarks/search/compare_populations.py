"""Compares Population Based Training with its variants and with random search: the example pbt_mnist, 30 seeds each.

    .venv/bin/python benchmarks/search/compare_populations.py build/release/bin [--seeds 30] [--jobs 1] [--picture file.svg]
    .venv/bin/python benchmarks/search/compare_populations.py build/release/bin --function surrogate [--trials 4] ...

Prints a table of the best trial's error on the test images, over the seeds, and draws how the best error so far fell. All
populations have the same number of trials, and all trials the same number of iterations. Results are kept in
`results/populations.jsonl`, so that a second run computes only what is missing there, and all with a program that has
changed. With --function, populations train on one of the functions of population_bench.cc instead, in minutes; the table
has what the best trial lacks at the end."""

import argparse
import concurrent.futures
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

from fingerprint import fingerprint

KINDS = {"random search": None, "PBT": "pbt", "PB2": "pb2", "MF-PBT": "mf-pbt"}
COLOURS = {"random search": "#888888", "PBT": "#1f77b4", "PB2": "#d62728", "MF-PBT": "#2ca02c"}


def errors_by_iteration(experiment, iterations):
    """Returns the smallest error of the population so far, after each iteration."""
    smallest = [1.0] * iterations
    for file in experiment.glob("*/result.json"):
        for row in map(json.loads, file.read_text().splitlines()):
            i = row["training_iteration"] - 1
            smallest[i] = min(smallest[i], row["error"])
    return [min(smallest[:i + 1]) for i in range(iterations)]


def program_of(args):
    return args.bin / ("cadre_population_bench" if args.function else "pbt_mnist")


def run(args, kind, seed):
    if args.function:
        command = [program_of(args), "--function", args.function, "--scheduler", KINDS[kind] or "none",
                   "--trials", str(args.trials), "--first-seed", str(seed)]
        line = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return {"kind": kind, "function": args.function, "seed": seed, "trials": args.trials, "errors": line["errors"]}
    with tempfile.TemporaryDirectory() as storage:
        command = [program_of(args), "--data-dir", args.data_dir, "--storage-path", storage, "--name", "run", "--seed",
                   str(seed), "--num-samples", str(args.trials), "--max-iterations", str(args.iterations), "--synch"]
        command += ["--scheduler", KINDS[kind] or "none"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return {"kind": kind, "seed": seed, "trials": args.trials,
                "errors": errors_by_iteration(pathlib.Path(storage) / "run", args.iterations)}


def results(args):
    lines = []
    program = fingerprint(program_of(args))
    if args.keep.exists():
        lines = [json.loads(line) for line in args.keep.read_text().splitlines()]
    lines = [line for line in lines if line.get("program") == program and line["trials"] == args.trials
             and line.get("function") == args.function
             and (args.function or len(line["errors"]) == args.iterations)]
    known = {(line["kind"], line["seed"]): line["errors"] for line in lines}
    args.keep.parent.mkdir(parents=True, exist_ok=True)
    missing = [(kind, seed) for seed in range(args.seeds) for kind in KINDS if (kind, seed) not in known]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool, args.keep.open("a") as file:
        for line in pool.map(lambda one: run(args, *one), missing):
            known[line["kind"], line["seed"]] = line["errors"]
            file.write(json.dumps(line | {"program": program}) + "\n")
            file.flush()
    # In the order of the seeds, whichever was computed first: kinds are compared seed by seed.
    return {kind: [known[kind, seed] for seed in range(args.seeds)] for kind in KINDS}


def quartiles(values):
    return statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3


def draw(curves, title, file):
    """Draws medians as lines and the quartiles as bands, with a logarithmic axis."""
    width, height, left, top = 640, 400, 60, 30
    bands = {kind: [quartiles(values) for values in zip(*seeds)] for kind, seeds in curves.items() if seeds}
    low = min(band[-1][0] for band in bands.values()) * 0.9
    high = max(band[2][2] for band in bands.values())
    count = max(map(len, bands.values()))

    def place(i, value):
        x = left + (width - left - 20) * i / (count - 1)
        y = top + (height - top - 40) * (math.log(high) - math.log(min(value, high))) / (math.log(high) - math.log(low))
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="18">{title} so far: median and quartiles of the seeds</text>']
    ticks = (0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.2, 0.3) if high < 20 * low else [10.0**power for power in range(-9, 3)]
    for tick in ticks:
        if low <= tick <= high:
            x, y = place(0, tick).split(",")
            parts.append(f'<line x1="{x}" y1="{y}" x2="{width - 20}" y2="{y}" stroke="#dddddd"/>'
                         f'<text x="{left - 6}" y="{float(y) + 4}" text-anchor="end">{tick:g}</text>')
    for i in range(0, count, max(6, count // 8)):
        x = place(i, high).split(",")[0]
        parts.append(f'<text x="{x}" y="{height - 22}" text-anchor="middle">{i + 1}</text>')
    parts.append(f'<text x="{(left + width) / 2}" y="{height - 6}" text-anchor="middle">iteration of each trial</text>')
    for row, (kind, band) in enumerate(bands.items()):
        upper = [place(i, three[2]) for i, three in enumerate(band)]
        lower = [place(i, three[0]) for i, three in enumerate(band)]
        colour = COLOURS[kind]
        parts.append(f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" opacity="0.15"/>')
        parts.append(f'<polyline points="{" ".join(place(i, three[1]) for i, three in enumerate(band))}" fill="none" '
                     f'stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<rect x="{width - 150}" y="{top + 8 + 18 * row}" width="12" height="12" fill="{colour}"/>'
                     f'<text x="{width - 132}" y="{top + 18 + 18 * row}">{kind}</text>')
    file.write_text("\n".join(parts) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=pathlib.Path, help="folder of pbt_mnist")
    parser.add_argument("--function", choices=["surrogate", "drift"], help="instead of the networks")
    parser.add_argument("--data-dir", default="data/mnist")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--trials", type=int, default=8, help="in each population")
    parser.add_argument("--iterations", type=int, default=48, help="of each trial")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at a time")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("results/populations.jsonl"))
    parser.add_argument("--picture", type=pathlib.Path)
    args = parser.parse_args()
    curves = results(args)
    print("| scheduler | seeds | lower quartile | median | upper quartile | better than PBT in |")
    print("|---|---|---|---|---|---|")
    for kind, seeds in curves.items():
        last = [errors[-1] for errors in seeds]
        low, middle, high = quartiles(last)
        wins = sum(one[-1] < pbt[-1] for one, pbt in zip(seeds, curves["PBT"]))
        texts = [f"{one:.3g}" if args.function else f"{100 * one:.2f} %" for one in (low, middle, high)]
        print(f"| {kind} | {len(seeds)} | {' | '.join(texts)} | {wins} |")
    if args.picture:
        title = f"What the best trial lacks in {args.function}" if args.function else "Smallest error on MNIST"
        draw(curves, title, args.picture)


if __name__ == "__main__":
    main()
