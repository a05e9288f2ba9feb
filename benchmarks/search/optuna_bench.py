"""The same as search_bench.cc with a sampler of Optuna: python optuna_bench.py --sampler tpe --function hartmann6 ..."""
import argparse
import collections
import json
import math
import time
import warnings

import optuna

from functions import FUNCTIONS

SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe_multivariate": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True,
                                                                constant_liar=True),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed, deterministic_objective=True),
    "cmaes": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
    "nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed),
    "qmc": lambda seed: optuna.samplers.QMCSampler(seed=seed, scramble=True),
}


def minimise(args, seed):
    study = optuna.create_study(sampler=SAMPLERS[args.sampler](seed))
    waiting, best, bests, seconds = collections.deque(), math.inf, [], 0.0
    made = 0
    while len(bests) < args.trials:
        begin = time.process_time()
        if len(waiting) < args.parallel and made < args.trials:
            trial = study.ask()  # Optuna draws its values as the function asks for them
            made += 1
            waiting.append((trial, FUNCTIONS[args.function](trial)))
        else:
            trial, value = waiting.popleft()
            study.tell(trial, value)
            best = min(best, value)
            bests.append(best)
        if made > args.untimed:
            seconds += time.process_time() - begin
    print(json.dumps({"searcher": args.sampler, "function": args.function, "parallel": args.parallel, "seed": seed,
                      "seconds": seconds, "best": bests}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sampler", default="tpe", choices=SAMPLERS)
    parser.add_argument("--function", default="branin", choices=FUNCTIONS)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--untimed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--parallel", type=int, default=1)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        try:
            minimise(args, seed)
        except Exception as error:  # its own: the functions raise nothing
            print(json.dumps({"seed": seed, "failed": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main()
