"""Compares schedulers of Cadre with those of Ray Tune on the networks of mnist_table.csv: the same configurations,
drawn at random, as many trials at a time, and as many epochs in all.

    .venv/bin/python benchmarks/search/compare_schedulers.py build/release/bin [--seeds 30] [--parallel 1 8]

Cadre's decide in a simulated experiment (scheduler_bench.cc), Ray's for the controller below, which needs no cluster.
Prints a table: the mean of the smallest error after a third, two thirds and all of the epochs, and the p-values of a
one-sided test of Mann and Whitney that Cadre's is better at the end, and that it is worse."""

import argparse
import collections
import json
import logging
import pathlib
import statistics
import subprocess
import tempfile
import types

from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler, HyperBandForBOHB, HyperBandScheduler
from scipy.stats import mannwhitneyu

from functions import mnist_table

MEMORY = pathlib.Path("/dev/shm")
MAX_EPOCHS = 27
EPOCHS = 750  # in all; two bands of HyperBand
GOAL = {"metric": "error", "mode": "min", "max_t": MAX_EPOCHS}
ASHA = {"type": "ASHAScheduler", "max_t": MAX_EPOCHS}
HYPERBAND = {"type": "HyperBandScheduler", "max_t": MAX_EPOCHS}
# Cadre's options and number of trials, enough for the epochs; Ray's class.
COMPARED = [
    (({"type": "FIFO"}, 36), FIFOScheduler),
    ((ASHA, 300), lambda: AsyncHyperBandScheduler(**GOAL)),
    ((ASHA | {"promote": True}, 300), lambda: AsyncHyperBandScheduler(**GOAL)),
    ((HYPERBAND, 98), lambda: HyperBandScheduler(**GOAL)),
    ((HYPERBAND, 98), lambda: HyperBandForBOHB(**GOAL)),
    ((ASHA, 300), FIFOScheduler),
    ((ASHA | {"promote": True}, 300), FIFOScheduler),
    ((HYPERBAND, 98), FIFOScheduler),
]


class Trial:
    """A trial as Ray's schedulers know it."""

    is_saving = False

    def __init__(self, index, errors):
        self.trial_id, self.status, self.errors, self.epoch = str(index), "PENDING", errors, 0


class Controller:
    """A controller as Ray's schedulers know it. Runs trials in turns, an epoch each."""

    def __init__(self, scheduler, trials):
        self.scheduler, self.trials = scheduler, trials
        searcher = types.SimpleNamespace(on_pause=lambda trial: None, on_unpause=lambda trial: None)
        self.search_alg = types.SimpleNamespace(searcher=searcher)
        for trial in trials:
            scheduler.on_trial_add(self, trial)

    def get_trials(self):
        return self.trials

    def get_live_trials(self):
        return [trial for trial in self.trials if trial.status != "TERMINATED"]

    def stop_trial(self, trial):
        trial.status = "TERMINATED"
        self.scheduler.on_trial_remove(self, trial)

    def run_one_epoch(self, trial):
        """Returns the error, and whether the trial goes on."""
        error = trial.errors[trial.epoch]
        trial.epoch += 1
        result = {"training_iteration": trial.epoch, "error": error}
        decision = self.scheduler.on_trial_result(self, trial, result)
        if decision == self.scheduler.PAUSE:
            trial.status = "PAUSED"
        elif decision == self.scheduler.STOP or trial.epoch == MAX_EPOCHS:
            trial.status = "TERMINATED"
            self.scheduler.on_trial_complete(self, trial, result)
        return error, trial.status == "RUNNING"

    def errors(self, parallel):
        """Generates the error of each epoch."""
        running = collections.deque()
        while True:
            while len(running) < parallel and (trial := self.scheduler.choose_trial_to_run(self)):
                trial.status = "RUNNING"
                running.append(trial)
            if not running:
                return
            trial = running.popleft()
            error, goes_on = self.run_one_epoch(trial)
            if goes_on:
                running.append(trial)
            yield error


def bests_of_ray(scheduler, rows, parallel):
    errors = list(mnist_table().values())
    controller = Controller(scheduler, [Trial(index, errors[row]) for index, row in enumerate(rows)])
    bests, best = [], 1
    for error in controller.errors(parallel):
        best = min(best, error)
        bests.append(best)
        if len(bests) == EPOCHS:
            break
    return bests


def lines_of_cadre(args, options, trials, parallel):
    command = [args.bin / "cadre_scheduler_bench", "--scheduler", json.dumps(options), "--trials", str(trials),
               "--parallel", str(parallel), "--first-seed", str(args.first_seed), "--seeds", str(args.seeds)]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.exists() else None) as storage:
        done = subprocess.run([*command, "--storage-path", storage], check=True, stdout=subprocess.PIPE, text=True)
    return list(map(json.loads, done.stdout.splitlines()))


def at(bests, epochs):
    """The smallest error after so many epochs; an experiment that ended before keeps its last."""
    return bests[min(epochs, len(bests)) - 1]


def describe(bests):
    return " | ".join(f"{statistics.mean(at(one, EPOCHS * third // 3) for one in bests):.4f}" for third in (1, 2, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path, help="folder of cadre_scheduler_bench")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--parallel", type=int, nargs="+", default=[1, 8])
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    thirds = [f"{EPOCHS * third // 3} epochs" for third in (1, 2, 3)]
    columns = ["Cadre's scheduler", "Ray's", "parallel", *thirds, *(f"Ray's {third}" for third in thirds), "p better",
               "p worse"]
    print(f"| {' | '.join(columns)} |")
    print("|---" * 11 + "|")
    kept = {}
    for (options, trials), make in COMPARED:
        for parallel in args.parallel:
            key = json.dumps(options), parallel
            if key not in kept:
                kept[key] = lines_of_cadre(args, options, trials, parallel)
            ours = [line["best"] for line in kept[key]]
            # Ray's FIFO with the trials that Cadre's has: the first ones are the same.
            theirs = [bests_of_ray(make(), line["rows"], parallel) for line in kept[key]]
            better, worse = (mannwhitneyu([at(one, EPOCHS) for one in ours], [at(one, EPOCHS) for one in theirs],
                                          alternative=side).pvalue for side in ("less", "greater"))
            name = options["type"] + (" with promote" if options.get("promote") else "")
            print(f"| {name} | {type(make()).__name__} | {parallel} | {describe(ours)} | {describe(theirs)} | "
                  f"{better:.2g} | {worse:.2g} |", flush=True)


if __name__ == "__main__":
    main()
