"""Trials that train with workers on several nodes: a trial has all of its nodes, or none, and goes on elsewhere without one of
them."""

import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import time
import unittest

import carried_test
import commands_test
import restart_test
import rig

TOOL = commands_test.BIN / "trainers_tool"


class Trainers:
    """A test's `cluster`, `directory`, and the `storage` of its experiment."""

    def experiment(self):
        return self.storage / "trials"

    def command(self, storage=None, **options):
        return [TOOL, storage or self.storage, json.dumps(options)]

    def on_nodes(self, **options):
        return self.start(self.command(**options), CADRE_CLUSTER=self.cluster_file())

    def results_of(self, process):
        output, errors = process.communicate(timeout=restart_test.DEADLINE_S)
        self.assertEqual(process.returncode, 0, errors + output)
        self.assertEqual(errors, "")
        return [line for line in output.splitlines() if line.startswith("result")]

    def undisturbed(self, **options):
        return self.results_of(self.start(self.command(self.directory / "here", **options | {"strategy": "pack", "milliseconds": 0})))

    def rows(self):
        return sum(len(file.read_text().splitlines()) for file in self.experiment().glob("*/result.json"))

    def wait_for_rows(self, number):
        restart_test.wait_until(lambda: self.rows() >= number, f"{number} results")

    def begun(self):
        """Returns (rank, host) of all ranks that have begun, by trial."""
        return {folder.name: re.findall(r"rank (\d) on (\S+)", "".join(file.read_text() for file in sorted(folder.glob("*/rank_?/stdout"))))
                for folder in self.experiment().glob("0*_rate*")}

    def workers(self, folder):
        """Returns the processes that print into such folders of trials."""
        found = {}
        for pid in self.cluster.processes("cadre-worker"):
            with contextlib.suppress(OSError):
                printed = pathlib.Path(os.readlink(f"/proc/{pid}/fd/2"))
                if printed.parent.match(f"{self.experiment()}/{folder}"):
                    found[printed.parent] = pid
        return found

    def attempts(self):
        with sqlite3.connect(f"file:{self.experiment() / 'experiment.db'}?mode=ro", uri=True) as store:
            return dict(store.execute("select trial, max(attempt) from results group by trial"))

    def expect_nothing_left(self):
        restart_test.wait_until(lambda: not self.cluster.processes(TOOL.name), "all agents have ended")

    def expect_what_one_machine_comes_to(self, process, **options):
        self.assertEqual(self.results_of(process), self.undisturbed(**options))
        self.expect_nothing_left()


