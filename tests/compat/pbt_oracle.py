"""A model of the controller's decisions under Population Based Training.

Written from the descriptions of the behaviour (Ray Tune's scheduler, its log and its retention of checkpoints, and
Cadre's intended differences), not from the C++ code, which pbt_decisions_test.py compares with it.

    oracle = Oracle(settings)             # a dictionary, see pbt_decisions_test.random_settings
    first = oracle.start()
    answer = oracle.handle({"trial": 3, "metrics": {"score": 0.5, "training_iteration": 5}, "checkpoint": True})

An answer is a dictionary: "decisions" in the order in which they were made (deletions last), "configs" of the trials
that were launched, "log" as the lines of pbt_global.txt; the first one also has "trials", the tag of each trial and the
shown part of its config. A worker that is told to stop ends at once.
"""

import copy
import math
from dataclasses import dataclass, field

from search_space_oracle import (EXPLOIT, EXPLORE, Explorer, Stream, beginning_of_replay, is_number, tag_of, variants)

PENDING, RUNNING, PAUSED, ENDED = "pending", "running", "paused", "ended"
NO_WORKER, BUSY, PARKED, STOPPING = "none", "busy", "parked", "stopping"


@dataclass
class Checkpoint:
    owner: int
    number: int
    metrics: dict  # of the result with which it was reported

    @property
    def name(self):
        return [self.owner, self.number]


@dataclass
class Trial:
    index: int
    config: dict
    tag: str
    sampled: dict
    exploit_stream: Stream
    explore_stream: Stream
    status: str = PENDING
    # The worker's state.
    worker: str = NO_WORKER
    holds_slot: bool = False
    attempt: int = 0
    launched_from: Checkpoint | None = None
    # The scheduler's state.
    last_score: float | None = None  # larger is better
    last_perturbation_time: float = 0
    last_train_time: float = 0
    compared_iteration: int = 0
    # Checkpoints.
    latest: Checkpoint | None = None
    made: int = 0
    kept: list = field(default_factory=list)  # the trial's own, oldest first

    @property
    def live(self):
        return self.status != ENDED

    @property
    def waits(self):
        return self.status in (PENDING, PAUSED) and self.worker != STOPPING


def lookup(metrics, name):
    """Returns the value of a metric, also by its path in nested metrics; None if there is none."""
    if name in metrics:
        return metrics[name]
    head, slash, rest = name.partition("/")
    return lookup(metrics[head], rest) if slash and isinstance(metrics.get(head), dict) else None


def number(metrics, name):
    value = lookup(metrics, name)
    return value if is_number(value) else None


