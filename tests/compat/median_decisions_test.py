"""On the same results the median stopping rule decides as Ray Tune's does. Scores are multiples of 1/1024, so that sums
are exact in any order."""

import random
import unittest

from ray.tune.schedulers import MedianStoppingRule

from scheduler_traces import FIRST_SEED, TRACES, FakeController, FakeTrial, decisions_of_cadre


class MedianDecisionsTest(unittest.TestCase):
    def check_trace(self, seed):
        rng = random.Random(seed)
        options = {"time_attr": rng.choice(["training_iteration", "seconds"]), "metric": "score",
                   "mode": rng.choice(["min", "max"]), "grace_period": rng.choice([0, 1, 3, 5.5]),
                   "min_samples_required": rng.randint(1, 5), "min_time_slice": rng.choice([0, 0, 2, 5]),
                   "hard_stop": rng.random() < 0.7}
        ray = MedianStoppingRule(**options)
        count = rng.randint(1, 40)
        trials = [FakeTrial(index) for index in range(count)]
        controller = FakeController(ray, trials)
        for trial in trials:
            ray.on_trial_add(controller, trial)
        results, expected = [], []
        times = [0] * count
        few_scores = rng.random() < 0.3
        for _ in range(rng.randint(1, 600)):
            live = controller.get_live_trials()
            if not live:
                break
            trial = rng.choice(live)
            trial.status = "RUNNING"
            times[trial.index] += rng.choice([1, 1, 1, 0.5, 3])
            score = rng.randint(0, 3) if few_scores else rng.randint(-4096, 4096) / 1024
            result = {options["time_attr"]: times[trial.index], "score": score}
            if rng.random() < 0.02:
                del result[rng.choice(list(result))]
            results.append({"trial": trial.index, "result": result})
            decision = ray.on_trial_result(controller, trial, result)
            expected.append({ray.CONTINUE: "go_on", ray.PAUSE: "pause", ray.STOP: "stop"}[decision])
            if decision == ray.PAUSE:
                trial.status = "PAUSED"
            elif decision == ray.STOP:
                trial.status = "TERMINATED"
        told = decisions_of_cadre({"type": "MedianStoppingRule", **options}, count, results)
        self.assertEqual(told, expected, f"CADRE_SEED={seed} {options}")
        return expected

    def test_on_random_traces(self):
        kinds = {"go_on": 0, "stop": 0, "pause": 0}
        for seed in range(FIRST_SEED, FIRST_SEED + TRACES):
            for answer in self.check_trace(seed):
                kinds[answer] += 1
        self.assertTrue(all(kinds.values()), kinds)


if __name__ == "__main__":
    unittest.main()
