"""Optuna as a searcher of Cadre: tune::ExternalSearcher{.command = {"python3", "optuna_searcher.py"}}.

Any sampler of Optuna will do; TPESampler is the example. Cadre keeps the experiment, so the study is in memory: after a
crash of this program Cadre starts it again and tells it everything. The space may have numbers, choices and constants
at its top level."""

import json
import sys

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution


def distribution(entry):
    """The Optuna distribution of an entry of the search space; None for a constant."""
    kind = entry["type"]
    if kind in ("uniform", "loguniform"):
        return FloatDistribution(entry["lower"], entry["upper"], log=kind == "loguniform", step=entry["q"] or None)
    if kind in ("randint", "lograndint"):
        upper = entry["upper"] if entry["q"] else entry["upper"] - 1
        return IntDistribution(entry["lower"], upper, log=kind == "lograndint", step=entry["q"] or 1)
    if kind == "choice":
        return CategoricalDistribution([option["value"] for option in entry["options"]])
    if kind == "ordinal":
        return CategoricalDistribution(entry["options"])
    if kind == "constant":
        return None
    raise ValueError(f"this program knows no {kind}")


class Searcher:
    def __init__(self, begin):
        entries = {key: distribution(entry) for key, entry in begin["space"].items()}
        self.distributions = {key: entry for key, entry in entries.items() if entry is not None}
        self.metric = begin["metric"]
        self.study = optuna.create_study(direction="minimize" if begin["mode"] == "min" else "maximize",
                                         sampler=optuna.samplers.TPESampler(seed=begin["seed"]))
        self.suggested = {}  # by the number of a trial: Optuna's trial
        self.configs = {}

    def suggest(self, number):
        # Asked again for a trial that was never added: Optuna's earlier one is given up.
        trial = self.suggested[number] = self.study.ask(self.distributions)
        return {"config": trial.params}

    def add(self, number, config):
        self.configs[number] = config

    def end(self, number, status, metrics):
        value = metrics.get(self.metric) if status != "error" else None
        state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
        if number in self.suggested:
            self.study.tell(self.suggested.pop(number), value, state=state)
        elif value is not None:  # suggested by an earlier process, or by nobody
            params = {key: self.configs[number][key] for key in self.distributions}
            self.study.add_trial(optuna.trial.create_trial(params=params, distributions=self.distributions, value=value))


def main():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    searcher = None
    for text in sys.stdin:
        line = json.loads(text)
        if "begin" in line:
            searcher = Searcher(line["begin"])
        elif "add" in line:
            searcher.add(line["add"], line["config"])
        elif "end" in line:
            searcher.end(line["end"], line["status"], line["metrics"])
        elif "suggest" in line:
            print(json.dumps(searcher.suggest(line["suggest"])), flush=True)


if __name__ == "__main__":
    main()
