"""An experiment whose controller is killed again and again suggests and decides what it does undisturbed, with each
searcher, each scheduler and a stopper that learns. Trials run one after another, because what a searcher knows depends
on the order of results; so schedulers whose trials wait for each other are here with a searcher that does not learn.
CADRE_SEED is the seed of the kills."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import time
import unittest

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "killed_search_tool"
SEED = int(os.environ.get("CADRE_SEED", "1"))
ASHA = {"type": "ASHAScheduler", "metric": "loss", "mode": "min", "max_t": 4, "reduction_factor": 2}
HYPERBAND = {"type": "HyperBandScheduler", "metric": "loss", "mode": "min", "max_t": 4, "reduction_factor": 2}
RESOURCES = {"type": "ResourceChangingScheduler", "scheduler": ASHA,
             "resources_allocation": {"type": "DistributeResources", "increase_by": {"cpus": 0.5}}}
MEDIAN = {"type": "MedianStoppingRule", "time_attr": "training_iteration", "metric": "loss", "mode": "min",
          "grace_period": 1}
LR = {"lr": {"type": "loguniform", "lower": 1e-5, "upper": 1}}
PBT = {"time_attr": "training_iteration", "metric": "loss", "mode": "min", "perturbation_interval": 1}
CASES = (({"type": "TPE", "n_startup_trials": 5}, ASHA), ({"type": "CMAES", "popsize": 5}, ASHA),
         ({"type": "NSGA2", "population_size": 6}, ASHA), ({"type": "QuasiRandom"}, HYPERBAND),
         ({"type": "GaussianProcess", "n_startup_trials": 5}, ASHA),
         ({"type": "TPE", "n_startup_trials": 5}, RESOURCES),
         ({"type": "RandomSearch"}, MEDIAN),
         ({"type": "RandomSearch"}, PBT | {"type": "PopulationBasedTraining", "hyperparam_mutations": LR}),
         ({"type": "RandomSearch"}, PBT | {"type": "PB2", "hyperparam_bounds": LR}),
         ({"type": "RandomSearch"}, PBT | {"type": "MultipleFrequenciesPBT", "hyperparam_mutations": LR,
                                           "interval_factors": [1, 2]}),
         ({"type": "BOHB", "max_t": 4, "reduction_factor": 2, "min_observations": 3}, ASHA))
FIFO = {"type": "FIFO"}
REGRET_BOUND = {"type": "RegretBoundTerminator", "metric": "loss", "mode": "min", "min_n_trials": 12,
                "error": {"type": "StaticError", "constant": 0.6}}


class KilledSearchTest(unittest.TestCase):
    def command(self, folder, case):
        return [TOOL, folder, *(json.dumps(options) for options in case)]

    def run_undisturbed(self, folder, case):
        """Returns what it printed and how long it took."""
        begun = time.monotonic()
        printed = subprocess.run(self.command(folder, case), capture_output=True, text=True, check=True, timeout=120).stdout
        return printed, time.monotonic() - begun

    def run_with_kills(self, case, seconds, rng):
        """Returns what it printed at last, after 1 to 4 kills; `seconds` is what it takes undisturbed."""
        kills = 0
        while kills == 0:
            with tempfile.TemporaryDirectory() as folder:
                ended = False
                while not ended:
                    process = subprocess.Popen(self.command(folder, case), stdout=subprocess.PIPE,
                                               stderr=subprocess.PIPE, text=True)
                    try:
                        time_to_kill = seconds * rng.uniform(0.05, 0.6)
                        printed, errors = process.communicate(timeout=time_to_kill if kills < 4 else 120)
                        self.assertEqual(process.returncode, 0, errors)
                        ended = True
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.communicate()
                        kills += 1
        return printed

    def test_kills_change_no_suggestion(self):
        rng = random.Random(SEED)
        for case in CASES:
            with self.subTest(searcher=case[0]["type"], scheduler=case[1]["type"]), tempfile.TemporaryDirectory() as folder:
                undisturbed, seconds = self.run_undisturbed(folder, case)
                self.assertEqual(len(undisturbed.splitlines()), 40)
                exploits = pathlib.Path(folder) / "killed" / "pbt_global.txt"
                self.assertTrue("STOPPED" in undisturbed or exploits.stat().st_size > 0)
                self.assertEqual(self.run_with_kills(case, seconds, rng), undisturbed, f"CADRE_SEED={SEED}")

    def test_kills_change_no_end_by_a_stopper(self):
        rng = random.Random(SEED)
        case = ({"type": "TPE", "n_startup_trials": 5}, FIFO, REGRET_BOUND)
        with tempfile.TemporaryDirectory() as folder:
            undisturbed, seconds = self.run_undisturbed(folder, case)
            shown = subprocess.run([TOOL.parent / "cadre", "show", pathlib.Path(folder) / "killed"], text=True, check=True,
                                   capture_output=True, timeout=120, env=os.environ | {"COLUMNS": "200"}).stdout
        *trials, reason = undisturbed.splitlines()
        self.assertRegex(reason, "^the regret of the best trial is at most [0-9.]+, below the error of an evaluation, 0.6$")
        self.assertIn(len(trials), range(13, 39))
        self.assertIn(f"finished; all trials were stopped: {reason}", shown)
        for _ in range(3):
            self.assertEqual(self.run_with_kills(case, seconds, rng), undisturbed, f"CADRE_SEED={SEED}")


if __name__ == "__main__":
    unittest.main()
