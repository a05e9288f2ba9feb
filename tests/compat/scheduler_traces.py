"""What tests that compare schedulers with Ray Tune's share. CADRE_TRACES is the number of random traces, CADRE_SEED the
first seed."""

import json
import os
import pathlib
import subprocess
import types

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "scheduler_tool"
TRACES = int(os.environ.get("CADRE_TRACES", "200"))
FIRST_SEED = int(os.environ.get("CADRE_SEED", "1"))


def decisions_of_cadre(options, trials, results):
    """The answers of scheduler_tool.cc."""
    lines = [{"scheduler": options, "trials": trials}, *results]
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    return subprocess.run([TOOL], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()


class FakeTrial:
    """A trial as Ray's schedulers know it."""

    is_saving = False

    def __init__(self, index):
        self.index, self.trial_id, self.status = index, str(index), "PENDING"

    def __repr__(self):
        return self.trial_id


class FakeController:
    """A controller as Ray's schedulers know it. Counts what they stop."""

    def __init__(self, scheduler, trials):
        self.scheduler, self.trials, self.stopped = scheduler, trials, []
        searcher = types.SimpleNamespace(on_pause=lambda trial: None, on_unpause=lambda trial: None)
        self.search_alg = types.SimpleNamespace(searcher=searcher)

    def get_trials(self):
        return self.trials

    def get_live_trials(self):
        return [trial for trial in self.trials if trial.status != "TERMINATED"]

    def stop_trial(self, trial):
        trial.status = "TERMINATED"
        self.stopped.append(trial.index)
        self.scheduler.on_trial_remove(self, trial)

    def end(self, trial):
        trial.status = "TERMINATED"
        self.scheduler.on_trial_complete(self, trial, {})
