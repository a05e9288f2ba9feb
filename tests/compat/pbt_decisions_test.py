"""On random traces of results the controller decides as the model in pbt_oracle.py does.

$CADRE_BIN/pbt_decisions_tool reads a JSON document per line: first the settings (see random_settings.py), then events

    {"trial": 3, "metrics": {"score": 0.5, "training_iteration": 6}, "checkpoint": true}        its worker reports
    {"trial": 3, "returns": true} or {"trial": 3, "throws": "text"} or {"trial": 3, "dies": 9}  and ends

and answers each with a line (see pbt_oracle.py). CADRE_TRACES is the number of traces, CADRE_SEED the first seed.
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

from pbt_oracle import Oracle, number
from random_settings import random_settings
from search_space_oracle import NUMBERS, philox

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "pbt_decisions_tool"
TRACES = int(os.environ.get("CADRE_TRACES", "300"))
FIRST_SEED = int(os.environ.get("CADRE_SEED", "1"))
CLOCKS = ("training_iteration", "seconds")  # restored with a worker's checkpoint


# ---- Traces

class Trainers:
    """Simulates the training functions: draws the next report of each trial."""

    def __init__(self, rng, settings, trials):
        self.rng, self.settings = rng, settings
        self.skill = [rng.random() for _ in range(trials)]
        self.scores = rng.choice(["ties", "reals", "skill"])
        self.wrong_score = rng.choice([0, 0, 0.005, 0.005 if settings["pbt"]["require_attrs"] else 0.2])
        self.wrong_time = rng.choice([0, 0, 0.01])
        self.checkpoints = rng.choice([0.1, 0.5, 0.9, 1, 1])
        self.ends = rng.choice([0, 0, 0.001, 0.01])
        self.pace = rng.choice([0.1, 1, 1, 4])
        self.in_turn = rng.random() < 0.3
        self.clocks = {}  # by worker
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
    """Returns settings, events and the model's answers; the first answer is to the start."""
    rng = random.Random(seed)
    settings = random_settings(rng)
    oracle = Oracle(settings)
    trainers = Trainers(rng, settings, len(oracle.trials))
    events, expected = [], [oracle.start()]
    for _ in range(rng.choice([20, 300, 300])):
        if not oracle.running():
            break
        events.append(trainers.next_event(oracle))
        expected.append(oracle.handle(events[-1]))
    return settings, events, expected


# ---- Comparison

def same(expected, got):
    """Returns True for equal types and values; reals may differ in the last bits of exp and log."""
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
    """Sorts deletions, whose order does not matter."""
    deleted = [decision["checkpoint"] for decision in answer["decisions"] if decision["kind"] == "delete"]
    decisions = [decision for decision in answer["decisions"] if decision["kind"] != "delete"]
    return {"decisions": decisions, "deleted": sorted(deleted), "configs": dict(sorted(answer["configs"].items())),
            "log": answer["log"], "trials": answer.get("trials")}


def answers_of_tool(settings, events):
    lines = "".join(json.dumps(document) + "\n" for document in [settings, *events])
    run = subprocess.run([TOOL], input=lines, capture_output=True, text=True, timeout=120, check=False)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode:
        answers.append({"failed": run.stderr.strip(), "status": run.returncode})
    return answers


def first_difference(settings, events, expected):
    """Returns (line, expected, got), or None if all answers are equal."""
    got = answers_of_tool(settings, events)
    for line, (wanted, answer) in enumerate(itertools.zip_longest(expected, got)):
        if wanted is None or answer is None or "failed" in answer or not same(sort_answer(wanted), sort_answer(answer)):
            return line, wanted, answer
    return None


def answers_of_model(settings, events):
    """Returns the answers, or None if there is an event of a trial that does not run."""
    oracle = Oracle(settings)
    answers = [oracle.start()]
    for event in events:
        if event["trial"] not in oracle.running():
            return None
        answers.append(oracle.handle(event))
    return answers


def shorten(settings, events):
    """Returns the events up to the difference, without those that do not contribute to it."""
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


def features(settings):
    """Returns the names of the features that the settings use."""
    def kinds(entries):
        for entry in entries:
            yield entry[0]
            if entry[0] in ("space", "nested"):
                yield from kinds(entry[1].values())
            elif entry[0] in ("items", "grid", "options"):
                yield from kinds(entry[1])

    found = {*kinds(settings["space"].values())}
    if settings["replay"]:
        return found
    pbt = settings["pbt"]
    return found | {*kinds(settings["mutations"].values()), pbt["bounds"]} | {
        name for name, value in [("custom", pbt["custom"]), *settings.items()] if value
        if name in ("custom", "points", "constant_grid_search")}


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
            seen["replays"] += settings["replay"] is not None
            for feature in features(settings):
                seen[feature] += 1
            for answer in expected:
                for decision in answer["decisions"]:
                    seen[decision["kind"]] += 1
                    seen["exploit of itself"] += "donor" in decision and decision["donor"] == decision["trial"]
                    for operation in decision.get("operations", {}).values():
                        seen[operation.split(" ")[0] + ("+noop" if "noop" in operation else "")] += 1
        print(f"{TRACES} traces agree:", ", ".join(f"{count} {name}" for name, count in sorted(seen.items())))
        if TRACES >= 100:  # then every feature occurs often
            for name in ("launch", "resume", "pause", "exploit", "end", "fail", "delete", "*", "resample", "shift",
                         "shift+noop"):
                self.assertGreater(seen[name], TRACES / 3, name)
            for name in ("replays", "exploit of itself", "points", "constant_grid_search", "custom", "clip", "reflect",
                         "unbounded", "custom_explore_fn", "grid", "options", "items", "function", "space", "ordinal",
                         *NUMBERS):
                self.assertGreater(seen[name], TRACES / 30, name)


if __name__ == "__main__":
    unittest.main()
