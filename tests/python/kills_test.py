"""Drivers, servers and workers are killed at random: nothing is lost and nothing is decided twice. CADRE_KILLS: how many."""

import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import time

KILLS = int(os.environ.get("CADRE_KILLS", "12"))
STEPS = 9 * KILLS  # so that trials are still there to be killed
TRIALS = 8

BEGINS = f"""
import os, pathlib, random, sys, time
import cadre
from cadre import tune
from cadre.tune.search import Searcher

class Draws(Searcher):
    # Suggests anything, and wants to hear of each trial once, with the config that it has.
    def __init__(self):
        super().__init__("score", "max")
        self.open = {{}}
        self.ended = []

    def suggest(self, trial_id):
        assert trial_id not in self.open and trial_id not in self.ended
        self.open[trial_id] = random.random()
        return {{"y": self.open[trial_id]}}

    def on_trial_add(self, trial_id, config):
        assert trial_id not in self.open and trial_id not in self.ended
        self.open[trial_id] = config["y"]

    def on_trial_complete(self, trial_id, result=None, error=False):
        assert self.open.pop(trial_id) == result["y"] and not error
        self.ended.append(trial_id)

def trains(config):
    checkpoint = tune.get_checkpoint()
    step = int((pathlib.Path(checkpoint.path) / "step").read_text()) if checkpoint else 0
    while True:
        step += 1
        tune.report({{"step": step, "score": config["x"] * step, "y": config["y"]}},
                    checkpoint=lambda directory: (pathlib.Path(directory) / "step").write_text(str(step)))
        time.sleep(0.03)

cadre.init(num_cpus=2)
tune.Tuner(trains, param_space={{"x": tune.sample_from(lambda config: random.random())}},
           tune_config=tune.TuneConfig(search_alg=Draws(), num_samples={TRIALS}, metric="score", mode="max"),
           run_config=tune.RunConfig(name="killed", storage_path=sys.argv[1], verbose=0,
                                     failure_config=tune.FailureConfig(max_failures=-1),
                                     checkpoint_config=tune.CheckpointConfig(num_to_keep=2),
                                     stop=lambda trial_id, result: result["step"] >= {STEPS})).fit()
"""

# Has none of the functions.
CONTINUES = """
import sys
import cadre
from cadre import tune
cadre.init(num_cpus=2)
results = tune.Tuner.restore(sys.argv[1] + "/killed").fit()
sys.exit(results.num_errors)
"""


def children(process):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False).stdout
    return [int(one) for one in found.split()]


def configs_and_steps(folder):
    """Returns what the store has: the config and the steps of each trial, in order."""
    with sqlite3.connect(f"file:{folder}/killed/experiment.db?mode=ro", uri=True) as store:
        configs = dict(store.execute("select trial, config from trials"))
        steps = {}
        for trial, metrics in store.execute("select trial, metrics from results where not repeated order by sequence"):
            steps.setdefault(trial, []).append(json.loads(metrics)["step"])
    return configs, steps


def kill_something(driver, numbers):
    """Kills the driver, its server, or one of the workers; returns which."""
    servers = [child for child in children(driver.pid)]
    workers = [worker for server in servers for worker in children(server)]
    kind, targets = numbers.choice([("driver", [driver.pid]), ("server", servers), ("worker", workers)])
    if targets:
        try:
            os.kill(numbers.choice(targets), signal.SIGKILL)
        except ProcessLookupError:
            pass
    return kind


def test_kills_at_random_lose_nothing_and_change_no_decision(programs, tmp_path):
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    numbers = random.Random(seed)
    kills = lives = 0
    known = {}
    done = False
    while not done:
        begun = (tmp_path / "killed" / "experiment.db").exists()
        lives += 1
        program = programs.start(CONTINUES if begun else BEGINS, str(tmp_path), name=f"life_{lives}.py")
        while program.poll() is None and kills < KILLS:
            time.sleep(numbers.uniform(0.05, 1.2))
            if program.poll() is None:
                kills += 1
                if kill_something(program, numbers) == "driver":
                    break
        output = program.communicate(timeout=200)[0]
        done = program.returncode == 0
        assert done or kills < KILLS or lives < 3 * KILLS + 3, output
        assert "Error: " not in output or "fork server" in output or "no experiment" in output, output
        if (tmp_path / "killed" / "experiment.db").exists():
            try:
                configs, _ = configs_and_steps(tmp_path)
            except sqlite3.OperationalError:
                continue
            for trial, config in known.items():
                assert configs[trial] == config, "a config that was drawn is not drawn again"
            known = configs
    assert kills >= KILLS // 2, f"{kills} kills: the trials have ended before"
    configs, steps = configs_and_steps(tmp_path)
    for key in "x", "y":
        assert len(configs) == TRIALS and len({json.loads(config)[key] for config in configs.values()}) == TRIALS
    for trial in configs:
        assert steps[trial] == list(range(1, STEPS + 1)), f"trial {trial} (seed {seed})"
    assert not [file for file in pathlib.Path(tmp_path, "killed").glob("*/.reporting_*")]
