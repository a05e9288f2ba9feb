"""On the same results ASHA decides as Ray Tune's does, but for the differences that docs/from-ray-tune.md lists: a trial
at max_t finishes, and NaN and rungs that Ray's logarithms lose are left out here."""

import math
import random
import types
import unittest

from ray.tune.schedulers import AsyncHyperBandScheduler

from scheduler_traces import FIRST_SEED, TRACES, decisions_of_cadre


def random_options(rng):
    factor = rng.choice([2, 2.5, 3, 4])
    grace = rng.choice([1, 1, 2, 3])
    max_t = grace * factor ** rng.randint(0, 4) + rng.choice([0, 0.5, 1])
    return {"time_attr": rng.choice(["training_iteration", "seconds"]), "metric": "score",
            "mode": rng.choice(["min", "max"]), "max_t": max_t, "grace_period": grace, "reduction_factor": factor,
            "stop_last_trials": rng.random() < 0.5}


def ray_loses_a_rung(options):
    """Ray computes the number of rungs from logarithms."""
    ratio, factor = options["max_t"] / options["grace_period"], options["reduction_factor"]
    rungs = 0
    while factor ** rungs <= ratio:
        rungs += 1
    return int(math.log(ratio) / math.log(factor) + 1) != rungs


def random_result(rng, options, time, scores):
    result = {options["time_attr"]: time, "score": rng.choice(scores) if scores else rng.gauss(0, 1)}
    if rng.random() < 0.02:
        del result[rng.choice(list(result))]
    return result


class AshaDecisionsTest(unittest.TestCase):
    def check_trace(self, seed):
        rng = random.Random(seed)
        options = random_options(rng)
        while ray_loses_a_rung(options):
            options = random_options(rng)
        ray = AsyncHyperBandScheduler(**options)
        count = rng.randint(1, 60)
        trials = [types.SimpleNamespace(trial_id=str(index)) for index in range(count)]
        for trial in trials:
            ray.on_trial_add(None, trial)
        results = []
        expected = []
        scores = [0, 1, 2, 3] if rng.random() < 0.3 else []
        times = [0] * count
        live = list(range(count))
        for _ in range(rng.randint(1, 600)):
            if not live:
                break
            trial = rng.choice(live)
            times[trial] += 1 if rng.random() < 0.9 else rng.choice([0.5, 3, 10])
            result = random_result(rng, options, times[trial], scores)
            results.append({"trial": trial, "result": result})
            decision = ray.on_trial_result(None, trials[trial], result)
            at_the_end = (options["stop_last_trials"] and result.get(options["time_attr"], 0) >= options["max_t"]
                          and "score" in result)
            if decision == AsyncHyperBandScheduler.CONTINUE:
                expected.append("go_on")
            else:
                expected.append("finish" if at_the_end else "stop")
                live.remove(trial)
        told = decisions_of_cadre({"type": "ASHAScheduler", **options}, count, results)
        self.assertEqual(told, expected, f"CADRE_SEED={seed} {options}")
        return expected

    def test_on_random_traces(self):
        kinds = {"go_on": 0, "stop": 0, "finish": 0}
        for seed in range(FIRST_SEED, FIRST_SEED + TRACES):
            for kind in self.check_trace(seed):
                kinds[kind] += 1
        self.assertTrue(all(kinds.values()), kinds)


if __name__ == "__main__":
    unittest.main()
