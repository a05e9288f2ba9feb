"""Ray Tune's replay reads Cadre's policy files as Cadre does, and Cadre reads those of Ray Tune's scheduler.

No cluster is started: Ray's classes run in this process, with stand-ins for its controller and its trials.
"""

import json
import logging
import math
import os
import pathlib
import random
import subprocess
import tempfile
import types
import unittest

import ray
from ray.tune.experiment import Trial
from ray.tune.schedulers import PopulationBasedTraining, PopulationBasedTrainingReplay

BIN = pathlib.Path(os.environ["CADRE_BIN"])
logging.getLogger("ray.tune.schedulers.pbt").setLevel(logging.ERROR)  # a line for each exploit
HISTORIES = 40  # number of random histories


def schedule_of_ray(path):
    replay = PopulationBasedTrainingReplay(str(path))
    return {"initial_config": replay.config, "changes": [list(change) for change in replay._policy]}


def schedules_of_cadre(paths):
    run = subprocess.run([BIN / "policy_file_tool", "read", *paths], capture_output=True, text=True, timeout=120,
                         check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def same(a, b):
    """Returns True if values and types are equal; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def random_value(rng, depth=2):
    kind = rng.randrange(9 if depth else 7)
    if kind >= 7:
        items = [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
        return items if kind == 7 else {f"k{index}": item for index, item in enumerate(items)}
    return [rng.random(), rng.randrange(-(2**63), 2**63), rng.choice(["é\n\"", "relu", ""]), None, rng.random() < 0.5,
            rng.choice([math.inf, -math.inf, math.nan, 1e-05, 1e300, -0.0, 5e-324]), rng.randrange(10)][kind]


def random_exploits(rng):
    """Returns the first configs, and successive (target, donor, target iteration, donor iteration, new config)."""
    trials = rng.randint(2, 6)
    exploits = []
    iteration = 0
    for _ in range(rng.randint(1, 25)):
        iteration += rng.randrange(3)
        target, donor = rng.sample(range(trials), 2)
        config = {"lr": rng.random(), "batch size": rng.randrange(512), "more": random_value(rng)}
        exploits.append((target, donor, iteration, iteration + rng.randrange(2), config))
    return [{"lr": rng.random(), "index": index} for index in range(trials)], exploits


class StubTrial:
    """The part of a trial that Ray's scheduler uses."""

    def __init__(self, index, config, directory):
        self.trial_id, self.experiment_tag, self.config = f"ab_{index:05d}", f"{index}_lr={config['lr']:.4f}", config
        self.local_experiment_path = self.local_dir = str(directory)
        self.status = Trial.RUNNING
        self.last_result = {}
        self.evaluated_params = {}
        self.run_metadata = types.SimpleNamespace(
            checkpoint_manager=types.SimpleNamespace(checkpoint_config=types.SimpleNamespace(num_to_keep=None)))

    def set_config(self, config):
        self.config = config

    def set_experiment_tag(self, tag):
        self.experiment_tag = tag


class StubController:
    search_alg = None

    @staticmethod
    def pause_trial(trial, should_checkpoint):
        assert not should_checkpoint


class CadresFilesTest(unittest.TestCase):
    def setUp(self):
        storage = tempfile.TemporaryDirectory()
        self.addCleanup(storage.cleanup)
        self.storage = pathlib.Path(storage.name)

    def check(self, directory):
        paths = sorted(directory.glob("pbt_policy_*.txt"))
        changes = 0
        for path, ours in zip(paths, schedules_of_cadre(paths), strict=True):
            theirs = schedule_of_ray(path)
            self.assertTrue(same(ours, theirs), f"{path.read_text()}\nCadre: {ours}\nRay: {theirs}")
            changes = max(changes, len(ours["changes"]))
        return len(paths), changes

    def test_of_an_experiment(self):
        subprocess.run([BIN / "experiment_tool", self.storage], check=True, timeout=120)
        files, changes = self.check(self.storage / "experiment")
        self.assertGreater(files, 0)
        self.assertGreater(changes, 0)

    def test_of_random_histories(self):
        longest = 0
        for seed in range(HISTORIES):
            configs, exploits = random_exploits(random.Random(seed))
            directory = self.storage / str(seed)
            directory.mkdir()
            lines = []
            for target, donor, target_iteration, donor_iteration, config in exploits:
                lines.append(json.dumps([[target, f"{target}_lr=0.1"], [donor, f"{donor}_lr=0.1"], target_iteration,
                                         donor_iteration, configs[donor], config]))
                configs[target] = config
            subprocess.run([BIN / "policy_file_tool", "write", directory], input="\n".join(lines), text=True,
                           check=True, timeout=120)
            longest = max(longest, self.check(directory)[1])
        self.assertGreater(longest, 4)


class RaysFilesTest(CadresFilesTest):
    test_of_an_experiment = None

    def test_of_random_histories(self):
        """Runs Ray's own exploit, explore and log, after the choice of the donor."""
        longest, stale = 0, 0
        for seed in range(HISTORIES):
            rng = random.Random(seed)
            configs, exploits = random_exploits(rng)
            directory = self.storage / str(seed)
            directory.mkdir()
            pbt = PopulationBasedTraining(time_attr="training_iteration", metric="score", mode="max",
                                          hyperparam_mutations={"lr": rng.random, "index": [0, 1, 2, 3]})
            trials = [StubTrial(index, config | {"more": random_value(rng)}, directory)
                      for index, config in enumerate(configs)]
            for trial in trials:
                pbt.on_trial_add(StubController, trial)
                pbt._trial_state[trial].last_score = 0.0
            for target, donor, target_iteration, donor_iteration, _ in exploits:
                trials[target].last_result = {"training_iteration": target_iteration}
                trials[donor].last_result = {"training_iteration": donor_iteration}
                pbt._exploit(StubController, trials[target], trials[donor])
            longest = max(longest, self.check(directory)[1])
            for path in directory.glob("pbt_policy_*.txt"):
                stale += len(path.read_text().splitlines()) > len(schedule_of_ray(path)["changes"])
        self.assertGreater(longest, 4)
        self.assertGreater(stale, 4)  # files with obsolete lines, which a replay ignores

    def test_an_empty_file_is_an_empty_schedule(self):
        path = self.storage / "pbt_policy_empty.txt"
        path.write_text("")
        self.assertEqual(schedules_of_cadre([path]), [{"initial_config": {}, "changes": []}])
        self.assertEqual(schedule_of_ray(path), {"initial_config": None, "changes": []})

    def test_nothing_was_started(self):
        self.assertFalse(ray.is_initialized())


if __name__ == "__main__":
    unittest.main()