class SeenTest(Trainers, commands_test.RemoteShell):
    """All nodes see the experiment's directory."""

    def setUp(self):
        super().setUp()
        self.storage = self.directory / "experiments"

    def test_a_lost_node_is_no_failure_and_its_trial_goes_on(self):
        process = self.on_nodes(trials=2, steps=30, milliseconds=100)
        self.wait_for_rows(8)
        self.cluster.kill(TOOL.name, node="n2")
        self.expect_what_one_machine_comes_to(process, trials=2, steps=30)
        self.assertFalse(list(self.experiment().glob("*/error.txt")))
        self.assertEqual(sorted(self.attempts().values()), [2, 2])

    def test_the_workers_of_a_trial_are_on_two_nodes(self):
        process = self.on_nodes(trials=3, steps=6)
        results = self.results_of(process)
        self.assertEqual(len(self.begun()), 3)
        for trial, ranks in self.begun().items():
            self.assertEqual([rank for rank, _ in ranks], ["0", "1"], trial)
            self.assertEqual({host for _, host in ranks}, {"n1", "n2"}, trial)
        self.assertEqual(results, self.undisturbed(trials=3, steps=6))
        shown = json.loads(self.cluster.run("ctl", [commands_test.BIN / "cadre", "nodes", self.experiment(), "--json"]).stdout)
        self.assertEqual([node["workers"] for node in shown["nodes"]], [3, 3], shown)
        self.expect_nothing_left()

    def test_a_trial_that_fits_on_one_node_is_on_one(self):
        self.results_of(self.on_nodes(trials=4, steps=2, strategy="pack"))
        self.assertEqual(len(self.begun()), 4)
        for trial, ranks in self.begun().items():
            self.assertEqual(len({host for _, host in ranks}), 1, trial)

    def test_a_trial_that_can_have_no_such_nodes_is_refused(self):
        self.group = {"options": {"hosts": "n1"}}
        _, errors = self.on_nodes(trials=1).communicate(timeout=restart_test.DEADLINE_S)
        self.assertIn("a trial needs more than the nodes have: strict_spread needs 2 machines, and there is one", errors)

    def test_a_population_comes_to_what_one_machine_comes_to(self):
        self.expect_what_one_machine_comes_to(self.on_nodes(trials=6, steps=8, pbt=True), trials=6, steps=8, pbt=True)

    def test_killed_controllers_are_continued(self):
        for _ in range(3):
            process = self.on_nodes(trials=4, steps=40, milliseconds=50)
            self.wait_for_rows(self.rows() + 16)
            self.cluster.kill(TOOL.name, node="ctl")
            process.wait()
        self.expect_what_one_machine_comes_to(self.on_nodes(trials=4, steps=40, milliseconds=50), trials=4, steps=40)

    def test_an_agent_that_dies_is_a_failure_of_its_trial(self):
        process = self.on_nodes(trials=2, steps=20, milliseconds=100)
        self.wait_for_rows(8)
        folder, victim = next(iter(self.workers("0*_rate*/agent_*").items()))
        os.kill(victim, signal.SIGKILL)
        self.expect_what_one_machine_comes_to(process, trials=2, steps=20)
        error = (folder.parent / "error.txt").read_text()
        self.assertIn("was ended by signal 9 (SIGKILL): the agent for its workers on another node", error)
        self.assertEqual(sorted(self.attempts().values()), [1, 2])

    def test_a_trial_may_be_silent_for_longer_than_a_node(self):
        """A trial that waits for its turn does not talk to its workers."""
        process = self.on_nodes(trials=1, steps=20, milliseconds=100)
        self.wait_for_rows(4)
        [trial] = self.workers("0*_rate*").values()
        os.kill(trial, signal.SIGSTOP)
        time.sleep(23)
        os.kill(trial, signal.SIGCONT)
        self.expect_what_one_machine_comes_to(process, trials=1, steps=20)
        self.assertEqual([len(ranks) for ranks in self.begun().values()], [2], "they were not started again")

    def test_a_node_that_is_cut_off_for_a_while_loses_nothing(self):
        process = self.on_nodes(trials=2, steps=30, milliseconds=100)
        self.wait_for_rows(8)
        self.cluster.cut("n2", seconds=3)
        self.expect_what_one_machine_comes_to(process, trials=2, steps=30)
        self.assertEqual(sorted(self.attempts().values()), [1, 1])


class CarriedTest(Trainers, carried_test.Carried):
    """No node sees the experiment's directory: what a trial's workers save comes to the trial's node, and from there here."""

    def test_a_population_comes_to_what_one_machine_comes_to(self):
        self.expect_what_one_machine_comes_to(self.on_nodes(trials=6, steps=8, pbt=True), trials=6, steps=8, pbt=True)
        for checkpoint in self.experiment().glob("*/checkpoint_*"):
            self.assertTrue({"rank_0", "rank_1"} < set(os.listdir(checkpoint)), checkpoint)

    def test_a_lost_node_and_a_killed_controller_lose_nothing(self):
        process = self.on_nodes(trials=2, steps=30, milliseconds=100)
        self.wait_for_rows(8)
        self.cluster.kill(TOOL.name, node="n2")
        self.wait_for_rows(24)
        self.cluster.kill(TOOL.name, node="ctl")
        process.wait(restart_test.DEADLINE_S)
        self.expect_what_one_machine_comes_to(self.on_nodes(trials=2, steps=30, milliseconds=100), trials=2, steps=30)


if __name__ == "__main__":
    rig.skip_unless_there(slurm=False)
    unittest.main()
