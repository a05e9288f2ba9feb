"""Thousands of reports a trial on nodes whose network is cut at random, stands still and comes back: each counts once.

Agents are processes of this machine, their connections lead through relays: no root, and no Slurm; where these are there,
once on a real Slurm, too. CADRE_SEED repeats the choice of cuts.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import rig
import switchboard

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 240
SEED = int(os.environ.get("CADRE_SEED", random.randrange(1 << 32)))

Gap = collections.namedtuple("Gap", "node begin end")


def gaps_of(experiment):
    """Returns the reports that took long, by trial."""
    gaps = {}
    for file in experiment.glob("*/gaps"):
        lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
        gaps[file.parent.name] = [Gap(node, float(begin), float(end)) for node, begin, end in lines]
    return gaps


def begins_of(experiment):
    """Returns the nodes on which processes of each trial began, sorted by how many there are."""
    begun = [[line.split()[0] for line in file.read_text(encoding="utf-8").splitlines()] for file in experiment.glob("*/begun")]
    return sorted(begun, key=len)


def longest(gaps, during=(0, float("inf"))):
    return max((gap.end - gap.begin for gap in gaps if gap.end > during[0] and gap.begin < during[1]), default=0.0)


def numbers_of_rows(experiment):
    """Returns how many rows each trial has."""
    return [file.read_bytes().count(b"\n") for file in experiment.glob("*/result.json")]


def rows_of(experiment):
    """Returns the rows of all trials, by trial."""
    return {file.parent.name: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            for file in experiment.glob("*/result.json")}


class ReportsTest(unittest.TestCase):
    """A subclass says how the nodes are made."""

    trials = 4
    reports = 3000  # of each

    def setUp(self):
        print(f"{self.id()}: CADRE_SEED={SEED}", file=sys.stderr)
        self.random = random.Random(f"{SEED} {self.id()}")
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cadre_reports_")))

    def command(self, every, pause_ms):
        return [str(BIN / "reports_tool"), str(self.directory / "results"), str(self.trials), str(self.reports), str(every),
                str(pause_ms)]

    def start(self, command, start, **options):
        process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory, **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    @property
    def experiment(self):
        return self.directory / "results" / "reports"

    def wait_for_rows(self, process, count):
        """Waits until each trial has reported so often."""
        begin = time.monotonic()
        while len(numbers := numbers_of_rows(self.experiment)) < self.trials or min(numbers) < count:
            self.assertIsNone(process.poll(), "it has ended")
            self.assertLess(time.monotonic() - begin, DEADLINE_S)
            time.sleep(0.05)

    def finish(self, process):
        """Returns what is printed of each trial, after all rows were compared."""
        output, errors = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        rows = rows_of(self.experiment)
        self.assertEqual(len(rows), self.trials)
        for trial, its_rows in rows.items():
            for name in ("count", "training_iteration"):
                found = [row[name] for row in its_rows]
                wrong = [(one, number) for one, number in zip(found, range(1, self.reports + 1)) if one != number]
                self.assertEqual((len(found), wrong[:5]), (self.reports, []), f"{name} of {trial}")
        with contextlib.closing(sqlite3.connect(self.experiment / "experiment.db")) as store:
            doubled = store.execute("SELECT trial, attempt, step, count(*) FROM results GROUP BY trial, attempt, step "
                                    "HAVING count(*) > 1").fetchall()
        self.assertEqual(doubled[:5], [], f"{len(doubled)} reports were taken twice")
        return [json.loads(line) for line in output.splitlines()], errors

    def compare_gaps(self, cut_off, during, seconds):
        """Prints the longest gap of the node that was cut off for `seconds`, and of others meanwhile."""
        all_gaps = [gap for gaps in gaps_of(self.experiment).values() for gap in gaps]
        its = longest([gap for gap in all_gaps if gap.node == cut_off], during)
        of_others = longest([gap for gap in all_gaps if gap.node != cut_off], during)
        print(f"{self.id()}: {seconds} s without network cost its trials {its:.2f} s, and those of other nodes {of_others:.3f} s",
              file=sys.stderr)
        self.assertGreater(its, seconds - 1, "it was not cut off")
        self.assertLess(its, seconds + 30)
        self.assertLess(of_others, seconds - 1, "others waited for it")


class RelayedReportsTest(ReportsTest):
    def start_program(self, every, pause_ms, **options):
        board = self.enterContext(switchboard.Switchboard(self.directory, seed=SEED, **options))
        process = self.start(self.command(every, pause_ms), subprocess.Popen, env=os.environ | board.variables)
        return board, process

    def test_each_counts_once_however_links_are_cut(self):
        self.reports = 10_000
        board, process = self.start_program(1000, 0.2, cut_every_s=(0.01, 0.3), cut_after_bytes=(1, 300_000), half_open=0.01)
        relays = [board.relay(name) for name in ("1.0", "1.1")]
        begin = time.monotonic()
        stalled = collections.Counter()
        while process.poll() is None and time.monotonic() - begin < DEADLINE_S:
            time.sleep(self.random.uniform(0, 0.5))
            seconds = min(3, 0.1 * 2 ** self.random.expovariate(0.7))
            victim = self.random.randrange(2)
            relays[victim].stall()
            time.sleep(seconds)
            relays[victim].resume()
            stalled[victim] += seconds
        self.finish(process)
        begun = list(map(len, begins_of(self.experiment)))
        print(f"{self.id()}: {sum(one.cuts for one in relays)} cuts, {sum(one.halves for one in relays)} half-open connections, "
              f"{sum(stalled.values()):.1f} s of black holes; trials began {begun} times",
              file=sys.stderr)
        self.assertGreater(min(one.cuts for one in relays), 10)

    def test_eight_seconds_without_network_cost_no_more(self):
        board, process = self.start_program(1000, 3)
        self.wait_for_rows(process, 100)
        between = board.relay("1.1")
        begin = time.monotonic()
        between.stall()
        time.sleep(8)
        between.resume()
        end = time.monotonic()
        _, errors = self.finish(process)
        self.assertEqual(list(map(len, begins_of(self.experiment))), [1] * self.trials, errors)
        self.compare_gaps("1.1", (begin, end), 8)

    def test_a_half_open_connection_costs_no_trial_its_process(self):
        board, process = self.start_program(1000, 1)
        self.wait_for_rows(process, 500)
        board.relay("1.1").leave_half_open()  # the controller is told, and the agent finds out after five seconds
        found, errors = self.finish(process)
        self.assertEqual(list(map(len, begins_of(self.experiment))), [1] * self.trials, errors)

    def test_a_node_that_is_cut_off_for_long_ends_its_workers_and_its_trials_go_on_elsewhere(self):
        board, process = self.start_program(250, 1)
        self.wait_for_rows(process, 500)
        between = board.relay("1.1")
        between.stall()
        found, errors = self.finish(process)
        between.resume()
        begun = begins_of(self.experiment)
        print(f"{self.id()}: trials began on {begun}", file=sys.stderr)
        self.assertEqual(begun, [["1.0"], ["1.0"], ["1.1", "1.0"], ["1.1", "1.0"]], errors)
        self.assertEqual({trial["node"] for trial in found}, {"1.0"})

    def test_a_node_that_comes_back_too_late_begins_anew(self):
        board, process = self.start_program(250, 2)
        self.wait_for_rows(process, 500)
        between = board.relay("1.1")
        between.stall()
        time.sleep(22)  # its agent ends its workers after 20, and is given up after 25
        between.resume()
        found, errors = self.finish(process)
        begun = begins_of(self.experiment)
        print(f"{self.id()}: trials began on {begun}", file=sys.stderr)
        self.assertEqual(list(map(len, begun)), [1, 1, 2, 2], errors)


class RigReportsTest(ReportsTest):
    def test_eight_seconds_without_network_cost_no_more(self):
        if reason := rig.missing():
            self.skipTest(reason)
        cluster = self.enterContext(rig.Rig(nodes=2, slurmd_timeout_s=60))
        command = ["salloc", "--quiet", "--nodes=2", "--exclusive", *self.command(1000, 3)]
        process = self.start(command, lambda *arguments, **options: cluster.start("ctl", *arguments, **options),
                             env={"CADRE_CLUSTER": "slurm"})
        self.wait_for_rows(process, 100)
        begin = time.monotonic()
        cluster.cut("n1", seconds=8)
        time.sleep(9)
        end = time.monotonic()
        _, errors = self.finish(process)
        self.assertEqual(list(map(len, begins_of(self.experiment))), [1] * self.trials, errors)
        self.compare_gaps("n1", (begin, end), 8)


if __name__ == "__main__":
    unittest.main()
