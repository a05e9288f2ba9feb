"""A model of what the controller decides under Population Based Training.

Written from the text that describes the behaviour (Ray Tune's scheduler, its log and its retention of checkpoints, and
what Cadre does differently on purpose), not from the C++ code, which pbt_decisions_test.py compares with it.

    oracle = Oracle(settings)             # a dictionary, see pbt_decisions_test.random_settings
    first = oracle.start()
    answer = oracle.handle({"trial": 3, "metrics": {"score": 0.5, "training_iteration": 5}, "checkpoint": True})

An answer is a dictionary: "decisions" in the order in which they were made (deletions last), "configs" of the trials
that were launched, "log" as the lines of pbt_global.txt. A worker that is told to stop ends at once.
"""

import copy
import math
import re
from dataclasses import dataclass, field

SEARCH_SPACE, EXPLOIT, EXPLORE = 1, 2, 3  # purposes of a stream
PENDING, RUNNING, PAUSED, ENDED = "pending", "running", "paused", "ended"
NO_WORKER, BUSY, PARKED, STOPPING = "none", "busy", "parked", "stopping"
NUMBERS = ("uniform", "loguniform", "randint")


def philox(counter, key):
    """Philox4x32-10: four words for a counter of four and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left, right = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & 0xFFFFFFFF, (left >> 32) ^ c3 ^ k1, left & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


class Stream:
    """The random numbers of one trial for one purpose."""

    def __init__(self, seed, trial, purpose):
        self.key = (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)
        self.trial, self.purpose, self.index = trial, purpose, 0

    def uniform(self):
        words = philox((self.index & 0xFFFFFFFF, self.index >> 32, self.trial, self.purpose), self.key)
        self.index += 1
        return ((words[1] << 32 | words[0]) >> 11) * 2.0**-53

    def below(self, n):
        return math.floor(self.uniform() * n)


@dataclass
class Checkpoint:
    owner: int
    number: int
    metrics: dict  # of the result that it was reported with

    @property
    def name(self):
        return [self.owner, self.number]


@dataclass
class Trial:
    index: int
    config: dict
    tag: str
    exploit_stream: Stream
    explore_stream: Stream
    status: str = PENDING
    # The worker.
    worker: str = NO_WORKER
    holds_slot: bool = False
    attempt: int = 0
    launched_from: Checkpoint | None = None
    # What the scheduler knows.
    last_score: float | None = None  # larger is better
    last_perturbation_time: float = 0
    last_train_time: float = 0
    compared_iteration: int = 0
    offer: Checkpoint | None = None
    # Checkpoints.
    latest: Checkpoint | None = None
    made: int = 0
    kept: list = field(default_factory=list)  # own ones, oldest first

    @property
    def live(self):
        return self.status != ENDED

    @property
    def waits(self):
        return self.status in (PENDING, PAUSED) and self.worker != STOPPING


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def lookup(metrics, name):
    """The value of a metric, also by its path in nested metrics; None without one."""
    if name in metrics:
        return metrics[name]
    head, slash, rest = name.partition("/")
    return lookup(metrics[head], rest) if slash and isinstance(metrics.get(head), dict) else None


def number(metrics, name):
    value = lookup(metrics, name)
    return value if is_number(value) else None


def draw(domain, stream):
    kind, *bounds = domain
    if kind in ("choice", "list"):
        return bounds[0][stream.below(len(bounds[0]))]
    low, high = bounds
    if kind == "randint":
        return low + stream.below(high - low)
    u = stream.uniform()
    if kind == "uniform":
        value = low + u * (high - low)
    else:
        value = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
    return max(float(low), min(value, math.nextafter(high, low)))


def draw_space(space, stream, path=()):
    """A config, and what was drawn for it by path."""
    config, drawn = {}, {}
    for key, entry in space.items():
        if entry[0] == "constant":
            config[key] = entry[1]
        elif entry[0] == "space":
            config[key], inner = draw_space(entry[1], stream, (*path, key))
            drawn.update(inner)
        else:
            config[key] = drawn[*path, key] = draw(entry, stream)
    return config, drawn


def tag_of(index, drawn):
    def clean(text):
        return re.sub("[^a-zA-Z0-9_-]+", "_", text).strip("_")

    words = [clean(path[-1]) + "=" + (f"{value:.4f}" if isinstance(value, float) else clean(str(value)))
             for path, value in sorted(drawn.items())]
    return f"{index}_{','.join(words)}" if words else str(index)


def position(options, value):
    """Where a value stands in a list, None if nowhere; a bool is no number."""
    for index, option in enumerate(options):
        if option == value and isinstance(option, bool) == isinstance(value, bool):
            return index
    return None


def clip(value, domain):
    """Into the closed domain; an int stays one."""
    kind, low, high = domain
    if kind == "randint":
        high -= 1
    elif isinstance(value, int):
        low, high = math.ceil(low), math.floor(high)
    return type(value)(max(low, min(value, high)))


def scale(value, factor):
    if isinstance(value, float):
        return value * factor
    new = round(value * factor)
    if new == value and factor != 1:
        new += 1 if (factor > 1) == (value >= 0) else -1
    return new


class Oracle:
    def __init__(self, settings):
        self.settings = settings
        self.pbt = settings["pbt"]
        self.next_sync = max(self.pbt["perturbation_interval"], self.pbt["burn_in_period"])
        self.dropped = []  # by retention, not yet deleted
        self.told_to_stop = []
        self.answer = {}
        self.trials = [self._make_trial(index) for index in range(settings["num_samples"])]

    def start(self):
        return self._answer(self._fill_slots)

    def running(self):
        """The trials whose workers run user code."""
        return [trial.index for trial in self.trials if trial.worker == BUSY]

    def handle(self, event):
        trial = self.trials[event["trial"]]
        assert trial.worker == BUSY
        return self._answer(lambda: self._take(trial, event))

    def _make_trial(self, index):
        seed = self.settings["seed"]
        config, drawn = draw_space(self.settings["space"], Stream(seed, index, SEARCH_SPACE))
        return Trial(index, config, tag_of(index, drawn), Stream(seed, index, EXPLOIT), Stream(seed, index, EXPLORE))

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
        """One event and what follows from it; then the workers that were told to stop end, one after the other."""
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
        trial.offer = None
        self._decide(kind, trial)
        live = [other for other in self.trials if other.live]
        if self.pbt["synch"] and live and all(other.last_train_time >= self.next_sync for other in live):
            self._compare_all(max(other.last_train_time for other in live))

    def _lose_worker(self, trial, kind):
        """Its process ended: as it was told to, or, with a kind, of itself and the trial with it."""
        trial.worker, trial.holds_slot, trial.launched_from = NO_WORKER, False, None
        if kind:
            self._finish(trial, kind)

    # ---- Slots

    def _may_run(self, trial):
        return trial.waits and (not self.pbt["synch"] or trial.last_train_time < self.next_sync)

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

    # ---- Population Based Training

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
        trial.last_score = score if self.pbt["mode"] == "max" else -score
        trial.last_train_time = time
        trial.compared_iteration = number(metrics, "training_iteration") or 0
        others = [other for other in self.trials if other.live and other is not trial]
        if self.pbt["synch"]:
            if all(other.last_train_time >= self.next_sync for other in others):
                self._compare_all(time)
            pauses = True
        else:
            trial.last_perturbation_time = time
            pauses = any(other.waits for other in others)
            self._compare(trial, *self._quantiles())
        if pauses and trial.worker == BUSY:  # it does not exploit
            self._pause(trial)

    def _compare_all(self, time):
        """Everybody is at the barrier."""
        lower, upper = self._quantiles()
        chosen = {trial.index for trial in lower + upper}
        for trial in upper + [other for other in self.trials if other.index not in chosen] + lower:
            trial.last_perturbation_time = time
            if trial.live:
                self._compare(trial, lower, upper)
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
        trial.offer = trial.latest if trial in upper else None
        if trial in lower:
            donor = upper[trial.exploit_stream.below(len(upper))]
            if donor.offer and donor.last_score > trial.last_score:
                self._exploit(trial, donor)

    def _exploit(self, trial, donor):
        operations = {}
        config = self._explore(donor.config, self.settings["mutations"], trial.explore_stream, operations)
        self._decide("exploit", trial, donor=donor.index, checkpoint=donor.offer.name, config=config,
                     operations=operations)
        donor_iteration = number(donor.offer.metrics, "training_iteration") or 0
        self.answer["log"].append([trial.tag, donor.tag, trial.compared_iteration, donor_iteration,
                                   copy.deepcopy(donor.config), config])
        trial.config = config
        trial.latest = donor.offer
        trial.last_perturbation_time, trial.last_train_time = donor.last_perturbation_time, donor.last_train_time
        trial.status = PAUSED
        self._tell_to_stop(trial)

    def _explore(self, config, mutations, stream, operations, path=""):
        config = copy.deepcopy(config)
        for key, mutation in mutations.items():
            if mutation[0] == "nested":
                config[key] = self._explore(config[key], mutation[1], stream, operations, f"{path}{key}/")
            elif mutation[0] in NUMBERS:
                config[key], operations[path + key] = self._explore_number(config[key], mutation, stream)
            else:
                config[key], operations[path + key] = self._explore_list(config[key], mutation, stream)
        return config

    def _explore_list(self, old, mutation, stream):
        options = mutation[1]
        here = position(options, old)
        if stream.uniform() < self.pbt["resample_probability"] or here is None:
            return draw(mutation, stream), "resample"
        side = stream.below(2)
        there = max(0, min(here + (-1, 1)[side], len(options) - 1))
        return options[there], f"shift {('left', 'right')[side]}" + (" (noop)" if there == here else "")

    def _explore_number(self, old, mutation, stream):
        if stream.uniform() < self.pbt["resample_probability"] or not is_number(old):
            new = draw(mutation, stream)
            if isinstance(old, float):
                new = float(new)
            elif is_number(old):
                new = clip(round(new), mutation)
            return new, "resample"
        factor = float(self.pbt["perturbation_factors"][stream.below(2)])
        return clip(scale(old, factor), mutation), f"* {factor!r}"

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
        """Ascending: NaN, then by score, then by age."""
        attribute = self.settings["score_attribute"]
        score = 0 if attribute is None else number(checkpoint.metrics, attribute)
        if math.isnan(score):
            return (False, 0, checkpoint.number)
        return (True, score if self.settings["score_order"] == "max" else -score, checkpoint.number)

    def _delete_unreferenced(self):
        referenced = [checkpoint for trial in self.trials
                      for checkpoint in (trial.latest, trial.offer, trial.launched_from)]
        for checkpoint in list(self.dropped):
            if not any(checkpoint is other for other in referenced):
                self.dropped.remove(checkpoint)
                self.answer["decisions"].append({"kind": "delete", "checkpoint": checkpoint.name})
