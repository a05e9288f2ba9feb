"""Compares searchers of Cadre with samplers of Optuna: the same functions, budgets and seeds, in one run.

    .venv/bin/python benchmarks/search/compare.py build/release/bin [--only tpe] [--seeds 30] [--first-seed 1000]

Prints a table: the median of the best value over the seeds, and the p-values of a one-sided test of Mann and Whitney
that Cadre's is better, and that it is worse; and the milliseconds of CPU time for a suggestion, over all trials of a
seed. Seeds at which Optuna's sampler raises are left out on both sides, and named. Defaults were chosen with seeds
below 1000. Results are kept in `results/search/`, so that a second run computes only what is missing there: of
Cadre's program as it is now, and of these versions of Optuna and its libraries.

    .venv/bin/python benchmarks/search/compare.py build/release/bin --speed

Prints the milliseconds of CPU time for a suggestion and its observation after many trials with ten parameters,
instead."""

import argparse
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys

from fingerprint import fingerprint
from scipy.stats import mannwhitneyu

HERE = pathlib.Path(__file__).resolve().parent
# Name here, the searcher's options, Optuna's sampler of the same kind.
PAIRS = {
    "tpe": ({"type": "TPE"}, "tpe"),
    "tpe_multivariate": ({"type": "TPE"}, "tpe_multivariate"),
    "gp": ({"type": "GaussianProcess", "deterministic": True}, "gp"),
    "cmaes": ({"type": "CMAES"}, "cmaes"),
    "nsga2": ({"type": "NSGA2"}, "nsga2"),
    "quasi_random": ({"type": "QuasiRandom"}, "qmc"),
}
TRIALS = {"branin": 100, "hartmann6": 100, "network": 100, "mnist": 100, "rosenbrock10": 200, "ackley20": 200}
TRIALS_OF = {"gp": {"branin": 60, "rosenbrock10": 100, "ackley20": 100},
             "cmaes": {"rosenbrock10": 1000, "ackley20": 1000}, "nsga2": {"rosenbrock10": 1000, "ackley20": 1000}}

# Trials before those whose time counts, and their number.
SPEED = {"tpe": (1000, 100), "gp": (300, 20), "cmaes": (1000, 100), "nsga2": (1000, 100)}


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def lines_of(command, seeds, kept):
    """The results of a command, one a seed, also of those that failed; those in `kept` are not computed again."""
    lines = {}
    if kept.exists():
        lines = {line["seed"]: line for line in map(json.loads, kept.read_text().splitlines())}
    missing = [seed for seed in seeds if seed not in lines]
    if missing:
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = [*command, "--first-seed", str(missing[0]), "--seeds", str(missing[-1] + 1 - missing[0])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE,
                              env=ENVIRONMENT) as process, kept.open("a") as file:
            for line in process.stdout:
                lines[json.loads(line)["seed"]] = json.loads(line)
                file.write(line)
                file.flush()
        if process.returncode != 0:
            sys.exit(f"{command[0]} failed")
    return [lines[seed] for seed in seeds]


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def compare(args, name, function, parallel):
    searcher, sampler = PAIRS[name]
    trials = TRIALS_OF.get(name, {}).get(function, TRIALS[function])
    common = ["--function", function, "--trials", str(trials), "--parallel", str(parallel)]
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    place = pathlib.Path(args.keep).resolve()
    label = f"{function}_{trials}_{parallel}"
    program, table = args.bin.resolve() / "cadre_search_bench", HERE / "mnist_table.csv"
    of_own = fingerprint(program, table, json.dumps(searcher))
    of_peer = fingerprint(HERE / "optuna_bench.py", HERE / "functions.py", table,
                          *map(version_of, ("optuna", "cmaes", "scipy", "numpy", "torch")))
    own = lines_of([program, "--searcher", json.dumps(searcher), *common], seeds,
                   place / f"cadre_{searcher['type']}_{label}_{of_own}.jsonl")
    peer = lines_of([sys.executable, "optuna_bench.py", "--sampler", sampler, *common], seeds,
                    place / f"optuna_{sampler}_{label}_{of_peer}.jsonl")
    failed = [seed for seed, line in zip(seeds, peer) if "failed" in line]
    if len(failed) == len(seeds):
        sys.exit(f"Optuna failed at all seeds: {function}, {parallel} at a time: {peer[0]['failed']}")
    if failed:
        print(f"Optuna failed: {function}, {parallel} at a time, seeds {failed}", file=sys.stderr)
    own, peer = zip(*((ours, theirs) for ours, theirs in zip(own, peer) if "failed" not in theirs))
    ours, theirs = ([line["best"][-1] for line in lines] for lines in (own, peer))
    better, worse = (mannwhitneyu(ours, theirs, alternative=side).pvalue for side in ("less", "greater"))
    times = [1000 * statistics.median(line["seconds"] for line in lines) / trials for lines in (own, peer)]
    row = (f"| {searcher['type']} | {sampler} | {function} | {trials} | {parallel} | {len(ours)} | "
           f"{statistics.median(ours):.4g} | {statistics.median(theirs):.4g} | {better:.2g} | {worse:.2g} | "
           f"{times[0]:.2g} | {times[1]:.2g} |")
    return row, worse < 0.05


def seconds_of(command):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=HERE, env=ENVIRONMENT)
    line = json.loads(done.stdout)
    if "failed" in line:
        sys.exit(f"{' '.join(map(str, command))}: {line['failed']}")
    return line["seconds"]


def compare_speed(args, name):
    searcher, sampler = PAIRS[name]
    before, timed = SPEED[name]
    common = ["--function", "rosenbrock10", "--trials", str(before + timed), "--untimed", str(before)]
    commands = ([args.bin.resolve() / "cadre_search_bench", "--searcher", json.dumps(searcher), *common],
                [sys.executable, "optuna_bench.py", "--sampler", sampler, *common])
    own, peer = (1000 / timed * seconds_of(command) for command in commands)
    return f"| {searcher['type']} | {sampler} | {before} | {own:.3g} | {peer:.3g} | {peer / own:.3g} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path, help="folder of cadre_search_bench")
    parser.add_argument("--only", choices=PAIRS, action="append")
    parser.add_argument("--functions", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--parallel", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--keep", default="results/search")
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    if args.speed:
        print("| searcher | Optuna | observations | ms | Optuna's | ratio |")
        print("|---" * 6 + "|")
        for name in args.only or SPEED:
            print(compare_speed(args, name), flush=True)
        return
    print("| searcher | Optuna | function | trials | parallel | seeds | median | Optuna's | p better | p worse | ms | "
          "Optuna's |")
    print("|---" * 12 + "|")
    worse = 0
    for name in args.only or PAIRS:
        for function in args.functions:
            for parallel in args.parallel:
                row, is_worse = compare(args, name, function, parallel)
                print(row, flush=True)
                worse += is_worse
    print(f"\n{worse} rows are significantly worse (p < 0.05)")


if __name__ == "__main__":
    main()
