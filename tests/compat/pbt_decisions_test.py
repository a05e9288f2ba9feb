"""What the controller decides on random traces of results is what the model in pbt_oracle.py decides.

$CADRE_BIN/pbt_decisions_tool reads a JSON document a line: first the settings (see random_settings), then events

    {"trial": 3, "metrics": {"score": 0.5, "training_iteration": 6}, "checkpoint": true}        its worker reports
    {"trial": 3, "returns": true} or {"trial": 3, "throws": "text"} or {"trial": 3, "dies": 9}  and ends

and answers each with a line (see pbt_oracle.py). CADRE_TRACES is the number of traces, CADRE_SEED that of the first.
"""

import collections
import itertools
import json
import math
import os
import pathlib
import random
import subprocess
import unittest

from pbt_oracle import Oracle, number, philox

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "pbt_decisions_tool"
TRACES = int(os.environ.get("CADRE_TRACES", "300"))
FIRST_SEED = int(os.environ.get("CADRE_SEED", "1"))
CLOCKS = ("training_iteration", "seconds")  # what a worker continues from, with its checkpoint


# ---- Settings

def random_options(rng):
    return rng.choice([["relu", "tanh", "gelu"], ["a b", "é!", "_c_", ""], [1, "one", 2.5, None], [True, 3, 0.5],
                       [3, 1, 4, 1, 5], [0.1], [32, 64, 128, 256], [False, 0, 1, 2], [0, 1.0, 3.0, 5, 32.0]])


def random_reals(rng):
    kind = rng.choice(["uniform", "loguniform"])
    low = rng.choice([0.0001, 0.001, 0.3]) if kind == "loguniform" else rng.choice([-2.5, -0.5, 0, 0.001, 0.3])
    return [kind, low, low + rng.choice([0.1, 0.5, 1, 9.5])]


def random_reals_with_an_integer(rng):
    domain = random_reals(rng)
    while math.ceil(domain[1]) > math.floor(domain[2]):
        domain = random_reals(rng)
    return domain


def random_integers(rng):
    low = rng.choice([-9, -1, 0, 1, 2, 100])
    return ["randint", low, low + rng.choice([1, 2, 5, 100])]


def random_variable(rng):
    """What a config's value is drawn from, and what it is explored in; None for not at all."""
    kind = rng.randrange(11)
    if kind <= 2:
        return random_reals(rng), random_reals(rng)
    if kind <= 4:
        return random_integers(rng), random_integers(rng)
    if kind == 5:  # integers in a real domain
        return random_integers(rng), ["uniform", rng.choice([-3.5, 0.5, 1, 1.5]), rng.choice([2.5, 3.5, 7, 50.0])]
    if kind == 6:  # reals in an integer domain
        return random_reals(rng), random_integers(rng)
    if kind <= 8:
        options = random_options(rng)
        others = rng.choice([options, options, random_options(rng)])
        return ["choice", options], [rng.choice(["choice", "list"]), others]
    if kind == 9:  # a value that may be no number, or an integer, in a domain of numbers
        return ["choice", random_options(rng)], rng.choice([random_reals_with_an_integer, random_integers])(rng)
    constant = rng.choice([5, 0.5, 0, -1, 1, True, None, "text", [1, 2]])
    options = rng.choice([None, ["list", random_options(rng)], random_integers(rng)])
    return ["constant", constant], options


def random_space(rng, depth=0):
    space, mutations = {}, {}
    names = rng.sample(["lr", "wd", "momentum", "act", "Layers", "a", "a-b", "batch size", "x.y"], rng.randint(1, 5))
    for name in names:
        if depth < 2 and rng.random() < 0.15:
            inner_space, inner_mutations = random_space(rng, depth + 1)
            space[name], mutations[name] = ["space", inner_space], ["nested", inner_mutations]
            continue
        space[name], mutation = random_variable(rng)
        if mutation is not None:
            mutations[name] = mutation
    mutations = dict(rng.sample(list(mutations.items()), rng.randint(1, len(mutations)))) if mutations else {}
    if not mutations:
        space["width"], mutations["width"] = ["randint", 1, 9], ["randint", 1, 9]
    return space, mutations


