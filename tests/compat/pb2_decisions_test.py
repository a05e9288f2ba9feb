"""On random traces of results, trials exploit under PB2 as the model in pb2_oracle.py says, and no hyper-parameters that
the model finds promise noticeably more than those chosen.

Uses pbt_decisions_tool as pbt_decisions_test.py does. CADRE_TRACES is the number of traces, CADRE_SEED the first seed.
"""

import collections
import json
import os
import random
import re
import subprocess
import unittest

from pb2_oracle import Pb2Oracle
from pbt_decisions_test import TOOL, Trainers, same, sort_answer

TRACES = int(os.environ.get("CADRE_TRACES", "40"))
FIRST_SEED = int(os.environ.get("CADRE_SEED", "1"))
FIT = re.compile(r"of trial (\d+) by (\d+) results \(length scale (\S+), epsilon (\S+), variance (\S+), noise (\S+)\):")


def random_domain(rng):
    return rng.choice([["uniform", -1.5, 2], ["uniform", 0, 0.1], ["loguniform", 1e-5, 0.1], ["randint", 1, 6],
                       ["randint", -3, 200], ["lograndint", 8, 1025], ["quniform", 0, 1, 0.05],
                       ["qrandint", 0, 100, 5]])


def random_settings(rng):
    bounds = {key: random_domain(rng) for key in rng.sample(["lr", "wd", "momentum", "width"], rng.randint(1, 4))}
    space = dict(bounds)
    if rng.random() < 0.3:  # values outside the bounds
        wide = rng.choice(list(bounds))
        space[wide] = ["randint", -10, 3000] if "int" in bounds[wide][0] else ["uniform", 1e-6, 3]
    if rng.random() < 0.3:
        space["model"] = ["space", {"depth": ["randint", 1, 30], "act": ["constant", "relu"]}]
        bounds["model"] = ["nested", {"depth": ["randint", 1, 20]}]
    space["name"] = ["constant", "a"]
    trials = rng.randint(2, 8)
    interval = rng.choice([1, 2, 2.5, 5])
    return {
        "variant": "PB2", "seed": rng.randrange(2**63), "space": space, "num_samples": trials, "points": [],
        "constant_grid_search": False, "mutations": bounds, "replay": None,
        "slots": rng.choice([trials, trials, rng.randint(1, trials)]),
        "pbt": {"time_attr": rng.choice(["training_iteration", "seconds"]), "metric": "score",
                "mode": rng.choice(["max", "min"]), "perturbation_interval": interval,
                "burn_in_period": rng.choice([0, 0, 3.5]), "quantile_fraction": rng.choice([0.25, 0.25, 0.5]),
                "resample_probability": 0.25, "perturbation_factors": [1.2, 0.8], "bounds": "clip", "custom": False,
                "require_attrs": True, "synch": rng.random() < 0.4},
        "stop": {}, "num_to_keep": rng.choice([None, 1, 2]), "score_attribute": None, "score_order": "max"}


class Program:
    """The tool, which is asked one event after the other."""

    def __init__(self, settings):
        self.process = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer = self.ask(settings)

    def ask(self, document):
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()
        self.answer = json.loads(self.process.stdout.readline())
        fits = {}
        for text in self.answer["said"]:
            for trial, _, *numbers in FIT.findall(text):
                fits[int(trial)] = [float(number) for number in numbers]
        self.exploits = {decision["trial"]: (decision["config"], decision["operations"], fits.get(decision["trial"]))
                         for decision in self.answer["decisions"] if decision["kind"] == "exploit"}
        return self.answer

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class DecisionsTest(unittest.TestCase):
    def check_trace(self, seed):
        rng = random.Random(seed)
        settings = random_settings(rng)
        program = Program(settings)
        self.addCleanup(program.close)
        oracle = Pb2Oracle(settings, lambda trial: program.exploits[trial])
        self.assert_same(oracle.start(), program.answer)
        trainers = Trainers(rng, settings, len(oracle.trials))
        for _ in range(rng.choice([50, 150, 300])):
            if not oracle.running():
                break
            event = trainers.next_event(oracle)
            answer = program.ask(event)
            self.assert_same(oracle.handle(event), answer)
        return oracle.judgements

    def assert_same(self, expected, got):
        self.assertTrue(same(sort_answer(expected), sort_answer(got)), f"expected {expected}\ngot      {got}")

    def test_trials_exploit_as_the_model_says_and_nothing_promises_more(self):
        judgements = []
        for seed in range(FIRST_SEED, FIRST_SEED + TRACES):
            with self.subTest(CADRE_SEED=seed):
                judged = self.check_trace(seed)
                judgements += judged
                for one in judged:
                    # Both searches draw their starts at random, so each may miss a hill that the other finds.
                    self.assertLess(one["missed_bound"], 0.3, one)
        seen = collections.Counter(one["pending"] > 0 for one in judgements)
        print(f"{TRACES} traces agree: {len(judgements)} choices, {seen[True]} of them beside others, with up to "
              f"{max(one['rows'] for one in judgements)} results")
        for kind in ("missed_bound", "missed_density"):
            missed = sorted(one[kind] for one in judgements)
            print(f"{kind}: median {missed[len(missed) // 2]:.2g}, 95 % {missed[len(missed) * 95 // 100]:.2g}, "
                  f"largest {missed[-1]:.2g}")
            if len(missed) >= 100:
                self.assertLess(missed[len(missed) * 95 // 100], 0.01 if kind == "missed_bound" else 0.02)
        if TRACES >= 40:
            self.assertGreater(len(judgements), 100)
            self.assertGreater(seen[True], 30)


if __name__ == "__main__":
    unittest.main()