def equal(a, b):
    """Returns True if types and values are equal; NaN equals NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    return a == b or (a != a and b != b)


class Oracle:
    def __init__(self, settings):
        self.settings = settings
        self.pbt = settings["pbt"]
        self.next_sync = max(self.pbt["perturbation_interval"], self.pbt["burn_in_period"])
        self.dropped = []  # no longer kept, but not yet deleted
        self.told_to_stop = []
        self.answer = {}
        self.schedule = settings["replay"]  # None: Population Based Training
        self.changes_made = 0
        if self.schedule:
            settings = settings | {"space": beginning_of_replay(settings["space"], self.schedule["initial_config"])}
        self.trials = [self._make_trial(index, variant) for index, variant in enumerate(variants(settings))]

    def start(self):
        answer = self._answer(self._fill_slots)
        return answer | {"trials": [[trial.tag, trial.sampled] for trial in self.trials]}

    def running(self):
        """Returns the trials whose workers run user code."""
        return [trial.index for trial in self.trials if trial.worker == BUSY]

    def handle(self, event):
        trial = self.trials[event["trial"]]
        assert trial.worker == BUSY
        return self._answer(lambda: self._take(trial, event))

    def _make_trial(self, index, variant):
        seed = self.settings["seed"]
        return Trial(index, variant.config, tag_of(index, variant.sampled), variant.sampled,
                     Stream(seed, index, EXPLOIT), Stream(seed, index, EXPLORE))

    def _answer(self, work):
        self.answer = {"decisions": [], "configs": {}, "log": []}
        work()
        self._delete_unreferenced()
        return self.answer

    def _decide(self, kind, trial, **details):
        self.answer["decisions"].append({"kind": kind, "trial": trial.index, **details})

    # ---- Events

    def _take(self, trial, event):
        if "metrics" in event:
            self._step(lambda: self._report(trial, event["metrics"], event["checkpoint"]))
        else:
            self._step(lambda: self._lose_worker(trial, "end" if "returns" in event else "fail"))

    def _step(self, work):
        """Handles an event and its consequences; then the workers that were told to stop end, one after the other."""
        work()
        self._fill_slots()
        stopping, self.told_to_stop = self.told_to_stop, []
        for trial in stopping:
            self._step(lambda trial=trial: self._lose_worker(trial, None))

    def _report(self, trial, metrics, has_checkpoint):
        if has_checkpoint:
            self._commit(trial, metrics)
        reached = [number(metrics, name) for name in self.settings["stop"]]
        thresholds = self.settings["stop"].values()
        if metrics.get("done") is True or any(
                value is not None and value >= threshold for value, threshold in zip(reached, thresholds)):
            self._stop(trial, "end")
        elif self.schedule:
            self._replay(trial, metrics)
        else:
            self._ask_scheduler(trial, metrics)

    def _stop(self, trial, kind):
        self._tell_to_stop(trial)
        self._finish(trial, kind)

    def _tell_to_stop(self, trial):
        trial.worker = STOPPING
        self.told_to_stop.append(trial)

    def _finish(self, trial, kind):
        trial.status = ENDED
        self._decide(kind, trial)
        live = [other for other in self.trials if other.live]
        if self._synchronous and live and all(other.last_train_time >= self.next_sync for other in live):
            self._compare_all(max(other.last_train_time for other in live))

    def _lose_worker(self, trial, kind):
        """Handles the end of a process: it was told to stop or, with a kind, it ended by itself, as does its trial."""
        trial.worker, trial.holds_slot, trial.launched_from = NO_WORKER, False, None
        if kind:
            self._finish(trial, kind)

    # ---- Slots

    def _may_run(self, trial):
        return trial.waits and (not self._synchronous or trial.last_train_time < self.next_sync)

    def _fill_slots(self):
        while sum(trial.holds_slot for trial in self.trials) < self.settings["slots"]:
            waiting = [trial for trial in self.trials if self._may_run(trial)]
            if not waiting:
                return
            self._run(min(waiting, key=lambda trial: (trial.last_train_time, trial.index)))

    def _run(self, trial):
        if trial.worker == PARKED:
            self._decide("resume", trial)
        else:
            trial.attempt += 1
            trial.launched_from = trial.latest
            checkpoint = trial.latest.name if trial.latest else None
            self._decide("launch", trial, attempt=trial.attempt, checkpoint=checkpoint)
            self.answer["configs"][str(trial.index)] = copy.deepcopy(trial.config)
        trial.status, trial.worker, trial.holds_slot = RUNNING, BUSY, True

    def _pause(self, trial):
        trial.status, trial.worker, trial.holds_slot = PAUSED, PARKED, False
        self._decide("pause", trial)

    # ---- Replays

    def _replay(self, trial, metrics):
        """Continues the trial from its own newest checkpoint if a change is due."""
        iteration = number(metrics, "training_iteration")
        if iteration is None or self.changes_made == len(self.schedule["changes"]):
            return
        change = self.schedule["changes"][self.changes_made]
        if iteration < change["change_at"]:
            return
        if trial.latest is None:
            self._stop(trial, "fail")
            return
        self.changes_made += 1
        kept = {key: value for key, value in trial.config.items() if key not in self.schedule["initial_config"]}
        config = {key: (kept | change["config"])[key] for key in [*trial.config, *change["config"]]
                  if key in kept or key in change["config"]}
        changed = [key for key in config if key not in trial.config or not equal(trial.config[key], config[key])]
        self._decide("exploit", trial, donor=trial.index, checkpoint=trial.latest.name, config=config,
                     operations=dict.fromkeys(changed, "replay"))
        self._continue_from(trial, trial.latest, config)

    # ---- Population Based Training

    @property
    def _synchronous(self):
        return not self.schedule and self.pbt["synch"]

    def _ask_scheduler(self, trial, metrics):
        time, score = number(metrics, self.pbt["time_attr"]), number(metrics, self.pbt["metric"])
        if time is None or score is None:
            if self.pbt["require_attrs"]:
                self._stop(trial, "fail")
            return
        if time < self.pbt["burn_in_period"]:
            return
        if time - trial.last_perturbation_time < self.pbt["perturbation_interval"]:
            return
        if self._never_saves(trial):
            self._stop(trial, "fail")
            return
        trial.last_score = score if self.pbt["mode"] == "max" else -score
        trial.last_train_time = time
        trial.compared_iteration = number(metrics, "training_iteration") or 0
        self._note_interval(trial, time)
        others = [other for other in self.trials if other.live and other is not trial]
        if self.pbt["synch"]:
            if all(other.last_train_time >= self.next_sync for other in others):
                self._compare_all(time)
            pauses = True
        else:
            trial.last_perturbation_time = time
            pauses = any(other.waits for other in others)
            self._compare(trial, *self._quantiles())
        if pauses and trial.worker == BUSY:  # no exploit
            self._pause(trial)

    def _note_interval(self, trial, time):
        """Handles a trial's result at an interval, before any comparison; for variants."""

    def _never_saves(self, trial):
        """Returns True if the trial is at an interval without a checkpoint and another trial could exploit it."""
        return (not trial.latest and self.pbt["quantile_fraction"] > 0
                and any(other.live and other is not trial for other in self.trials))

    def _compare_all(self, time):
        """Compares all trials: all are at the barrier."""
        lower, upper = self._quantiles()
        chosen = {trial.index for trial in lower + upper}
        for trial in upper + [other for other in self.trials if other.index not in chosen] + lower:
            trial.last_perturbation_time = time
            if trial.live:
                self._compare(trial, lower, upper)
        self._set_next_barrier()

    def _set_next_barrier(self):
        furthest = max(trial.last_train_time for trial in self.trials)
        first, rounds = self.next_sync, 1
        while first + rounds * self.pbt["perturbation_interval"] <= furthest:
            rounds += 1
        self.next_sync = first + rounds * self.pbt["perturbation_interval"]

    def _quantiles(self):
        scored = [trial for trial in self.trials
                  if trial.live and trial.last_score is not None and not math.isnan(trial.last_score)]
        scored.sort(key=lambda trial: trial.last_score)
        if len(scored) < 2:
            return [], []
        size = math.ceil(len(scored) * self.pbt["quantile_fraction"])
        if size > len(scored) / 2:
            size = len(scored) // 2
        return scored[:size], scored[len(scored) - size:]

    def _compare(self, trial, lower, upper):
        if trial in lower:
            donor = upper[trial.exploit_stream.below(len(upper))]
            if donor.latest and donor.last_score > trial.last_score:
                self._exploit(trial, donor)

    def _exploit(self, trial, donor):
        config, operations = self._explore(trial, donor)
        self._decide("exploit", trial, donor=donor.index, checkpoint=donor.latest.name, config=config,
                     operations=operations)
        donor_iteration = number(donor.latest.metrics, "training_iteration") or 0
        self.answer["log"].append([trial.tag, donor.tag, trial.compared_iteration, donor_iteration,
                                   copy.deepcopy(donor.config), config])
        trial.last_perturbation_time, trial.last_train_time = donor.last_perturbation_time, donor.last_train_time
        self._continue_from(trial, donor.latest, config)

    def _explore(self, trial, donor):
        """Returns the config that the trial gets, and how each key was changed."""
        explorer = Explorer(self.pbt, donor.config, trial.explore_stream)
        config = explorer.explore(donor.config, self.settings["mutations"])
        return explorer.customize(config) if self.pbt["custom"] else config, explorer.operations

    def _continue_from(self, trial, checkpoint, config):
        trial.config = config
        trial.latest = checkpoint
        trial.status = PAUSED
        self._tell_to_stop(trial)

    # ---- Checkpoints

    def _commit(self, trial, metrics):
        trial.latest = Checkpoint(trial.index, trial.made, metrics)
        trial.made += 1
        trial.kept.append(trial.latest)
        if self.settings["num_to_keep"] is None:
            return
        ranked = sorted(filter(self._is_ranked, trial.kept), key=self._rank)
        for checkpoint in ranked[:-self.settings["num_to_keep"]]:
            if checkpoint is not trial.latest:
                trial.kept.remove(checkpoint)
                self.dropped.append(checkpoint)

    def _is_ranked(self, checkpoint):
        attribute = self.settings["score_attribute"]
        return attribute is None or number(checkpoint.metrics, attribute) is not None

    def _rank(self, checkpoint):
        """Returns a sort key: NaN first, then ascending by score, then by age."""
        attribute = self.settings["score_attribute"]
        score = 0 if attribute is None else number(checkpoint.metrics, attribute)
        if math.isnan(score):
            return (False, 0, checkpoint.number)
        return (True, score if self.settings["score_order"] == "max" else -score, checkpoint.number)

    def _delete_unreferenced(self):
        referenced = [checkpoint for trial in self.trials
                      for checkpoint in (trial.latest, trial.launched_from)]
        for checkpoint in list(self.dropped):
            if not any(checkpoint is other for other in referenced):
                self.dropped.remove(checkpoint)
                self.answer["decisions"].append({"kind": "delete", "checkpoint": checkpoint.name})