def random_settings(rng):
    population = rng.randint(1, 12)
    space, mutations = random_space(rng)
    metric = rng.choice(["score", "score", "eval/score"])
    interval = rng.choice([1, 2, 2.5, 5, 0.1, 0.3])
    stop = {}
    if rng.random() < 0.7:
        stop["training_iteration"] = rng.choice([5, 50, 50])
    if rng.random() < 0.3:
        stop[metric] = rng.choice([0.95, 6])
    return {
        "seed": rng.choice([rng.randrange(10), rng.randrange(-(2**63), 2**63)]),
        "num_samples": population,
        "slots": rng.choice([population, rng.randint(1, population), population + 3]),
        "space": space,
        "mutations": mutations,
        "pbt": {
            "time_attr": rng.choice(["training_iteration", "training_iteration", "seconds", "clock/seconds"]),
            "metric": metric,
            "mode": rng.choice(["max", "min"]),
            "perturbation_interval": interval,
            "burn_in_period": rng.choice([0, 0, interval, 3.5, 10]),
            "quantile_fraction": rng.choice([0, 0.1, 0.25, 0.25, 0.3, 0.5, 0.5, rng.random() / 2]),
            "resample_probability": rng.choice([0, 0.25, 0.25, 0.5, 1]),
            "perturbation_factors": rng.choice([[1.2, 0.8], [1.2, 0.8], [0.5, 1.5], [10.0, 0.1], [1e7, 1e-5],
                                                [1e300, 1.0]]),
            "require_attrs": rng.random() < 0.5,
            "synch": rng.random() < 0.4,
        },
        "stop": stop,
        "num_to_keep": rng.choice([None, 1, 1, 2, 3]),
        "score_attribute": rng.choice([None, metric, "loss"]),
        "score_order": rng.choice(["max", "min"]),
    }


# ---- Traces

class Trainers:
    """Plays the training functions: what each of the trials reports next."""

    def __init__(self, rng, settings):
        self.rng, self.settings = rng, settings
        self.skill = [rng.random() for _ in range(settings["num_samples"])]
        self.scores = rng.choice(["ties", "reals", "skill"])
        self.wrong_score = rng.choice([0, 0, 0.005, 0.005 if settings["pbt"]["require_attrs"] else 0.2])
        self.wrong_time = rng.choice([0, 0, 0.01])
        self.checkpoints = rng.choice([0.1, 0.5, 0.9, 1, 1])
        self.ends = rng.choice([0, 0, 0.001, 0.01])
        self.pace = rng.choice([0.1, 1, 1, 4])
        self.in_turn = rng.random() < 0.3
        self.clocks = {}  # of each worker
        self.turn = -1

    def next_event(self, oracle):
        trial = self.choose(oracle.running())
        worker = (trial, oracle.trials[trial].attempt)
        if worker not in self.clocks:
            start = oracle.trials[trial].launched_from
            self.clocks[worker] = tuple(number(start.metrics, name) or 0 for name in CLOCKS) if start else (0, 0)
        if self.rng.random() < self.ends:
            return {"trial": trial, **self.rng.choice([{"returns": True}, {"throws": "text"}, {"dies": 9}])}
        iteration, seconds = self.clocks[worker]
        self.clocks[worker] = iteration + 1, seconds + self.rng.choice([0.25, 1, self.rng.random() * 3]) * self.pace
        return self.report(trial, *self.clocks[worker])

    def choose(self, running):
        if self.in_turn:
            self.turn = min((trial for trial in running if trial > self.turn), default=running[0])
            return self.turn
        return self.rng.choice(running)

    def report(self, trial, iteration, seconds):
        rng = self.rng
        metrics = {"training_iteration": iteration, "seconds": seconds, "clock": {"seconds": seconds}}
        score = self.score(trial)
        if score is not None:
            name = self.settings["pbt"]["metric"]
            metrics.update({"eval": {"score": score}} if "/" in name and rng.random() < 0.7 else {name: score})
        if rng.random() < 0.7:
            metrics["loss"] = rng.choice([1, 2.5, rng.random(), math.nan, "none", True])
        if rng.random() < 0.1:
            metrics["done"] = rng.random() < 0.01
        event = {"trial": trial, "metrics": metrics, "checkpoint": rng.random() < self.checkpoints}
        if rng.random() < self.wrong_time:
            metrics["training_iteration"] = metrics["seconds"] = metrics["clock"]["seconds"] = rng.choice(["1", None])
        return event

    def score(self, trial):
        rng = self.rng
        if rng.random() < self.wrong_score:
            return rng.choice([None, math.nan, math.nan, math.inf, "0.5", True, [1]])
        return {"ties": rng.choice([0, 1, 1.0, 2, 0.5]), "reals": rng.uniform(-1, 1),
                "skill": self.skill[trial] * 0.5 + rng.random() * 0.2}[self.scores]


