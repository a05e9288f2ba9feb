"""On the same results HyperBand decides as Ray Tune's HyperBandForBOHB does, which fills the largest brackets first, on
full brackets whose milestones are whole numbers. docs/from-ray-tune.md lists the differences: a trial at max_t finishes,
while Ray's waits there for its bracket, and trials that end otherwise, which are none here, are not waited for."""

import random
import unittest

from ray.tune.schedulers import HyperBandForBOHB

from scheduler_traces import FIRST_SEED, TRACES, FakeController, FakeTrial, decisions_of_cadre


def size_of_band(max_t, factor):
    brackets = HyperBandForBOHB(max_t=max_t, reduction_factor=factor)
    return sum(brackets._get_n0(s) for s in range(brackets._s_max_1))


class HyperBandDecisionsTest(unittest.TestCase):
    def check_trace(self, seed):
        rng = random.Random(seed)
        factor = rng.choice([2, 3, 4])
        max_t = factor ** rng.randint(1, 3)
        options = {"time_attr": "training_iteration", "metric": "score", "mode": rng.choice(["min", "max"]),
                   "max_t": max_t, "reduction_factor": factor, "stop_last_trials": rng.random() < 0.8}
        count = size_of_band(max_t, factor) * rng.choice([1, 2])
        ray = HyperBandForBOHB(**options)
        trials = [FakeTrial(index) for index in range(count)]
        controller = FakeController(ray, trials)
        for trial in trials:
            ray.on_trial_add(controller, trial)
        results, expected = [], []
        times = [0] * count
        finished = set()
        for _ in range(rng.randint(1, 1500)):
            may_run = [trial for trial in trials if trial.status in ("PENDING", "RUNNING") and trial.index not in finished
                       or trial.status == "PAUSED" and trial in ray._trial_info[trial][0].trials_to_unpause]
            if not may_run:
                break
            trial = rng.choice(may_run)
            trial.status = "RUNNING"
            ray._trial_info[trial][0].trials_to_unpause.discard(trial)
            controller.stopped = []
            times[trial.index] += 1
            result = {"training_iteration": times[trial.index], "score": rng.gauss(0, 1)}
            results.append({"trial": trial.index, "result": dict(result)})
            decision = ray.on_trial_result(controller, trial, result)
            kind = {ray.CONTINUE: "go_on", ray.PAUSE: "pause", ray.STOP: "stop"}[decision]
            if options["stop_last_trials"] and times[trial.index] >= max_t:
                finished.add(trial.index)
                kind = "finish"
            if decision == ray.PAUSE:
                trial.status = "PAUSED"  # one at max_t, too: Ray stops it with the last of its bracket
            elif decision == ray.STOP:
                controller.end(trial)
            stopped = sorted(set(controller.stopped) - finished - {trial.index})
            expected.append(" ".join([kind, *map(str, stopped)]))
        told = decisions_of_cadre({"type": "HyperBandScheduler", **options}, count, results)
        self.assertEqual(told, expected, f"CADRE_SEED={seed} {options}")
        return expected

    def test_on_random_traces(self):
        kinds = {"go_on": 0, "stop": 0, "finish": 0, "pause": 0}
        for seed in range(FIRST_SEED, FIRST_SEED + TRACES):
            for answer in self.check_trace(seed):
                kinds[answer.split()[0]] += 1
        self.assertTrue(all(kinds.values()), kinds)


if __name__ == "__main__":
    unittest.main()
