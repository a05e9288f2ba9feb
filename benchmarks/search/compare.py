"""Compares searchers of Cadre with samplers of Optuna: the same functions, budgets and seeds, in one run.

    .venv/bin/python benchmarks/search/compare.py build/release/bin [--only tpe] [--seeds 30] [--parallel 1 8] [--out table.md]

Prints a table: the median of the best value over the seeds, and the p-values of a one-sided test of Mann and Whitney that
Cadre's is better, and that it is worse; and the milliseconds for a suggestion, over all trials of a seed. Results are
kept in `results/search/`, so that a second run computes only what is missing there."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from scipy.stats import mannwhitneyu

HERE = pathlib.Path(__file__).resolve().parent
# Name here, the searcher's options, Optuna's samplers of the same kind.
PAIRS = {
    "tpe": ({"type": "TPE"}, ("tpe", "tpe_multivariate")),
    "gp": ({"type": "GaussianProcess", "deterministic": True}, ("gp",)),
    "cmaes": ({"type": "CMAES"}, ("cmaes",)),
    "nsga2": ({"type": "NSGA2"}, ("nsga2",)),
    "quasi_random": ({"type": "QuasiRandom"}, ("qmc",)),
}
TRIALS = {"branin": 100, "hartmann6": 100, "network": 100, "rosenbrock10": 200, "ackley20": 200}
TRIALS_OF = {"gp": {"branin": 60, "rosenbrock10": 100, "ackley20": 100},
             "cmaes": {"rosenbrock10": 1000, "ackley20": 1000}, "nsga2": {"rosenbrock10": 1000, "ackley20": 1000}}


def lines_of(command, seeds, kept):
    """The results of a command, one a seed; those in the file `kept` are not computed again."""
    lines = {}
    if kept.exists():
        lines = {line["seed"]: line for line in map(json.loads, kept.read_text().splitlines())}
    kept.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(seeds):
        if seed in lines:
            continue
        done = subprocess.run([*command, "--seeds", "1", "--first-seed", str(seed)], check=True, capture_output=True,
                              text=True, cwd=HERE, env={**os.environ, "OMP_NUM_THREADS": "1"})
        lines[seed] = json.loads(done.stdout)
        with kept.open("a") as file:
            file.write(done.stdout)
    return [lines[seed] for seed in range(seeds)]


def compare(args, name, function, parallel):
    searcher, samplers = PAIRS[name]
    trials = TRIALS_OF.get(name, {}).get(function, TRIALS[function])
    common = ["--function", function, "--trials", str(trials), "--parallel", str(parallel)]
    place = pathlib.Path(args.keep).resolve()
    label = f"{function}_{trials}_{parallel}.jsonl"
    own = lines_of([args.bin.resolve() / "cadre_search_bench", "--searcher", json.dumps(searcher), *common], args.seeds,
                   place / f"cadre_{name}_{label}")
    rows = []
    for sampler in samplers:
        peer = lines_of([sys.executable, "optuna_bench.py", "--sampler", sampler, *common], args.seeds,
                        place / f"optuna_{sampler}_{label}")
        ours, theirs = ([line["best"][-1] for line in lines] for lines in (own, peer))
        better, worse = (mannwhitneyu(ours, theirs, alternative=side).pvalue for side in ("less", "greater"))
        times = [1000 * statistics.median(line["seconds"] for line in lines) / trials for lines in (own, peer)]
        rows.append(f"| {searcher['type']} | {sampler} | {function} | {trials} | {parallel} | "
                    f"{statistics.median(ours):.4g} | {statistics.median(theirs):.4g} | {better:.2g} | {worse:.2g} | "
                    f"{times[0]:.2g} | {times[1]:.2g} |")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path, help="folder of cadre_search_bench")
    parser.add_argument("--only", choices=PAIRS, action="append")
    parser.add_argument("--functions", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--parallel", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--keep", default="results/search")
    args = parser.parse_args()
    print("| searcher | Optuna | function | trials | parallel | median | Optuna's | p better | p worse | ms | Optuna's |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    worse = 0
    for name in args.only or PAIRS:
        for function in args.functions:
            for parallel in args.parallel:
                for row in compare(args, name, function, parallel):
                    print(row, flush=True)
                    worse += float(row.split("|")[9]) < 0.05
    print(f"\n{worse} rows are significantly worse (p < 0.05)")


if __name__ == "__main__":
    main()