def random_trace(seed):
    """Settings, events and the model's answers, that to the start first."""
    rng = random.Random(seed)
    settings = random_settings(rng)
    oracle = Oracle(settings)
    trainers = Trainers(rng, settings)
    events, expected = [], [oracle.start()]
    for _ in range(rng.choice([20, 300, 300])):
        if not oracle.running():
            break
        events.append(trainers.next_event(oracle))
        expected.append(oracle.handle(events[-1]))
    return settings, events, expected


# ---- Comparison

def same(expected, got):
    """Equal in type and value, reals but for the last bits of exp and log."""
    if type(expected) is not type(got):
        return False
    if isinstance(expected, float):
        return math.isclose(expected, got, rel_tol=1e-12) or (math.isnan(expected) and math.isnan(got))
    if isinstance(expected, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, dict):
        return list(expected) == list(got) and all(same(expected[key], got[key]) for key in expected)
    return expected == got


def sort_answer(answer):
    """The order of deletions says nothing."""
    deleted = [decision["checkpoint"] for decision in answer["decisions"] if decision["kind"] == "delete"]
    decisions = [decision for decision in answer["decisions"] if decision["kind"] != "delete"]
    return {"decisions": decisions, "deleted": sorted(deleted), "configs": dict(sorted(answer["configs"].items())),
            "log": answer["log"]}


def answers_of_tool(settings, events):
    lines = "".join(json.dumps(document) + "\n" for document in [settings, *events])
    run = subprocess.run([TOOL], input=lines, capture_output=True, text=True, timeout=60, check=False)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode:
        answers.append({"failed": run.stderr.strip(), "status": run.returncode})
    return answers


def first_difference(settings, events, expected):
    """(line, expected, got), None if all is the same."""
    got = answers_of_tool(settings, events)
    for line, (wanted, answer) in enumerate(itertools.zip_longest(expected, got)):
        if wanted is None or answer is None or "failed" in answer or not same(sort_answer(wanted), sort_answer(answer)):
            return line, wanted, answer
    return None


def answers_of_model(settings, events):
    """None if a trial that does not run has an event."""
    oracle = Oracle(settings)
    answers = [oracle.start()]
    for event in events:
        if event["trial"] not in oracle.running():
            return None
        answers.append(oracle.handle(event))
    return answers


def shorten(settings, events):
    """The events up to the difference, without those that it does not need."""
    index = len(events)
    while index > 0:
        index -= 1
        fewer = events[:index] + events[index + 1:]
        expected = answers_of_model(settings, fewer)
        difference = expected and first_difference(settings, fewer, expected)
        if difference:
            events = fewer[:difference[0]]
            index = min(index, len(events))
    return events


def describe(seed, settings, events):
    line, wanted, got = first_difference(settings, events, answers_of_model(settings, events))
    lines = [json.dumps(document) for document in [settings, *events]]
    title = f"trace {seed} (CADRE_SEED={seed} CADRE_TRACES=1), shortened, differs in line {line + 1} of"
    return "\n".join([title, *lines, f"expected: {json.dumps(wanted)}", f"got:      {json.dumps(got)}"])


class PhiloxTest(unittest.TestCase):
    def test_gives_the_published_numbers(self):
        ones = 0xFFFFFFFF
        for counter, key, words in [
                ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
                ((ones, ones, ones, ones), (ones, ones), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
                ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
                 (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))]:
            self.assertEqual(philox(counter, key), words)


class DecisionsTest(unittest.TestCase):
    def test_equal_those_of_the_model(self):
        seen = collections.Counter()
        for seed in range(FIRST_SEED, FIRST_SEED + TRACES):
            settings, events, expected = random_trace(seed)
            difference = first_difference(settings, events, expected)
            if difference:
                self.fail(describe(seed, settings, shorten(settings, events[:difference[0]])))
            seen["event"] += len(events)
            for answer in expected:
                for decision in answer["decisions"]:
                    seen[decision["kind"]] += 1
                    for operation in decision.get("operations", {}).values():
                        seen[operation.split(" ")[0] + ("+noop" if "noop" in operation else "")] += 1
        print(f"{TRACES} traces agree:", ", ".join(f"{count} {name}" for name, count in sorted(seen.items())))
        if TRACES >= 100:  # then everything occurs often
            for name in ("launch", "resume", "pause", "exploit", "end", "fail", "delete", "*", "resample", "shift",
                         "shift+noop"):
                self.assertGreater(seen[name], TRACES / 3, name)


if __name__ == "__main__":
    unittest.main()
