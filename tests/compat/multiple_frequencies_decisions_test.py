"""On random traces of results the controller decides under MultipleFrequenciesPBT as a model of it does.

The model is written from the paper (https://arxiv.org/abs/2506.03225), its authors' program and Cadre's header; all that
is as under Population Based Training is that of pbt_oracle.py. CADRE_TRACES is the number of traces, CADRE_SEED the first
seed.
"""

import collections
import itertools
import math
import os
import random
import unittest

from pbt_decisions_test import Trainers, answers_of_tool, same, sort_answer
from pbt_oracle import Oracle, equal
from random_settings import random_settings
from search_space_oracle import variants

TRACES = int(os.environ.get("CADRE_TRACES", "150"))
FIRST_SEED = int(os.environ.get("CADRE_SEED", "1"))


class MultipleFrequenciesOracle(Oracle):
    def __init__(self, settings):
        super().__init__(settings)
        self.factors = self.pbt["interval_factors"]
        self.rounds = 0
        self.intervals = collections.Counter()  # of each trial
        self.giver = None  # of the config, while a trial migrates
        self.seen = collections.Counter()

    def _population(self, trial):
        return trial.index % len(self.factors)

    def _note_interval(self, trial, time):
        self.intervals[trial.index] += 1

    def _quantiles(self):
        return [], []  # brackets have their place

    def _compare(self, trial, lower, upper):
        self._replace(lambda target: target is trial and self.intervals[trial.index] % self.factors[
            self._population(trial)] == 0)

    def _compare_all(self, time):
        self.rounds += 1
        for trial in self.trials:
            if trial.live:
                trial.last_perturbation_time = time
        self._replace(lambda target: self.rounds % self.factors[self._population(target)] == 0)
        self._set_next_barrier()

    def _replace(self, is_due):
        plan = list(self._plan())
        for target, donor, giver in plan:
            if is_due(target) and donor.latest and donor.last_score > target.last_score:
                self.giver = giver
                self._exploit(target, donor)
                kind = "exploit" if giver is None else "with weights" if giver is not donor else "whole"
                self.seen[kind] += 1

    def _plan(self):
        """Yields (target, donor, giver of the config or None for exploring)."""
        ranked = [[trial for trial in self.trials if self._population(trial) == population and trial.live
                   and trial.last_score is not None and not math.isnan(trial.last_score)]
                  for population in range(len(self.factors))]
        fraction = self.pbt["quantile_fraction"]
        sizes = []
        for trials in ranked:
            trials.sort(key=lambda trial: (trial.last_score, trial.index), reverse=True)
            least = 1 if fraction > 0 else 0
            sizes.append(min(max(least, math.floor(len(trials) * fraction)), len(trials) // 2))
        for population, (trials, size) in enumerate(zip(ranked, sizes)):
            if not size:
                continue
            winners, losers = trials[:size], trials[-size:]
            for loser, winner in zip(losers, winners):
                yield loser, winner, None
            external = [(other.last_score, other.index, other) for index, others in enumerate(ranked)
                        if index != population for other in others[:sizes[index]]]
            external.sort(reverse=True)
            for open_trial in trials[size:-size][-size:]:
                if not external:
                    break
                score, _, migrant = external[0]
                if score > open_trial.last_score:
                    slower = self.factors[self._population(migrant)] > self.factors[population]
                    yield open_trial, migrant, migrant if slower else trials[0]
                    del external[0]

    def _explore(self, trial, donor):
        if self.giver is None:
            return super()._explore(trial, donor)
        old, new = donor.config, self.giver.config
        changed = [key for key in new if key not in old or not equal(old[key], new[key])]
        return dict(new), dict.fromkeys(changed, f"config of trial {self.giver.index:05}")


def settings_with_frequencies(rng):
    factors = rng.choice([[1, 2], [1, 3], [1, 2, 4]])
    while True:
        settings = random_settings(rng)
        if not settings["replay"] and len(variants(settings)) >= 4 * len(factors):
            break
    if rng.random() < 0.5:
        settings["num_samples"] *= 3
        settings["slots"] *= rng.choice([1, 3])
    settings["variant"] = "MultipleFrequenciesPBT"
    settings["pbt"] |= {"interval_factors": factors,
                        "quantile_fraction": rng.choice([0, 0.1, 0.25, 0.25, 0.25, 0.3, 1 / 3])}
    return settings


class DecisionsTest(unittest.TestCase):
    def check_trace(self, seed):
        rng = random.Random(seed)
        settings = settings_with_frequencies(rng)
        oracle = MultipleFrequenciesOracle(settings)
        trainers = Trainers(rng, settings, len(oracle.trials))
        events, expected = [], [oracle.start()]
        for _ in range(300):
            if not oracle.running():
                break
            events.append(trainers.next_event(oracle))
            expected.append(oracle.handle(events[-1]))
        for line, (wanted, got) in enumerate(itertools.zip_longest(expected, answers_of_tool(settings, events))):
            agrees = wanted and got and "failed" not in got and same(sort_answer(wanted), sort_answer(got))
            self.assertTrue(agrees, f"line {line} of CADRE_SEED={seed} {settings['pbt']}\n{events[line - 1]}\n"
                                    f"expected {wanted}\ngot      {got}")
        return oracle.seen

    def test_equal_those_of_the_model(self):
        seen = collections.Counter()
        for seed in range(FIRST_SEED, FIRST_SEED + TRACES):
            seen += self.check_trace(seed)
        print(f"{TRACES} traces agree:", dict(seen))
        if TRACES >= 100:
            for kind in ("exploit", "with weights", "whole"):
                self.assertGreater(seen[kind], TRACES, kind)


if __name__ == "__main__":
    unittest.main()
